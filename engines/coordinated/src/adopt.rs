//! Adoption: taking over a value store that another program filled.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{
    Commit, Entry, Error, ErrorKind, Expect, Expiry, Json, Order, Outcome, Put, Result, Scan,
    Version,
};
use keyward_key::{Key, KeyRange};

use crate::claim::StoreRow;
use crate::head::Head;
use crate::layout;
use crate::shared::Shared;
use crate::tasks::within;

/// How many keys are adopted in one commit at most.
const ADOPTED_AT_ONCE: usize = 256;
/// How many values are read at once: what value stores read in one request.
const READ_AT_ONCE: usize = 100;

/// How long the second listing waits for one answer of the value store, so that an opening does not wait for one that
/// hangs.
const RELIST_STEP_WAIT: Duration = Duration::from_secs(5);
/// How long a listing that failed rests.
const RELIST_AFTER: Duration = Duration::from_secs(30);

/// What [`Coordinated::adopt_new`](crate::Coordinated::adopt_new) found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Keys in the value store.
    pub listed: usize,
    /// Keys that another program had added, and that are now part of the store.
    pub added: usize,
    /// Keys that another program had removed, and that are now absent here too.
    pub removed: usize,
    /// Keys that cannot be part of the store: too long for the coordinator, or below `system:coordinator`.
    pub skipped: usize,
}

impl Shared {
    /// Makes sure that the coordinator is for this store, and adopts what the value store holds as far as that is to
    /// be done now: the first time, once more when listings have caught up with that, and when the options say so.
    pub async fn claim_and_adopt(&self) -> Result<()> {
        let row = self.claim().await?;
        let is_first = !row.adopted && row.listed.is_none();
        if is_first || self.options.rescan {
            self.adopt_new().await?;
        } else if row.adopted && row.copied {
            self.forget_copies().await?;
        } else if !row.adopted {
            self.relist_at(row.listed.map(|at| self.visible_at(at)));
            self.relist_if_due().await;
        }
        Ok(())
    }

    /// Lists the value store for the second time, if it is time to, which completes the adoption. What fails is tried
    /// again later.
    pub async fn relist_if_due(&self) {
        let now = self.now();
        if self.take_relisting(now) && self.list(RELIST_STEP_WAIT).await.is_err() {
            self.relist_at(Some(now.saturating_add(RELIST_AFTER).unwrap_or(Timestamp::MAX)));
        }
    }

    /// [`Coordinated::adopt_new`](crate::Coordinated::adopt_new).
    pub async fn adopt_new(&self) -> Result<Adopted> {
        // The value store's own timeouts apply.
        self.list(Duration::MAX).await
    }

    /// Lists the value store, and waits not longer than that for one of its answers.
    async fn list(&self, step_wait: Duration) -> Result<Adopted> {
        let began = self.now();
        let row = self.store_row().await?;
        // Before the first listing, nothing can be missing from it.
        let is_first = row.as_ref().is_some_and(|(_, row)| !row.adopted && row.listed.is_none());
        // The row while its store is being adopted: what must hold for a kept key to be copied.
        let adopting = row.filter(|(_, row)| !row.adopted).map(|(version, _)| version);
        let mut adopted = Adopted::default();
        let mut listed: HashSet<Key> = HashSet::new();
        let limit = self.values.capabilities().limits.scan_rows_max.min(1_000);
        let mut scan = Scan::new(KeyRange::all()).keys_only().limit(limit);
        loop {
            let page = answer(step_wait, self.values.scan(&scan)).await?;
            let mut data = Vec::new();
            let mut kept = Vec::new();
            for row in page.rows {
                adopted.listed += 1;
                let is_long = row.key.as_bytes().len() > self.capabilities.limits.key_bytes_max;
                if is_long || layout::is_reserved(&row.key) {
                    adopted.skipped += 1;
                } else if self.is_kept(&row.key) {
                    kept.push(row.key);
                } else {
                    listed.insert(row.key.clone());
                    data.push(row.key);
                }
            }
            adopted.added += self.adopt(&data).await?;
            if let Some(version) = &adopting {
                adopted.added += self.copy(&kept, version, step_wait).await?;
            }
            if page.next.is_none() {
                break;
            }
            scan.after = page.next;
        }
        if !is_first {
            adopted.removed = self.remove_unlisted(&listed, step_wait).await?;
        }
        if adopting.is_some() {
            self.note_listed(began).await?;
        }
        Ok(adopted)
    }

