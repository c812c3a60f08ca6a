//! Registries: `/v1/registries`.
//!
//! What comes from the documents of a registry, and from its runs, has the names that it has in the store.

mod events;
mod hook;
mod plans;
mod policies;
mod queue;
mod runs;

use axum::extract::State;
use axum::http::StatusCode;
use keyward::moment_text;
use keyward::registry::{Migrated, Status};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::names::{Names, PageOfNames, after, names};
use super::queues::{WaitingBody, waiting};
use super::request::{At, Content};
use super::stores::answer;
use super::text::{Object, quoted, told};
use crate::api::registries;
use crate::app::App;
use crate::auth::Need;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Result;
use crate::registries::Kept;

pub(super) use hook::routes as hooks;
pub(crate) use plans::plan_text;
pub(crate) use policies::entries;
pub(crate) use runs::begun_text;
use runs::run_text;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(migrate))
        .merge(policies::routes())
        .merge(plans::routes())
        .merge(runs::routes())
        .merge(events::routes())
        .merge(queue::routes())
}

/// A registry.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RegistryBody {
    name: String,
    /// The store that it is in.
    store: String,
    /// Where its documents are kept.
    repository: String,
    /// The branch; null, if it is the one that the repository says.
    branch: Option<String>,
    /// The first segment of its keys; null, if it has none of its own.
    prefix: Option<String>,
    /// When a run is due; null without a schedule.
    #[schema(rename = "nextRun")]
    next_run: Option<String>,
    /// Whether it is told of pushes.
    webhook: bool,
    /// Who is told of changes.
    consumers: Vec<String>,
}

fn registry(kept: &Kept) -> Object {
    let settings = kept.registry.settings();
    let next = kept.registry.next_run().map(moment_text);
    Object::new()
        .text("name", kept.registry.name())
        .text("store", kept.store())
        .text("repository", settings.repository.as_str())
        .optional("branch", settings.branch.as_deref())
        .optional("prefix", settings.prefix.as_deref())
        .optional("nextRun", next.as_deref())
        .raw("webhook", &settings.webhook.is_some().to_string())
        .list("consumers", settings.consumers.keys().map(|name| quoted(name)))
}

/// Registries.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RegistriesBody {
    /// By name.
    items: Vec<RegistryBody>,
}

/// Lists the registries that the caller reaches.
#[utoipa::path(
    get,
    path = "/v1/registries",
    tag = "registries",
    responses((status = 200, description = "Registries, by name", body = RegistriesBody), ProblemAnswers),
)]
async fn list(State(app): State<App>, Authenticated(who): Authenticated) -> Answered {
    let items = registries::list(&who, &app, Need::Read).map(|kept| registry(kept).finish());
    Ok(json(StatusCode::OK, Object::new().list("items", items).finish()))
}

/// A registry, and how it stands.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct StandingBody {
    #[schema(inline)]
    #[serde(flatten)]
    registry: RegistryBody,
    /// How the last run ended, as it stands at `metadata:sync:lastRun`; null before the first.
    #[schema(rename = "lastRun")]
    last_run: Option<Value>,
    /// The commit that the registry is at; null before the first run that came to its end.
    #[schema(rename = "lastCommit")]
    last_commit: Option<String>,
    /// How many policies there are, as the last run counted them that left nothing undone.
    entries: Option<u64>,
    /// The run that is under way; null if there is none.
    running: Option<RunningBody>,
    /// What waits for consumers.
    queue: WaitingBody,
}

/// A run that is under way.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct RunningBody {
    /// Who runs it.
    holder: String,
    /// Since when, by their clock.
    since: String,
    /// What it says of itself.
    run: Option<runs::RegistryRunBody>,
}

/// How a registry stands, as text.
pub(crate) fn standing(kept: &Kept, status: &Status) -> Result<String> {
    let Status { last_run, last_commit, entries, running, queue } = status;
    let running = match running {
        None => "null".to_owned(),
        Some(running) => {
            let run = running.run.as_ref().map(run_text).transpose()?;
            Object::new()
                .text("holder", &running.holder)
                .text("since", &running.since)
                .raw("run", run.as_deref().unwrap_or("null"))
                .finish()
        }
    };
    let entries = entries.map_or("null".to_owned(), |count| count.to_string());
    let object = registry(kept)
        .raw("lastRun", &told(last_run)?)
        .optional("lastCommit", last_commit.as_deref())
        .raw("entries", &entries)
        .raw("running", &running)
        .raw("queue", &waiting(queue).finish());
    Ok(object.finish())
}

/// Shows a registry: its last run, what runs now, what is due, what waits for consumers.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}",
    tag = "registries",
    params(("registry" = String, Path, description = "The name of a registry")),
    responses((status = 200, description = "How it stands", body = StandingBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
) -> Answered {
    let (kept, status) = registries::status(&who, &app, &name).await?;
    Ok(json(StatusCode::OK, standing(kept, &status)?))
}

/// How entries are migrated.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MigrateBody {
    /// Whether it is only told what would be done.
    #[serde(default)]
    dry_run: bool,
}

/// What a migration did, or would do.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct MigratedBody {
    /// How many entries were looked at.
    scanned: u64,
    /// Entries that were kept under their title: the title, and the name that they are under now.
    moved: Vec<Vec<String>>,
    /// Entries that lost deprecated members.
    cleaned: u64,
    /// Entries that stay as they are, and why.
    problems: Vec<plans::LeftBody>,
}

/// Moves entries that are kept under their title to the names of their files, and drops deprecated members
/// that are past their time: at once, what runs do one by one.
#[utoipa::path(
    post,
    path = "/v1/registries/{registry}/migrate",
    tag = "registries",
    params(("registry" = String, Path, description = "The name of a registry")),
    request_body = MigrateBody,
    responses((status = 200, description = "What was done, or would be", body = MigratedBody), ProblemAnswers),
)]
async fn migrate(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    content: Content,
) -> Answered {
    registries::reach(&who, &app, &name, Need::Admin)?;
    let MigrateBody { dry_run } = content.read()?;
    content.without_mark(&who)?;
    let migrated: Migrated = registries::migrate(&who, &app, &name, dry_run).await?;
    answer(&migrated)
}
