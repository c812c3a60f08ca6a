//! What every request is answered from.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use keyward::Data;
use tokio::sync::Semaphore;

use crate::auth::Auth;
use crate::config::{Config, Limits};
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::problem::{Problem, Result};
use crate::stores::{Served, Stores};

/// What every request is answered from. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stores: Stores,
    auth: Auth,
    limits: Limits,
    lifecycle: Lifecycle,
    metrics: Metrics,
    requests: Semaphore,
    watches: Arc<Semaphore>,
    run: String,
}

impl App {
    pub async fn open(
        config: &Config,
        data: &Data,
        auth: Auth,
        lifecycle: Lifecycle,
    ) -> Result<Self> {
        Ok(Self(Arc::new(Inner {
            stores: Stores::open(data).await?,
            auth,
            limits: config.limits,
            lifecycle,
            metrics: Metrics::new(),
            requests: Semaphore::new(config.limits.requests_max),
            run: new_run()?,
            watches: Arc::new(Semaphore::new(config.limits.watches_max)),
        })))
    }

    pub fn stores(&self) -> &Stores {
        &self.0.stores
    }

    pub fn store(&self, name: &str) -> Result<&Served> {
        self.0.stores.get(name)
    }

    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub fn lifecycle(&self) -> &Lifecycle {
        &self.0.lifecycle
    }

    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// One permit for each request that may be under way.
    pub fn requests(&self) -> &Semaphore {
        &self.0.requests
    }

    /// What tells this run of a server from others, in the ids of requests.
    pub fn run(&self) -> &str {
        &self.0.run
    }

    /// One permit for each watch that may be open.
    pub fn watches(&self) -> &Arc<Semaphore> {
        &self.0.watches
    }
}

fn new_run() -> Result<String> {
    let mut bytes = [0; 5];
    getrandom::fill(&mut bytes)
        .map_err(|error| Problem::new("internal", format!("there is no randomness: {error}")))?;
    Ok(HEXLOWER.encode(&bytes))
}
