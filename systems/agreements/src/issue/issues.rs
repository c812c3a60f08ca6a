use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use keyward_engine::{Clock, Entry, Store, Version};
use keyward_key::Key;
use keyward_locks::{Locks, Root};
use serde_json::Map;

use super::{By, Event, Issue, IssueId, What};
use crate::{Error, PageId, Result, places};

/// The issues of all pages of a store. Cheap to clone.
#[derive(Clone)]
pub struct Issues {
    store: Store,
    locks: Locks,
    clock: Arc<dyn Clock>,
}

impl Issues {
    /// The issues of a store, with the locks of the same store.
    pub fn new(store: Store, locks: Locks, clock: Arc<dyn Clock>) -> Self {
        Self { store, locks, clock }
    }

    /// The issues of one page. Nothing of another page is reached through them.
    pub fn of(&self, page: &PageId) -> Result<PageIssues> {
        let root = self.locks.root(places::page(page)?)?;
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Ok(PageIssues { page: page.clone(), store, root, clock })
    }
}

impl fmt::Debug for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issues").field("store", &self.store).finish_non_exhaustive()
    }
}

/// The issues of one page. Cheap to clone.
///
/// A change of an issue is made under its lock, `issues:{issue}` below the page's key, and by a commit
/// that the store refuses once that lock is somebody else's, or the issue another than was read. A change
/// whose answer was lost is looked for before it is sent again, so none is made twice. Every future
/// may be dropped: the change is then made whole or not at all.
#[derive(Clone)]
pub struct PageIssues {
    pub(super) page: PageId,
    pub(super) store: Store,
    pub(super) root: Root,
    pub(super) clock: Arc<dyn Clock>,
}

/// An issue as it was at a version: what a change can be told to [expect](By::expecting).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The issue.
    pub issue: Issue,
    /// Its version.
    pub version: Version,
}

impl PageIssues {
    /// The page.
    pub fn page(&self) -> &PageId {
        &self.page
    }

    /// One issue. An issue that the page does not have is an error.
    pub async fn get(&self, id: IssueId) -> Result<Versioned> {
        self.find(id).await?.ok_or_else(|| self.unknown(id))
    }

    pub(super) async fn find(&self, id: IssueId) -> Result<Option<Versioned>> {
        let key = self.key(id)?;
        let entry = self.store.get(&key).await?;
        entry.map(|entry| Versioned::decode(&key, entry)).transpose()
    }

    pub(super) fn unknown(&self, id: IssueId) -> Error {
        Error::UnknownIssue { page: self.page.to_string(), issue: id.to_string() }
    }

    pub(super) fn key(&self, id: IssueId) -> Result<Key> {
        places::issue(&self.page, &id.to_string())
    }

    /// What happens now, by somebody.
    pub(super) fn event(&self, id: IssueId, by: &By<'_>, change: What) -> Event {
        let (who, why) = (by.who.clone(), by.why.clone());
        Event { id, at: self.now(), who, change, why, other: Map::new() }
    }

    /// The time, to the millisecond.
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }
}

impl Versioned {
    pub(super) fn decode(key: &Key, entry: Entry) -> Result<Self> {
        Ok(Self { issue: Issue::decode(key, &entry.value)?, version: entry.version })
    }
}

impl fmt::Debug for PageIssues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageIssues").field("page", &self.page).finish_non_exhaustive()
    }
}
