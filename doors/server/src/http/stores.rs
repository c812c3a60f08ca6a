//! What there is: `/v1/stores`.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use keyward::{
    Capabilities, Code, Durability, ExpirySupport, Limits, ScanOrder, Tier, WatchSupport,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::request::At;
use crate::api::raw;
use crate::app::App;
use crate::auth::{Need, Target};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Problem;
use crate::stores::Served;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// A store.
#[derive(Debug, Serialize, ToSchema)]
struct StoreBody {
    name: String,
    /// Whether it is used for whatever names no store.
    default: bool,
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
    contract: ContractBody,
}

/// What the routes below `raw` promise, and how large things may be there.
#[derive(Debug, Serialize, ToSchema)]
struct ContractBody {
    /// Whether scans come in key order.
    ordered: bool,
    /// How many milliseconds a read may be behind, listings included; 0, if every read sees every write.
    lag_ms: u64,
    /// How many milliseconds a read of keys may be behind; 0, if it sees every write.
    get_lag_ms: u64,
    /// Whether commits may carry checks.
    compare: bool,
    /// Whether commits may add to numbers.
    add: bool,
    /// `resumable`; `live`, if a watch resumes only from revisions that this server told since it started; null, if
    /// changes cannot be watched.
    watch: Option<&'static str>,
    /// How finely entries expire; null, if they cannot.
    expiry: Option<ExpiryBody>,
    /// `synced`, `relaxed` or `volatile`: what a commit survives that was acknowledged.
    durability: &'static str,
    limits: LimitsBody,
}

/// How finely entries expire, by the server's clock.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExpirySupport)]
struct ExpiryBody {
    /// Ends are rounded up to a multiple of so many milliseconds.
    granularity_ms: u64,
    /// The shortest time to live.
    ttl_ms_min: u64,
}

/// How large things may be.
#[derive(Debug, Serialize, ToSchema)]
struct LimitsBody {
    key_bytes_max: usize,
    value_bytes_max: usize,
    metadata_bytes_max: usize,
    commit_keys_max: usize,
    commit_bytes_max: usize,
    get_keys_max: usize,
    scan_rows_max: usize,
}

impl From<Limits> for LimitsBody {
    fn from(limits: Limits) -> Self {
        Self {
            key_bytes_max: limits.key_bytes_max,
            value_bytes_max: limits.value_bytes_max,
            metadata_bytes_max: limits.metadata_bytes_max,
            commit_keys_max: limits.commit_keys_max,
            commit_bytes_max: limits.commit_bytes_max,
            get_keys_max: limits.get_keys_max,
            scan_rows_max: limits.scan_rows_max,
        }
    }
}

fn contract(capabilities: &Capabilities, limits: Limits) -> ContractBody {
    let ms =
        |time: Duration| u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    ContractBody {
        ordered: capabilities.scan_order == ScanOrder::Ordered,
        lag_ms: ms(capabilities.consistency.lag()),
        get_lag_ms: ms(capabilities.consistency.get_lag()),
        compare: capabilities.compare,
        add: capabilities.add,
        watch: match capabilities.watch {
            WatchSupport::Resumable => Some("resumable"),
            WatchSupport::Live => Some("live"),
            WatchSupport::Unsupported => None,
        },
        expiry: match capabilities.expiry {
            ExpirySupport::Supported { granularity, ttl_min } => {
                Some(ExpiryBody { granularity_ms: ms(granularity), ttl_ms_min: ms(ttl_min) })
            }
            ExpirySupport::Unsupported => None,
        },
        durability: durability(capabilities.durability),
        limits: limits.into(),
    }
}

fn durability(durability: Durability) -> &'static str {
    match durability {
        Durability::Synced => "synced",
        Durability::Relaxed => "relaxed",
        Durability::Volatile => "volatile",
    }
}

/// Stores.
#[derive(Debug, Serialize, ToSchema)]
struct StoresBody {
    items: Vec<StoreBody>,
}

/// The name of a tier.
pub(crate) fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Atomic => "atomic",
        Tier::Recoverable => "recoverable",
        Tier::Advisory => "advisory",
    }
}

fn body(app: &App, served: &Served) -> StoreBody {
    let capabilities = served.store().capabilities();
    let limits = served.store().limits();
    StoreBody {
        name: served.name.clone(),
        default: app.stores().default_store() == Some(&served.name),
        engine: capabilities.engine,
        tier: tier(capabilities.tier()),
        watch: capabilities.watch.is_supported(),
        durability: durability(capabilities.durability),
        key_bytes_max: limits.key_bytes_max,
        value_bytes_max: limits.value_bytes_max,
        spaces: app.stores().declared(served).map(|space| space.name.clone()).collect(),
        contract: contract(capabilities, raw::limits(served.store(), app.limits().body_bytes_max)),
    }
}

pub(super) fn answer(body: &impl Serialize) -> Answered {
    let text = serde_json::to_vec(body)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    Ok(json(StatusCode::OK, text))
}

/// Lists the stores that the caller reaches.
#[utoipa::path(
    get,
    path = "/v1/stores",
    tag = "stores",
    responses((status = 200, description = "Stores, by name", body = StoresBody), ProblemAnswers),
)]
async fn list(State(app): State<App>, Authenticated(who): Authenticated) -> Answered {
    let reached = |served: &&Served| who.require(Need::Read, &Target::Store(&served.name)).is_ok();
    answer(&StoresBody {
        items: app.stores().iter().filter(reached).map(|it| body(&app, it)).collect(),
    })
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
    Authenticated(who): Authenticated,
    At(store): At<String>,
) -> Answered {
    let served = app.store(&store)?;
    who.require(Need::Read, &Target::Store(&served.name))?;
    answer(&body(&app, served))
}
