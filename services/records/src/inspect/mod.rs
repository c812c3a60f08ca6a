//! Whether what a store holds is as it should be, and mending what can be.

mod entry;
mod flaw;
mod mend;
mod record;

use std::fmt;
use std::sync::Arc;

use keyward_engine::{Cursor, Entry, Row, Scan, Want};
use keyward_key::{Key, KeyRange, Pattern, is_reserved};

pub use flaw::{Finding, Flaw, Inspected};

use crate::catalog::{CatalogContent, Snapshot};
use crate::index::{FIRST_SEGMENT, IndexEntry};
use crate::records::{Records, Shared};
use crate::space::Space;
use crate::walk::Walk;
use crate::{Caller, Result};

/// How often something that changes is looked at again before it is taken to be well.
const LOOKS_MAX: usize = 8;

/// Looks at what a store holds, by the schema and by the catalog as it was when this was made.
/// Reads only, until asked to mend.
#[derive(Clone)]
pub struct Inspector {
    shared: Arc<Shared>,
    catalog: Arc<Snapshot>,
    spaces: Arc<[Space]>,
    known: Arc<[Pattern]>,
    recognized: Option<Recognize>,
    /// Whether keys that nobody knows are told of.
    tells_unknown: bool,
    /// The one index to look at, whatever its state.
    only: Option<Arc<str>>,
}

/// Whether an entry that the schema knows nothing of is somebody else's who is known, such as the catalog
/// of a lock root.
pub type Recognize = Arc<dyn Fn(&Key, &Entry) -> bool + Send + Sync>;

impl Records {
    /// An inspector that goes by the catalog as it is now.
    pub async fn inspector(&self) -> Result<Inspector> {
        let operator = Caller::operator();
        let spaces: Result<Vec<Space>> =
            self.declarations().map(|space| self.space(&space.name, &operator)).collect();
        let shared = self.shared.clone();
        let catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
        let (spaces, known) = (spaces?.into(), Arc::from([]));
        let recognized = None;
        Ok(Inspector {
            shared,
            catalog,
            spaces,
            known,
            recognized,
            tells_unknown: true,
            only: None,
        })
    }
}

impl Inspector {
    /// The same, which also knows keys of these shapes, such as the roots of lock trees.
    #[must_use]
    pub fn knowing(mut self, patterns: impl IntoIterator<Item = Pattern>) -> Self {
        self.known = patterns.into_iter().collect();
        self
    }

    /// The same, which also knows entries that this function recognizes.
    #[must_use]
    pub fn recognizing(mut self, recognize: Option<Recognize>) -> Self {
        self.recognized = recognize;
        self
    }

    /// The same, which tells of keys that nobody knows, or not: without a schema, nobody knows any.
    #[must_use]
    pub fn telling_unknown(mut self, tells: bool) -> Self {
        self.tells_unknown = tells;
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
                    Err(found) => findings.extend(found.map(|it| it.seen(&entry.version))),
                }
            } else if let Some(space) = self.space_of(&row.key) {
                let (seen, expected) = self.seen(space, &row.key, entry);
                findings.extend(seen);
                records.push((space, row, expected));
            } else if self.tells_unknown && !self.is_known(&row.key, entry) {
                let message = "no pattern of the schema has this shape".to_owned();
                findings.push(Finding::new(Flaw::UnknownKey, &row.key, None, message));
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
        let walk = Walk::whole(&self.shared.store, &space.access.space.key, Want::Entries)?;
        let limit = limit.max(1);
        let walked = walk.next(position, limit, limit.saturating_mul(4)).await?;
        let findings = self.inspect(&walked.rows).await?;
        Ok(Inspected { rows: walked.rows.len(), findings, position: walked.position })
    }

    /// Whether a finding is still so. Of an entry or a mark: and nobody has written it again since,
    /// as writers who are under way do.
    pub async fn confirm(&self, finding: &Finding) -> Result<bool> {
        match (finding.flaw, &finding.record) {
            (flaw, Some(_)) if flaw.is_of_a_record() => {
                Ok(self.look_again(finding).await?.is_some_and(|it| it.flaw == flaw))
            }
            (Flaw::LeftMarker, _) => {
                let entry = self.shared.store.get(&finding.key).await?;
                Ok(entry.is_some_and(|entry| Some(entry.version) == finding.seen))
            }
            (flaw, _) if flaw.is_mendable() => {
                let now = self.look_at_entry(&finding.key).await?;
                Ok(now.is_some_and(|it| (it.flaw, &it.seen) == (flaw, &finding.seen)))
            }
            _ => Ok(true),
        }
    }

    /// What is wrong now with the entry of a record that something was wrong with.
    pub async fn look_again(&self, finding: &Finding) -> Result<Option<Finding>> {
        let record = finding.record.as_ref().filter(|_| finding.flaw.is_of_a_record());
        let Some((record, space)) = record.and_then(|it| Some((it, self.space_of(it)?))) else {
            return Ok(None);
        };
        let now = self.look_at_record(space, record).await?;
        Ok(now.into_iter().find(|it| it.key == finding.key))
    }

    /// The space that a key belongs to.
    fn space_of(&self, key: &Key) -> Option<&Space> {
        self.spaces.iter().find(|space| space.access.space.key.matches(key))
    }

    /// Whether the store's indexes of a space are not this schema's to judge: they are of other keys.
    fn is_foreign(&self, space: &Space) -> bool {
        let other = || self.catalog.content.other_keys(&space.access.space).is_some();
        self.only.is_none() && other()
    }

    fn is_known(&self, key: &Key, entry: &Entry) -> bool {
        is_reserved(&key.first())
            || self.known.iter().any(|pattern| pattern.matches(key))
            || self.recognized.as_ref().is_some_and(|recognize| recognize(key, entry))
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").field("only", &self.only).finish()
    }
}
