//! What a forge tells of pushes. It has no credential: it proves who it is by a signature.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use keyward::Code;
use keyward::registry::PushHook;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::unauthenticated;
use crate::http::answer::json;
use crate::http::body::receive;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::At;
use crate::http::text::Object;
use crate::limits::Standing;
use crate::listener::Peer;
use crate::metrics::Untaken;
use crate::problem::Problem;
use crate::registries::Kept;

/// How forges say what happened, and what they say of a push.
const EVENTS: [(&str, &str); 4] = [
    ("x-github-event", "push"),
    ("x-gitea-event", "push"),
    ("x-forgejo-event", "push"),
    ("x-gitlab-event", "Push Hook"),
];

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(webhook))
}

/// What became of what a forge told.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct HookBody {
    /// `accepted`, or `ignored`.
    outcome: String,
}

/// Takes what a forge tells of a push: a run begins, or follows the one that is under way.
///
/// There is no credential. The request is signed with the secret of the registry's settings:
/// `X-Hub-Signature-256` (GitHub, Gitea, Forgejo), `X-Gitlab-Token`, or `webhook-signature` (Standard
/// Webhooks). What is no push, or one of another branch, is ignored.
#[utoipa::path(
    post,
    path = "/v1/registries/{registry}/webhook",
    tag = "registries",
    params(
        ("registry" = String, Path, description = "The name of a registry"),
        ("X-Hub-Signature-256" = Option<String>, Header, description = "The HMAC-SHA256 of the body"),
        ("X-Gitlab-Token" = Option<String>, Header, description = "The secret"),
        ("webhook-signature" = Option<String>, Header, description = "As Standard Webhooks say, with `webhook-id` and `webhook-timestamp`"),
    ),
    request_body(content = String, description = "What the forge tells", content_type = "application/json"),
    responses(
        (status = 200, description = "It is nothing that a run follows: `ignored`", body = HookBody),
        (status = 202, description = "A run follows: `accepted`", body = HookBody),
        ProblemAnswers,
    ),
    security(()),
)]
async fn webhook(State(app): State<App>, At(name): At<String>, request: Request) -> Answered {
    let peer = request.extensions().get::<Peer>();
    let standing = peer.and_then(|peer| app.throttle().stranger(peer.0, app.now()));
    let answer = match standing.as_ref().map_or(Ok(()), Standing::check) {
        Ok(()) => heard(&app, &name, request).await,
        Err(problem) => Err(problem.into()),
    };
    let mut response = answer.into_response();
    if let Some(standing) = standing {
        standing.tell(response.headers_mut());
    }
    Ok(response)
}

async fn heard(app: &App, name: &str, request: Request) -> Answered {
    // Before anything is read of what a stranger sends.
    let kept = app.registries().get(name);
    let hooked = kept.and_then(|kept| Some((kept, kept.registry.settings().webhook.as_ref()?)));
    let Some((kept, webhook)) = hooked else {
        let detail = format!("there is no registry called {name:?} that has a webhook");
        return Err(Problem::new(Code::UnknownRegistry, detail)
            .hint("Change the path, or configure a webhook for the registry.")
            .into());
    };
    let (parts, body) = request.into_parts();
    let (body, _held) = receive(app, &parts, body, app.limits().body_bytes_max).await?;
    let headers = parts.headers;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let now = app.now();
    // A file is read, perhaps.
    let secret = webhook.secret.clone();
    let checked = match tokio::task::spawn_blocking(move || secret.read()).await {
        Ok(Ok(secret)) => PushHook::check(&secret, header, &body, now).ok(),
        Ok(Err(error)) => {
            tracing::error!(registry = name, %error, "a push cannot be checked");
            None
        }
        Err(_panic) => None,
    };
    let Some(push) = checked else {
        app.metrics().credentials_refused.get_or_create(&Untaken { reason: "hook" }).inc();
        return Err(refused().into());
    };
    let concerned = is_push(&headers) && concerns(kept, &push);
    if concerned {
        kept.push();
        tracing::info!(registry = name, "something was pushed");
    }
    let (status, outcome) = match concerned {
        true => (StatusCode::ACCEPTED, "accepted"),
        false => (StatusCode::OK, "ignored"),
    };
    Ok(json(status, Object::new().text("outcome", outcome).finish()))
}

/// What is told to whoever cannot prove who they are.
fn refused() -> Problem {
    unauthenticated().hint("Sign the request with the secret of the registry's webhook.")
}

/// Whether it is a push that a forge tells of. One that does not say is taken for one.
fn is_push(headers: &HeaderMap) -> bool {
    EVENTS.iter().all(|(name, push)| {
        headers.get(*name).is_none_or(|event| event.as_bytes() == push.as_bytes())
    })
}

/// Whether a push is to the registry's branch: without one of its own, to any.
fn concerns(kept: &Kept, push: &PushHook) -> bool {
    match &kept.registry.settings().branch {
        Some(branch) => push.concerns(branch),
        None => push.reference.as_ref().is_none_or(|to| !to.starts_with("refs/tags/")),
    }
}
