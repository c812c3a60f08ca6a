use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// What a registry has counted in this process. Clones share their numbers.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Runs that applied everything, or found nothing to do.
    pub succeeded: Counter,
    /// Runs that left some files alone.
    pub partial: Counter,
    /// Runs that failed.
    pub failed: Counter,
    /// Runs that were not begun, because another was under way.
    pub busy: Counter,
    /// Policies added.
    pub added: Counter,
    /// Policies updated.
    pub updated: Counter,
    /// Policies deleted.
    pub deleted: Counter,
    /// Files and policies that runs left alone.
    pub problems: Counter,
    /// Blobs read from git.
    pub blobs_read: Counter,
    /// Commits that were tried again, because somebody else wrote in between.
    pub conflicts: Counter,
    /// When the last run of this process ended that left nothing undone, in seconds since 1970.
    pub last_success_seconds: Gauge,
    /// From the beginning of a run to its end, in seconds.
    pub run_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            succeeded: Counter::default(),
            partial: Counter::default(),
            failed: Counter::default(),
            busy: Counter::default(),
            added: Counter::default(),
            updated: Counter::default(),
            deleted: Counter::default(),
            problems: Counter::default(),
            blobs_read: Counter::default(),
            conflicts: Counter::default(),
            last_success_seconds: Gauge::default(),
            run_seconds: Histogram::new(exponential_buckets(0.01, 4.0, 10)),
        }
    }
}

impl Metrics {
    /// Shows the numbers in a registry of metrics; give it labels and a prefix there.
    pub fn register(&self, registry: &mut prometheus_client::registry::Registry) {
        registry.register("runs_succeeded", "Runs that left nothing", self.succeeded.clone());
        registry.register("runs_partial", "Runs that left files alone", self.partial.clone());
        registry.register("runs_failed", "Runs that failed", self.failed.clone());
        registry.register("runs_busy", "Runs not begun beside another", self.busy.clone());
        registry.register("added", "Policies added", self.added.clone());
        registry.register("updated", "Policies updated", self.updated.clone());
        registry.register("deleted", "Policies deleted", self.deleted.clone());
        registry.register("problems", "Files and policies left alone", self.problems.clone());
        registry.register("blobs_read", "Blobs read from git", self.blobs_read.clone());
        registry.register("conflicts", "Commits tried again", self.conflicts.clone());
        registry.register(
            "last_success_seconds",
            "When the last run ended that left nothing, in seconds since 1970",
            self.last_success_seconds.clone(),
        );
        registry.register("run_seconds", "From beginning to end", self.run_seconds.clone());
    }
}
