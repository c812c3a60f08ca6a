//! The state that every operation works on.

use std::sync::Arc;

use jiff::Timestamp;
use keyward::agents::Agents;
use keyward::schema::Schema;
use keyward::{Clock, Data};

use crate::agreements::Agreements;
use crate::config::{OperationLimits, ServicesConfig};
use crate::identity::Keys;
use crate::lifecycle::Lifecycle;
use crate::metrics::ServiceMetrics;
use crate::problem::Result;
use crate::reads::Reads;
use crate::registries::Registries;
use crate::stores::{Served, Stores};
use crate::waits::Waits;

/// The state that every operation works on: stores, registries, workspaces, API keys, and the bounds of
/// what a request may cost. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Services(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    schema: Schema,
    stores: Stores,
    registries: Registries,
    agreements: Agreements,
    keys: Keys,
    clock: Arc<dyn Clock>,
    limits: OperationLimits,
    lifecycle: Lifecycle,
    waits: Waits,
    reads: Reads,
}

impl Services {
    /// Puts open stores together with what is kept in them. Nothing runs in the background yet.
    pub fn new(
        config: &ServicesConfig,
        data: &Data,
        stores: Stores,
        keys: Keys,
        metrics: &ServiceMetrics,
        lifecycle: Lifecycle,
    ) -> Result<Self> {
        let registries = Registries::open(config, data, &stores, metrics)?;
        let agreements = Agreements::open(config, data, &stores, metrics)?;
        Ok(Self(Arc::new(Inner {
            schema: data.schema().clone(),
            stores,
            registries,
            agreements,
            keys,
            clock: config.clock.clone(),
            limits: config.limits,
            lifecycle,
            waits: Waits::new(&config.limits),
            reads: Reads::new(&config.limits)?,
        })))
    }

    /// The declared schema.
    pub fn schema(&self) -> &Schema {
        &self.0.schema
    }

    /// All open stores.
    pub fn stores(&self) -> &Stores {
        &self.0.stores
    }

    /// The store with a name.
    pub fn store(&self, name: &str) -> Result<&Served> {
        self.0.stores.get(name)
    }

    /// The agent data store, and the name of the store that it is in.
    pub fn agents(&self) -> Result<(&str, &Agents)> {
        self.0.stores.agents()
    }

    /// Registries of documents that are kept in git.
    pub fn registries(&self) -> &Registries {
        &self.0.registries
    }

    /// Workspaces of agreements.
    pub fn agreements(&self) -> &Agreements {
        &self.0.agreements
    }

    /// The API keys.
    pub fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// The current time, by the clock that was passed in.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// The bounds of what a request may cost.
    pub fn limits(&self) -> &OperationLimits {
        &self.0.limits
    }

    /// Whether the program goes on.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.0.lifecycle
    }

    /// The bounds of requests that wait.
    pub fn waits(&self) -> &Waits {
        &self.0.waits
    }

    /// Where expensive reads run.
    pub fn reads(&self) -> &Reads {
        &self.0.reads
    }
}
