//! Answering.

use keyward_engine::{Cursor, Entry, Scan, Tier, Want};
use keyward_key::{Bindings, Key, KeyRange};

use super::once::Once;
use super::page::Page;
use super::readable::state;
use super::{Answer, BUDGET_MAX, By, Explanation, Filter, LIMIT_MAX, Query, Read, project, range};
use crate::access::Sight;
use crate::catalog::Snapshot;
use crate::change::Record;
use crate::index::Layout;
use crate::space::Space;
use crate::walk::Walk;
use crate::{Error, Result};

/// How many rows are read at least where some will be dropped.
const ROWS_AHEAD: usize = 32;

impl Space {
    /// One page of what a query asks for.
    pub async fn query(&self, query: &Query) -> Result<Answer> {
        self.answer(query).await.map(|(answer, _)| answer)
    }

    /// How a query is answered: the page is read, and only what it cost is told.
    pub async fn explain(&self, query: &Query) -> Result<Explanation> {
        let (answer, range) = self.answer(query).await?;
        let index = match &query.by {
            By::Index { name, .. } => Some(name.clone()),
            By::Key(_) | By::Nowhere(_) => None,
        };
        Ok(Explanation {
            index,
            range,
            filtered: !query.filter.is_empty(),
            guarantee: answer.guarantee,
            read: answer.read,
            records: answer.records.len(),
            more: answer.next.is_some(),
        })
    }

    async fn answer(&self, query: &Query) -> Result<(Answer, String)> {
        check_bounds(query)?;
        match &query.by {
            By::Index { name, .. } => self.answer_by_index(query, name).await,
            By::Nowhere(reason) => Err(Error::BadQuery((*reason).into())),
            By::Key(values) => {
                let values = match &query.owner {
                    Some(owner) => match self.access.space.ownership.owner() {
                        Some(variable) => values.clone().with(variable, owner.as_str()),
                        None => return Err(Error::BadQuery("this space has no owners".into())),
                    },
                    None => values.clone(),
                };
                let part = self.access.starting(values.clone(), query.starts.as_deref())?;
                if !query.filter.is_empty() && !query.allow_scan {
                    return Err(Error::NeedsScan { space: self.access.space.name.clone() });
                }
                // What tells this question from others, and what a person reads.
                let starts = query.starts.as_ref().map(|starts| format!("{starts}*"));
                let starts = starts.unwrap_or_default();
                let text = format!("{}{starts}{}", part.prefix, bound_text(&values));
                self.answer_by_key(query, &part.range, text).await
            }
        }
    }

    async fn answer_by_key(
        &self,
        query: &Query,
        range: &KeyRange,
        prefix: String,
    ) -> Result<(Answer, String)> {
        let mut position = self.position(query, &prefix).await?;
        let walk = Walk {
            store: &self.shared.store,
            pattern: &self.access.space.key,
            range: range.clone(),
            order: query.order,
            want: Want::Entries,
        };
        let mut page = Page::new(query, self.is_ordered());
        let ahead = self.rows_ahead(&query.filter);
        loop {
            let walked = walk.next(position, page.rows(ahead), page.budget_left()).await?;
            page.read.entries += walked.read;
            position = walked.position;
            let mut rows = walked.rows.into_iter();
            for row in rows.by_ref() {
                page.read.records += 1;
                let record = match row.entry {
                    Some(entry) => Record::stored(row.key, entry)?,
                    None => None,
                };
                page.take(record.filter(|record| query.filter.holds(&record.value)));
                if page.has_all() {
                    break;
                }
            }
            if let (Some(last), 1..) = (page.records.last(), rows.len()) {
                position = Some(last.key.as_bytes().to_vec());
            }
            if position.is_none() || page.is_full() {
                break;
            }
        }
        Ok((self.page(page, &prefix, position).await?, prefix))
    }

