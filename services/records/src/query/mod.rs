//! Questions to a space, answered in pages.

mod choose;
mod filter;
mod once;
mod page;
pub(crate) mod project;
mod range;
mod readable;
mod run;

pub(crate) use run::{Found, check_bound};

use keyward_engine::{Order, Tier};
use keyward_key::Bindings;
use keyward_schema::FieldPath;
use serde_json::Value;

pub use filter::Filter;

use crate::change::Record;

/// How many rows a page has when nothing else is said.
pub const LIMIT_DEFAULT: usize = 100;
/// How many rows a page can have.
pub const LIMIT_MAX: usize = 1_000;
/// How many entries are read for one page when nothing else is said.
pub const BUDGET_DEFAULT: usize = 1_000;
/// How many entries can be read for one page.
pub const BUDGET_MAX: usize = 100_000;

/// Why a query of keys with values of fields is refused.
const NO_FIELDS: &str = "keys are asked for by the values of their variables: equal, between, prefix \
                         and span are for the fields of an index, a filter is for any field";

/// Why a query of keys is refused that is to be narrowed like one of an index.
const NOT_AMONG: &str =
    "keys are asked for by the values of their variables: among is for an index";

/// A question to an index, or to the keys themselves.
///
/// ```
/// use keyward_records::{Filter, Query};
///
/// // Open tasks that are due this year, the latest first.
/// let query = Query::index("by_state_and_due")
///     .equal("open")
///     .between("2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z")
///     .descending()
///     .filter(Filter::parse(r#"{"assignee":"ada"}"#)?)
///     .limit(20);
/// assert_eq!(query.limit, 20);
/// # Ok::<(), keyward_records::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Where to look.
    pub by: By,
    /// Whose records, for those who may choose. Callers who are users need not say.
    pub owner: Option<String>,
    /// In an index: only records below these leading values of the key's variables.
    pub among: Option<Bindings>,
    /// Only records whose key goes on with a segment that starts with this text, after the values of
    /// its variables that are given.
    pub starts: Option<String>,
    /// In which direction.
    pub order: Order,
    /// At most this many rows.
    pub limit: usize,
    /// Where an earlier page of the same question ended.
    pub cursor: Option<String>,
    /// The fields to give back; all of them, if none are named.
    pub fields: Vec<FieldPath>,
    /// What must hold besides.
    pub filter: Filter,
    /// How many entries may be read for one page. A page that ends early for it has a cursor.
    pub budget: usize,
    /// After how many bytes of values and metadata a page ends, with a cursor; `usize::MAX`, the default, is without
    /// a bound.
    pub bytes_max: usize,
    /// Whether everything may be read where no index helps.
    pub allow_scan: bool,
}

/// Where a query looks.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// In an index.
    Index {
        /// Its name.
        name: String,
        /// The values of its leading fields.
        equal: Vec<Value>,
        /// Where the value of the field after them lies.
        span: Option<Span>,
    },
    /// Among the keys, with these values of the pattern's leading variables.
    Key(Bindings),
    /// Nowhere: what was asked makes no sense together. Asking it is refused with this reason.
    Nowhere(&'static str),
}

/// A part of the values of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Span {
    /// Between two values; open where there is none.
    Between {
        /// The lower end.
        from: Option<Bound>,
        /// The upper end.
        to: Option<Bound>,
    },
    /// Texts that start with this.
    Prefix(String),
}

/// One end of a span.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The value.
    pub value: Value,
    /// Whether it belongs to the span itself.
    pub inclusive: bool,
}

impl Query {
    /// Everything in an index.
    pub fn index(name: impl Into<String>) -> Self {
        Self::new(By::Index { name: name.into(), equal: Vec::new(), span: None })
    }

    /// Everything below these leading values of the key's variables, in the order of the keys.
    pub fn key(values: Bindings) -> Self {
        Self::new(By::Key(values))
    }

    fn new(by: By) -> Self {
        Self {
            by,
            owner: None,
            among: None,
            starts: None,
            order: Order::Ascending,
            limit: LIMIT_DEFAULT,
            cursor: None,
            fields: Vec::new(),
            filter: Filter::default(),
            budget: BUDGET_DEFAULT,
            bytes_max: usize::MAX,
            allow_scan: false,
        }
    }

