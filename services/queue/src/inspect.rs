//! Looking at a queue, and stopping it.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use keyward_engine::{Commit, Cursor, Json, List, Listed, PageBytes, Put, Scan, Store, Want};
use keyward_key::{Key, KeyRange, Prefix};

use crate::enqueue::json;
use crate::job::Trace;
use crate::moment::Moment;
use crate::queue::{Committed, TRIES};
use crate::row::{Row, State};
use crate::{Error, Queue, Result};

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<T> {
    /// What it shows, by id.
    pub items: Vec<T>,
    /// The id after which there may be more; none at the end.
    pub next: Option<String>,
}

/// Which page to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Only what comes after this id.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Only messages in this state.
    pub state: Option<State>,
}

impl Default for Listing {
    /// The first hundred, in any state.
    fn default() -> Self {
        Self { after: None, limit: 100, state: None }
    }
}

/// A message, as it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Its id.
    pub id: String,
    /// What was enqueued.
    pub payload: Json,
    /// The version of its content.
    pub version: Option<String>,
    /// Where it is.
    pub state: State,
    /// How many attempts ended without a completion.
    pub retry_count: u32,
    /// When it was enqueued.
    pub created: Timestamp,
    /// Until when it waits; of a claimed one, when its lease was to end at first.
    pub due: Option<Timestamp>,
    /// Who has it in hand.
    pub holder: Option<String>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// Whether it is a job.
    pub is_job: bool,
}

impl QueuedMessage {
    fn new(id: String, row: Row) -> Self {
        Self {
            id,
            state: row.state,
            retry_count: row.retry_count,
            created: row.created_at.time(),
            due: row.due_at.map(Moment::time),
            holder: row.attempt.map(|attempt| attempt.by),
            error: row.error_message,
            is_job: row.job.is_some(),
            version: row.version,
            payload: row.payload,
        }
    }
}

/// A number of rows that was counted up to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// So many.
    pub count: u64,
    /// Whether there are more than were counted.
    pub more: bool,
}

/// What a queue has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStats {
    /// Messages in line.
    pub ready: Count,
    /// Messages that wait for their time.
    pub delayed: Count,
    /// Messages in the hands of workers, also of dead ones who were not taken over yet.
    pub claimed: Count,
    /// Dead letters.
    pub dead: Count,
    /// How long the first in line has waited, by this process's clock.
    pub oldest: Option<SignedDuration>,
    /// Why the queue is paused, if it is.
    pub paused: Option<String>,
}

impl Queue {
    /// The most messages on one page.
    pub const LIST_MAX: usize = 1_000;
    /// How far rows are counted.
    pub const COUNT_MAX: u64 = 100_000;

    /// One message of the queue.
    pub async fn message(&self, id: &str) -> Result<Option<QueuedMessage>> {
        Ok(self.find(id).await?.row.map(|(row, _)| QueuedMessage::new(id.to_owned(), row)))
    }

    /// One page of the messages, by id.
    pub async fn list(&self, listing: &Listing) -> Result<Vec<QueuedMessage>> {
        Ok(self.list_part(listing, usize::MAX).await?.items)
    }

    /// The same, ending with the message that brings the page to `bytes_max`.
    pub async fn list_part(
        &self,
        listing: &Listing,
        bytes_max: usize,
    ) -> Result<Part<QueuedMessage>> {
        let places = &self.inner.places;
        let rows = page(
            self,
            places.rows_range(),
            listing.after.as_deref().map(|id| places.row(id)),
            (listing.limit, bytes_max),
            |key| places.id_of_row(key),
            |row| listing.state.is_none_or(|state| row.state == state),
        );
        let Part { items, next } = rows.await?;
        let items = items.into_iter().map(|(id, row)| QueuedMessage::new(id, row)).collect();
        Ok(Part { items, next })
    }

