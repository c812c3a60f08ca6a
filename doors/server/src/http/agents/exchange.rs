//! Entries as documents: `/v1/agents/export` and `/v1/agents/import`.

use std::collections::VecDeque;
use std::io;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, header};
use futures_util::{StreamExt, stream};
use keyward::Json;
use keyward::agents::{Document, Imported};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::body::Arriving;
use super::super::content_type;
use super::super::request::{Parameters, roomy_bytes_max};
use super::super::stores::answer;
use super::{Acting, ActingHeaders, OfUser};
use crate::api::agents::{exchange, reach_user};
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::problem::{Problem, ProblemAnswers, Result};

/// JSON lines.
const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// How many documents are taken together.
const TOGETHER_MAX: usize = 100;
/// How many bytes these have, unless it is one.
const TOGETHER_BYTES_MAX: usize = 4 << 20;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(export)).routes(routes!(import))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportParameters {
    /// Whose entries, for a credential that is bound to no user.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
    /// Only entries of this namespace.
    #[param(min_length = 1)]
    namespace: Option<String>,
}

/// Hands out all entries of a user as documents, one a line, in the order of namespaces and keys. They do
/// not count as accessed.
///
/// An answer that is cut off is not ended properly, which clients tell as an error: what ends properly is
/// complete.
#[utoipa::path(
    get,
    path = "/v1/agents/export",
    tag = "agents",
    params(ExportParameters, ActingHeaders),
    responses(
        (status = 200, description = "JSON lines, each an AgentDocument", content_type = "application/x-ndjson", body = String),
        ProblemAnswers,
    ),
)]
async fn export(
    State(app): State<App>,
    who: Identity,
    acting: Acting,
    Parameters(asked): Parameters<ExportParameters>,
) -> Result<Response<Body>> {
    let behalf = acting.for_user(asked.user);
    let mut pages = Box::pin(exchange::export(&who, &app, &behalf, asked.namespace)?);
    // What is wrong with the request shows at the first page, when it can still be told.
    let first = pages.next().await.transpose()?.unwrap_or_default();
    let pages = stream::once(async { Ok(first) }).chain(pages).map(lines);
    let mut response = Response::new(Body::from_stream(pages));
    response.headers_mut().insert(header::CONTENT_TYPE, LINES);
    Ok(response)
}

fn lines(page: Result<Vec<Json>>) -> io::Result<Bytes> {
    let documents = page.map_err(|problem| {
        tracing::error!(detail = problem.detail(), "an export was cut off");
        io::Error::other(problem.detail().to_owned())
    })?;
    let bytes = documents.iter().map(|document| document.len() + 1).sum();
    let mut text = String::with_capacity(bytes);
    for document in &documents {
        text.push_str(document.as_str());
        text.push('\n');
    }
    Ok(text.into())
}

/// What became of documents.
#[derive(Debug, Serialize, ToSchema)]
struct AgentImported {
    /// Entries that were made.
    created: usize,
    /// Entries that were there, and have now what the document says.
    replaced: usize,
}

