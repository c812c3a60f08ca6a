//! Problems over HTTP: RFC 9457.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use keyward::{agents, agreements, cache, locks, migrate, queue, records, registry};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::{self, Content, Ref, RefOr, ResponseBuilder, ResponsesBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::problem::Problem;

/// What a handler returns.
pub(crate) type Answered<T = Response<Body>> = Result<T, Refused>;

/// A problem on its way to a client, as `application/problem+json`.
#[derive(Debug)]
pub(crate) struct Refused(pub Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

macro_rules! refused_from {
    ($($error:ty),+) => {
        $(impl From<$error> for Refused {
            fn from(error: $error) -> Self {
                Self(error.into())
            }
        })+
    };
}

refused_from!(
    keyward::Error,
    agents::Error,
    agreements::Error,
    cache::Error,
    locks::Error,
    migrate::Error,
    queue::Error,
    records::Error,
    registry::Error
);

impl IntoResponse for Refused {
    fn into_response(self) -> Response<Body> {
        respond(self.0)
    }
}

/// The status of a problem's answer.
pub(crate) fn status(problem: &Problem) -> StatusCode {
    StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The answer that tells a client of a problem.
pub(crate) fn respond(problem: Problem) -> Response<Body> {
    let status = status(&problem);
    let body = ProblemBody {
        r#type: format!("/problems/{}", problem.code()),
        title: status.canonical_reason().unwrap_or("Problem"),
        status: status.as_u16(),
        code: problem.code().name(),
        detail: problem.detail(),
        hint: problem.advice(),
        retryable: problem.is_retryable(),
        more: problem.more(),
    };
    // A struct of texts and JSON values always serializes.
    let body = serde_json::to_vec(&body).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Some(seconds) = problem.retry_after_seconds() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response.extensions_mut().insert(problem);
    response
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

/// How the description of the API tells of problems: any route can have any of them.
pub(crate) struct ProblemAnswers;

impl IntoResponses for ProblemAnswers {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let body = || Content::new(Some(Ref::from_schema_name("Problem")));
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
