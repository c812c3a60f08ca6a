//! Adoption: taking over a value store that another program filled.

use std::collections::HashSet;

use keyward_engine::{
    Commit, Error, ErrorKind, Expect, Expiry, Json, Order, Outcome, Put, Result, Scan, Version,
};
use keyward_key::{Key, KeyRange};
use serde::{Deserialize, Serialize};

use crate::Coordinated;
use crate::head::Head;
use crate::layout;

/// How many keys are adopted in one commit at most.
const ADOPTED_AT_ONCE: usize = 256;

/// What [`Coordinated::adopt_new`] found.
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

/// The row that says what a coordinator is for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoreRow {
    /// First segments of the keys that stay in the coordinator.
    keep: Vec<String>,
    /// Whether all keys that the value store had at first are adopted.
    adopted: bool,
}

impl Coordinated {
    /// Lists the value store to find keys that other programs added or removed, and brings the coordinator up to date.
    /// Writes nothing to the value store; values are read when somebody asks for them.
    ///
    /// Changes to values need no listing: they are noticed when a key is read. Keys whose first segment
    /// [stays in the coordinator](crate::Options::keep) are only looked at when a store is opened for the first time.
    ///
    /// Holds the listed keys in memory. Safe to interrupt, and to run in several processes at once.
    pub async fn adopt_new(&self) -> Result<Adopted> {
        let row = self.store_row().await?;
        // The row while its store is being adopted: what must hold for a kept key to be copied.
        let adopting = row.filter(|(_, row)| !row.adopted).map(|(version, _)| version);
        let mut adopted = Adopted::default();
        let mut listed: HashSet<Key> = HashSet::new();
        let limit = self.values.capabilities().limits.scan_rows_max.min(1_000);
        let mut scan = Scan::new(KeyRange::all()).keys_only().limit(limit);
        loop {
            let page = self.values.scan(&scan).await?;
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
                adopted.added += self.copy(&kept, version).await?;
            }
            if page.next.is_none() {
                break;
            }
            scan.after = page.next;
        }
        if adopting.is_none() {
            adopted.removed = self.remove_unlisted(&listed).await?;
        }
        Ok(adopted)
    }

    /// Makes sure that the coordinator is for this store. Tells whether the value store is still to be adopted.
    pub(crate) async fn claim(&self) -> Result<bool> {
        let mut keep = self.options.keep.clone();
        keep.sort();
        keep.dedup();
        let row = match self.store_row().await? {
            Some((_, row)) => row,
            None => {
                let row = StoreRow { keep: keep.clone(), adopted: false };
                let commit = Commit::new()
                    .check(layout::store_row(), Expect::Absent)
                    .put(layout::store_row(), Put::new(json(&row)?));
                match self.coordinator.commit(commit).await? {
                    Outcome::Applied { .. } => row,
                    // Another process was first.
                    Outcome::Conflicted { .. } => {
                        self.store_row().await?.map_or(row, |(_, row)| row)
                    }
                }
            }
        };
        if row.keep != keep {
            let message = format!(
                "the coordinator keeps the keys of {} to itself, but the store was opened to keep those of {}",
                row.keep.join(", "),
                keep.join(", ")
            );
            return Err(Error::new(ErrorKind::Misplaced, message)
                .advise("Open the store with the keep option that it was first opened with."));
        }
        Ok(!row.adopted)
    }

    /// Notes that all keys which the value store had at first are adopted.
    pub(crate) async fn note_adopted(&self) -> Result<()> {
        let Some((version, row)) = self.store_row().await? else { return Ok(()) };
        if row.adopted {
            return Ok(());
        }
        let row = StoreRow { adopted: true, ..row };
        let commit = Commit::new()
            .check(layout::store_row(), Expect::Version(version))
            .put(layout::store_row(), Put::new(json(&row)?));
        // A conflict means that another process has noted it.
        let _: Outcome = self.coordinator.commit(commit).await?;
        Ok(())
    }

    async fn store_row(&self) -> Result<Option<(Version, StoreRow)>> {
        let Some(entry) = self.coordinator.get(&layout::store_row()).await? else {
            return Ok(None);
        };
        let row = serde_json::from_slice(entry.value.as_bytes()).map_err(|error| {
            let message = format!("the coordinator's row {} cannot be read", layout::store_row());
            Error::new(ErrorKind::Corrupt, message).caused_by(error)
        })?;
        Ok(Some((entry.version, row)))
    }

    /// Gives a head to each key that has no row yet.
    async fn adopt(&self, keys: &[Key]) -> Result<usize> {
        let head = Put::new(Head::Adopted.to_json());
        let mut adopted = 0;
        for some in keys.chunks(self.adopted_at_once()) {
            let rows = self.rows_of(some).await?;
            let mut new: Vec<Key> = some
                .iter()
                .zip(rows)
                .filter(|(_, rows)| rows.head.is_none() && rows.pending.is_none())
                .map(|(key, _)| key.clone())
                .collect();
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
                    Outcome::Conflicted { failed } => {
                        let failed: HashSet<usize> =
                            failed.into_iter().map(|check| check / 2).collect();
                        let mut at = 0..;
                        new.retain(|_| at.next().is_none_or(|at| !failed.contains(&at)));
                    }
                }
            }
        }
        Ok(adopted)
    }

    /// Copies keys that stay in the coordinator, while the store is being adopted. Later they live on in the
    /// coordinator alone, and a copy could bring back what was deleted there.
    async fn copy(&self, keys: &[Key], adopting: &Version) -> Result<usize> {
        let mut copied = 0;
        for key in keys {
            let Some(entry) = self.values.get(key).await? else { continue };
            let put = Put {
                value: entry.value,
                metadata: entry.metadata,
                expiry: entry.expires.map(Expiry::At),
            };
            let commit = Commit::new()
                .check(key.clone(), Expect::Absent)
                .check(layout::store_row(), Expect::Version(adopting.clone()))
                .put(key.clone(), put);
            copied += usize::from(self.coordinator.commit(commit).await?.is_applied());
        }
        Ok(copied)
    }

    /// Reads the keys that the value store does not list, which takes over their removal.
    async fn remove_unlisted(&self, listed: &HashSet<Key>) -> Result<usize> {
        let mut removed = 0;
        for piece in layout::visible_pieces(&KeyRange::all(), Order::Ascending) {
            let mut after = None;
            loop {
                let (mut keys, next) = self.coordinator_keys(piece.clone(), after).await?;
                keys.retain(|key| !self.is_kept(key) && !listed.contains(key));
                for some in keys.chunks(self.capabilities.limits.get_keys_max) {
                    let entries = self.read_many(some).await?;
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

    fn adopted_at_once(&self) -> usize {
        self.capabilities.limits.commit_keys_max.min(ADOPTED_AT_ONCE)
    }
}

fn json(row: &StoreRow) -> Result<Json> {
    Json::from_value(row).map_err(|error| {
        Error::new(ErrorKind::Internal, "the coordinator's store row cannot be written")
            .caused_by(error)
    })
}
