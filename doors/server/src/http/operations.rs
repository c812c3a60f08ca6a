//! Operations over HTTP: one handler for every row of the table.
//!
//! Where a field of a request comes from is a convention. A field whose name stands in the path comes from
//! there; the body of a PUT or PATCH is one field as a whole, and that of a POST has the fields as members;
//! what is left is in the query. Preconditions, the ticket of a lock and the idempotency key come from their
//! headers. With `view=entry`, the body of a PUT and of a response to GET has the value among its fields.

use std::borrow::Cow;

use axum::RequestPartsExt;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::routing::{MethodFilter, on};
use form_urlencoded::parse;
use keyward::moment_text;
use keyward_operations::TABLE;
use keyward_operations::context::Context;
use keyward_operations::facts::{Body as BodyIs, Effect, Facts, Method};
use keyward_operations::input::{Input, Part};
use keyward_operations::operation::{Answer, Declared, Status};

use super::answer::{empty, json, location, mark_replayed};
use super::conditional::{Tags, etag, is_known, tags};
use super::content_type;
use super::problem::Answered;
use super::request::whole;
use crate::app::App;
use crate::auth::Identity;
use crate::problem::{Problem, Result};

/// The header with the ticket of a lock that a change is made under.
const LOCK: HeaderName = HeaderName::from_static("keyward-lock");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const EXPIRES: HeaderName = HeaderName::from_static("keyward-expires");

/// How a value is sent or shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum View {
    /// Alone; what is said about it is in headers and the query.
    #[default]
    Value,
    /// Among the other fields of its entry.
    Entry,
}

/// The routes of all operations.
pub(super) fn routes() -> Router<App> {
    TABLE.iter().fold(Router::new(), |router, row| {
        let handler = move |State(app): State<App>, request: Request| answer(app, row, request);
        router.route(row.facts.path, on(filter(row.facts.method), handler))
    })
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}

async fn answer(app: App, row: &'static Declared, request: Request) -> Answered {
    let (mut parts, body) = request.into_parts();
    let who = parts.extensions.get::<Identity>().cloned().ok_or_else(|| {
        Problem::new(keyward::Code::Internal, "this route is not behind the check of credentials")
    })?;
    let variables = parts.extract::<RawPathParams>().await;
    let variables = variables.map_err(|error| Problem::invalid(error.to_string()))?;
    let body = match row.facts.body {
        BodyIs::None => Bytes::new(),
        _ => whole(body, app.limits().body_bytes_max).await?,
    };
    let mut input = Input::default();
    for (name, value) in &variables {
        input.push(name, Part::Text(Cow::Borrowed(value)));
    }
    let view = push_query(&mut input, &row.facts, parts.uri.query().unwrap_or_default())?;
    push_headers(&mut input, &row.facts, &parts.headers)?;
    push_body(&mut input, &row.facts, view, &parts, &body)?;
    let cx = Context::new(who, app.services().clone());
    let cx = match parts.headers.get(IDEMPOTENCY_KEY).map(HeaderValue::to_str) {
        None => cx,
        Some(Ok(key)) => cx.idempotent(key),
        Some(Err(_)) => {
            let detail = "the Idempotency-Key must be visible ASCII characters";
            return Err(Problem::invalid(detail).into());
        }
    };
    let answer = row.call(input, cx).await?;
    Ok(shown(&*answer, view, &row.facts, &parts.headers)?)
}

/// The parameters after the question mark.
fn push_query<'i>(input: &mut Input<'i>, facts: &Facts, query: &'i str) -> Result<View> {
    let mut view = View::default();
    for (name, value) in parse(query.as_bytes()) {
        if facts.view && name == "view" {
            view = match &*value {
                "value" => View::Value,
                "entry" => View::Entry,
                other => {
                    let detail = format!("view must be value or entry, not {other:?}");
                    return Err(Problem::invalid(detail));
                }
            };
        } else if facts.is_in_path(&name) {
            return Err(Problem::invalid(format!("{name} is a part of the path")));
        } else {
            input.push(name, Part::Text(value));
        }
    }
    Ok(view)
}

/// Preconditions and the ticket of a lock. Requests that only read have none.
fn push_headers<'i>(input: &mut Input<'i>, facts: &Facts, headers: &'i HeaderMap) -> Result<()> {
    if facts.effect == Effect::Reads {
        return Ok(());
    }
    match tags(headers, &IF_MATCH)? {
        None => {}
        Some(Tags::Any) => input.push("if_version", Part::Text(Cow::Borrowed("*"))),
        Some(Tags::These(versions)) => {
            let texts = versions.iter().map(ToString::to_string).collect();
            input.push("if_version", Part::Texts(texts));
        }
    }
    match tags(headers, &IF_NONE_MATCH)? {
        None => {}
        Some(Tags::Any) => input.push("if_absent", Part::Flag),
        Some(Tags::These(_)) => {
            let detail = "the If-None-Match of a change must be *: write only if nothing is there";
            return Err(Problem::invalid(detail));
        }
    }
    if let Some(ticket) = headers.get(LOCK) {
        input.push("lock", Part::Text(Cow::Borrowed(ticket.to_str().unwrap_or_default())));
    }
    Ok(())
}

fn push_body<'i>(
    input: &mut Input<'i>,
    facts: &Facts,
    view: View,
    parts: &Parts,
    body: &'i Bytes,
) -> Result<()> {
    let json = &["application/json"][..];
    let (known, field) = match (facts.body, view) {
        (BodyIs::None, _) => return Ok(()),
        (BodyIs::Whole(field), View::Value) => (json, Some(field)),
        (BodyIs::MergePatch(field), _) => {
            (&["application/merge-patch+json", "application/json"][..], Some(field))
        }
        (BodyIs::Whole(_), View::Entry) | (BodyIs::Fields, _) => (json, None),
    };
    // Nothing is of no type.
    if !body.is_empty() || content_type::declared(&parts.headers).is_some() {
        content_type::require(&parts.headers, known)?;
    }
    match field {
        Some(field) => input.push(field, Part::Whole(body)),
        None => input.push_members(body)?,
    }
    Ok(())
}

fn shown(
    answer: &dyn Answer,
    view: View,
    facts: &Facts,
    headers: &HeaderMap,
) -> Result<Response<Body>> {
    let is_known = match (facts.effect, answer.version()) {
        (Effect::Reads, Some(version)) => is_known(headers, version)?,
        _ => false,
    };
    let value = answer.value().filter(|_| facts.view && view == View::Value);
    let mut response = match (answer.status(), value) {
        _ if is_known => empty(StatusCode::NOT_MODIFIED),
        (Status::Empty, _) => empty(StatusCode::NO_CONTENT),
        (Status::Done, Some(value)) => json(StatusCode::OK, value.to_bytes()),
        (Status::Done, None) => json(StatusCode::OK, answer.to_json()?),
        (Status::Created, _) => json(StatusCode::CREATED, answer.to_json()?),
    };
    if let Some(version) = answer.version() {
        let (name, tag) = etag(version)?;
        response.headers_mut().insert(name, tag);
    }
    if let Some(expires) = answer.expires()
        && let Ok(value) = HeaderValue::try_from(moment_text(expires))
    {
        response.headers_mut().insert(EXPIRES, value);
    }
    if let Some(path) = answer.location() {
        let (name, value) = location(path)?;
        response.headers_mut().insert(name, value);
    }
    mark_replayed(&mut response, answer.is_replayed());
    Ok(response)
}
