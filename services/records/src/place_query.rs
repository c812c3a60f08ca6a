//! Questions for places.

use std::fmt::Debug;

use keyward_schema::FieldPath;

use crate::Result;
use crate::change::Record;
use crate::cursor::Question;
use crate::query::{BUDGET_MAX, Filter, LIMIT_DEFAULT, LIMIT_MAX, check_bound, project};
use crate::space::Space;

/// A question for the places in an area, page by page: [`Near`](crate::Near) the centre of a circle, or
/// [`Within`](crate::Within) a box.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceQuery<Area> {
    /// The index of places.
    pub index: String,
    /// Where to look.
    pub area: Area,
    /// Whose records, for those who may choose.
    pub owner: Option<String>,
    /// At most this many.
    pub limit: usize,
    /// Where an earlier page of the same question ended.
    pub cursor: Option<String>,
    /// What must hold besides.
    pub filter: Filter,
    /// The fields to give back; all of them, if none are named.
    pub fields: Vec<FieldPath>,
    /// How many entries may be read for one page. A page of [`Within`](crate::Within) that ends early
    /// for it has a cursor; [`Near`](crate::Near), which knows the nearest only when it has read all
    /// around them, is refused with [`Error::TooExpensive`](crate::Error::TooExpensive).
    pub budget: usize,
    /// After how many bytes of values and metadata a page ends, with a cursor; `usize::MAX`, the default, is without
    /// a bound.
    pub bytes_max: usize,
}

impl<Area> PlaceQuery<Area> {
    /// The places of an index that lie in an area.
    pub fn new(index: impl Into<String>, area: Area) -> Self {
        Self {
            index: index.into(),
            area,
            owner: None,
            limit: LIMIT_DEFAULT,
            cursor: None,
            filter: Filter::default(),
            fields: Vec::new(),
            budget: BUDGET_MAX,
            bytes_max: usize::MAX,
        }
    }

    /// The same with at most `limit` places.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The same, going on where a page ended.
    #[must_use]
    pub fn after(mut self, cursor: Option<String>) -> Self {
        self.cursor = cursor;
        self
    }

    /// The same with conditions.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// The same for one owner's records.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// The same, reading at most so many entries for one page.
    #[must_use]
    pub fn budget(mut self, budget: usize) -> Self {
        self.budget = budget;
        self
    }

    /// The same, ending a page after so many bytes of values and metadata. The page has at least one place.
    #[must_use]
    pub fn bytes_max(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// A record with the fields that are asked for.
    pub(crate) fn projected(&self, mut record: Record) -> Record {
        if !self.fields.is_empty() {
            record.value = project::fields(&record.value, &self.fields);
        }
        record
    }

    /// Refuses limits and budgets that are out of bounds.
    pub(crate) fn check(&self) -> Result<()> {
        check_bound("limit", self.limit, LIMIT_MAX)?;
        check_bound("budget", self.budget, BUDGET_MAX)
    }
}

impl Space {
    /// What tells a question for places from others, for its cursors.
    pub(crate) async fn place_question<Area: Debug>(
        &self,
        kind: &str,
        asked: &PlaceQuery<Area>,
    ) -> Result<Question> {
        let mut question = Question::new(&self.shared.secret().await?, &self.access.caller);
        question.part(kind.as_bytes());
        question.part(self.access.space.name.as_bytes());
        question.part(asked.index.as_bytes());
        question.optional(asked.owner.as_deref());
        question.part(format!("{:?}", asked.area).as_bytes());
        question.part(asked.filter.fingerprint().as_bytes());
        Ok(question)
    }
}
