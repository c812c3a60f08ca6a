//! What a store behind a server can do, as the server tells.

use std::time::Duration;

use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, ExpirySupport, Limits, Result, ScanOrder,
    Sharing, WatchSupport,
};
use serde::Deserialize;

use crate::error::senseless;

/// A store, as `GET /v1/stores/{store}` tells of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Told {
    pub name: String,
    /// Whether the server uses it for whatever names no store.
    #[serde(default)]
    pub default: bool,
    contract: Option<Contract>,
}

/// Stores, as `GET /v1/stores` tells of them.
#[derive(Debug, Deserialize)]
pub(crate) struct AllTold {
    pub items: Vec<Told>,
}

#[derive(Debug, Deserialize)]
struct Contract {
    ordered: bool,
    lag_ms: u64,
    /// Older servers do not tell.
    get_lag_ms: Option<u64>,
    compare: bool,
    add: bool,
    watch: Option<String>,
    expiry: Option<Expiry>,
    durability: String,
    limits: Most,
}

#[derive(Debug, Deserialize)]
struct Expiry {
    granularity_ms: u64,
    ttl_ms_min: u64,
}

#[derive(Debug, Deserialize)]
struct Most {
    key_bytes_max: usize,
    value_bytes_max: usize,
    metadata_bytes_max: usize,
    commit_keys_max: usize,
    commit_bytes_max: usize,
    get_keys_max: usize,
    scan_rows_max: usize,
}

impl Told {
    /// What the store can do for those who come through the server: everybody on the network, by the
    /// server's clock.
    pub fn capabilities(&self, engine: &'static str) -> Result<Capabilities> {
        let Some(contract) = &self.contract else {
            return Err(senseless("it tells nothing of a contract; it is too old a server"));
        };
        Ok(Capabilities {
            engine,
            scan_order: match contract.ordered {
                true => ScanOrder::Ordered,
                false => ScanOrder::Unordered,
            },
            consistency: match (contract.lag_ms, contract.get_lag_ms) {
                (0, _) => Consistency::Strong,
                (lag, Some(0)) => Consistency::LateScans { lag: Duration::from_millis(lag) },
                (lag, _) => Consistency::Eventual { lag: Duration::from_millis(lag) },
            },
            compare: contract.compare,
            add: contract.add,
            watch: match contract.watch.as_deref() {
                Some("resumable") => WatchSupport::Resumable,
                Some("live") => WatchSupport::Live,
                _ => WatchSupport::Unsupported,
            },
            expiry: match &contract.expiry {
                Some(expiry) => ExpirySupport::Supported {
                    granularity: Duration::from_millis(expiry.granularity_ms),
                    ttl_min: Duration::from_millis(expiry.ttl_ms_min),
                },
                None => ExpirySupport::Unsupported,
            },
            clock: ClockSource::Server,
            durability: match contract.durability.as_str() {
                "synced" => Durability::Synced,
                "relaxed" => Durability::Relaxed,
                _ => Durability::Volatile,
            },
            sharing: Sharing::Network,
            limits: Limits {
                key_bytes_max: contract.limits.key_bytes_max,
                value_bytes_max: contract.limits.value_bytes_max,
                metadata_bytes_max: contract.limits.metadata_bytes_max,
                commit_keys_max: contract.limits.commit_keys_max,
                commit_bytes_max: contract.limits.commit_bytes_max,
                get_keys_max: contract.limits.get_keys_max,
                scan_rows_max: contract.limits.scan_rows_max,
            },
        })
    }
}
