//! The documents of a registry.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use keyward::Version;
use keyward::registry::{Page, Policy};
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::registries::policies::{self, Listing};
use crate::app::App;
use crate::http::answer::{harmless, json, tagged};
use crate::http::entries::page_limit;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Parameters};
use crate::http::text::Object;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show)).routes(routes!(content))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PolicyParameters {
    /// At most so many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    #[param(max_length = 500)]
    after: Option<String>,
    /// Only those whose name or title has this in it, whatever the case.
    #[param(max_length = 200)]
    search: Option<String>,
}

/// A page of policies.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct PoliciesBody {
    /// Entries as they are stored, in the order of names.
    items: Vec<Value>,
    /// What to give as `after` for the next page; null at the end.
    next: Option<String>,
}

/// A page of policies, as text.
pub(crate) fn entries(page: &Page<Policy>) -> String {
    let items = page.items.iter().map(|policy| policy.entry.as_str().to_owned());
    Object::new().list("items", items).optional("next", page.next.as_deref()).finish()
}

/// Lists policies in the order of their names, a page at a time. A page of a search may be short, even
/// empty, and still have a next one.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}/policies",
    tag = "registries",
    operation_id = "policies",
    params(("registry" = String, Path, description = "The name of a registry"), PolicyParameters),
    responses((status = 200, description = "A page", body = PoliciesBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(name): At<String>,
    Parameters(asked): Parameters<PolicyParameters>,
) -> Answered {
    let PolicyParameters { limit, after, search } = asked;
    let listing = Listing { after: super::after(after)?, limit: page_limit(limit)?, search };
    let page = policies::list(&who, &app, &name, &listing).await?;
    Ok(json(StatusCode::OK, entries(&page)))
}

/// Shows the entry of a policy, as it is stored.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}/policies/{policy}",
    tag = "registries",
    operation_id = "policy",
    params(
        ("registry" = String, Path, description = "The name of a registry"),
        ("policy" = String, Path, description = "The name of a policy"),
        ("If-None-Match" = Option<String>, Header, description = "Answered only if the entry is another one"),
    ),
    responses(
        (status = 200, description = "The entry", body = serde_json::Value, headers(
            ("ETag" = String, description = "What tells this entry from others"),
        )),
        (status = 304, description = "The client has this entry"),
        ProblemAnswers,
    ),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, policy)): At<(String, String)>,
    headers: HeaderMap,
) -> Answered {
    let policy = policies::show(&who, &app, &name, &policy).await?;
    // An entry of version 1 has no sha, and one whose path changed has the same.
    let hash = blake3::hash(policy.entry.as_bytes()).to_hex();
    let tag = Version::parse(&hash[..32]);
    tagged(&headers, &tag, || json(StatusCode::OK, policy.entry.to_bytes()))
}

/// Shows the content of a policy, as it stands in git.
#[utoipa::path(
    get,
    path = "/v1/registries/{registry}/policies/{policy}/content",
    tag = "registries",
    operation_id = "policy_content",
    params(
        ("registry" = String, Path, description = "The name of a registry"),
        ("policy" = String, Path, description = "The name of a policy"),
        ("If-None-Match" = Option<String>, Header, description = "Answered only if the content is another one"),
    ),
    responses(
        (status = 200, description = "Markdown", content_type = "text/markdown", body = String, headers(
            ("ETag" = String, description = "The id of the content in git"),
        )),
        (status = 304, description = "The client has this content"),
        ProblemAnswers,
    ),
)]
async fn content(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, policy)): At<(String, String)>,
    headers: HeaderMap,
) -> Answered {
    let content = policies::content(&who, &app, &name, &policy).await?;
    let tag = Version::parse(&content.policy.sha);
    tagged(&headers, &tag, || harmless("text/markdown; charset=utf-8", content.bytes))
}
