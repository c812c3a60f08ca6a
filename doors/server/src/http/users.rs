//! Everything that is one user's: `/v1/users/{user}`.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use futures_util::{StreamExt, stream};
use keyward::records::{Belonging, Removed};
use keyward_operations::records::RecordVersion;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::request::At;
use super::stores::answer;
use super::text::{self, Object};
use crate::api::users::{self, Gone, Thing};
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(export)).routes(routes!(remove))
}

/// Hands out everything that is a user's, as JSON lines. Needs `admin:*`.
///
/// Each line is an object: `{"api_key":{…}}`, or `store` with either `record` (and its `space`),
/// `past` (an earlier version of a record, with its `space` and `key`), or `entry`. The last line is
/// `{"end":{"items":…}}`: without it, something is missing, and a line `{"problem":{…}}` says why.
#[utoipa::path(
    get,
    path = "/v1/users/{user}/export",
    tag = "users",
    params(("user" = String, Path, description = "The user, as keys and records name them")),
    responses(
        (status = 200, description = "JSON lines", content_type = "application/x-ndjson", body = String),
        ProblemAnswers,
    ),
)]
async fn export(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(user): At<String>,
) -> Answered {
    let pages = Box::pin(users::export(&who, &app, &user).await?);
    let lines = stream::unfold(Some((pages, 0)), |state| async move {
        let (mut pages, items) = state?;
        Some(match pages.next().await {
            Some(Ok(things)) => {
                let lines: String = things.iter().map(|thing| line(thing) + "\n").collect();
                (lines, Some((pages, items + things.len())))
            }
            Some(Err(problem)) => (fault(&problem), None),
            None => (format!("{{\"end\":{{\"items\":{items}}}}}\n"), None),
        })
    });
    let body = Body::from_stream(lines.map(|lines| Ok::<_, Infallible>(Bytes::from(lines))));
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn line(thing: &Thing) -> String {
    match thing {
        Thing::Key(key) => Object::new().raw("api_key", &as_json(key)).finish(),
        Thing::Stored { store, belonging } => {
            let object = Object::new().text("store", store);
            match belonging {
                Belonging::Record { space, record } => {
                    object.text("space", space).raw("record", &text::record(record).finish())
                }
                Belonging::Past { space, key, past } => object
                    .text("space", space)
                    .text("key", &key.to_string())
                    .raw("past", &as_json(&RecordVersion::from(past.clone()))),
                Belonging::Entry { key, entry } => object.raw("entry", &text::entry(key, entry)),
            }
            .finish()
        }
    }
}

/// Something that always serializes.
fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

fn fault(problem: &Problem) -> String {
    let told = Object::new().text("code", problem.code().name()).text("detail", problem.detail());
    Object::new().raw("problem", &told.finish()).finish() + "\n"
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
struct GoneBody {
    /// API keys.
    api_keys: usize,
    /// Records.
    records: usize,
    /// Earlier versions of records.
    versions: usize,
    /// Entries that are no records.
    entries: usize,
}

/// Removes everything that is a user's: their API keys first, then what is stored. Needs `admin:*`.
///
/// Sent again, it goes on where it ended. What somebody else makes for the user meanwhile may stay.
/// The audit log keeps who did what, for as long as it is kept.
#[utoipa::path(
    delete,
    path = "/v1/users/{user}",
    tag = "users",
    params(("user" = String, Path, description = "The user, as keys and records name them")),
    responses((status = 200, description = "It is gone", body = GoneBody), ProblemAnswers),
)]
async fn remove(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(user): At<String>,
) -> Answered {
    let Gone { keys, stored } = users::remove(&who, &app, &user).await?;
    let Removed { records, versions, entries } = stored;
    answer(&GoneBody { api_keys: keys, records, versions, entries })
}
