//! Counters of the services that operations work on. A door registers them under its own prefix.

mod agreements;
mod registries;

use keyward::models::Usage;
use keyward::queue::Metrics as QueueMetrics;
use keyward::registry::Metrics as RegistryMetrics;
use keyward::{cache, locks};
use prometheus_client::registry::Registry;

use agreements::AgreementFamilies;
use registries::RegistryFamilies;

/// Counters of the services that operations work on.
#[derive(Debug)]
pub struct ServiceMetrics {
    /// Locks of all stores, those of computations among them.
    pub locks: locks::Metrics,
    /// Caches of all stores.
    pub cache: cache::Metrics,
    /// All queues together: clients choose their names, so there is no bound on how many there are.
    pub queues: QueueMetrics,
    registries: RegistryFamilies,
    agreements: AgreementFamilies,
}

impl Default for ServiceMetrics {
    fn default() -> Self {
        Self {
            locks: locks::Metrics::new(),
            cache: cache::Metrics::new(),
            queues: QueueMetrics::default(),
            registries: RegistryFamilies::new(),
            agreements: AgreementFamilies::default(),
        }
    }
}

impl ServiceMetrics {
    /// Registers counters that have names of their own.
    pub fn register_shared(&self, registry: &mut Registry) {
        self.locks.register(registry);
        self.cache.register(registry);
    }

    /// Registers counters whose names are those of their service.
    pub fn register(&self, registry: &mut Registry) {
        self.queues.register_queue(registry.sub_registry_with_prefix("queue"));
        self.registries.register(registry.sub_registry_with_prefix("registry"));
        self.agreements.register(registry.sub_registry_with_prefix("agreements"));
    }

    /// The counters of one registry.
    pub fn registry(&self, name: &str) -> RegistryMetrics {
        self.registries.of(name)
    }

    /// The counters of one workspace's tasks.
    pub fn tasks(&self, workspace: &str) -> QueueMetrics {
        self.agreements.of(workspace)
    }

    /// Sets what a workspace has spent on models.
    pub fn spent(&self, workspace: &str, spent: Usage) {
        self.agreements.spent(workspace, spent);
    }
}