    /// The same, where the index's next field has this value. A query of keys is refused with it.
    #[must_use]
    pub fn equal(mut self, value: impl Into<Value>) -> Self {
        match &mut self.by {
            By::Index { equal, .. } => equal.push(value.into()),
            By::Key(_) | By::Nowhere(_) => self.by = By::Nowhere(NO_FIELDS),
        }
        self
    }

    /// The same, where the field after those with known values lies between two values, both
    /// included. A query of keys is refused with it.
    #[must_use]
    pub fn between(self, from: impl Into<Value>, to: impl Into<Value>) -> Self {
        let end = |value| Some(Bound { value, inclusive: true });
        self.span(Span::Between { from: end(from.into()), to: end(to.into()) })
    }

    /// The same, where the field after those with known values starts with a text. A query of keys is
    /// refused with it.
    #[must_use]
    pub fn prefix(self, text: impl Into<String>) -> Self {
        self.span(Span::Prefix(text.into()))
    }

    /// The same with a span for the field after those with known values. A query of keys is refused
    /// with it.
    #[must_use]
    pub fn span(mut self, of_values: Span) -> Self {
        match &mut self.by {
            By::Index { span, .. } => *span = Some(of_values),
            By::Key(_) | By::Nowhere(_) => self.by = By::Nowhere(NO_FIELDS),
        }
        self
    }

    /// The same for one owner's records.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// The same in an index, for records below these leading values of the key's variables. Entries of
    /// others are read, and not followed. A query of keys is refused with it.
    #[must_use]
    pub fn among(mut self, values: Bindings) -> Self {
        match &self.by {
            By::Index { .. } => self.among = Some(values),
            By::Key(_) | By::Nowhere(_) => self.by = By::Nowhere(NOT_AMONG),
        }
        self
    }

    /// The same, for records whose key goes on with a segment that starts with a text, after the
    /// values of its variables that are given.
    #[must_use]
    pub fn starting(mut self, text: impl Into<String>) -> Self {
        self.starts = Some(text.into());
        self
    }

    /// The same from the end.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.order = Order::Descending;
        self
    }

    /// The same with at most `limit` rows.
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

    /// The same, giving back one more field instead of everything.
    #[must_use]
    pub fn field(mut self, field: FieldPath) -> Self {
        self.fields.push(field);
        self
    }

    /// The same with conditions.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// The same, reading at most so many entries for one page.
    #[must_use]
    pub fn budget(mut self, budget: usize) -> Self {
        self.budget = budget;
        self
    }

    /// The same, ending a page after so many bytes of values and metadata. The page has at least one row.
    #[must_use]
    pub fn bytes_max(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// The same, also where everything has to be read.
    #[must_use]
    pub fn allow_scan(mut self) -> Self {
        self.allow_scan = true;
        self
    }
}

/// One page of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The records, in the order asked for.
    pub records: Vec<Record>,
    /// Where to go on; `None` at the end. A page may be short, even empty, and still have a next one.
    pub next: Option<String>,
    /// What the answer is worth: on the atomic and the recoverable tier no record that matches is
    /// missing and none is wrong; on the advisory tier both may be, for a while.
    ///
    /// That is about records whose entry stays in the range asked for while its pages are read. One
    /// whose value moves inside the range meanwhile may come twice or, when it moves to where was
    /// read already, not at all. A record with several entries in the range comes as long as one of
    /// them stays; it comes once, and twice only if it changes meanwhile. (A cursor remembers up to a
    /// thousand records that have more entries ahead. Past that, one that gets an earlier entry
    /// meanwhile is taken for given.)
    pub guarantee: Tier,
    /// What it cost.
    pub read: Read,
}

/// What answering cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Read {
    /// Index entries, or keys, that were read.
    pub entries: usize,
    /// Records that were fetched.
    pub records: usize,
    /// Records that were fetched and did not match.
    pub dropped: usize,
}

/// How a question is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The index, or none where the keys themselves are read.
    pub index: Option<String>,
    /// Which entries or keys are read, as a person would write it.
    pub range: String,
    /// Whether the filter makes it read more than it gives back.
    pub filtered: bool,
    /// What the answer is worth.
    pub guarantee: Tier,
    /// What the page cost.
    pub read: Read,
    /// How many records the page has.
    pub records: usize,
    /// Whether there are more.
    pub more: bool,
}
