//! A page of an answer, and the cursors between pages.

use keyward_engine::{Order, PageBytes};

use super::{Answer, Query, Read, project};
use crate::Result;
use crate::change::Record;
use crate::cursor::Question;
use crate::space::Space;

/// A page that is being filled.
pub(super) struct Page<'q> {
    pub query: &'q Query,
    pub records: Vec<Record>,
    pub read: Read,
    bytes: PageBytes,
    /// Whether the page can end before the last row that was read.
    ordered: bool,
}

impl<'q> Page<'q> {
    pub fn new(query: &'q Query, ordered: bool) -> Self {
        let (records, bytes) = (Vec::with_capacity(query.limit), PageBytes::new(query.bytes_max));
        Self { query, records, read: Read::default(), bytes, ordered }
    }

    pub fn take(&mut self, record: Option<Record>) {
        let Some(mut record) = record else {
            self.read.dropped += 1;
            return;
        };
        if !self.query.fields.is_empty() {
            record.value = project::fields(&record.value, &self.query.fields);
        }
        self.bytes.add(record.bytes());
        self.records.push(record);
    }

    pub fn budget_left(&self) -> usize {
        self.query.budget.saturating_sub(self.read.entries)
    }

    /// How many rows to read next: those that are missing and fit, or `ahead` if that is more.
    pub fn rows(&self, ahead: usize) -> usize {
        (self.query.limit - self.records.len()).min(self.bytes.rows_to_read()).max(ahead)
    }

    /// Whether what is left of the rows that were read belongs to the next page.
    pub fn has_all(&self) -> bool {
        self.records.len() >= self.query.limit || (self.ordered && self.bytes.is_full())
    }

    pub fn is_full(&self) -> bool {
        self.has_all() || self.bytes.is_full() || self.budget_left() == 0
    }
}

impl Space {
    async fn question(&self, query: &Query, range: &str) -> Result<Question> {
        let mut question = Question::new(&self.shared.secret().await?, &self.access.caller);
        question.part(self.access.space.name.as_bytes());
        question.part(format!("{:?}", query.by).as_bytes());
        question.optional(query.owner.as_deref());
        question.part(range.as_bytes());
        if query.among.is_some() || query.starts.is_some() {
            question.part(format!("{:?} {:?}", query.among, query.starts).as_bytes());
        }
        question.part(&[u8::from(query.order == Order::Descending)]);
        question.part(query.filter.fingerprint().as_bytes());
        Ok(question)
    }

    pub(super) async fn position(&self, query: &Query, range: &str) -> Result<Option<Vec<u8>>> {
        let Some(cursor) = &query.cursor else { return Ok(None) };
        let question = self.question(query, range).await?;
        question.position(cursor, self.shared.clock.now()).map(Some)
    }

    pub(super) async fn page(
        &self,
        page: Page<'_>,
        range: &str,
        position: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let next = match position {
            Some(at) => {
                let question = self.question(page.query, range).await?;
                Some(question.cursor(&at, self.shared.clock.now()))
            }
            None => None,
        };
        let Page { records, read, .. } = page;
        Ok(Answer { records, next, guarantee: self.guarantee(), read })
    }
}