/// Takes documents in, as an export hands them out: one a line, or, as `application/json`, one document
/// or an array of them. Each entry has then exactly what its document says.
///
/// They are taken some at a time. If one is refused, those before it may be there; the problem says in
/// `document` which it is, and in `done` how many are there at least. Taking all again does no harm.
#[utoipa::path(
    post,
    path = "/v1/agents/import",
    tag = "agents",
    params(OfUser, ActingHeaders),
    request_body(content(
        (Vec<serde_json::Map<String, serde_json::Value>> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses((status = 200, description = "They are taken", body = AgentImported), ProblemAnswers),
)]
async fn import(
    State(app): State<App>,
    who: Identity,
    acting: Acting,
    Parameters(asked): Parameters<OfUser>,
    request: Request,
) -> Result<Response<Body>> {
    let reached = reach_user(&who, &app, &acting.for_user(asked.user))?;
    reached.require(&who, Need::Write)?;
    let whole = is_whole(&request)?;
    let (parts, body) = request.into_parts();
    let mut lines = Lines::new(&app, &who, Arriving::new(&app, &parts, body));
    let mut imported = Imported::default();
    let (mut waiting, mut bytes, mut taken) = (Vec::new(), 0, 0);
    loop {
        let line = if whole { lines.all().await? } else { lines.next().await? };
        let ended = line.is_none();
        match line {
            Some(text) if whole && text.trim().is_empty() => {
                return Err(Problem::invalid("the body is no JSON"));
            }
            Some(text) if whole => waiting = Document::parse_all(&text)?,
            Some(text) if text.trim().is_empty() => {}
            Some(text) => {
                bytes += text.len();
                waiting.push(Document::parse(&text, taken + waiting.len() + 1)?);
            }
            None => {}
        }
        let much = waiting.len() >= TOGETHER_MAX || bytes >= TOGETHER_BYTES_MAX;
        if (ended || much) && !waiting.is_empty() {
            let count = waiting.len();
            let some = std::mem::take(&mut waiting);
            let done = exchange::import(&who, &reached, some, taken).await?;
            imported.created += done.created;
            imported.replaced += done.replaced;
            (bytes, taken) = (0, taken + count);
            lines.let_go();
        }
        if ended {
            let Imported { created, replaced } = imported;
            return answer(&AgentImported { created, replaced });
        }
    }
}

/// Whether the body is one JSON text, not one document a line.
fn is_whole(request: &Request) -> Result<bool> {
    let known = ["application/x-ndjson", "application/json"];
    Ok(content_type::require(request.headers(), &known)? == "application/json")
}

/// The lines of a body, as they arrive.
struct Lines<'a> {
    app: &'a App,
    who: &'a Identity,
    body: Arriving,
    /// What is read and no whole line yet.
    rest: Vec<u8>,
    /// Whole lines that are not taken yet.
    ready: VecDeque<Vec<u8>>,
    sent_bytes: usize,
    ended: bool,
}

impl<'a> Lines<'a> {
    fn new(app: &'a App, who: &'a Identity, body: Arriving) -> Self {
        let (rest, ready) = (Vec::new(), VecDeque::new());
        Self { app, who, body, rest, ready, sent_bytes: 0, ended: false }
    }

    /// The next line; nothing at the end.
    async fn next(&mut self) -> Result<Option<String>> {
        while self.ready.is_empty() && !self.ended {
            let Some(chunk) = self.chunk().await? else { break };
            let mut lines = chunk.split(|byte| *byte == b'\n');
            self.rest.extend_from_slice(lines.next().unwrap_or_default());
            for line in lines {
                self.bounded()?;
                self.ready.push_back(std::mem::replace(&mut self.rest, line.to_vec()));
            }
            self.bounded()?;
        }
        match self.ready.pop_front() {
            Some(line) => text(line).map(Some),
            None if self.rest.is_empty() => Ok(None),
            None => text(std::mem::take(&mut self.rest)).map(Some),
        }
    }

    /// Everything that is left; nothing at the end.
    async fn all(&mut self) -> Result<Option<String>> {
        if self.ended {
            return Ok(None);
        }
        while let Some(chunk) = self.chunk().await? {
            self.rest.extend_from_slice(&chunk);
            self.bounded()?;
        }
        text(std::mem::take(&mut self.rest)).map(Some)
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let chunk = self.body.chunk().await.map_err(|problem| {
            // Some documents may have been taken by now.
            problem.hint("Send all documents again, faster or later; that does no harm.")
        })?;
        match &chunk {
            Some(chunk) => {
                self.sent_bytes += chunk.len();
                self.who.sends(self.sent_bytes);
            }
            None => self.ended = true,
        }
        Ok(chunk)
    }

    /// Gives back the room of what has been taken.
    fn let_go(&mut self) {
        let ready: usize = self.ready.iter().map(Vec::len).sum();
        self.body.keep_only(self.rest.len() + ready);
    }

    fn bounded(&self) -> Result<()> {
        let bytes_max = roomy_bytes_max(self.app);
        if self.rest.len() <= bytes_max {
            return Ok(());
        }
        let detail =
            format!("a document, or all of them in one JSON text, has at most {bytes_max} bytes");
        Err(Problem::new("limit-exceeded", detail)
            .hint("Send documents one a line, as application/x-ndjson."))
    }
}

fn text(line: Vec<u8>) -> Result<String> {
    String::from_utf8(line).map_err(|_| Problem::invalid("the body is not UTF-8"))
}
