//! Reading issues.

use keyward_engine::Scan;

use super::limits::{ISSUES_MAX, ISSUES_SLACK};
use super::{Filter, Issue, PageIssues, Sort, Versioned};
use crate::{Error, Result, places};

/// How many issues are read at once.
const SCAN: usize = 500;

/// One page of a list of issues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuePage {
    /// The issues.
    pub items: Vec<Versioned>,
    /// Where to go on, if there are more.
    pub next: Option<String>,
    /// How many there are in all that the filter lets through.
    pub total: usize,
}

impl PageIssues {
    /// The most issues in one page of a list.
    pub const PAGE_MAX: usize = 500;

    /// One page of the issues that a filter lets through, at most [`PageIssues::PAGE_MAX`]. `after` is
    /// the cursor of the page before, in the same order. An issue that is changed between two pages may
    /// be on both, or on neither.
    pub async fn list(
        &self,
        filter: &Filter,
        sort: Sort,
        after: Option<&str>,
        limit: usize,
    ) -> Result<IssuePage> {
        filter.check()?;
        let after = after.map(|cursor| sort.after(cursor)).transpose()?;
        let mut found = Vec::new();
        self.read(|versioned| {
            if filter.matches(&versioned.issue) {
                found.push((sort.rank(&versioned.issue), versioned));
            }
        })
        .await?;
        let total = found.len();
        if let Some(after) = after {
            found.retain(|(rank, _)| *rank > after);
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let limit = limit.clamp(1, Self::PAGE_MAX);
        let has_more = found.len() > limit;
        let items: Vec<Versioned> = found.into_iter().take(limit).map(|(_, it)| it).collect();
        let last = items.last().filter(|_| has_more);
        let next = last.map(|last| sort.cursor(&last.issue)).transpose()?;
        Ok(IssuePage { items, next, total })
    }

    /// All issues of the page, the archived included, in the order of their ids.
    pub async fn all(&self) -> Result<Vec<Issue>> {
        let mut issues = Vec::new();
        self.read(|versioned| issues.push(versioned.issue)).await?;
        Ok(issues)
    }

    async fn read(&self, mut each: impl FnMut(Versioned)) -> Result<()> {
        let (mut cursor, mut count) = (None, 0);
        loop {
            let scan = Scan::new(places::issues(&self.page)).limit(SCAN).after(cursor);
            let page = self.store.scan(&scan).await?;
            count += page.rows.len();
            if count > ISSUES_MAX + ISSUES_SLACK {
                let page = &self.page;
                let message = format!("the page {page} has more than {ISSUES_MAX} issues");
                return Err(Error::Invalid(message));
            }
            for row in page.rows {
                if let Some(entry) = row.entry {
                    each(Versioned::decode(&row.key, entry)?);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// How many there are; no more are counted than a page can have.
    pub(super) async fn count(&self) -> Result<usize> {
        let (mut cursor, mut count) = (None, 0);
        loop {
            let range = places::issues(&self.page);
            let scan = Scan::new(range).limit(ISSUES_MAX).keys_only().after(cursor);
            let page = self.store.scan(&scan).await?;
            count += page.rows.len();
            cursor = page.next;
            if cursor.is_none() || count >= ISSUES_MAX {
                return Ok(count);
            }
        }
    }
}
