//! Reads of single keys, and of many at one moment.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::{Get, KeysAndAttributes, TransactGetItem};
use keyward_engine::{Entry, Error, ErrorKind, Result};
use keyward_key::Key;

use crate::client::Pace;
use crate::engine::DynamoDb;
use crate::item::{self, Item, PLACE_AND_VERSION, Stored};
use crate::layout::{PARTITION, Place, SORT};
use crate::steps::internal;

/// How often a large read is tried while others write what it reads.
const SNAPSHOTS_MAX: usize = 16;
const DOING: &str = "cannot read";

/// What is there, by place.
pub(crate) type Found = HashMap<Place, Item>;

impl DynamoDb {
    pub(crate) async fn read(&self, key: &Key) -> Result<Option<Entry>> {
        let place = self.layout().place(key);
        let request = || {
            let request = self.client().sdk.get_item().table_name(&self.client().options.table);
            request.set_key(Some(item::at(&place))).consistent_read(true).send()
        };
        let answer = self.client().send(DOING, request).await?;
        answer.item.and_then(|item| self.shown(&item, self.client().now_ms())).transpose()
    }

    /// The entries of some keys at one moment.
    pub(crate) async fn read_together(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        let layout = self.layout();
        let places: Vec<Place> = keys.iter().map(|key| layout.place(key)).collect();
        let mut distinct: Vec<Place> = places.clone();
        let mut seen = HashSet::new();
        distinct.retain(|place| seen.insert(place.clone()));
        let found = match self.snapshot(&distinct).await? {
            Some(found) => found,
            None => self.large_snapshot(&distinct).await?,
        };
        let now_ms = self.client().now_ms();
        let entries = places
            .iter()
            .map(|place| found.get(place).and_then(|item| self.shown(item, now_ms)).transpose());
        entries.collect()
    }

    /// An item as an entry, unless it has expired.
    fn shown(&self, item: &Item, now_ms: i64) -> Option<Result<Entry>> {
        let stored = Stored(item);
        if stored.version().is_some() && !stored.is_present(now_ms) {
            return None;
        }
        Some(stored.entry())
    }

    /// The items at some places at one moment; none if they are too large for one transaction.
    async fn snapshot(&self, places: &[Place]) -> Result<Option<Found>> {
        let gets = places.iter().map(|place| {
            let get = Get::builder().table_name(&self.client().options.table);
            let get = get.set_key(Some(item::at(place))).build();
            let get = get.map_err(|error| internal(&error.to_string()))?;
            Ok(TransactGetItem::builder().get(get).build())
        });
        let gets = gets.collect::<Result<Vec<_>>>()?;
        let request = || {
            let request = self.client().sdk.transact_get_items();
            request.set_transact_items(Some(gets.clone())).send()
        };
        let answer = match self.client().send(DOING, request).await {
            Ok(answer) => answer,
            // Nothing else can be wrong with several places, so they hold more than it takes.
            Err(failure) if failure.is_invalid() && places.len() > 1 => return Ok(None),
            Err(failure) => return Err(failure.into()),
        };
        let items = answer.responses.unwrap_or_default().into_iter();
        let found = places.iter().zip(items);
        let found = found.filter_map(|(place, response)| Some((place.clone(), response.item?)));
        Ok(Some(found.filter(|(_, item)| !item.is_empty()).collect()))
    }

    /// The same for any size: all items, then at one moment those places that were empty, and then the versions of
    /// the others. If both still are as they were, that moment is the one that was read: what has the same
    /// version before it and after it had it then.
    async fn large_snapshot(&self, places: &[Place]) -> Result<Found> {
        let mut pace = Pace::new(self.client().options.retry_budget);
        for _ in 0..SNAPSHOTS_MAX {
            let found = self.batch(places, None).await?;
            let (there, empty): (Vec<Place>, Vec<Place>) =
                places.iter().cloned().partition(|place| found.contains_key(place));
            let is_still_empty = match empty.is_empty() {
                true => true,
                false => self.snapshot(&empty).await?.is_some_and(|found| found.is_empty()),
            };
            if is_still_empty {
                let again = self.batch(&there, Some(PLACE_AND_VERSION)).await?;
                let version = |found: &Found, place| {
                    found.get(place).and_then(|item| Stored(item).version().map(str::to_owned))
                };
                if there.iter().all(|place| version(&found, place) == version(&again, place)) {
                    return Ok(found);
                }
            }
            if !pace.again().await {
                break;
            }
        }
        let message = "cannot read: the entries are too large for one transaction, and others write them all the time";
        Err(Error::new(ErrorKind::Unavailable, message).advise("Read fewer keys at a time."))
    }

    /// The items at some places, each as it is when it is read.
    pub(crate) async fn batch(&self, places: &[Place], attributes: Option<&str>) -> Result<Found> {
        let table = &self.client().options.table;
        let mut found = Found::new();
        let mut left: Vec<Item> = places.iter().map(item::at).collect();
        let mut pace = Pace::new(self.client().options.retry_budget);
        while !left.is_empty() {
            let keys = KeysAndAttributes::builder()
                .set_keys(Some(left))
                .consistent_read(true)
                .set_projection_expression(attributes.map(str::to_owned));
            let keys = keys.build().map_err(|error| internal(&error.to_string()))?;
            let request =
                || self.client().sdk.batch_get_item().request_items(table, keys.clone()).send();
            let answer = self.client().send(DOING, request).await?;
            let items =
                answer.responses.and_then(|mut items| items.remove(table)).unwrap_or_default();
            let is_progress = !items.is_empty();
            for item in items {
                let stored = Stored(&item);
                if let (Some(partition), Some(sort)) = (stored.bytes(PARTITION), stored.bytes(SORT))
                {
                    let place = Place { partition: partition.to_vec(), sort: sort.to_vec() };
                    found.insert(place, item);
                }
            }
            let unread = answer.unprocessed_keys.and_then(|mut unread| unread.remove(table));
            left = unread.map(|unread| unread.keys).unwrap_or_default();
            // What did not fit into the answer is asked for at once.
            if !left.is_empty() && !is_progress && !pace.again().await {
                let message = "cannot read: DynamoDB has no capacity left for this table";
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
        }
        Ok(found)
    }
}
