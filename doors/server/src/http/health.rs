//! How the server is: for those who run it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use axum::{Extension, Router};

use super::answer::json;
use crate::app::App;
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
) -> Result<Response<Body>> {
    if app.lifecycle().is_stopping() {
        return Err(Problem::new("stopping", "the server is about to stop").retryable());
    }
    let stores = app.stores().iter().map(|served| (served.name.as_str(), served.store()));
    readiness.check(stores.chain(app.own_stores())).await?;
    Ok(json(StatusCode::OK, r#"{"status":"ready"}"#))
}

/// What is counted, as Prometheus reads it.
async fn metrics(State(app): State<App>) -> Result<Response<Body>> {
    if let Ok((_, agents)) = app.agents() {
        app.metrics().gathered(&agents.gathered());
    }
    for kept in app.agreements().iter() {
        if let Some(models) = kept.models() {
            app.metrics().spent(kept.name(), models.spent());
        }
    }
    let text = app.metrics().text();
    let text = text.map_err(|error| Problem::new("internal", error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    let plain = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(plain));
    Ok(response)
}
