//! Entries that fulfil conditions.

use keyward_key::Bindings;
use keyward_records::{
    BUDGET_DEFAULT, Error as RecordsError, Filter, LIMIT_DEFAULT, Query, Read, Space,
};

use crate::declaration::USER;
use crate::entry::{AgentEntry, CREATED_AT, CREATED_BY_AGENT, METADATA, UPDATED_AT, VALUE};
use crate::namespace::Namespace;
use crate::track::Line;
use crate::user_data::UserData;
use crate::{Error, Result};

/// What can be searched by.
const FIELDS: [&str; 5] = [VALUE, METADATA, CREATED_BY_AGENT, CREATED_AT, UPDATED_AT];

/// What the cursors of searches begin with that look through the entries themselves. Others have no such sign.
const BY_KEY: &str = "k.";

/// Which entries to search for.
///
/// ```
/// use keyward_agents::Search;
/// use keyward_records::Filter;
///
/// let open = Filter::parse(r#"{"value.status":"open","metadata.priority":{"gte":3}}"#)?;
/// let search = Search::new().starting("task/").filter(open).limit(20);
/// assert_eq!(search.limit, 20);
/// # Ok::<(), keyward_records::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What keys start with; anything, if it is empty. Only in one namespace.
    pub prefix: String,
    /// Conditions on `value.…`, `metadata.…`, `createdByAgent`, `createdAt` and `updatedAt`.
    pub filter: Filter,
    /// At most this many entries.
    pub limit: usize,
    /// Where an earlier page of the same search ended.
    pub after: Option<String>,
    /// How many entries may be looked at for one page. A page that ends early for it has a cursor.
    pub budget: usize,
    /// After how many bytes a page ends, with a cursor; `usize::MAX`, the default, is without a bound.
    pub bytes_max: usize,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            filter: Filter::default(),
            limit: LIMIT_DEFAULT,
            after: None,
            budget: BUDGET_DEFAULT,
            bytes_max: usize::MAX,
        }
    }
}

impl Search {
    /// Everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, for keys that start with a text.
    #[must_use]
    pub fn starting(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The same with conditions.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// The same with at most `limit` entries.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The same, going on where a page ended.
    #[must_use]
    pub fn after(mut self, cursor: Option<String>) -> Self {
        self.after = cursor;
        self
    }

    /// The same, looking at no more than so many entries for one page.
    #[must_use]
    pub fn budget(mut self, budget: usize) -> Self {
        self.budget = budget;
        self
    }

    /// The same, ending a page after so many bytes. The page has at least one entry.
    #[must_use]
    pub fn bytes_max(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }
}

/// A page of what a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The entries: in the order of the index, or of their keys where there is none.
    pub entries: Vec<AgentEntry>,
    /// Where to go on; `None` at the end. A page may be short, even empty, and still have a next one.
    pub next: Option<String>,
    /// The index that was asked; `None` where the entries themselves were looked through.
    pub index: Option<String>,
    /// What the page cost.
    pub read: Read,
}

impl Namespace {
    /// One page of the entries that a search asks for: from an index that the schema declares for these
    /// fields, or by looking through the namespace, a budget at a time. They do not count as accessed.
    pub async fn search(&self, search: &Search) -> Result<Found> {
        let (records, page) = found(&self.space, self.values(), search).await?;
        let entries = self.complete_all(records).await?;
        self.log(Line { count: Some(entries.len()), ..Line::of("search") });
        Ok(Found { entries, ..page })
    }
}

impl UserData {
    /// The same in all namespaces of the user.
    pub async fn search(&self, search: &Search) -> Result<Found> {
        if !search.prefix.is_empty() {
            let message = "keys are searched by how they start in one namespace; name it";
            return Err(Error::Invalid(message.to_owned()));
        }
        let values = Bindings::new().with(USER, &*self.user);
        let (records, page) = found(&self.space()?, values, search).await?;
        let entries = self.complete_all(records).await?;
        self.log(Line { count: Some(entries.len()), ..Line::of("search") });
        Ok(Found { entries, ..page })
    }
}

async fn found(
    space: &Space,
    values: Bindings,
    search: &Search,
) -> Result<(Vec<keyward_records::Record>, Found)> {
    let unknown = |field: &&keyward_schema::FieldPath| {
        !field.names().first().is_some_and(|first| FIELDS.contains(&first.as_str()))
    };
    if let Some(field) = search.filter.fields().find(unknown) {
        return Err(Error::Invalid(format!(
            "entries cannot be searched by {field}; conditions are on value.…, metadata.…, \
             {CREATED_BY_AGENT}, {CREATED_AT} and {UPDATED_AT}"
        )));
    }
    // A search goes on in the way that its first page was found, whatever is built meanwhile.
    let (after, went_by_key) = match search.after.as_deref() {
        Some(cursor) => match cursor.strip_prefix(BY_KEY) {
            Some(cursor) => (Some(cursor.to_owned()), true),
            None => (Some(cursor.to_owned()), false),
        },
        None => (None, false),
    };
    let narrowed = |query: Query| {
        let query = query.limit(search.limit).after(after.clone()).budget(search.budget);
        let query = query.bytes_max(search.bytes_max);
        match search.prefix.is_empty() {
            true => query,
            false => query.starting(search.prefix.clone()),
        }
    };
    let by_key = || narrowed(Query::key(values.clone()).filter(search.filter.clone()).allow_scan());
    let by_index = Query::for_filter(space.declaration(), &search.filter);
    let by_index =
        by_index.filter(|_| !went_by_key).map(|query| narrowed(query.among(values.clone())));
    let mut query = by_index.unwrap_or_else(by_key);
    let answer = match space.query(&query).await {
        // An index that is not built yet does not keep anybody from searching.
        Err(RecordsError::IndexNotReady { .. }) if search.after.is_none() => {
            query = by_key();
            space.query(&query).await?
        }
        answer => answer?,
    };
    let index = match query.by {
        keyward_records::By::Index { name, .. } => Some(name),
        keyward_records::By::Key(_) | keyward_records::By::Nowhere(_) => None,
    };
    let next = answer.next.map(|next| match index {
        Some(_) => next,
        None => format!("{BY_KEY}{next}"),
    });
    let page = Found { entries: Vec::new(), next, index, read: answer.read };
    Ok((answer.records, page))
}