    /// The first messages in line, in their order, without claiming them.
    pub async fn peek(&self, limit: usize) -> Result<Vec<QueuedMessage>> {
        let Self { inner, .. } = self;
        let limit = limit.clamp(1, Self::LIST_MAX);
        let scan = Scan::new(inner.places.ready_range()).keys_only().limit(limit);
        let head = inner.store.scan(&scan).await?;
        let ids: Vec<String> = head
            .rows
            .iter()
            .filter_map(|row| inner.places.ready_entry(&row.key))
            .map(|entry| entry.id)
            .collect();
        let keys: Vec<Key> = ids.iter().map(|id| inner.places.row(id)).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let found = inner.store.get_many(&keys).await?;
        let mut messages = Vec::new();
        for ((id, key), entry) in ids.into_iter().zip(keys).zip(found) {
            if let Some(entry) = entry {
                messages.push(QueuedMessage::new(id, self.decode(&key, &entry)?));
            }
        }
        Ok(messages)
    }

    /// Removes a message for good, also one that is being worked on, whose completion is then
    /// refused; whether there was one. If it is a job, its status says so.
    pub async fn drop_message(&self, id: &str) -> Result<bool> {
        let mut tried = false;
        for _ in 0..TRIES {
            let found = self.find(id).await.map_err(|error| error.after(tried))?;
            let Some((row, version)) = found.row else { return Ok(tried) };
            let commit = self.remove_row(Commit::new(), id, &row, &version);
            let trace = Trace::dropped("the message was dropped from its queue");
            let commit = self.finish_job(commit, id, &row, self.now(), Err(trace))?;
            match self.commit(commit).await.map_err(|error| error.after(tried))? {
                Committed::Applied(_) => return Ok(true),
                Committed::Conflicted(_) => {}
                Committed::Unknown(_) => tried = true,
            }
        }
        Err(self.contended(format_args!("the message {id}")))
    }

    /// Pauses the queue: from now on nothing is claimed, by anybody. What is being worked on goes
    /// on, and messages can be enqueued.
    pub async fn pause(&self, reason: &str) -> Result<()> {
        let reason = json(&crate::row::shortened(reason))?;
        let commit =
            || Commit::new().put(self.inner.places.paused().clone(), Put::new(reason.clone()));
        self.repeatedly(commit).await
    }

    /// Lets a paused queue go on.
    pub async fn resume(&self) -> Result<()> {
        self.repeatedly(|| Commit::new().delete(self.inner.places.paused().clone())).await
    }

    /// Commits what may be done twice, until its answer arrives.
    async fn repeatedly(&self, commit: impl Fn() -> Commit) -> Result<()> {
        let mut unknown = None;
        for _ in 0..TRIES {
            let committed = self.commit(commit()).await;
            match committed.map_err(|error| error.after(unknown.is_some()))? {
                Committed::Applied(_) => return Ok(()),
                Committed::Conflicted(_) => {}
                Committed::Unknown(error) => unknown = Some(error),
            }
        }
        Err(unknown.map_or_else(|| self.contended("the pause"), Error::from))
    }

    /// Why the queue is paused, if it is.
    pub async fn paused(&self) -> Result<Option<String>> {
        let entry = self.inner.store.get(self.inner.places.paused()).await?;
        Ok(entry.map(|entry| {
            let text = serde_json::from_str(entry.value.as_str());
            text.unwrap_or_else(|_| entry.value.as_str().to_owned())
        }))
    }

    /// What the queue has. Rows are counted in the index, up to [`Queue::COUNT_MAX`] of each
    /// section: numbers kept beside the rows would be one key that every commit writes, and on shared
    /// databases every worker would wait for it.
    pub async fn stats(&self) -> Result<QueueStats> {
        self.stats_up_to(Self::COUNT_MAX).await
    }

