//! What is attached to pages.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use futures_util::stream;
use keyward::Code;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::agreements::pages::{self, Said};
use crate::api::agreements::reach;
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::answer::{empty, harmless, json};
use crate::http::content_type;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Parameters, whole};
use crate::http::text::told;
use crate::problem::{Problem, Result};
use crate::shares::{Holder, Place};
use keyward_operations::location::path_segment;

/// How much of an attachment is handed over at once.
const PIECE_BYTES: usize = 256 * 1024;
/// What an attachment is whose type nobody said, or which cannot stand in a header.
const UNTOLD: &str = "application/octet-stream";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(put, content, detach))
}

/// A policy as it is attached to a page.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
#[schema(rename_all = "camelCase")]
pub(super) struct AttachmentBody {
    /// Its id.
    source: String,
    /// The name of its file.
    name: String,
    /// What it is said to be, such as `application/pdf`.
    media_type: Option<String>,
    /// When this state of it came to be.
    created: String,
    /// How large it is.
    bytes: Option<u64>,
}

/// A file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it describes what is passed on as it is")]
struct FileBody(Vec<u8>);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AttachParameters {
    /// The name of the file; the policy's id, if it is left out.
    #[param(max_length = 255)]
    name: Option<String>,
}

/// Attaches a policy to a page, or replaces it: PDF, DOCX, HTML, Markdown or text, of up to 64 MiB.
///
/// Only where pages are uploaded (else 409 `read-only`). What was made of an older one is dropped, and
/// issues that refer to it are marked as stale.
#[utoipa::path(
    put,
    path = "/v1/agreements/{workspace}/pages/{page}/attachments/{source}",
    tag = "agreements",
    operation_id = "attach",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("source" = String, Path, description = "The id of a policy"),
        AttachParameters,
    ),
    request_body(content = FileBody, content_type = "application/octet-stream", description = "The file, with its own Content-Type"),
    responses((status = 200, description = "It is attached", body = AttachmentBody), ProblemAnswers),
)]
async fn put(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page, source)): At<(String, String, String)>,
    Parameters(asked): Parameters<AttachParameters>,
    request: Request,
) -> Answered {
    let bytes_max = pages::attachment_bytes_max(&who, &app, &name)?;
    let _place = place(&app, &who)?;
    let (parts, body) = request.into_parts();
    let bytes = whole(body, bytes_max).await?;
    let media_type = parts.headers.get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|kind| kind.to_str().ok());
    if media_type.is_none() && !bytes.is_empty() {
        return Err(
            content_type::missing("the type of the file, or application/octet-stream").into()
        );
    }
    let said = Said { name: asked.name.as_deref().unwrap_or(&source), media_type };
    let attached = pages::attach(&who, &app, &name, (&page, &source), &said, &bytes).await?;
    Ok(json(StatusCode::OK, told(&attached)?))
}

/// One of the places of attachments in memory.
fn place(app: &App, who: &Identity) -> Result<Place> {
    app.agreements().transfers().take(&Holder::of(who)).map_err(|_| {
        Problem::new(Code::Overloaded, "as many attachments are on their way as this server holds")
            .hint("Try again in a moment; nothing was done.")
            .retryable()
            .retry_after(Duration::from_secs(1))
    })
}

/// Gives out an attachment as it was attached. Browsers are told to save it, and to run nothing of it.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/attachments/{source}",
    tag = "agreements",
    operation_id = "attachment",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("source" = String, Path, description = "The id of a policy"),
    ),
    responses(
        (status = 200, description = "The file, with the Content-Type that it was said to have", content_type = "application/octet-stream", body = FileBody),
        ProblemAnswers,
    ),
)]
async fn content(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page, source)): At<(String, String, String)>,
) -> Answered {
    reach(&who, &app, &name, Need::Read)?;
    let place = place(&app, &who)?;
    let (attachment, bytes) = pages::content(&who, &app, &name, (&page, &source)).await?;
    let length = HeaderValue::from(bytes.len());
    let mut response = harmless(UNTOLD, pieces(bytes, place));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, length);
    let media_type = attachment.media_type.as_deref();
    if let Some(Ok(kind)) = media_type.map(HeaderValue::try_from) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    let saved = format!("attachment; filename*=UTF-8''{}", file_name(&attachment.name));
    if let Ok(saved) = HeaderValue::try_from(saved) {
        headers.insert(header::CONTENT_DISPOSITION, saved);
    }
    Ok(response)
}

/// The name of a file as a header has it.
fn file_name(name: &str) -> String {
    // What a path may have as it is, a name may not.
    path_segment(name).replace(':', "%3A")
}

/// A file in pieces, which keeps its place until the last is gone.
fn pieces(bytes: Bytes, place: Place) -> Body {
    Body::from_stream(stream::unfold((bytes, place), |(mut left, place)| async move {
        if left.is_empty() {
            return None;
        }
        let piece = left.split_to(left.len().min(PIECE_BYTES));
        Some((Ok::<_, std::convert::Infallible>(piece), (left, place)))
    }))
}

/// Takes a policy from its page. What was made of it is removed, and issues that refer to it are marked as
/// stale.
#[utoipa::path(
    delete,
    path = "/v1/agreements/{workspace}/pages/{page}/attachments/{source}",
    tag = "agreements",
    operation_id = "detach",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("source" = String, Path, description = "The id of a policy"),
    ),
    responses((status = 204, description = "It is not there any more"), ProblemAnswers),
)]
async fn detach(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page, source)): At<(String, String, String)>,
) -> Answered {
    // Detached now or before: it is not there.
    pages::detach(&who, &app, &name, (&page, &source)).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
