//! What is counted about registries.

use keyward::registry::Metrics as RegistryMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A registry: there are few, and the configuration names them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRegistry {
    registry: String,
}

/// What is counted about registries, by their names.
#[derive(Debug)]
pub struct RegistryFamilies {
    succeeded: Family<OfRegistry, Counter>,
    partial: Family<OfRegistry, Counter>,
    failed: Family<OfRegistry, Counter>,
    busy: Family<OfRegistry, Counter>,
    added: Family<OfRegistry, Counter>,
    updated: Family<OfRegistry, Counter>,
    deleted: Family<OfRegistry, Counter>,
    problems: Family<OfRegistry, Counter>,
    blobs_read: Family<OfRegistry, Counter>,
    conflicts: Family<OfRegistry, Counter>,
    last_success_seconds: Family<OfRegistry, Gauge>,
    run_seconds: Family<OfRegistry, Histogram, fn() -> Histogram>,
}

impl RegistryFamilies {
    pub fn new() -> Self {
        let histogram: fn() -> Histogram = || RegistryMetrics::default().run_seconds;
        Self {
            succeeded: Family::default(),
            partial: Family::default(),
            failed: Family::default(),
            busy: Family::default(),
            added: Family::default(),
            updated: Family::default(),
            deleted: Family::default(),
            problems: Family::default(),
            blobs_read: Family::default(),
            conflicts: Family::default(),
            last_success_seconds: Family::default(),
            run_seconds: Family::new_with_constructor(histogram),
        }
    }

    pub fn register(&self, registry: &mut Registry) {
        for (name, about, family) in [
            ("runs_succeeded", "Runs that left nothing undone", &self.succeeded),
            ("runs_partial", "Runs that left some files alone", &self.partial),
            ("runs_failed", "Runs that failed", &self.failed),
            ("runs_busy", "Runs that were not begun beside another", &self.busy),
            ("added", "Policies added", &self.added),
            ("updated", "Policies updated", &self.updated),
            ("deleted", "Policies deleted", &self.deleted),
            ("problems", "Files and policies that runs left alone", &self.problems),
            ("blobs_read", "Blobs read from git", &self.blobs_read),
            ("conflicts", "Commits that were tried again", &self.conflicts),
        ] {
            registry.register(name, about, family.clone());
        }
        registry.register(
            "last_success_seconds",
            "When the last run ended that left nothing undone, in seconds since 1970",
            self.last_success_seconds.clone(),
        );
        registry.register("run_seconds", "How long runs took", self.run_seconds.clone());
    }

    /// What a registry counts in, under its name.
    pub fn of(&self, name: &str) -> RegistryMetrics {
        let of = OfRegistry { registry: name.to_owned() };
        let counter = |family: &Family<OfRegistry, Counter>| family.get_or_create(&of).clone();
        RegistryMetrics {
            succeeded: counter(&self.succeeded),
            partial: counter(&self.partial),
            failed: counter(&self.failed),
            busy: counter(&self.busy),
            added: counter(&self.added),
            updated: counter(&self.updated),
            deleted: counter(&self.deleted),
            problems: counter(&self.problems),
            blobs_read: counter(&self.blobs_read),
            conflicts: counter(&self.conflicts),
            last_success_seconds: self.last_success_seconds.get_or_create(&of).clone(),
            run_seconds: self.run_seconds.get_or_create(&of).clone(),
        }
    }
}
