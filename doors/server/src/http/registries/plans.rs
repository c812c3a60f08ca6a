//! What a run of a registry would do.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::registry::{Operation, Plan, SyncOptions};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::told;
use crate::api::registries::{reach, runs};
use crate::app::App;
use crate::auth::Need;
use crate::http::answer::json;
use crate::http::entries::page_limit;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Content};
use crate::http::text::Object;
use crate::problem::Result;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(plan))
}

/// How a registry is looked at for a plan.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RegistryPlanBody {
    /// Whether the whole tree is compared, also where only what changed would do.
    #[serde(default)]
    full: bool,
    /// At most so many steps and problems are told; a thousand, if it is left out.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// What a run would do.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
#[schema(rename_all = "camelCase")]
struct PlannedBody {
    registry: String,
    /// The commit that was looked at.
    commit: String,
    /// The commit that the registry is at.
    previous_commit: Option<String>,
    /// How many steps there are of each kind.
    counts: StepCountsBody,
    /// The first of them, in the order of names.
    steps: Vec<StepBody>,
    /// How many files are no valid policies; what the registry has under their names stays.
    problem_count: u64,
    /// The first of them.
    problems: Vec<LeftBody>,
    /// How many files are policies; if only changes were looked at, how many changed.
    scanned: u64,
    /// How many policies the registry has.
    entries: u64,
    /// Whether the whole tree was compared, or only what changed since the last run.
    whole: bool,
    /// How many blobs were read.
    blobs_read: u64,
}

/// How many steps there are.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct StepCountsBody {
    add: u64,
    update: u64,
    delete: u64,
}

/// What is to be done with one policy.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
#[schema(rename_all = "camelCase")]
struct StepBody {
    /// `add`, `update` or `delete`.
    operation: String,
    policy_name: String,
    /// Of a deleted one, the last.
    title: String,
    sha: String,
    path: String,
    old_sha: Option<String>,
    old_path: Option<String>,
    /// The policy that had this content before, and is deleted.
    renamed_from: Option<String>,
    /// The title under which an entry of version 1 is kept, which moves.
    moved_from_title: Option<String>,
}

/// A file, or a policy, that is left alone.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct LeftBody {
    /// The path in the repository; of what has none, the policy's name.
    path: String,
    reason: String,
}

/// The most steps and problems of a plan that are told.
const STEPS_MAX: usize = 1_000;

/// A plan, as text, with the first of its steps and problems.
pub(crate) fn plan_text(plan: &Plan, limit: usize) -> Result<String> {
    let count = |operation| plan.count(operation).to_string();
    let counts = Object::new()
        .raw("add", &count(Operation::Add))
        .raw("update", &count(Operation::Update))
        .raw("delete", &count(Operation::Delete));
    let steps = plan.steps.iter().take(limit).map(told).collect::<Result<Vec<_>>>()?;
    let problems = plan.problems.iter().take(limit).map(told).collect::<Result<Vec<_>>>()?;
    let text = Object::new()
        .text("registry", &plan.registry)
        .text("commit", &plan.commit)
        .optional("previousCommit", plan.previous_commit.as_deref())
        .raw("counts", &counts.finish())
        .list("steps", steps)
        .raw("problemCount", &plan.problems.len().to_string())
        .list("problems", problems)
        .raw("scanned", &plan.scanned.to_string())
        .raw("entries", &plan.entries.to_string())
        .raw("whole", &plan.whole.to_string())
        .raw("blobsRead", &plan.blobs_read.to_string());
    Ok(text.finish())
}

/// Tells what a run would do now. The newest commit is fetched for it; nothing else is changed.
#[utoipa::path(
    post,
    path = "/v1/registries/{registry}/plan",
    tag = "registries",
    params(("registry" = String, Path, description = "The name of a registry")),
    request_body = RegistryPlanBody,
    responses((status = 200, description = "The plan", body = PlannedBody), ProblemAnswers),
)]
async fn plan(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    let RegistryPlanBody { full, limit } = content.read()?;
    let limit = page_limit(limit.or(Some(STEPS_MAX)))?;
    content.without_mark(&who)?;
    let options = SyncOptions { full, ..SyncOptions::default() };
    let plan = runs::plan(&who, &app, &name, &options).await?;
    Ok(json(StatusCode::OK, plan_text(&plan, limit)?))
}
