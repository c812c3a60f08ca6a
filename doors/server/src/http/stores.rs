//! What there is: `/v1/stores`.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use keyward::{Durability, Tier, WatchSupport};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::request::At;
use crate::app::App;
use crate::auth::{Identity, Need, Target};
use crate::problem::{Problem, ProblemAnswers, Result};
use crate::stores::Served;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// A store.
#[derive(Debug, Serialize, ToSchema)]
struct StoreBody {
    name: String,
    /// What it is kept in.
    #[schema(example = "embedded")]
    engine: &'static str,
    /// `atomic`, `recoverable` or `advisory`: what its indexes, locks and queues are worth.
    tier: &'static str,
    /// Whether its changes can be watched.
    watch: bool,
    /// What a commit survives that was acknowledged.
    durability: &'static str,
    /// The largest key, in bytes.
    key_bytes_max: usize,
    /// The largest value, in bytes.
    value_bytes_max: usize,
    /// Its declared spaces.
    spaces: Vec<String>,
}

/// Stores.
#[derive(Debug, Serialize, ToSchema)]
struct StoresBody {
    items: Vec<StoreBody>,
}

/// The name of a tier.
pub(super) fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Atomic => "atomic",
        Tier::Recoverable => "recoverable",
        Tier::Advisory => "advisory",
    }
}

fn body(served: &Served) -> StoreBody {
    let capabilities = served.store().capabilities();
    let limits = served.store().limits();
    StoreBody {
        name: served.name.clone(),
        engine: capabilities.engine,
        tier: tier(capabilities.tier()),
        watch: !matches!(capabilities.watch, WatchSupport::Unsupported),
        durability: match capabilities.durability {
            Durability::Synced => "synced",
            Durability::Relaxed => "relaxed",
            Durability::Volatile => "volatile",
        },
        key_bytes_max: limits.key_bytes_max,
        value_bytes_max: limits.value_bytes_max,
        spaces: served.records.declarations().map(|space| space.name.clone()).collect(),
    }
}

pub(super) fn answer(body: &impl Serialize) -> Result<Response<Body>> {
    let text =
        serde_json::to_vec(body).map_err(|error| Problem::new("internal", error.to_string()))?;
    Ok(json(StatusCode::OK, text))
}

/// Lists the stores that the caller reaches.
#[utoipa::path(
    get,
    path = "/v1/stores",
    tag = "stores",
    responses((status = 200, description = "Stores, by name", body = StoresBody), ProblemAnswers),
)]
async fn list(State(app): State<App>, who: Identity) -> Result<Response<Body>> {
    let reached = |served: &&Served| who.require(Need::Read, &Target::Store(&served.name)).is_ok();
    answer(&StoresBody { items: app.stores().iter().filter(reached).map(body).collect() })
}

/// Shows what a store can do.
#[utoipa::path(
    get,
    path = "/v1/stores/{store}",
    tag = "stores",
    params(("store" = String, Path, description = "The name of a store")),
    responses((status = 200, description = "The store", body = StoreBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    who: Identity,
    At(store): At<String>,
) -> Result<Response<Body>> {
    let served = app.store(&store)?;
    who.require(Need::Read, &Target::Store(&served.name))?;
    answer(&body(served))
}
