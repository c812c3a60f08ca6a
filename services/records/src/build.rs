//! Adding what is already there to a new index, while others write.

use std::collections::HashSet;
use std::sync::Arc;

use keyward_engine::{Commit, Entry, Expect, Expiry, Outcome, Put, Tier, Want};
use keyward_engine::{Row, Version};
use keyward_key::Key;

use crate::access::Admitted;
use crate::catalog::{IndexState, Kept, Snapshot};
use crate::change::Current;
use crate::index::{IndexEntry, Layout};
use crate::records::{Records, Shared};
use crate::space::Space;
use crate::walk::Walk;
use crate::write::Backoff;
use crate::{Caller, Error, Result, write};

/// How many records are read for one page.
pub(crate) const RECORDS_PER_PAGE: usize = 500;
/// How often one page is tried again because its records change.
pub(crate) const ATTEMPTS_MAX: usize = 64;

/// A page of records was added to an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Built {
    /// How many records were looked at.
    pub records: usize,
    /// How many entries were written.
    pub entries: usize,
    /// Records that could not be added, each with the reason: a unique value that another record
    /// has, a field that cannot be indexed.
    pub clashes: Vec<(Key, String)>,
    /// Where to go on; `None` at the end.
    pub position: Option<Vec<u8>>,
}

