//! Keys, namespaces and whole entries, in pages.

use keyward_key::{Bindings, Key};
use keyward_records::{BUDGET_MAX, ListedItem, Listing, Query, Record};

use crate::declaration::USER;
use crate::entry::AgentEntry;
use crate::namespace::Namespace;
use crate::track::Line;
use crate::user_data::UserData;
use crate::{Result, places};

/// A page of keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keys {
    /// The keys, in the order of their bytes.
    pub keys: Vec<String>,
    /// Where to go on; `None` at the end. A page may be short and still have a next one.
    pub next: Option<String>,
}

/// A page of namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespaces {
    /// Their names, in the order of their bytes.
    pub namespaces: Vec<String>,
    /// Where to go on; `None` at the end. A page may be short and still have a next one.
    pub next: Option<String>,
}

/// A page of entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entries {
    /// The entries, in the order of the keys' bytes.
    pub entries: Vec<AgentEntry>,
    /// Where to go on; `None` at the end. A page may be short and still have a next one.
    pub next: Option<String>,
}

impl UserData {
    /// One page of the namespaces that have entries, at most `limit` (up to
    /// [`LIMIT_MAX`](keyward_records::LIMIT_MAX)). Their entries are not read: listing a few namespaces
    /// of a million entries is as quick as of ten.
    pub async fn list_namespaces(&self, after: Option<String>, limit: usize) -> Result<Namespaces> {
        let space = self.space()?;
        let values = Bindings::new().with(USER, &*self.user);
        let listing = Listing::new(values).depth(1).limit(limit).after(after);
        let listed = space.list(&listing).await?;
        let names = listed.items.iter().filter_map(|item| match item {
            ListedItem::Prefix(prefix) => prefix.segments().last(),
            ListedItem::Key(_) => None,
        });
        let namespaces: Vec<String> = names.map(|name| name.into_owned()).collect();
        self.log(Line { count: Some(namespaces.len()), ..Line::of("list_namespaces") });
        Ok(Namespaces { namespaces, next: listed.next })
    }
}

impl Namespace {
    /// One page of the keys that start with `prefix` (all, if it is empty), at most `limit` (up to
    /// [`LIMIT_MAX`](keyward_records::LIMIT_MAX)).
    pub async fn list_keys(
        &self,
        prefix: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Keys> {
        let page = self.page_of_keys(prefix, after, limit).await?;
        let keys: Vec<String> = page.0.iter().map(|place| self.key_of(place)).collect();
        self.log(Line { count: Some(keys.len()), ..Line::of("list_keys") });
        Ok(Keys { keys, next: page.1 })
    }

    pub(crate) async fn page_of_keys(
        &self,
        prefix: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<Key>, Option<String>)> {
        let listing = Listing::new(self.values()).limit(limit).after(after).budget(BUDGET_MAX);
        let listing = if prefix.is_empty() { listing } else { listing.starting(prefix) };
        let listed = self.space.list(&listing).await?;
        let keys = listed.items.into_iter().filter_map(|item| match item {
            ListedItem::Key(key) => Some(key),
            ListedItem::Prefix(_) => None,
        });
        Ok((keys.collect(), listed.next))
    }

    /// One page of the entries whose keys start with `prefix` (all, if it is empty), at most `limit`
    /// (up to [`LIMIT_MAX`](keyward_records::LIMIT_MAX)). They do not count as accessed.
    pub async fn get_all(
        &self,
        prefix: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Entries> {
        self.get_all_up_to(prefix, after, limit, usize::MAX).await
    }

    /// The same, ending a page after `bytes_max` bytes. The page has at least one entry.
    pub async fn get_all_up_to(
        &self,
        prefix: &str,
        after: Option<String>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Entries> {
        let page = self.page_of_entries(prefix, after, limit, bytes_max).await?;
        self.log(Line { count: Some(page.entries.len()), ..Line::of("get_all") });
        Ok(page)
    }

    pub(crate) async fn page_of_entries(
        &self,
        prefix: &str,
        after: Option<String>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Entries> {
        let query = Query::key(self.values()).limit(limit).after(after).budget(BUDGET_MAX);
        let query = query.bytes_max(bytes_max);
        let query = if prefix.is_empty() { query } else { query.starting(prefix) };
        let answer = self.space.query(&query).await?;
        let entries = self.complete_all(answer.records).await?;
        Ok(Entries { entries, next: answer.next })
    }

    /// The entries of records of this namespace, with what is known about accesses.
    pub(crate) async fn complete_all(&self, records: Vec<Record>) -> Result<Vec<AgentEntry>> {
        let rows: Vec<Key> = records.iter().map(|record| places::access(&record.key)).collect();
        let rows = self.shared().store().get_many(&rows).await?;
        let entries = records.into_iter().zip(rows).map(|(record, row)| {
            self.with_access(self.key_of(&record.key), record, row.map(|row| row.value))
        });
        entries.collect()
    }
}
