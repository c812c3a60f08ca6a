//! Problems: why a request failed, as a code, a detail and a hint. Each door renders them in its own form.

use keyward::schema::Problems;
use keyward::{
    Code, Coded, ParseError, agents, agreements, cache, locks, migrate, moment_text, queue,
    records, registry,
};
use serde_json::{Map, Value};
use std::time::Duration;

/// What a handler comes to.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

/// How many bytes tell what happened. Errors of libraries quote whatever was sent.
const DETAIL_BYTES_MAX: usize = 2_000;

/// Why a request failed.
#[derive(Debug, Clone)]
pub struct Problem {
    code: Code,
    detail: String,
    hint: String,
    retryable: bool,
    retry_after_seconds: Option<u64>,
    more: Map<String, Value>,
}

impl Problem {
    /// A problem with a code. Nothing is retryable unless [`Problem::retryable`] says so.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: shortened(detail.into()),
            hint: String::new(),
            retryable: false,
            retry_after_seconds: None,
            more: Map::new(),
        }
    }

    /// A request that makes no sense as it is.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::Invalid, detail).hint("Change the request; nothing was done.")
    }

    /// Something that is not there, or that the caller is not to know of.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(Code::NotFound, detail).hint("Look at what there is, and change the path.")
    }

    /// Something that the credential does not allow.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, detail).hint("Use a credential that may do this.")
    }

    /// A key or prefix that cannot be read.
    pub fn unreadable(what: &str, error: &ParseError) -> Self {
        Self::invalid(format!(
            "the {what} is not valid at character {}: {}",
            error.position(),
            error.message()
        ))
    }

    /// The same with advice on what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The same, saying that it may be tried again.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The same with one more member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// The same, saying when to try again.
    #[must_use]
    pub fn retry_after(self, time: Duration) -> Self {
        // Whole seconds, and not too early.
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Self { retry_after_seconds: Some(seconds), ..self }
    }

    /// After how many seconds to try again, if that is known.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_seconds
    }

    /// Its code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The status of HTTP that its code has.
    pub fn status(&self) -> u16 {
        self.code.status()
    }

    /// What happened.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// What to do about it.
    pub fn advice(&self) -> &str {
        &self.hint
    }

    /// Whether the same request may succeed later, without a risk of doing it twice.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// What else is known, by the kind of problem.
    pub fn more(&self) -> &Map<String, Value> {
        &self.more
    }

    /// The problem that an error of a store, a service or a system is.
    fn of(error: &impl Coded) -> Self {
        let problem = Self::new(error.code(), error.to_string()).hint(error.hint());
        Self { retryable: error.retryable(), ..problem }
    }
}

/// What happened, without all of a long value that it quotes.
fn shortened(mut detail: String) -> String {
    if detail.len() > DETAIL_BYTES_MAX {
        let mut end = DETAIL_BYTES_MAX;
        while !detail.is_char_boundary(end) {
            end -= 1;
        }
        detail.truncate(end);
        detail.push('…');
    }
    detail
}

impl From<keyward::Error> for Problem {
    fn from(error: keyward::Error) -> Self {
        Self::of(&error)
    }
}

impl From<queue::Error> for Problem {
    fn from(error: queue::Error) -> Self {
        Self::of(&error)
    }
}

impl From<agents::Error> for Problem {
    fn from(error: agents::Error) -> Self {
        let mut told = Self::of(&error);
        if let Some((number, line)) = error.document() {
            told = told.with("document", number);
            if let Some(line) = line {
                told = told.with("line", line);
            }
        }
        match error {
            agents::Error::Records(error) => error.into(),
            agents::Error::Partly { done, .. } => told.with("done", done),
            _ => told,
        }
    }
}

impl From<registry::Error> for Problem {
    fn from(error: registry::Error) -> Self {
        let told = Self::of(&error);
        match error {
            registry::Error::Lock(error) => error.into(),
            registry::Error::MassDelete { deletes, entries, percent_max } => told
                .with("deletes", deletes)
                .with("entries", entries)
                .with("percent_max", percent_max),
            _ => told,
        }
    }
}

impl From<agreements::Error> for Problem {
    fn from(error: agreements::Error) -> Self {
        let told = Self::of(&error);
        match error {
            agreements::Error::Lock(error) => error.into(),
            agreements::Error::Cache(error) => error.into(),
            agreements::Error::Transition { from, to, allowed } => {
                told.with("from", from).with("to", to).with("allowed", allowed)
            }
            _ => told,
        }
    }
}

impl From<locks::Error> for Problem {
    fn from(error: locks::Error) -> Self {
        let problem = Self::of(&error);
        match error {
            locks::Error::Lost { loss: locks::Loss::Broken { by, reason }, .. } => {
                problem.with("by", by).with("reason", reason)
            }
            _ => problem,
        }
    }
}

impl From<cache::Error> for Problem {
    fn from(error: cache::Error) -> Self {
        let problem = Self::of(&error);
        match error {
            cache::Error::Lock(error) => error.into(),
            // Only a new lookup helps, not the same request.
            cache::Error::Lost { .. } => Self { retryable: false, ..problem },
            cache::Error::Failed { message, at, times, retry_after, .. } => problem
                .with("message", message)
                .with("failed_at", moment_text(at))
                .with("times", times)
                .with("retry_after", retry_after.as_secs_f64())
                .retry_after(retry_after),
            _ => problem,
        }
    }
}

impl From<records::Error> for Problem {
    fn from(error: records::Error) -> Self {
        let problem = Self::of(&error);
        match error {
            records::Error::SchemaMismatch { mismatches, .. } => {
                let told = mismatches.shown.into_iter().map(|mismatch| {
                    serde_json::json!({ "path": mismatch.path, "message": mismatch.message })
                });
                let told: Vec<_> = told.collect();
                problem.with("mismatches", told).with("mismatches_total", mismatches.total)
            }
            records::Error::UniqueClash { index, holder, .. } => {
                let problem = problem.with("index", index);
                match holder {
                    Some(holder) => problem.with("holder", holder.to_string()),
                    None => problem,
                }
            }
            records::Error::TooExpensive { entries, found, limit } => {
                problem.with("entries", entries).with("found", found).with("limit", limit)
            }
            records::Error::Unindexable { index, field, .. } => {
                problem.with("index", index).with("field", field)
            }
            _ => problem,
        }
    }
}

impl From<migrate::Error> for Problem {
    fn from(error: migrate::Error) -> Self {
        match error {
            migrate::Error::Records(error) => error.into(),
            error => Self::of(&error),
        }
    }
}

impl From<Problems> for Problem {
    fn from(problems: Problems) -> Self {
        Self::invalid(problems.to_string())
    }
}
