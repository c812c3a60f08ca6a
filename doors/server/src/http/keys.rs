//! API keys: `/v1/keys`.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::Code;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::entries::PAGE_MAX;
use super::request::{At, Content, Parameters};
use crate::api::keys;
use crate::app::App;
use crate::auth::ApiKey;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// A key that is to be made.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is read as another type")]
struct NewKeyBody {
    /// What people call it.
    name: String,
    /// Whose it is: its holder reaches what is theirs. Without one its holder is an operator, held
    /// back by the scopes alone.
    user: Option<String>,
    /// The agent that acts for the user.
    agent: Option<String>,
    /// The roles that the user has.
    roles: Option<Vec<String>>,
    /// What it allows: `read`, `write` or `admin`, a colon, and `*`, `store/NAME`,
    /// `space/NAME`, `namespace/NAME`, `registry/NAME` or `agreements/NAME`. `write:*`, if it is left out. A key of a user has no `admin` scopes.
    scopes: Option<Vec<String>>,
    /// When it ends, as RFC 3339.
    #[schema(format = DateTime)]
    expires: Option<String>,
}

/// What is known of a key.
#[derive(ToSchema)]
#[schema(as = ApiKey)]
#[expect(dead_code, reason = "it describes what is written from another type")]
struct KeyBody {
    id: String,
    name: String,
    user: Option<String>,
    agent: Option<String>,
    roles: Vec<String>,
    scopes: Vec<String>,
    #[schema(format = DateTime)]
    created: String,
    #[schema(format = DateTime)]
    expires: Option<String>,
    #[schema(format = DateTime)]
    revoked: Option<String>,
    /// Up to half a minute late.
    #[schema(format = DateTime)]
    last_used: Option<String>,
}

/// A key that was made.
#[derive(Serialize, ToSchema)]
struct CreatedBody<'k> {
    /// The key itself. It is shown here and never again.
    #[schema(example = "kw_…")]
    secret: &'k str,
    #[serde(flatten)]
    #[schema(value_type = KeyBody)]
    key: &'k ApiKey,
}

/// Keys.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKeys)]
struct KeysBody {
    #[schema(value_type = Vec<KeyBody>)]
    items: Vec<ApiKey>,
    /// Where the next page begins; null at the end.
    next: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Paging {
    /// Where an earlier page ended.
    cursor: Option<String>,
    /// At most this many; 100, if it is left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Lists API keys, without their secrets. Needs `admin:*`.
#[utoipa::path(
    get,
    path = "/v1/keys",
    tag = "keys",
    params(Paging),
    responses((status = 200, description = "Keys, by id", body = KeysBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    Parameters(paging): Parameters<Paging>,
) -> Answered {
    let limit = paging.limit.unwrap_or(100);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("a page has 1 to {PAGE_MAX} keys")).into());
    }
    let after = paging.cursor.as_deref();
    let (items, more) = keys::list(&who, app.auth().keys(), after, limit).await?;
    let next = items.last().filter(|_| more).map(|key| key.id.clone());
    answer(StatusCode::OK, &KeysBody { items, next })
}

/// Makes an API key. Its secret is in the answer, and shown never again. Needs `admin:*`.
///
/// As long as there is no key, it needs the start token as its credential, which the server printed when
/// it started.
#[utoipa::path(
    post,
    path = "/v1/keys",
    tag = "keys",
    request_body = NewKeyBody,
    responses((status = 201, description = "The key, with its secret", body = CreatedBody<'_>), ProblemAnswers),
)]
async fn create(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    content: Content,
) -> Answered {
    if content.headers().contains_key("idempotency-key") {
        let detail = "a key is shown once, so that the same request cannot be answered again";
        return Err(Problem::invalid(detail)
            .hint("Leave out Idempotency-Key. If an answer is lost, revoke the key it made.")
            .into());
    }
    let first = match who.is_local() {
        true => Some(app.auth().claim_first_key(content.headers())?),
        false => None,
    };
    let (key, secret) = keys::create(&who, app.auth().keys(), content.read()?).await?;
    if let Some(first) = first {
        first.made();
    }
    answer(StatusCode::CREATED, &CreatedBody { secret: secret.reveal(), key: &key })
}

/// Revokes an API key: it is refused from now on, by every server on the same control store. Needs
/// `admin:*`.
#[utoipa::path(
    delete,
    path = "/v1/keys/{id}",
    tag = "keys",
    params(("id" = String, Path, description = "The id of a key")),
    responses((status = 200, description = "The key", body = KeyBody), ProblemAnswers),
)]
async fn revoke(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(id): At<String>,
) -> Answered {
    answer(StatusCode::OK, &keys::revoke(&who, app.auth().keys(), &id).await?)
}

fn answer(status: StatusCode, body: &impl Serialize) -> Answered {
    let text = serde_json::to_vec(body)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    Ok(json(status, text))
}
