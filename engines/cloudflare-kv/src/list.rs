//! Pages of a range.
//!
//! A listing comes in the byte order of names, which is not the order of keys. A page of the API is only ever asked
//! for again from where it began, and rows are told by name, not by count: what other writers add or remove on the
//! way moves nothing.

use keyward_engine::{Cursor, Entry, Error, ErrorKind, Page, PageBytes, Result, Row, Scan, Want};
use keyward_key::{Key, KeyRange};
use serde::{Deserialize, Serialize};

use crate::CloudflareKv;
use crate::client::{Found, Name};
use crate::engine::no_namespace;
use crate::name::{NAME_BYTES_MAX, key_of, prefix_of};
use crate::options::{GET_KEYS_MAX, LIST_NAMES_MAX};

/// A page with values ends when it has about so many bytes.
const PAGE_BYTES_MAX: usize = 32 << 20;

/// Where a page ended.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    /// The cursor of the API's page to go on with; its first page has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
    /// The last name of that page that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

impl Place {
    fn read(cursor: Option<&Cursor>) -> Result<Self> {
        let Some(cursor) = cursor else { return Ok(Self::default()) };
        serde_json::from_slice(cursor.as_bytes()).map_err(|_| {
            let message = "the cursor is not one of a scan of a store in Workers KV";
            Error::new(ErrorKind::Invalid, message)
        })
    }

    fn cursor(&self) -> Result<Cursor> {
        let bytes = serde_json::to_vec(self).map_err(|error| {
            Error::new(ErrorKind::Internal, "a cursor cannot be written").caused_by(error)
        })?;
        Ok(Cursor::new(bytes))
    }
}

impl CloudflareKv {
    /// One page of a range.
    pub(crate) async fn page(&self, scan: &Scan) -> Result<Page> {
        let prefix = prefix_of(&scan.range);
        if prefix.len() > NAME_BYTES_MAX {
            return Ok(Page::default());
        }
        let place = Place::read(scan.after.as_ref())?;
        let limit = scan.limit.min(LIST_NAMES_MAX);
        let listed = self.client.list(&prefix, place.page.as_deref(), limit).await?;
        let listed = listed.ok_or_else(|| no_namespace(&self.namespace))?;
        let names = listed.names.into_iter();
        let mut names: Vec<Name> = names
            .filter(|name| place.after.as_ref().is_none_or(|after| name.name > *after))
            .collect();
        let is_cut = names.len() > limit;
        names.truncate(limit);
        let (rows, given) = match scan.want {
            Want::Keys => (self.keys(&names, &scan.range), names.len()),
            Want::Entries => self.entries(&names, &scan.range).await?,
        };
        let next = if given < names.len() || is_cut {
            let last = given.checked_sub(1).and_then(|at| names.get(at));
            Some(Place { after: last.map(|name| name.name.clone()).or(place.after), ..place })
        } else {
            listed.next.map(|page| Place { page: Some(page), after: None })
        };
        let next = next.map(|place| place.cursor()).transpose()?;
        Ok(Page { rows, next })
    }

    /// How many entries there are.
    pub(crate) async fn count(&self) -> Result<u64> {
        let (mut count, mut page) = (0, None);
        loop {
            let listed = self.client.list("", page.as_deref(), LIST_NAMES_MAX).await?;
            let listed = listed.ok_or_else(|| no_namespace(&self.namespace))?;
            count += self.keys(&listed.names, &KeyRange::all()).len() as u64;
            if listed.next.is_none() {
                return Ok(count);
            }
            page = listed.next;
        }
    }

    /// The rows of those names that are in the range and have not ended.
    fn keys(&self, names: &[Name], range: &KeyRange) -> Vec<Row> {
        let here = names.iter().filter_map(|name| self.key_in(name, range));
        here.map(|key| Row { key, entry: None }).collect()
    }

    fn key_in(&self, name: &Name, range: &KeyRange) -> Option<Key> {
        let key = key_of(&name.name).filter(|key| range.contains(key))?;
        let is_over = self.is_over(name.metadata.as_deref(), name.expiration);
        (!is_over).then_some(key)
    }

    /// Rows with their entries, and how many of the names they are of: fewer, if the page is full before.
    async fn entries(&self, names: &[Name], range: &KeyRange) -> Result<(Vec<Row>, usize)> {
        let mut bytes = PageBytes::new(PAGE_BYTES_MAX);
        let mut rows = Vec::new();
        let mut given = 0;
        for some in names.chunks(GET_KEYS_MAX) {
            let keys: Vec<(&str, Key)> = some
                .iter()
                .filter_map(|name| Some((name.name.as_str(), self.key_in(name, range)?)))
                .collect();
            let asked: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
            let mut found = self.client.get(&asked).await?;
            for (name, key) in keys {
                let found: Option<Found> = found.remove(name);
                let entry: Option<Entry> = found.and_then(|found| self.entry(found));
                let Some(entry) = entry else { continue };
                bytes.add_entry(&entry);
                rows.push(Row { key, entry: Some(entry) });
            }
            given += some.len();
            if bytes.is_full() {
                break;
            }
        }
        Ok((rows, given))
    }
}