    /// Notes that the value store was listed, by a listing that began at some moment, and plans the next one. The first
    /// listing after which nothing can be missing completes the adoption.
    async fn note_listed(&self, began: Timestamp) -> Result<()> {
        let Some((version, row)) = self.store_row().await? else { return Ok(()) };
        let listed = row.listed.unwrap_or_else(|| self.now());
        let next = self.visible_at(listed);
        let adopted =
            row.adopted || (began >= next && row.listed.is_some()) || self.lag().is_zero();
        self.relist_at((!adopted).then_some(next));
        if row.adopted == adopted && row.listed.is_some() {
            return Ok(());
        }
        let copied = !adopted || {
            let (copies, _) = self.coordinator_keys(layout::copied_range(), None).await?;
            !copies.is_empty()
        };
        let row = StoreRow { adopted, listed: Some(listed), copied, ..row };
        // A conflict means that another process has noted it.
        let _: Outcome = self.write_store_row(version, &row).await?;
        if adopted && copied {
            self.forget_copies().await?;
        }
        Ok(())
    }

    /// Deletes the rows that say which keys adoption has copied, once it is complete.
    async fn forget_copies(&self) -> Result<()> {
        loop {
            let (rows, _) = self.coordinator_keys(layout::copied_range(), None).await?;
            if rows.is_empty() {
                break;
            }
            for some in rows.chunks(self.adopted_at_once()) {
                let commit =
                    some.iter().fold(Commit::new(), |commit, row| commit.delete(row.clone()));
                let _: Outcome = self.coordinator.commit(commit).await?;
            }
        }
        if let Some((version, row)) = self.store_row().await?
            && row.adopted
            && row.copied
        {
            // A conflict means that another process has noted it.
            let _: Outcome =
                self.write_store_row(version, &StoreRow { copied: false, ..row }).await?;
        }
        Ok(())
    }

    /// Gives a head to each key that has no row yet.
    async fn adopt(&self, keys: &[Key]) -> Result<usize> {
        let mut adopted = 0;
        for some in keys.chunks(self.adopted_at_once()) {
            let rows = self.rows_of(some).await?;
            let mut new: Vec<Key> = some
                .iter()
                .zip(rows)
                .filter(|(_, rows)| rows.head.is_none() && rows.pending.is_none())
                .map(|(key, _)| key.clone())
                .collect();
            // A listing has just shown them.
            let head = Put::new(Head::Adopted(Some(self.now())).to_json());
            while !new.is_empty() {
                let commit = new.iter().fold(Commit::new(), |commit, key| {
                    commit
                        .check(key.clone(), Expect::Absent)
                        .check(layout::pending(key), Expect::Absent)
                        .put(key.clone(), head.clone())
                });
                match self.coordinator.commit(commit).await? {
                    Outcome::Applied { .. } => {
                        adopted += new.len();
                        break;
                    }
                    // Somebody wrote or deleted those meanwhile.
                    Outcome::Conflicted { failed } => retain_passed(&mut new, &failed),
                }
            }
        }
        Ok(adopted)
    }

    /// Copies keys that stay in the coordinator, while the store is being adopted, and each only once. They live on in
    /// the coordinator alone, and another copy could bring back what was deleted there.
    async fn copy(&self, keys: &[Key], adopting: &Version, step_wait: Duration) -> Result<usize> {
        let marks: Vec<Key> = keys.iter().map(layout::copied).collect();
        let marks = self.rows(&marks).await?;
        let missing = keys.iter().zip(marks).filter(|(_, mark)| mark.is_none());
        let missing: Vec<Key> = missing.map(|(key, _)| key.clone()).collect();
        // Each key has two rows, and the commit checks one row more.
        let keys_max = (self.coordinator.capabilities().limits.commit_keys_max - 1) / 2;
        let keys_max = keys_max.clamp(1, ADOPTED_AT_ONCE);
        let bytes_max = self.capabilities.limits.commit_bytes_max;
        let mut copied = 0;
        for some in missing.chunks(READ_AT_ONCE) {
            let entries = answer(step_wait, self.shown(some)).await?;
            let found = some.iter().zip(entries).filter_map(|(key, entry)| Some((key, entry?)));
            let mut batch = Vec::new();
            let mut bytes = 0;
            for (key, entry) in found {
                let metadata = entry.metadata.as_ref().map_or(0, Json::len);
                let size = key.as_bytes().len() + entry.value.len() + metadata;
                if batch.len() == keys_max || bytes + size > bytes_max {
                    copied += self.copy_together(std::mem::take(&mut batch), adopting).await?;
                    bytes = 0;
                }
                bytes += size;
                batch.push((key, entry));
            }
            copied += self.copy_together(batch, adopting).await?;
        }
        Ok(copied)
    }

