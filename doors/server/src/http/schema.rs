//! What is declared, as a whole: `/v1/schema`.

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::stores::answer;
use keyward::schema::Published;

use crate::api::spaces;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show))
}

/// A schema.
#[derive(Serialize, ToSchema)]
struct SchemaBody {
    /// The text of a schema file, without where stores are.
    text: String,
    /// By space, the JSON Schema of its values: as it is, where TOML cannot say all of it.
    values: BTreeMap<String, Value>,
    /// The store that is used for whatever names none, if there is one that the caller reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_store: Option<String>,
}

/// Shows the schema, as far as the caller reaches its stores and spaces: what a program needs to work
/// on a store by itself.
#[utoipa::path(
    get,
    path = "/v1/schema",
    tag = "schema",
    responses((status = 200, description = "The schema", body = SchemaBody), ProblemAnswers),
)]
async fn show(State(app): State<App>, Authenticated(who): Authenticated) -> Answered {
    let Published { text, values, default_store } = spaces::publish(&who, &app);
    answer(&SchemaBody { text, values, default_store })
}
