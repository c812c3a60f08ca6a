//! Who changed what: `/v1/audit`.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::entries::PAGE_MAX;
use super::request::Parameters;
use super::text::Object;
use crate::app::App;
use crate::audit::AuditQuery;
use crate::auth::{Need, Target};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditParameters {
    /// The first moment, as RFC 3339.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// The last moment, as RFC 3339.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Where an earlier page ended.
    cursor: Option<String>,
    /// At most this many; 100, if it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Acts.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct ActsBody {
    /// Oldest first: `time`, `request`, `tenant`, `credential`, `method`, `route`, `path`, `act`
    /// (`write` or `admin`), `target`, `keys` and the `status` of the answer, which is null for
    /// requests that were given up. `repeated` (`count`, `first`, `last`) stands for several refused
    /// requests of the same kind.
    items: Vec<serde_json::Value>,
    /// Where the next page begins; null at the end.
    next: Option<String>,
}

/// Shows who changed what, and when; the last moment may be missing yet. Needs `admin:*`.
#[utoipa::path(
    get,
    path = "/v1/audit",
    tag = "audit",
    params(AuditParameters),
    responses((status = 200, description = "Acts, oldest first", body = ActsBody), ProblemAnswers),
)]
async fn read(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    Parameters(asked): Parameters<AuditParameters>,
) -> Answered {
    who.require(Need::Admin, &Target::Server)?;
    let AuditParameters { since, until, cursor: after, limit } = asked;
    let limit = limit.unwrap_or(100);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("a page has 1 to {PAGE_MAX} acts")).into());
    }
    let query = AuditQuery { since, until, after, limit };
    let (acts, next) = app.audit_log().read(&query).await?;
    let text = Object::new()
        .list("items", acts.iter().map(|act| act.as_str().to_owned()))
        .optional("next", next.as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}
