//! What a client is told when something did not work: RFC 9457, from the one catalogue of codes.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use keyward::schema::Problems;
use keyward::{
    Coded, ParseError, agents, agreements, cache, locks, migrate, moment_text, queue, records,
    registry,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::openapi::{self, Content, RefOr, ResponseBuilder, ResponsesBuilder};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use crate::catalogue;

/// What a handler comes to.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

/// How many bytes tell what happened. Errors of libraries quote whatever was sent.
const DETAIL_BYTES_MAX: usize = 2_000;

/// Why a request was not done: an answer of the type `application/problem+json`.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    hint: String,
    retryable: bool,
    more: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The body of a [`Problem`].
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'p> {
    /// Where the code is explained, relative to this server.
    #[schema(example = "/problems/bad-cursor")]
    r#type: String,
    /// What kind of problem this is, in a few words.
    title: &'p str,
    /// The status of the answer.
    #[schema(example = 400)]
    status: u16,
    /// The stable code: programs look at this.
    #[schema(example = "bad-cursor")]
    code: &'p str,
    /// What happened, for people.
    detail: &'p str,
    /// What to do about it.
    hint: &'p str,
    /// Whether the same request may succeed later, without a risk of doing it twice.
    retryable: bool,
    /// What else is known, by the kind of problem.
    #[serde(flatten)]
    more: &'p Map<String, Value>,
}

impl Problem {
    /// A problem of the catalogue. Nothing is retryable unless [`Problem::retryable`] says so.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status: catalogue::find(code).map_or(StatusCode::INTERNAL_SERVER_ERROR, |it| it.status),
            code,
            detail: shortened(detail.into()),
            hint: String::new(),
            retryable: false,
            more: Map::new(),
            headers: Vec::new(),
        }
    }

    /// A request that makes no sense as it is.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new("invalid", detail).hint("Change the request; nothing was done.")
    }

    /// Something that is not there, or that the caller is not to know of.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new("not-found", detail).hint("Look at what there is, and change the path.")
    }

    /// Something that the credential does not allow.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new("forbidden", detail).hint("Use a credential that may do this.")
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

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same, saying when to try again.
    fn after(self, time: Duration) -> Self {
        // Whole seconds, and not too early.
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Its code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The status of its answer.
    pub fn status(&self) -> StatusCode {
        self.status
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
    pub(crate) fn more(&self) -> &Map<String, Value> {
        &self.more
    }

    fn of_service(code: &'static str, detail: String, hint: &str, retryable: bool) -> Self {
        Self { retryable, ..Self::new(code, detail).hint(hint) }
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

/// How the description of the API tells of problems: any route can have any of them.
pub(crate) struct ProblemAnswers;

impl IntoResponses for ProblemAnswers {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let body = || Content::new(Some(ProblemBody::schema()));
        let told = |description: &str| {
            ResponseBuilder::new()
                .description(description)
                .content("application/problem+json", body())
                .build()
        };
        ResponsesBuilder::new()
            .response("4XX", told("A problem with the request: nothing was done"))
            .response("5XX", told("A problem of the server or of the store"))
            .build()
            .into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let body = ProblemBody {
            r#type: format!("/problems/{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Problem"),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            hint: &self.hint,
            retryable: self.retryable,
            more: &self.more,
        };
        // A struct of texts and JSON values always serializes.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let problem = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, problem);
        response.headers_mut().extend(self.headers.clone());
        response.extensions_mut().insert(self);
        response
    }
}

impl From<keyward::Error> for Problem {
    fn from(error: keyward::Error) -> Self {
        let kind = error.kind();
        Self::of_service(kind.code().name(), error.to_string(), kind.hint(), kind.retryable())
    }
}

/// Errors that have a code, a hint, and know whether to try again.
macro_rules! from_errors_of {
    ($($service:ident),+) => {
        $(impl From<$service::Error> for Problem {
            fn from(error: $service::Error) -> Self {
                let (code, hint, retryable) = (error.code().name(), error.hint(), error.retryable());
                Self::of_service(code, error.to_string(), hint, retryable)
            }
        })+
    };
}

from_errors_of!(queue);

impl From<agents::Error> for Problem {
    fn from(error: agents::Error) -> Self {
        let (code, hint, retryable) = (error.code().name(), error.hint(), error.retryable());
        let mut told = Self::of_service(code, error.to_string(), hint, retryable);
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
        let (code, hint, retryable) = (error.code().name(), error.hint(), error.retryable());
        let told = Self::of_service(code, error.to_string(), hint, retryable);
        match error {
            registry::Error::Store(error) => error.into(),
            registry::Error::Queue(error) => error.into(),
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
        let (code, hint, retryable) = (error.code().name(), error.hint(), error.retryable());
        let told = Self::of_service(code, error.to_string(), hint, retryable);
        match error {
            agreements::Error::Store(error) => error.into(),
            agreements::Error::Queue(error) => error.into(),
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
        let (code, hint, retryable) = (error.code().name(), error.hint(), error.retryable());
        let problem = Self::of_service(code, error.to_string(), hint, retryable);
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
        let (code, hint, retryable) = (error.code().name(), error.hint(), error.retryable());
        let problem = Self::of_service(code, error.to_string(), hint, retryable);
        match error {
            cache::Error::Lock(error) => error.into(),
            cache::Error::TimedOut { .. } => Self { code: "computing", ..problem },
            // Only a new lookup helps, not the same request.
            cache::Error::Lost { .. } => Self { retryable: false, ..problem },
            cache::Error::Failed { message, at, times, retry_after, .. } => problem
                .with("message", message)
                .with("failed_at", moment_text(at))
                .with("times", times)
                .with("retry_after", retry_after.as_secs_f64())
                .after(retry_after),
            _ => problem,
        }
    }
}

impl From<records::Error> for Problem {
    fn from(error: records::Error) -> Self {
        let (code, hint, retryable) = (error.code().name(), error.hint(), error.retryable());
        let problem = Self::of_service(code, error.to_string(), hint, retryable);
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
            error => Self::new(error.code().name(), error.to_string()).hint(error.hint()),
        }
    }
}

impl From<Problems> for Problem {
    fn from(problems: Problems) -> Self {
        Self::invalid(problems.to_string())
    }
}
