//! Whether what a store holds is as it should be, and mending what can be.

use std::fmt;
use std::sync::Arc;

use keyward_engine::{Commit, Cursor, Entry, Expect, Json, Order, Row, Scan, Tier, Want};
use keyward_key::{Bindings, Key, KeyRange, Pattern, is_reserved};

use crate::build::{admitted, complete};
use crate::catalog::{CatalogContent, IndexState, Kept, Snapshot};
use crate::change::{Current, check_value};
use crate::index::{FIRST_SEGMENT, IndexEntry, Layout};
use crate::records::{Records, Shared};
use crate::space::Space;
use crate::{Caller, Error, Result, write};

/// How often something that changes is looked at again before it is taken to be well.
const LOOKS_MAX: usize = 8;

/// What is wrong with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// No declared pattern has its shape, and it is none of Keyward's own.
    UnknownKey,
    /// A record lacks an index entry.
    MissingEntry,
    /// An index entry says something else than its record.
    WrongEntry,
    /// A unique entry names another record than the one that has the value.
    TakenEntry,
    /// An index entry whose record is not there, or has another value.
    OrphanedEntry,
    /// An index entry whose record has ended.
    ExpiredEntry,
    /// An index entry that leads to no record.
    BrokenEntry,
    /// An entry of an index that is not in the catalog, or disabled there.
    UnknownIndex,
    /// The mark of a writer who never came back.
    LeftMarker,
    /// A value that is not what its space's schema says, or too large for it.
    BadValue,
    /// A value that one of the space's indexes cannot take.
    Unindexable,
    /// Metadata that makes no sense.
    BadMetadata,
    /// A key longer than the store takes.
    LongKey,
    /// A value larger than the store takes.
    LargeValue,
}

impl Flaw {
    /// The stable code shown by every door.
    pub fn code(self) -> &'static str {
        match self {
            Self::UnknownKey => "unknown-key",
            Self::MissingEntry => "missing-entry",
            Self::WrongEntry => "wrong-entry",
            Self::TakenEntry => "taken-entry",
            Self::OrphanedEntry => "orphaned-entry",
            Self::ExpiredEntry => "expired-entry",
            Self::BrokenEntry => "broken-entry",
            Self::UnknownIndex => "unknown-index",
            Self::LeftMarker => "left-marker",
            Self::BadValue => "bad-value",
            Self::Unindexable => "unindexable",
            Self::BadMetadata => "bad-metadata",
            Self::LongKey => "long-key",
            Self::LargeValue => "large-value",
        }
    }

    /// Whether mending it touches no record.
    pub fn is_mendable(self) -> bool {
        match self {
            Self::MissingEntry
            | Self::WrongEntry
            | Self::TakenEntry
            | Self::OrphanedEntry
            | Self::ExpiredEntry
            | Self::BrokenEntry
            | Self::UnknownIndex
            | Self::LeftMarker => true,
            Self::UnknownKey
            | Self::BadValue
            | Self::Unindexable
            | Self::BadMetadata
            | Self::LongKey
            | Self::LargeValue => false,
        }
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub flaw: Flaw,
    /// With which key: the entry's, where it is about an index entry.
    pub key: Key,
    /// The record that it is about.
    pub record: Option<Key>,
    /// In words.
    pub message: String,
}

/// What is wrong with some rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspected {
    /// How many rows were looked at.
    pub rows: usize,
    /// What is wrong with them.
    pub findings: Vec<Finding>,
    /// Where to go on; `None` at the end.
    pub position: Option<Vec<u8>>,
}

/// Looks at what a store holds, by the schema and by the catalog as it was when this was made.
/// Reads only, until asked to mend.
#[derive(Clone)]
pub struct Inspector {
    shared: Arc<Shared>,
    catalog: Arc<Snapshot>,
    spaces: Arc<[Space]>,
    known: Arc<[Pattern]>,
    /// The one index to look at, whatever its state.
    only: Option<Arc<str>>,
}

