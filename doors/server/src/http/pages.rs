//! Pages for people: what runs here, the documentation, what problems mean.

use std::fmt::Write;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderValue, Response, header};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use keyward::Code;
use serde_json::Value;
use utoipa_swagger_ui::{Config as SwaggerConfig, SwaggerUi};

use crate::app::App;
use crate::http::problem::respond;
use crate::problem::Problem;

const HOME: &str = include_str!("../pages/home.html");
const HOME_SCRIPT: &str = include_str!("../pages/home.js");
const STYLE: &str = include_str!("../pages/style.css");
const PROBLEMS: &str = include_str!("../pages/problems.html");

/// Where the description of the API is.
const DESCRIPTION: &str = "/openapi.json";

pub(super) fn routes(description: &Value) -> Router<App> {
    // Written once: any number of clients that do not read hold on to the same bytes.
    let description = Bytes::from(description.to_string());
    Router::new()
        .route("/", get(home))
        .route("/home.js", get(home_script))
        .route("/style.css", get(style))
        .route("/problems", get(problems))
        .route("/problems/{code}", get(one_problem))
        .route(DESCRIPTION, get(move || std::future::ready(shared_json(&description))))
        .merge(SwaggerUi::new("/docs").config(docs()))
}

/// How Swagger UI works: without a badge from another server, which would learn of this one.
fn docs() -> SwaggerConfig<'static> {
    SwaggerConfig::from(DESCRIPTION).validator_url("none")
}

fn shared_json(text: &Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(text.clone()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

async fn home() -> Response<Body> {
    page("text/html; charset=utf-8", HOME.replace("<!--version-->", env!("CARGO_PKG_VERSION")))
}

async fn home_script() -> Response<Body> {
    page("text/javascript; charset=utf-8", HOME_SCRIPT.to_owned())
}

async fn style() -> Response<Body> {
    page("text/css; charset=utf-8", STYLE.to_owned())
}

/// Every code, with its status and meaning.
async fn problems() -> Response<Body> {
    let mut rows = String::new();
    for code in Code::ALL {
        // Writing to a text does not fail.
        let _ = write!(
            rows,
            "<tr id=\"{0}\"><td><code>{0}</code></td><td>{1}</td><td>{2}</td></tr>",
            code.name(),
            code.status(),
            code.meaning()
        );
    }
    page("text/html; charset=utf-8", PROBLEMS.replace("<!--rows-->", &rows))
}

async fn one_problem(Path(code): Path<String>) -> Response<Body> {
    match Code::from_name(&code) {
        Some(code) => Redirect::to(&format!("/problems#{}", code.name())).into_response(),
        None => respond(Problem::not_found("there is no such code")),
    }
}

fn page(kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