    /// Copies some entries in one commit, without those that are there already.
    async fn copy_together(
        &self,
        mut batch: Vec<(&Key, Entry)>,
        adopting: &Version,
    ) -> Result<usize> {
        while !batch.is_empty() {
            let mut commit = Commit::new();
            for (key, entry) in &batch {
                let put = Put {
                    value: entry.value.clone(),
                    metadata: entry.metadata.clone(),
                    expiry: entry.expires.map(Expiry::At),
                };
                commit = commit
                    .check((*key).clone(), Expect::Absent)
                    .check(layout::copied(key), Expect::Absent)
                    .put((*key).clone(), put)
                    .put(layout::copied(key), Put::new(Json::from_stored("true")));
            }
            let commit = commit.check(layout::store_row(), Expect::Version(adopting.clone()));
            match self.coordinator.commit(commit).await? {
                Outcome::Applied { .. } => return Ok(batch.len()),
                // Another process has listed the store too: the next listing copies what is left.
                Outcome::Conflicted { failed } if failed.contains(&(batch.len() * 2)) => {
                    return Ok(0);
                }
                Outcome::Conflicted { failed } => retain_passed(&mut batch, &failed),
            }
        }
        Ok(0)
    }

    /// Reads the keys that the value store does not list, which takes over their removal.
    async fn remove_unlisted(&self, listed: &HashSet<Key>, step_wait: Duration) -> Result<usize> {
        let mut removed = 0;
        for piece in layout::visible_pieces(&KeyRange::all(), Order::Ascending) {
            let mut after = None;
            loop {
                let (mut keys, next) = self.coordinator_keys(piece.clone(), after).await?;
                keys.retain(|key| !self.is_kept(key) && !listed.contains(key));
                let keys = self.without_fresh(keys).await?;
                for some in keys.chunks(self.capabilities.limits.get_keys_max) {
                    let entries = answer(step_wait, self.read_many(some)).await?;
                    removed += entries.iter().filter(|entry| entry.is_none()).count();
                }
                if next.is_none() {
                    break;
                }
                after = next;
            }
        }
        Ok(removed)
    }

    /// The keys without those that another listing showed so lately that this one may not have.
    async fn without_fresh(&self, keys: Vec<Key>) -> Result<Vec<Key>> {
        let heads = self.rows(&keys).await?;
        let mut left = Vec::with_capacity(keys.len());
        for (key, head) in keys.into_iter().zip(heads) {
            let is_fresh = match head {
                Some(head) => self.is_fresh(&key, &head)?,
                None => false,
            };
            if !is_fresh {
                left.push(key);
            }
        }
        Ok(left)
    }

    fn adopted_at_once(&self) -> usize {
        self.capabilities.limits.commit_keys_max.min(ADOPTED_AT_ONCE)
    }
}

/// Leaves those of which both checks held.
fn retain_passed<T>(all: &mut Vec<T>, failed: &[usize]) {
    let failed: HashSet<usize> = failed.iter().map(|check| check / 2).collect();
    let mut at = 0..;
    all.retain(|_| at.next().is_none_or(|at| !failed.contains(&at)));
}

/// What the value store answers, if it does so in time.
async fn answer<T>(step_wait: Duration, act: impl Future<Output = Result<T>>) -> Result<T> {
    within(step_wait, act).await.unwrap_or_else(|| {
        Err(Error::new(ErrorKind::Unavailable, "the value store took too long to answer"))
    })
}