    /// The same, counting at most so many rows of each section.
    pub async fn stats_up_to(&self, count_max: u64) -> Result<QueueStats> {
        let Self { inner, .. } = self;
        let places = &inner.places;
        let first = Scan::new(places.ready_range()).keys_only().limit(1);
        let first = inner.store.scan(&first).await?;
        let first = first.rows.first().and_then(|row| places.ready_entry(&row.key));
        let mut claimed = 0;
        let see = |value: &str| claimed += u64::from(value == "\"claimed\"");
        let due = self.count(places.due_range(), Want::Entries, count_max, see).await?;
        Ok(QueueStats {
            ready: self.count(places.ready_range(), Want::Keys, count_max, |_| ()).await?,
            delayed: Count { count: due.count - claimed, more: due.more },
            claimed: Count { count: claimed, more: due.more },
            dead: self.count(places.dead_letters_range(), Want::Keys, count_max, |_| ()).await?,
            oldest: first.map(|entry| self.now().time().duration_since(entry.at.time())),
            paused: self.paused().await?,
        })
    }

    /// Counts rows, showing what each holds if that is wanted.
    async fn count(
        &self,
        range: KeyRange,
        want: Want,
        count_max: u64,
        mut see: impl FnMut(&str),
    ) -> Result<Count> {
        let mut count = 0;
        let mut cursor = None;
        loop {
            let limit =
                usize::try_from(count_max.saturating_sub(count).max(1)).unwrap_or(usize::MAX);
            let limit = limit.min(Self::LIST_MAX);
            let scan = Scan { want, ..Scan::new(range.clone()).limit(limit).after(cursor) };
            let page = self.inner.store.scan(&scan).await?;
            for row in &page.rows {
                see(row.entry.as_ref().map_or("", |entry| entry.value.as_str()));
            }
            count += page.rows.len() as u64;
            cursor = page.next;
            if cursor.is_none() || count >= count_max {
                return Ok(Count { count, more: cursor.is_some() });
            }
        }
    }
}

/// A page of rows of one of a queue's places. What is no row is left out.
pub(crate) async fn page(
    queue: &Queue,
    range: KeyRange,
    after: Option<Key>,
    (limit, bytes_max): (usize, usize),
    id_of: impl Fn(&Key) -> Option<String>,
    wanted: impl Fn(&Row) -> bool,
) -> Result<Part<(String, Row)>> {
    let limit = limit.clamp(1, Queue::LIST_MAX);
    let mut cursor = after.map(|key| Cursor::after_key(&key));
    let mut bytes = PageBytes::new(bytes_max);
    let mut items = Vec::new();
    loop {
        let scan = Scan::new(range.clone()).limit(limit.min(bytes.rows_to_read())).after(cursor);
        let page = queue.store().scan(&scan).await?;
        let mut read = page.rows.into_iter();
        while let Some(found) = read.next() {
            let (Some(id), Some(entry)) = (id_of(&found.key), found.entry) else { continue };
            let Ok(row) = queue.decode(&found.key, &entry) else { continue };
            if !wanted(&row) {
                continue;
            }
            bytes.add_entry(&entry);
            items.push((id, row));
            if items.len() == limit || bytes.is_full() {
                let is_more = read.len() > 0 || page.next.is_some();
                let next = items.last().filter(|_| is_more).map(|(id, _)| id.clone());
                return Ok(Part { items, next });
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(Part { items, next: None });
        }
    }
}

/// The names of the queues that a store has at their default places, at most `max` of each kind.
pub async fn queue_names(store: &Store, max: usize) -> Result<Vec<String>> {
    let roots: [&[&str]; 3] = [&["queue"], &["dead-letter"], &["system", "queue"]];
    let mut names = BTreeSet::new();
    for root in roots {
        let mut list = List::new(Prefix::from_segments(root)).depth(1).limit(max.max(1));
        let mut seen = 0;
        loop {
            let page = store.list(&list).await?;
            seen += page.items.len();
            for item in page.items {
                if let Listed::Prefix(prefix) = item {
                    names.extend(prefix.segments().nth(root.len()).map(|name| name.into_owned()));
                }
            }
            match page.next {
                Some(next) if seen < max => list = list.after(Some(next)),
                _ => break,
            }
        }
    }
    Ok(names.into_iter().collect())
}