    async fn answer_by_index(&self, query: &Query, name: &str) -> Result<(Answer, String)> {
        let By::Index { equal, span, .. } = &query.by else {
            return Err(Error::BadQuery("no index was named".into()));
        };
        let declared = self.declared(name)?;
        let owner = self.access.index_owner(declared.scope, query.owner.as_deref())?;
        let layout = Layout::new(declared.clone());
        let asked = range::of(&layout, owner.as_deref(), equal, span.as_ref())?;
        // Where only some entries are the caller's, a span would tell of the others.
        let hidden = self.access.hides(declared.scope);
        if hidden && !asked.exact {
            return Err(Error::BadQuery(format!(
                "the index {name} holds every user's entries: ask it for whole values"
            )));
        }
        let among = match (&query.among, &query.starts) {
            (None, None) => None,
            (values, starts) => {
                let values = values.clone().unwrap_or_default();
                Some(self.access.starting(values, starts.as_deref())?.range)
            }
        };
        // Where a record can come by several entries, a cursor carries more than a position.
        let several = layout.is_multi();
        let text = if several { format!("{} once", asked.text) } else { asked.text.clone() };
        let mut position = self.position(query, &text).await?;
        let mut once = several.then(|| Once::new(&asked.range, query.order, self.is_ordered()));
        if let (Some(once), Some(at)) = (&mut once, &mut position) {
            *at = once.resume(at)?;
        }
        let mut page = Page::new(query, self.is_ordered());
        let Some(catalog) = self.readable(&layout).await? else {
            return Ok((self.page(page, &text, None).await?, asked.text));
        };
        let mut ahead = self.rows_ahead(&query.filter);
        loop {
            let rows = page.rows(ahead).min(page.budget_left());
            let want = if layout.is_unique() { Want::Entries } else { Want::Keys };
            let scan = Scan {
                range: asked.range.clone(),
                after: position.map(Cursor::new),
                limit: rows,
                order: query.order,
                want,
            };
            let entries = self.shared.store.scan(&scan).await?;
            page.read.entries += entries.rows.len();
            let last = entries.rows.last().map(|row| row.key.to_bytes().to_vec());
            position = match (entries.next, self.is_ordered()) {
                (Some(_), true) => last,
                (Some(next), false) => Some(next.as_bytes().to_vec()),
                (None, _) => None,
            };
            let mut found = Found::with_capacity(entries.rows.len());
            for row in entries.rows {
                let value = row.entry.as_ref().map(|entry| &entry.value);
                let primary = layout.primary(&row.key, value, self.access.is_owned());
                let is_asked = |key: &Key| among.as_ref().is_none_or(|among| among.contains(key));
                if let Some(primary) = primary.filter(is_asked) {
                    found.push(row.key, primary);
                }
            }
            let mut fetched = self.fetch(found, &catalog, &layout).await?;
            while let Some((entry, primary, stored)) = fetched.next() {
                page.read.records += 1;
                let mut record = self.matching(&layout, &entry, primary, stored, once.as_mut())?;
                let unwanted = record.take_if(|record| !query.filter.holds(&record.value));
                if let (Some(once), Some(unwanted)) = (&mut once, unwanted) {
                    once.forget(&unwanted.key);
                }
                page.take(record);
                if page.has_all() {
                    if fetched.len() > 0 {
                        position = Some(entry.as_bytes().to_vec());
                    }
                    break;
                }
            }
            // What did not fill the page at once has rows to drop.
            ahead = self.rows_ahead_max();
            if position.is_none() || page.is_full() {
                break;
            }
        }
        if hidden {
            let seen = page.records.len();
            page.read = Read { entries: seen, records: seen, dropped: 0 };
        }
        if let (Some(once), Some(at)) = (&once, &mut position) {
            *at = once.position(at);
        }
        Ok((self.page(page, &text, position).await?, asked.text))
    }

