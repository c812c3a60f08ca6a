//! How the server is: for those who run it.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use keyward::Key;

use super::answer::json;
use crate::app::App;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

/// That the process runs.
async fn alive() -> Response<Body> {
    json(StatusCode::OK, r#"{"status":"alive"}"#)
}

/// That requests can be served: every store answers, and no stop has begun.
async fn ready(State(app): State<App>) -> Result<Response<Body>> {
    if app.lifecycle().is_stopping() {
        return Err(Problem::new("stopping", "the server is about to stop").retryable());
    }
    let probe = Key::from_segments(["system", "ready"])
        .map_err(|error| Problem::new("internal", error.to_string()))?;
    for served in app.stores().iter() {
        served.store().get(&probe).await.map_err(|error| {
            Problem::new("unavailable", format!("the store {} does not answer", served.name))
                .with("cause", error.kind().code())
        })?;
    }
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