impl Records {
    /// An inspector that goes by the catalog as it is now.
    pub async fn inspector(&self) -> Result<Inspector> {
        let operator = Caller::operator();
        let spaces: Result<Vec<Space>> =
            self.declarations().map(|space| self.space(&space.name, &operator)).collect();
        let shared = self.shared.clone();
        let catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
        let (spaces, known) = (spaces?.into(), Arc::from([]));
        Ok(Inspector { shared, catalog, spaces, known, only: None })
    }
}

impl Inspector {
    /// The same, which also knows keys of these shapes, such as the roots of lock trees.
    #[must_use]
    pub fn knowing(mut self, patterns: impl IntoIterator<Item = Pattern>) -> Self {
        self.known = patterns.into_iter().collect();
        self
    }

    /// The same, which looks at one index only, also while it is being built.
    #[must_use]
    pub fn only(mut self, index: &str) -> Self {
        self.only = Some(index.into());
        self
    }

    /// The catalog it goes by.
    pub fn catalog(&self) -> &CatalogContent {
        &self.catalog.content
    }

    /// What is wrong with some rows, which must have their entries. What seems wrong is looked at
    /// again before it is told, since others may be writing.
    pub async fn inspect(&self, rows: &[Row]) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let mut records: Vec<(&Space, &Row, Vec<IndexEntry>)> = Vec::new();
        let mut entries: Vec<(&Row, Key)> = Vec::new();
        for row in rows {
            let Some(entry) = &row.entry else { continue };
            self.measure(row, entry, &mut findings);
            if self.is_too_long(&row.key) {
                continue;
            }
            if row.key.first() == FIRST_SEGMENT {
                match self.led_to(&row.key, &entry.value) {
                    Ok(primary) => entries.push((row, primary)),
                    Err(finding) => findings.extend(finding),
                }
            } else if let Some(space) = self.space_of(&row.key) {
                let (seen, expected) = self.seen(space, &row.key, entry);
                findings.extend(seen);
                records.push((space, row, expected));
            } else if !self.is_known(&row.key) {
                let message = "no pattern of the schema has this shape".to_owned();
                findings.push(finding(Flaw::UnknownKey, &row.key, None, message));
            }
        }
        self.inspect_records(records, &mut findings).await?;
        self.inspect_entries(entries, &mut findings).await?;
        Ok(findings)
    }

    /// What is wrong with the next rows of a range, at most `limit` of them.
    pub async fn inspect_range(
        &self,
        range: &KeyRange,
        position: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<Inspected> {
        let scan = Scan::new(range.clone()).after(position.map(Cursor::new)).limit(limit.max(1));
        let page = self.shared.store.scan(&scan).await?;
        let findings = self.inspect(&page.rows).await?;
        let position = page.next.map(|next| next.as_bytes().to_vec());
        Ok(Inspected { rows: page.rows.len(), findings, position })
    }

    /// What is wrong with the next records of a space, at most `limit` of them.
    pub async fn inspect_space(
        &self,
        space: &str,
        position: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<Inspected> {
        let Some(space) = self.spaces.iter().find(|known| known.access.space.name == space) else {
            return Ok(Inspected::default());
        };
        let range = KeyRange::under(&space.access.space.key.prefix(&Bindings::new())?);
        let walk = space.walk(range, Order::Ascending, Want::Entries);
        let limit = limit.max(1);
        let walked = walk.next(position, limit, limit.saturating_mul(4)).await?;
        let findings = self.inspect(&walked.rows).await?;
        Ok(Inspected { rows: walked.rows.len(), findings, position: walked.position })
    }

    /// Mends one finding, if it is still so: never by changing a record. Whether it is well now.
    pub async fn mend(&self, finding: &Finding) -> Result<bool> {
        match (finding.flaw, &finding.record) {
            (Flaw::MissingEntry | Flaw::WrongEntry | Flaw::TakenEntry, Some(record)) => {
                let Some(space) = self.space_of(record) else { return Ok(false) };
                let completed = match space.guarantee() {
                    Tier::Atomic => complete(space, record, None).await,
                    Tier::Recoverable | Tier::Advisory => write::reindex(space, record).await,
                };
                match completed {
                    Ok(_) => Ok(true),
                    // Two records have one value: a person has to say which keeps it.
                    Err(Error::UniqueClash { .. } | Error::Unindexable { .. }) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            (Flaw::LeftMarker, _) => self.remove_marker(&finding.key).await,
            (flaw, record) if flaw.is_mendable() => {
                self.remove_entry(&finding.key, record.as_ref()).await
            }
            _ => Ok(false),
        }
    }

    /// The space that a key belongs to.
    fn space_of(&self, key: &Key) -> Option<&Space> {
        self.spaces.iter().find(|space| space.access.space.key.matches(key))
    }

    fn is_known(&self, key: &Key) -> bool {
        is_reserved(&key.first()) || self.known.iter().any(|pattern| pattern.matches(key))
    }

    fn measure(&self, row: &Row, entry: &Entry, findings: &mut Vec<Finding>) {
        let limits = self.shared.store.limits();
        let sizes = [
            (Flaw::LongKey, "key", row.key.as_bytes().len(), limits.key_bytes_max),
            (Flaw::LargeValue, "value", entry.value.len(), limits.value_bytes_max),
        ];
        for (flaw, what, bytes, bytes_max) in sizes {
            if bytes > bytes_max {
                let message = format!("the {what} has {bytes} bytes; the store takes {bytes_max}");
                findings.push(finding(flaw, &row.key, None, message));
            }
        }
    }

    /// Whether the store would refuse to look at a key again.
    fn is_too_long(&self, key: &Key) -> bool {
        key.as_bytes().len() > self.shared.store.limits().key_bytes_max
    }

    fn is_inspected(&self, kept: &Kept) -> bool {
        match &self.only {
            Some(only) => *kept.layout.index.name == **only,
            // What is being built lacks entries by its nature.
            None => kept.state == IndexState::Readable,
        }
    }

    /// What can be said of a record by itself, and the entries it should have.
    fn seen(&self, space: &Space, key: &Key, entry: &Entry) -> (Vec<Finding>, Vec<IndexEntry>) {
        let mut findings = Vec::new();
        let current = match Current::new(key.clone(), entry.clone()) {
            Ok(current) => current,
            Err(error) => {
                findings.push(finding(Flaw::BadMetadata, key, Some(key), error.to_string()));
                return (findings, Vec::new());
            }
        };
        if current.kept.marker {
            let message = "a writer began here and did not come back".to_owned();
            findings.push(finding(Flaw::LeftMarker, key, None, message));
            return (findings, Vec::new());
        }
        if let Err(error) = check_value(&space.access.space, &entry.value) {
            findings.push(finding(Flaw::BadValue, key, Some(key), error.to_string()));
        }
        let mut expected = Vec::new();
        let target = admitted(space, key);
        for kept in self.catalog.kept(&space.access.space.name).iter() {
            if !self.is_inspected(kept) {
                continue;
            }
            match space.entries(std::slice::from_ref(kept), &target, &entry.value) {
                Ok(entries) => expected.extend(entries),
                Err(error) => {
                    findings.push(finding(Flaw::Unindexable, key, Some(key), error.to_string()));
                }
            }
        }
        (findings, expected)
    }

    async fn inspect_records(
        &self,
        records: Vec<(&Space, &Row, Vec<IndexEntry>)>,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let keys: Vec<Key> =
            records.iter().flat_map(|(_, _, entries)| entries).map(|e| e.key.clone()).collect();
        let mut held = self.shared.store.get_many(&keys).await?.into_iter();
        for (space, row, entries) in &records {
            let mut well = true;
            for entry in entries {
                let held = held.next().flatten();
                well &= held.is_some_and(|held| held.value == entry.value);
            }
            if !well {
                findings.extend(self.look_at_record(space, &row.key).await?);
            }
        }
        Ok(())
    }

    /// What entries a record lacks, between two equal looks at it.
    async fn look_at_record(&self, space: &Space, key: &Key) -> Result<Vec<Finding>> {
        let store = &self.shared.store;
        for _ in 0..LOOKS_MAX {
            let Some(entry) = store.get(key).await? else { return Ok(Vec::new()) };
            let (_, entries) = self.seen(space, key, &entry);
            let keys: Vec<Key> = entries.iter().map(|entry| entry.key.clone()).collect();
            let held = store.get_many(&keys).await?;
            let again = store.get(key).await?;
            if again.is_none_or(|again| again.version != entry.version) {
                continue;
            }
            let lacking = entries.iter().zip(held);
            let findings = lacking.filter_map(|(entry, held)| {
                let (flaw, message) = match held {
                    None => (Flaw::MissingEntry, format!("the record {key} has no such entry")),
                    Some(held) if held.value == entry.value => return None,
                    Some(held) if entry.unique => {
                        let other = held.value;
                        (Flaw::TakenEntry, format!("the record {key} has the value, not {other}"))
                    }
                    Some(_) => (Flaw::WrongEntry, format!("the record {key} says something else")),
                };
                Some(finding(flaw, &entry.key, Some(key), message))
            });
            return Ok(findings.collect());
        }
        Ok(Vec::new())
    }

    /// The record that an entry leads to; else what is wrong with it.
    fn led_to(&self, key: &Key, value: &Json) -> Result<Key, Option<Finding>> {
        let name = key.segments().nth(1).unwrap_or_default();
        if self.only.as_ref().is_some_and(|only| **only != *name) {
            return Err(None);
        }
        let listed = self.catalog.content.indexes.get(&*name);
        let Some(index) = listed.filter(|index| index.state != IndexState::Disabled) else {
            let message = match listed {
                Some(_) => format!("the index {name} is disabled"),
                None => format!("the store has no index {name}"),
            };
            return Err(Some(finding(Flaw::UnknownIndex, key, None, message)));
        };
        let space = self.spaces.iter().find(|space| space.access.space.name == index.space);
        let owned = space.is_some_and(|space| space.access.is_owned());
        let primary = Layout::new(index.definition.clone()).primary(key, Some(value), owned);
        match primary.filter(|primary| self.space_of(primary).is_some()) {
            // The record itself is told of.
            Some(primary) if self.is_too_long(&primary) => Err(None),
            Some(primary) => Ok(primary),
            None => {
                let message = "it leads to nothing that could be a record".to_owned();
                Err(Some(finding(Flaw::BrokenEntry, key, None, message)))
            }
        }
    }

    async fn inspect_entries(
        &self,
        entries: Vec<(&Row, Key)>,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let keys: Vec<Key> = entries.iter().map(|(_, primary)| primary.clone()).collect();
        let records = self.shared.store.get_many(&keys).await?;
        for ((row, primary), record) in entries.into_iter().zip(records) {
            if !record.is_some_and(|record| self.holds(&primary, record, &row.key)) {
                findings.extend(self.look_at_entry(&row.key).await?);
            }
        }
        Ok(())
    }

    /// Whether a record has an entry by what its value is, or may have: that cannot be told of one
    /// whose value cannot be indexed.
    fn holds(&self, primary: &Key, record: Entry, entry: &Key) -> bool {
        let Some(space) = self.space_of(primary) else { return false };
        let Ok(current) = Current::new(primary.clone(), record) else { return true };
        if current.kept.marker {
            return false;
        }
        let target = admitted(space, primary);
        let kept = self.catalog.kept(&space.access.space.name);
        let name = entry.segments().nth(1).unwrap_or_default();
        let kept = kept.iter().find(|kept| *kept.layout.index.name == *name);
        let Some(kept) = kept.map(std::slice::from_ref) else { return false };
        let value = &current.record.value;
        match space.entries(kept, &target, value) {
            Ok(entries) => entries.iter().any(|held| held.key == *entry),
            Err(_) => true,
        }
    }

    /// Whether an entry has no record, between two equal looks at it.
    async fn look_at_entry(&self, key: &Key) -> Result<Option<Finding>> {
        let store = &self.shared.store;
        for _ in 0..LOOKS_MAX {
            let Some(entry) = store.get(key).await? else { return Ok(None) };
            let primary = match self.led_to(key, &entry.value) {
                Ok(primary) => primary,
                Err(finding) => return Ok(finding),
            };
            let record = store.get(&primary).await?;
            let gone = record.is_none();
            if record.is_some_and(|record| self.holds(&primary, record, key)) {
                return Ok(None);
            }
            let again = store.get(key).await?;
            if again.is_none_or(|again| again.version != entry.version) {
                continue;
            }
            let (flaw, message) = match (gone, entry.expires) {
                (true, Some(_)) => (Flaw::ExpiredEntry, format!("the record {primary} has ended")),
                (true, None) => (Flaw::OrphanedEntry, format!("there is no record {primary}")),
                (false, _) => {
                    (Flaw::OrphanedEntry, format!("the record {primary} has another value"))
                }
            };
            return Ok(Some(finding(flaw, key, Some(&primary), message)));
        }
        Ok(None)
    }

    async fn remove_marker(&self, key: &Key) -> Result<bool> {
        let store = &self.shared.store;
        let Some(entry) = store.get(key).await? else { return Ok(true) };
        let current = Current::new(key.clone(), entry)?;
        if !current.kept.marker {
            return Ok(true);
        }
        // A writer who does come back finds its mark gone, and begins again.
        let mut commit = Commit::new().delete(key.clone());
        if store.capabilities().tier() != Tier::Advisory {
            commit = commit.check(key.clone(), Expect::Version(current.record.version));
        }
        Ok(store.commit(commit).await?.is_applied())
    }

    /// Removes an entry that no record holds, unless one holds it by now.
    async fn remove_entry(&self, key: &Key, record: Option<&Key>) -> Result<bool> {
        let store = &self.shared.store;
        for _ in 0..LOOKS_MAX {
            let Some(entry) = store.get(key).await? else { return Ok(true) };
            let primary = match (self.led_to(key, &entry.value), record) {
                (Ok(primary), Some(_)) => Some(primary),
                (Err(_), None) => None,
                // It is not any more what was found.
                _ => return Ok(false),
            };
            let owner = match &primary {
                Some(primary) => store.get(primary).await?,
                None => None,
            };
            let base = owner.as_ref().map(|owner| owner.version.clone());
            if let (Some(primary), Some(owner)) = (&primary, owner)
                && self.holds(primary, owner, key)
            {
                return Ok(true);
            }
            let removed = match (store.capabilities().tier(), &primary) {
                (Tier::Atomic, primary) => {
                    let mut commit = Commit::new()
                        .check(self.shared.catalog.key().clone(), self.catalog.expect())
                        .check(key.clone(), Expect::Version(entry.version))
                        .delete(key.clone());
                    if let Some(primary) = primary {
                        let expect = base.map_or(Expect::Absent, Expect::Version);
                        commit = commit.check(primary.clone(), expect);
                    }
                    store.commit(commit).await?.is_applied()
                }
                (Tier::Recoverable, None) => {
                    let expect = Expect::Version(entry.version);
                    let commit = Commit::new().check(key.clone(), expect).delete(key.clone());
                    store.commit(commit).await?.is_applied()
                }
                (Tier::Advisory, None) => {
                    store.delete(key.clone()).await?;
                    true
                }
                (Tier::Recoverable | Tier::Advisory, Some(primary)) => {
                    let Some(space) = self.space_of(primary) else { return Ok(false) };
                    let kept = self.catalog.kept(&space.access.space.name);
                    write::remove_orphan(space, &kept, key, entry.version, primary).await?
                }
            };
            if removed {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn finding(flaw: Flaw, key: &Key, record: Option<&Key>, message: String) -> Finding {
    Finding { flaw, key: key.clone(), record: record.cloned(), message }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").field("only", &self.only).finish()
    }
}
