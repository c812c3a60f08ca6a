//! Entries as documents: `/v1/agents/export` and `/v1/agents/import`.

use std::io;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, Response, header};
use futures_util::{StreamExt, stream};
use keyward::Json;
use keyward::agents::{Imported, Incoming};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::body::Arriving;
use super::super::content_type;
use super::super::request::{Parameters, roomy_bytes_max};
use super::super::stores::answer;
use super::{Acting, ActingHeaders};
use crate::api::agents::exchange::{self, Import};
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::listener::Peer;
use crate::problem::{Problem, Result};
use crate::shares::Holder;

/// JSON lines.
const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// How much of an export is handed to its connection at a time.
const PIECE_BYTES: usize = 32 * 1024;
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
    Authenticated(who): Authenticated,
    Extension(peer): Extension<Peer>,
    acting: Acting,
    Parameters(asked): Parameters<ExportParameters>,
) -> Answered {
    let behalf = acting.for_user(asked.user);
    let mut pages = Box::pin(exchange::export(&who, &app, &behalf, asked.namespace)?);
    // What is wrong with the request shows at the first page, when it can still be told.
    let first = pages.next().await.transpose()?.unwrap_or_default();
    let holder = Holder::at(peer.0);
    let pieces = stream::once(async { Ok(first) }).chain(pages).flat_map(move |page| {
        let pieces = lines(page);
        // What the client has not read counts as other responses do.
        let bytes = pieces.iter().flatten().map(Bytes::len).sum();
        let held = app.responses().hold(&holder, bytes);
        stream::iter(pieces).inspect(move |_| {
            let _held = &held;
        })
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(header::CONTENT_TYPE, LINES);
    Ok(response)
}

/// The lines of a page, in pieces of some size.
fn lines(page: Result<Vec<Json>>) -> Vec<io::Result<Bytes>> {
    let documents = match page {
        Ok(documents) => documents,
        Err(problem) => {
            tracing::error!(detail = problem.detail(), "an export was cut off");
            return vec![Err(io::Error::other(problem.detail().to_owned()))];
        }
    };
    let mut pieces = Vec::new();
    let mut text = String::new();
    for document in documents {
        text.push_str(document.as_str());
        text.push('\n');
        if text.len() >= PIECE_BYTES {
            pieces.push(Ok(std::mem::take(&mut text).into()));
        }
    }
    if !text.is_empty() {
        pieces.push(Ok(text.into()));
    }
    pieces
}

/// What became of documents.
#[derive(Debug, Serialize, ToSchema)]
struct AgentImported {
    /// Entries that were made.
    created: usize,
    /// Entries that were there, and have now what the document says.
    replaced: usize,
    /// Documents that were skipped: design documents, and those that CouchDB says are deleted.
    skipped: usize,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ImportParameters {
    /// Whose entries, for a credential that is bound to no user. On a server without credentials the default
    /// is `local`.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
    /// Imports documents of all users, each for the user that it names. Needs a credential that is bound to no
    /// user. Without it, a document of another user is refused.
    #[serde(default)]
    all_users: bool,
}

/// Imports documents. Each entry then has exactly what its document says.
///
/// The body has documents one after the other (as an export writes them), an array of documents, the answer
/// of CouchDB to `_all_docs?include_docs=true`, or that of DynamoDB to a scan. Documents may have DynamoDB's
/// types. Both content types take all of these. The body may be of any length, each document as long as an
/// entry may be.
///
/// Documents are written some at a time. If one is refused, those before it are written: the problem says in
/// `document` and `line` which one it is, and in `done` how many entries were written. Importing everything
/// again is safe.
#[utoipa::path(
    post,
    path = "/v1/agents/import",
    tag = "agents",
    params(ImportParameters, ActingHeaders),
    request_body(content(
        (Vec<serde_json::Map<String, serde_json::Value>> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses((status = 200, description = "All documents were imported", body = AgentImported), ProblemAnswers),
)]
async fn import(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    Parameters(asked): Parameters<ImportParameters>,
    request: Request,
) -> Answered {
    let mut import = Import::begin(&who, &app, acting.for_user(asked.user), asked.all_users)?;
    let is_json = is_json(&request)?;
    let (parts, body) = request.into_parts();
    let mut body = Arriving::new(&app, &parts, body);
    let mut reader = import.reader(roomy_bytes_max(&app));
    let (mut waiting, mut sent_bytes) = (Vec::new(), 0);
    loop {
        let piece = body.chunk().await.map_err(|problem| {
            let Imported { created, replaced } = import.imported();
            problem
                .with("done", created + replaced)
                .hint("Send all documents again, faster or later; that is safe.")
        })?;
        let read = match &piece {
            Some(piece) => {
                sent_bytes += piece.len();
                who.sends(sent_bytes);
                reader.push(piece, &mut waiting)
            }
            None if is_json && reader.is_blank() => {
                return Err(Problem::invalid("the body is empty; send documents as JSON").into());
            }
            None => reader.finish(),
        };
        let ended = piece.is_none();
        drop(piece);
        let mut bytes: usize = waiting.iter().map(|incoming: &Incoming| incoming.bytes).sum();
        let much = waiting.len() >= TOGETHER_MAX || bytes >= TOGETHER_BYTES_MAX;
        if (ended || much || read.is_err()) && !waiting.is_empty() {
            import.take(std::mem::take(&mut waiting)).await?;
            bytes = 0;
        }
        body.keep_only(reader.held_bytes() + bytes);
        read.map_err(|error| import.failed(error))?;
        if ended {
            let Imported { created, replaced } = import.imported();
            return answer(&AgentImported { created, replaced, skipped: reader.skipped() });
        }
    }
}

/// Whether the body is declared to be one JSON text, which cannot be empty.
fn is_json(request: &Request) -> Result<bool> {
    let known = ["application/x-ndjson", "application/json"];
    Ok(content_type::require(request.headers(), &known)? == "application/json")
}
