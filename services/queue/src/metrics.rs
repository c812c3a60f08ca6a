use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// What a queue has counted in this process. Clones share their numbers.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Messages enqueued; those that were part of other commits if they are
    /// [counted](crate::Queue::count_enqueued).
    pub enqueued: Counter,
    /// Messages claimed.
    pub claimed: Counter,
    /// Completions accepted.
    pub completed: Counter,
    /// Attempts that failed.
    pub failed: Counter,
    /// Messages moved to the dead letters.
    pub dead_lettered: Counter,
    /// Messages claimed whose last worker gave no sign of life.
    pub taken_over: Counter,
    /// Completions and failures refused, because the attempt was no longer the current one.
    pub refused: Counter,
    /// Claims that lost a race and were tried again.
    pub conflicts: Counter,
    /// Times that a message was passed over, because this process cannot read its row, or the store
    /// does not take it as large as it is when claimed.
    pub passed_over: Counter,
    /// Attempts in hand.
    pub held: Gauge,
    /// From enqueuing to the claim, in seconds, by this process's clock.
    pub wait_seconds: Histogram,
    /// From the claim to the end of the handler, in seconds.
    pub run_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 4.0, 12));
        Self {
            enqueued: Counter::default(),
            claimed: Counter::default(),
            completed: Counter::default(),
            failed: Counter::default(),
            dead_lettered: Counter::default(),
            taken_over: Counter::default(),
            refused: Counter::default(),
            conflicts: Counter::default(),
            passed_over: Counter::default(),
            held: Gauge::default(),
            wait_seconds: seconds(),
            run_seconds: seconds(),
        }
    }
}

impl Metrics {
    /// Shows the numbers in a registry; give it labels and a prefix there.
    pub fn register(&self, registry: &mut Registry) {
        self.register_queue(registry);
        registry.register("held", "Attempts in hand", self.held.clone());
        registry.register("run_seconds", "From claim to end", self.run_seconds.clone());
    }

    /// Shows only what queues count by themselves, without a worker in this process.
    pub fn register_queue(&self, registry: &mut Registry) {
        registry.register("enqueued", "Messages enqueued", self.enqueued.clone());
        registry.register("claimed", "Messages claimed", self.claimed.clone());
        registry.register("completed", "Completions accepted", self.completed.clone());
        registry.register("failed", "Attempts that failed", self.failed.clone());
        registry.register(
            "dead_lettered",
            "Messages moved to the dead letters",
            self.dead_lettered.clone(),
        );
        registry.register(
            "taken_over",
            "Messages taken over from workers without a sign of life",
            self.taken_over.clone(),
        );
        registry.register("refused", "Ends of attempts refused as stale", self.refused.clone());
        registry.register("conflicts", "Claims that lost a race", self.conflicts.clone());
        registry.register(
            "passed_over",
            "Messages passed over that cannot be read or written here",
            self.passed_over.clone(),
        );
        registry.register("wait_seconds", "From enqueuing to claim", self.wait_seconds.clone());
    }
}
