//! How the server is: for those who run it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use axum::{Extension, Router};
use keyward::Code;

use super::answer::json;
use super::gate;
use crate::app::App;
use crate::http::problem::Answered;
use crate::problem::{Problem, Result};
use crate::readiness::Readiness;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .layer(Extension(Arc::new(Readiness::default())))
}

/// That the process runs.
async fn alive() -> Response<Body> {
    json(StatusCode::OK, r#"{"status":"alive"}"#)
}

/// That requests can be served: every store takes writes, and no stop has begun.
async fn ready(
    State(app): State<App>,
    Extension(readiness): Extension<Arc<Readiness>>,
) -> Answered {
    check_ready(&app, &readiness).await?;
    Ok(json(StatusCode::OK, r#"{"status":"ready"}"#))
}

async fn check_ready(app: &App, readiness: &Readiness) -> Result<()> {
    if app.lifecycle().is_stopping() {
        return Err(Problem::new(Code::Stopping, "the server is about to stop").retryable());
    }
    let stores = app.stores().iter().map(|served| (served.name.as_str(), served.store()));
    readiness.check(stores.chain(app.own_stores())).await
}

/// What is counted, as Prometheus reads it. It needs no credential; with one, there are metrics of those
/// queues that it may read.
async fn metrics(
    State(app): State<App>,
    Extension(readiness): Extension<Arc<Readiness>>,
    request: Request,
) -> Answered {
    let (request, _) = request.into_parts();
    let who = match gate::identify_if_given(&app, &request).await? {
        Ok(who) => who,
        Err(refused) => return Ok(refused),
    };
    if let Ok((_, agents)) = app.agents() {
        app.metrics().gathered(&agents.gathered());
    }
    for kept in app.agreements().iter() {
        if let Some(models) = kept.models() {
            app.metrics().services.spent(kept.name(), models.spent());
        }
    }
    let is_ready = check_ready(&app, &readiness).await.is_ok();
    let text = app.metrics().text(&app, who.as_ref(), is_ready).await;
    let text = text.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    let plain = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(plain));
    Ok(response)
}