impl Records {
    /// Adds the next records, at most `limit` and at most a page, to an index that is being built.
    /// Doing it again from the same position changes nothing.
    pub async fn build_index(
        &self,
        index: &str,
        position: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<Built> {
        let catalog = self.catalog().await?;
        let Some(listed) = catalog.indexes.get(index) else { return Err(not_kept(index)) };
        let space = self.space(&listed.space, &Caller::operator())?;
        page(&space, index, position, limit).await
    }

    /// Makes an index readable that was being built, and has everything.
    pub async fn finish_index(&self, index: &str) -> Result<()> {
        finish(&self.shared, index).await
    }
}

fn not_kept(index: &str) -> Error {
    let reason = "it is not in the store's catalog, or disabled there";
    Error::IndexNotReady { index: index.to_owned(), reason }
}

/// Adds the next records to an index that is being built.
pub(crate) async fn page(
    space: &Space,
    index: &str,
    after: Option<Vec<u8>>,
    limit: usize,
) -> Result<Built> {
    let shared = &space.shared;
    let catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
    let indexes = catalog.kept(&space.access.space.name);
    let Some(kept) = indexes.iter().find(|kept| kept.layout.index.name == index) else {
        return Err(not_kept(index));
    };
    let walk = Walk::whole(&shared.store, &space.access.space.key, Want::Entries)?;
    let limit = limit.clamp(1, RECORDS_PER_PAGE);
    let walked = walk.next(after, limit, 4 * RECORDS_PER_PAGE).await?;
    let mut built =
        Built { records: walked.rows.len(), position: walked.position, ..Built::default() };
    match space.guarantee() {
        Tier::Atomic => add_together(space, &catalog, kept, walked.rows, &mut built).await?,
        Tier::Recoverable | Tier::Advisory => {
            for row in walked.rows {
                match write::reindex(space, &row.key, Some(index)).await {
                    Ok(entries) => built.entries += entries,
                    Err(error @ (Error::UniqueClash { .. } | Error::Unindexable { .. })) => {
                        built.clashes.push((row.key, error.to_string()));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(built)
}

/// Makes an index that has everything readable.
pub(crate) async fn finish(shared: &Shared, index: &str) -> Result<()> {
    let update = shared.catalog.update(&shared.store, &*shared.clock, |content| {
        if let Some(kept) = content.indexes.get_mut(index)
            && kept.state == IndexState::Building
        {
            kept.state = IndexState::Readable;
        }
        Ok(())
    });
    update.await.map(drop)
}

/// The records of a page in as few commits as they fit in, each record unchanged since it was read.
async fn add_together(
    space: &Space,
    catalog: &Arc<Snapshot>,
    kept: &Kept,
    rows: Vec<Row>,
    built: &mut Built,
) -> Result<()> {
    let limits = *space.shared.store.limits();
    // The catalog is checked too.
    let keys_max = limits.commit_keys_max - 1;
    let mut batch = Batch::default();
    for row in rows {
        let Some(item) = item(space, kept, row, built) else { continue };
        if item.keys() > keys_max {
            let (entries, keys) = (item.entries.len(), keys_max);
            let reason = format!("its {entries} entries do not fit a commit of {keys} keys");
            built.clashes.push((item.key, reason));
            continue;
        }
        if batch.keys + item.keys() > keys_max
            || batch.bytes + item.bytes() > limits.commit_bytes_max / 2
            || batch.has_one_of(&item)
        {
            add_batch(space, catalog, kept, std::mem::take(&mut batch), built).await?;
        }
        batch.push(item);
    }
    add_batch(space, catalog, kept, batch, built).await
}

/// A record and its entries.
struct Item {
    key: Key,
    expect: Expect,
    expiry: Option<Expiry>,
    entries: Vec<IndexEntry>,
}

impl Item {
    fn keys(&self) -> usize {
        1 + self.entries.len()
    }

    fn bytes(&self) -> usize {
        let entries =
            self.entries.iter().map(|entry| entry.key.as_bytes().len() + entry.value.len());
        self.key.as_bytes().len() + 2 * entries.sum::<usize>()
    }
}

#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    /// The unique entries among them.
    unique: HashSet<Key>,
    keys: usize,
    bytes: usize,
}

impl Batch {
    /// Whether a record of the batch wants a unique entry that this one wants too: then they go one
    /// after the other, and the second one clashes.
    fn has_one_of(&self, item: &Item) -> bool {
        item.entries.iter().any(|entry| entry.unique && self.unique.contains(&entry.key))
    }

    fn push(&mut self, item: Item) {
        let unique = item.entries.iter().filter(|entry| entry.unique);
        self.unique.extend(unique.map(|entry| entry.key.clone()));
        self.keys += item.keys();
        self.bytes += item.bytes();
        self.items.push(item);
    }
}

fn item(space: &Space, kept: &Kept, row: Row, built: &mut Built) -> Option<Item> {
    let key = row.key;
    let entries = Current::new(key.clone(), row.entry?).and_then(|current| {
        let target = admitted(space, &key);
        let entries = space.entries(std::slice::from_ref(kept), &target, &current.record.value)?;
        Ok((current, entries))
    });
    match entries {
        Ok((_, entries)) if entries.is_empty() => None,
        Ok((current, entries)) => {
            let expiry = current.record.expires.map(Expiry::At);
            let expect = Expect::Version(current.record.version);
            Some(Item { key, expect, expiry, entries })
        }
        Err(error) => {
            built.clashes.push((key, error.to_string()));
            None
        }
    }
}

async fn add_batch(
    space: &Space,
    catalog: &Arc<Snapshot>,
    kept: &Kept,
    batch: Batch,
    built: &mut Built,
) -> Result<()> {
    if batch.items.is_empty() {
        return Ok(());
    }
    let commit = commit(space, catalog, &batch.items);
    if let Outcome::Applied { .. } = space.shared.store.commit(commit).await? {
        built.entries += batch.items.iter().map(|item| item.entries.len()).sum::<usize>();
        return Ok(());
    }
    // Some record changed, or a unique value is taken: one at a time tells which.
    for item in batch.items {
        match complete(space, &item.key, Some(&kept.layout.index.name)).await {
            Ok(entries) => built.entries += entries,
            Err(error @ (Error::UniqueClash { .. } | Error::Unindexable { .. })) => {
                built.clashes.push((item.key, error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn commit(space: &Space, catalog: &Snapshot, items: &[Item]) -> Commit {
    let mut commit = Commit::new().check(space.shared.catalog.key().clone(), catalog.expect());
    for item in items {
        commit = commit.check(item.key.clone(), item.expect.clone());
        for entry in &item.entries {
            if entry.unique {
                commit = commit.check(entry.key.clone(), Expect::Absent);
            }
            let put = Put { value: entry.value.clone(), metadata: None, expiry: item.expiry };
            commit = commit.put(entry.key.clone(), put);
        }
    }
    commit
}

/// Adds the entries that a record lacks, of all its indexes or of one, in one commit that goes by
/// what the record is, and gives their number. It is an error if that one cannot take the value;
/// among all, one that cannot holds none of it. A unique entry that names a record which does not
/// have the value is taken over from it.
pub(crate) async fn complete(space: &Space, key: &Key, only: Option<&str>) -> Result<usize> {
    let shared = &space.shared;
    let target = admitted(space, key);
    let mut backoff = Backoff::new(shared, key);
    for attempt in 0..ATTEMPTS_MAX {
        // The first conflict is answered at once, as by writers.
        if attempt > 1 {
            backoff.pause().await;
        }
        let catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
        let Some(current) = space.current(key).await? else { return Ok(0) };
        let mut entries: Vec<(IndexEntry, Layout)> = Vec::new();
        for kept in catalog.kept(&space.access.space.name).iter() {
            if only.is_none_or(|only| kept.layout.index.name == only) {
                let kept_alone = std::slice::from_ref(kept);
                let value = &current.record.value;
                let added = match only {
                    Some(_) => space.entries(kept_alone, &target, value)?,
                    None => space.held(kept_alone, &target, value),
                };
                entries.extend(added.into_iter().map(|entry| (entry, kept.layout.clone())));
            }
        }
        let keys: Vec<Key> = entries.iter().map(|(entry, _)| entry.key.clone()).collect();
        let held = shared.store.get_many(&keys).await?;
        let mut commit = Commit::new()
            .check(shared.catalog.key().clone(), catalog.expect())
            .check(key.clone(), Expect::Version(current.record.version));
        let expiry = current.record.expires.map(Expiry::At);
        for ((entry, layout), held) in entries.into_iter().zip(held) {
            let expect = match held {
                None => Expect::Absent,
                Some(held) if held.value == entry.value => continue,
                Some(held) => {
                    if let Some(other) = rival(space, &layout, &entry, &held) {
                        let version = rival_version(space, &layout, &other, &entry.key).await?;
                        let expect = version.map_or(Expect::Absent, Expect::Version);
                        commit = commit.check(other, expect);
                    }
                    Expect::Version(held.version)
                }
            };
            let put = Put { value: entry.value, metadata: None, expiry };
            commit = commit.check(entry.key.clone(), expect).put(entry.key, put);
        }
        let added = commit.writes.len();
        if added == 0 || shared.store.commit(commit).await?.is_applied() {
            return Ok(added);
        }
    }
    Err(Error::Contended { key: key.clone(), attempts: ATTEMPTS_MAX })
}

/// The record that has a unique entry which another one wants.
fn rival(space: &Space, layout: &Layout, entry: &IndexEntry, held: &Entry) -> Option<Key> {
    if !entry.unique {
        return None;
    }
    let rival = layout.primary(&entry.key, Some(&held.value), space.access.is_owned())?;
    space.access.space.key.matches(&rival).then_some(rival)
}

/// The version of a record that does not have the value of the unique entry that names it; an error
/// if it does.
async fn rival_version(
    space: &Space,
    layout: &Layout,
    rival: &Key,
    entry: &Key,
) -> Result<Option<Version>> {
    let Some(current) = space.current(rival).await? else { return Ok(None) };
    let owner = admitted(space, rival).owner;
    let entries = layout.entries(owner.as_deref(), rival, &current.record.value);
    if entries.is_ok_and(|entries| entries.iter().any(|held| held.key == *entry)) {
        return Err(space.clash(entry, Some(rival.clone())));
    }
    Ok(Some(current.record.version))
}

/// A record as one who may touch everything sees it.
pub(crate) fn admitted(space: &Space, key: &Key) -> Admitted {
    let owner = space.access.owner_of(key).map(|owner| owner.into_owned());
    Admitted { key: key.clone(), owner }
}
