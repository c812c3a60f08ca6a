use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// What the locks of a process count. Clones count together.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// How long granted requests waited, in seconds.
    pub waits: Histogram,
    /// Requests that were granted.
    pub acquired: Counter,
    /// Requests that found somebody in their way.
    pub contended: Counter,
    /// Requests that were told that their time to wait is over.
    pub timed_out: Counter,
    /// Dead holders whose locks this process took away.
    pub takeovers: Counter,
    /// Guards of this process that lost their lock.
    pub lost: Counter,
    /// Writes that were refused because their guard's lock was somebody else's by then.
    pub fence_refusals: Counter,
    /// Waiters of the root whose catalog this process last waited at, was granted a lock of, or left.
    pub queue_depth: Gauge,
    /// How long the first of them has waited, in seconds, by the clocks of the two processes.
    pub queue_age: Gauge<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

const WAIT_BUCKETS: [f64; 12] =
    [0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 120.0, 300.0, 900.0];

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        Self {
            waits: Histogram::new(WAIT_BUCKETS),
            acquired: Counter::default(),
            contended: Counter::default(),
            timed_out: Counter::default(),
            takeovers: Counter::default(),
            lost: Counter::default(),
            fence_refusals: Counter::default(),
            queue_depth: Gauge::default(),
            queue_age: Gauge::default(),
        }
    }

    /// Adds everything to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("keyward_locks");
        let seconds = Unit::Seconds;
        registry.register_with_unit(
            "wait",
            "Time granted requests waited",
            seconds,
            self.waits.clone(),
        );
        registry.register("acquired", "Requests granted", self.acquired.clone());
        registry.register("contended", "Requests that had to wait", self.contended.clone());
        registry.register("timed_out", "Requests that waited in vain", self.timed_out.clone());
        registry.register("takeovers", "Dead holders replaced", self.takeovers.clone());
        registry.register("lost", "Guards that lost their lock", self.lost.clone());
        registry.register("fence_refusals", "Late writes refused", self.fence_refusals.clone());
        registry.register("queue_depth", "Waiters of a root", self.queue_depth.clone());
        let age = self.queue_age.clone();
        registry.register_with_unit("queue_age", "Age of the first waiter", Unit::Seconds, age);
    }

    pub(crate) fn saw_queue(&self, depth: usize, age: Option<Duration>) {
        self.queue_depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
        self.queue_age.set(age.unwrap_or_default().as_secs_f64());
    }
}
