use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// What a cache has done.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Results that were in the store and fresh.
    pub hits: Counter,
    /// Results that were not.
    pub misses: Counter,
    /// Results that others computed while the caller waited.
    pub shared: Counter,
    /// Stale results that were given out while new ones were computed.
    pub stale: Counter,
    /// Computations that succeeded.
    pub computed: Counter,
    /// Computations that failed.
    pub failed: Counter,
    /// Requests refused because the computation had just failed.
    pub held_back: Counter,
    /// Computations that were given up, since others took this process for dead.
    pub lost: Counter,
    /// Entries dropped, the dependants included.
    pub dropped: Counter,
    /// How long computations took, in seconds.
    pub computing_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        Self {
            hits: Counter::default(),
            misses: Counter::default(),
            shared: Counter::default(),
            stale: Counter::default(),
            computed: Counter::default(),
            failed: Counter::default(),
            held_back: Counter::default(),
            lost: Counter::default(),
            dropped: Counter::default(),
            computing_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 20)),
        }
    }

    /// Makes them known to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let counters = [
            ("hits", "Results found fresh", &self.hits),
            ("misses", "Results not found fresh", &self.misses),
            ("shared", "Results computed by others meanwhile", &self.shared),
            ("stale", "Stale results given out", &self.stale),
            ("computed", "Computations that succeeded", &self.computed),
            ("failed", "Computations that failed", &self.failed),
            ("held_back", "Requests refused after a failure", &self.held_back),
            ("lost", "Computations given up", &self.lost),
            ("dropped", "Entries dropped", &self.dropped),
        ];
        let registry = registry.sub_registry_with_prefix("keyward_cache");
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let help = "How long computations took";
        registry.register("computing_seconds", help, self.computing_seconds.clone());
    }
}
