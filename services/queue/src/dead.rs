//! Dead letters: messages that nobody could work off.

use jiff::Timestamp;
use keyward_engine::{Commit, Expect, Json, Version};

use crate::inspect::{Listing, Part, page};
use crate::job::{self, Record};
use crate::moment::Moment;
use crate::queue::{Committed, TRIES};
use crate::row::Row;
use crate::{Error, PastAttempt, Queue, Result};

/// A message that failed too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its id.
    pub id: String,
    /// What was enqueued.
    pub payload: Json,
    /// The version of its content.
    pub version: Option<String>,
    /// Why it is here.
    pub reason: String,
    /// How many attempts were made.
    pub retry_count: u32,
    /// When it was enqueued.
    pub created: Timestamp,
    /// When it became a dead letter.
    pub died: Timestamp,
    /// The attempts, the latest of them.
    pub history: Vec<PastAttempt>,
}

impl DeadLetter {
    fn new(id: String, row: Row) -> Self {
        Self {
            id,
            reason: row.reason.or(row.error_message).unwrap_or_default(),
            retry_count: row.retry_count,
            created: row.created_at.time(),
            died: row.dead_at.map_or(row.created_at.time(), Moment::time),
            history: row.history,
            version: row.version,
            payload: row.payload,
        }
    }
}

/// What became of a dead letter that was to be put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Requeued {
    /// It is in line again, as the last one, with all its attempts before it.
    Done,
    /// There is no such dead letter.
    Unknown,
    /// A message of its id is in the queue; or it was a job, and its id is another job's by now.
    Occupied,
}

impl Queue {
    /// One dead letter.
    pub async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>> {
        Ok(self.find(id).await?.dead.map(|(row, _)| DeadLetter::new(id.to_owned(), row)))
    }

    /// One page of the dead letters, by id.
    pub async fn dead_letters(&self, listing: &Listing) -> Result<Vec<DeadLetter>> {
        Ok(self.dead_letters_part(listing, usize::MAX).await?.items)
    }

    /// The same, ending with the dead letter that brings the page to `bytes_max`.
    pub async fn dead_letters_part(
        &self,
        listing: &Listing,
        bytes_max: usize,
    ) -> Result<Part<DeadLetter>> {
        let places = &self.inner.places;
        let rows = page(
            self,
            places.dead_letters_range(),
            listing.after.as_deref().map(|id| places.dead_letter(id)),
            (listing.limit, bytes_max),
            |key| places.id_of_dead_letter(key),
            |_| true,
        );
        let Part { items, next } = rows.await?;
        let items = items.into_iter().map(|(id, row)| DeadLetter::new(id, row)).collect();
        Ok(Part { items, next })
    }

    /// Puts a dead letter back in line, with its attempts counted anew. Its history stays.
    pub async fn requeue(&self, id: &str) -> Result<Requeued> {
        let mut tried = false;
        for _ in 0..TRIES {
            let found = self.find(id).await.map_err(|error| error.after(tried))?;
            let Some((dead, version)) = found.dead else {
                let is_done = tried && found.row.is_some();
                return Ok(if is_done { Requeued::Done } else { Requeued::Unknown });
            };
            if found.row.is_some() {
                return Ok(Requeued::Occupied);
            }
            let revival = self.revival(id, dead, version).await;
            let Some(revival) = revival.map_err(|error| error.after(tried))? else {
                return Ok(Requeued::Occupied);
            };
            match self.commit(revival).await.map_err(|error| error.after(tried))? {
                Committed::Applied(_) => return Ok(Requeued::Done),
                Committed::Conflicted(_) => {}
                Committed::Unknown(_) => tried = true,
            }
        }
        Err(self.contended(format_args!("the dead letter {id}")))
    }

    /// What puts a dead letter back; `None` if its job's id is another job's by now.
    async fn revival(&self, id: &str, mut row: Row, version: Version) -> Result<Option<Commit>> {
        let places = &self.inner.places;
        row.make_ready();
        row.retry_count = 0;
        row.enqueued_at = Some(self.now());
        row.dead_at = None;
        row.reason = None;
        let mut commit = Commit::new()
            .check(places.dead_letter(id), Expect::Version(version))
            .check(places.row(id), Expect::Absent)
            .delete(places.dead_letter(id));
        if let Some(tag) = &row.job {
            let key = job::key(id)?;
            let expect = match self.inner.store.get(&key).await? {
                None => Expect::Absent,
                Some(entry) => {
                    let record = Record::decode(&key, &entry)?;
                    if record.queue != self.name() || record.digest != tag.digest {
                        return Ok(None);
                    }
                    Expect::Version(entry.version)
                }
            };
            commit = commit.check(key.clone(), expect).put(key, job::submitted(self.name(), tag)?);
        }
        self.put_row(commit, id, &row).map(Some)
    }

    /// Puts back every dead letter that `wanted` says yes to, one after the other, and tells how
    /// many.
    pub async fn requeue_where(&self, mut wanted: impl FnMut(&DeadLetter) -> bool) -> Result<u64> {
        let mut count = 0;
        let mut listing = Listing { limit: Self::LIST_MAX, ..Listing::default() };
        loop {
            let page = self.dead_letters(&listing).await?;
            let Some(last) = page.last() else { return Ok(count) };
            listing.after = Some(last.id.clone());
            for dead in page.iter().filter(|dead| wanted(dead)) {
                count += u64::from(self.requeue(&dead.id).await? == Requeued::Done);
            }
        }
    }

    /// Removes a dead letter for good; whether there was one.
    pub async fn drop_dead_letter(&self, id: &str) -> Result<bool> {
        let key = self.inner.places.dead_letter(id);
        let mut tried = false;
        for _ in 0..TRIES {
            let found = self.inner.store.get(&key).await;
            let found = found.map_err(|error| Error::from(error).after(tried))?;
            let Some(entry) = found else { return Ok(tried) };
            let commit = Commit::new()
                .check(key.clone(), Expect::Version(entry.version))
                .delete(key.clone());
            match self.commit(commit).await.map_err(|error| error.after(tried))? {
                Committed::Applied(_) => return Ok(true),
                Committed::Conflicted(_) => {}
                Committed::Unknown(_) => tried = true,
            }
        }
        Err(self.contended(format_args!("the dead letter {id}")))
    }

    /// Removes every dead letter that `wanted` says yes to, and tells how many.
    pub async fn drop_dead_letters_where(
        &self,
        mut wanted: impl FnMut(&DeadLetter) -> bool,
    ) -> Result<u64> {
        let mut count = 0;
        let mut listing = Listing { limit: Self::LIST_MAX, ..Listing::default() };
        loop {
            let page = self.dead_letters(&listing).await?;
            let Some(last) = page.last() else { return Ok(count) };
            listing.after = Some(last.id.clone());
            for dead in page.iter().filter(|dead| wanted(dead)) {
                count += u64::from(self.drop_dead_letter(&dead.id).await?);
            }
        }
    }
}