    /// The records that entries lead to; and the catalog again, to know that the entries were kept
    /// all the while.
    pub(crate) async fn fetch(
        &self,
        found: Found,
        catalog: &Snapshot,
        layout: &Layout,
    ) -> Result<impl ExactSizeIterator<Item = (Key, Key, Option<Entry>)>> {
        let shared = &self.shared;
        let Found { entries, mut primaries } = found;
        let checked = self.guarantee() == Tier::Atomic;
        if checked {
            primaries.push(shared.catalog.key().clone());
        }
        let mut stored = shared.store.get_many(&primaries).await?;
        if checked {
            let version = stored.pop().flatten().map(|entry| entry.version);
            if version != catalog.version {
                let latest = shared.catalog.read(&shared.store, &*shared.clock).await?;
                state(&latest, layout).map_err(|reason| self.not_ready(layout, reason))?;
            }
        }
        let both = entries.into_iter().zip(primaries).zip(stored);
        Ok(both.map(|((entry, primary), stored)| (entry, primary, stored)))
    }

    /// The record that an entry led to, as far as the caller sees it, if it still belongs there.
    pub(crate) fn matching(
        &self,
        layout: &Layout,
        entry: &Key,
        primary: Key,
        stored: Option<Entry>,
        once: Option<&mut Once<'_>>,
    ) -> Result<Option<Record>> {
        let Some(stored) = stored else { return Ok(None) };
        let sight = self.access.sight(&primary, layout.index.scope);
        if sight == Sight::Nothing {
            return Ok(None);
        }
        let belongs = if layout.is_multi() {
            let owner = self.access.owner_of(&primary);
            // A value that cannot be indexed is in no index.
            let entries = layout.entries(owner.as_deref(), &primary, &stored.value);
            entries.is_ok_and(|entries| {
                entries.iter().any(|one| one.key == *entry)
                    && once.is_none_or(|once| once.is_new(entry, &primary, &entries))
            })
        } else {
            layout.is_entry_of(entry, self.access.is_owned(), &stored.value)
        };
        if !belongs {
            return Ok(None);
        }
        let record = Record::stored(primary, stored)?;
        Ok(match sight {
            Sight::Shared(share) => record.map(|record| project::shared(record, share)),
            Sight::Whole | Sight::Nothing => record,
        })
    }

    /// How many rows are read at least for a page with conditions, so that one that few rows fulfil
    /// is not looked for row by row.
    pub(crate) fn rows_ahead(&self, filter: &Filter) -> usize {
        if filter.is_empty() { 0 } else { self.rows_ahead_max() }
    }

    /// The same for a page whose rows did not all match. Only where rows are in order can a page end
    /// before the last one that was read.
    pub(crate) fn rows_ahead_max(&self) -> usize {
        if self.is_ordered() { ROWS_AHEAD } else { 0 }
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.shared.store.capabilities().scan_order == keyward_engine::ScanOrder::Ordered
    }
}

/// Entries, and the records they lead to.
#[derive(Default)]
pub(crate) struct Found {
    entries: Vec<Key>,
    primaries: Vec<Key>,
}

impl Found {
    pub fn with_capacity(rows: usize) -> Self {
        // One more than there are records: the catalog is read with them.
        Self { entries: Vec::with_capacity(rows), primaries: Vec::with_capacity(rows + 1) }
    }

    pub fn push(&mut self, entry: Key, primary: Key) {
        self.entries.push(entry);
        self.primaries.push(primary);
    }
}

/// The values asked for, as a person would write them.
fn bound_text(values: &Bindings) -> String {
    let values: Vec<String> =
        values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) }
}

fn check_bounds(query: &Query) -> Result<()> {
    check_bound("limit", query.limit, LIMIT_MAX)?;
    check_bound("budget", query.budget, BUDGET_MAX)
}

/// Refuses a number that is none or above its maximum.
pub(crate) fn check_bound(what: &str, value: usize, max: usize) -> Result<()> {
    match value {
        0 => Err(Error::BadQuery(format!("the {what} must be at least one"))),
        value if value > max => {
            Err(Error::BadQuery(format!("the {what} is {value}; at most {max} is possible")))
        }
        _ => Ok(()),
    }
}
