//! Metrics of stores and queues that must be looked up: sizes, free disk, messages.
//!
//! They are looked up when somebody scrapes, but not more often than every 15 seconds, and so that it
//! takes at most a twentieth of the time. Whoever scrapes meanwhile gets the last numbers. Names of
//! queues are clients' to choose: only those who may read the store's queues get metrics by queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keyward::queue::{Jobs, QueueStats, queue_names};
use keyward::{DiskSpace, Store};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::api::queues::reach;
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::problem::Result;

/// How long numbers are used at least.
const INTERVAL: Duration = Duration::from_secs(15);
/// How many times as long as a lookup took nothing is looked up after it.
const REST_FACTOR: u32 = 20;
/// How long a scrape waits for new numbers before it takes the last ones.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// How long one store is looked at. One that hangs has no numbers, and does not keep the others from theirs.
const STORE_TIME_MAX: Duration = Duration::from_secs(30);
/// How many queues of a store are counted.
const QUEUES_COUNTED_MAX: usize = 1_000;
/// How many queues of a store have metrics of their own: those with the most messages.
const QUEUES_NAMED_MAX: usize = 100;
/// How far the messages of a queue are counted in each state.
const MESSAGES_COUNTED_MAX: u64 = 10_000;

/// The last numbers.
#[derive(Debug)]
pub(crate) struct Samples {
    latest: watch::Sender<Arc<Vec<StoreSample>>>,
    next: Mutex<Next>,
}

/// When to look again.
#[derive(Debug, Default)]
struct Next {
    is_running: bool,
    due: Option<Instant>,
}

/// What was seen of a store.
#[derive(Debug)]
struct StoreSample {
    store: String,
    disk: Option<DiskSpace>,
    /// None, if they could not be counted.
    queues: Option<Counted>,
}

/// The messages of a store.
#[derive(Debug)]
struct Counted {
    queues: Vec<QueueSample>,
    /// Whether there are more queues, or more messages in one of them, than are counted.
    is_truncated: bool,
}

#[derive(Debug)]
struct QueueSample {
    queue: String,
    ready: u64,
    delayed: u64,
    claimed: u64,
    dead: u64,
    oldest_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStore {
    store: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    store: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQueue {
    store: String,
    queue: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQueueState {
    store: String,
    queue: String,
    state: &'static str,
}

impl Default for Samples {
    fn default() -> Self {
        Self { latest: watch::Sender::new(Arc::default()), next: Mutex::default() }
    }
}

impl Samples {
    /// Adds the numbers to a registry with the prefix `keyward`, with those of the queues that a caller
    /// may read.
    pub async fn register(&self, app: &App, who: Option<&Identity>, registry: &mut Registry) {
        let families = Families::default();
        for sample in self.current(app).await.iter() {
            families.add(sample);
            let served = app.store(&sample.store).ok();
            let may_read = |who| served.is_some_and(|one| reach(who, one, Need::Read).is_ok());
            if who.is_some_and(may_read) {
                families.add_queues(sample);
            }
        }
        families.register(registry);
    }

    /// The latest numbers. Looks them up first if they are too old.
    async fn current(&self, app: &App) -> Arc<Vec<StoreSample>> {
        let mut changes = self.latest.subscribe();
        let is_running = match self.begin() {
            Begin::NotDue => false,
            Begin::Running => true,
            Begin::Due => {
                let app = app.clone();
                tokio::spawn(async move {
                    let began = Instant::now();
                    let mut lookup = Lookup { app: &app, took: Duration::ZERO, samples: None };
                    lookup.samples = Some(take(&app).await);
                    lookup.took = began.elapsed();
                });
                true
            }
        };
        if is_running {
            let _ = timeout(WAIT_MAX, changes.changed()).await;
        }
        self.latest.borrow().clone()
    }

    fn begin(&self) -> Begin {
        let mut next = self.next();
        match next.due {
            _ if next.is_running => Begin::Running,
            Some(due) if Instant::now() < due => Begin::NotDue,
            _ => {
                next.is_running = true;
                Begin::Due
            }
        }
    }

    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Begin {
    NotDue,
    Running,
    Due,
}

/// A lookup that runs. However it ends, another one may begin after a rest.
struct Lookup<'a> {
    app: &'a App,
    took: Duration,
    /// What it found.
    samples: Option<Vec<StoreSample>>,
}

impl Drop for Lookup<'_> {
    fn drop(&mut self) {
        let rest = INTERVAL.max(self.took.saturating_mul(REST_FACTOR));
        let shared = self.app.samples();
        let mut next = shared.next();
        // Under the lock, so that whoever sees `is_running: false` also sees the new numbers.
        if let Some(samples) = self.samples.take() {
            shared.latest.send_replace(Arc::new(samples));
        }
        *next = Next { is_running: false, due: Some(Instant::now() + rest) };
    }
}

async fn take(app: &App) -> Vec<StoreSample> {
    let mut samples = Vec::new();
    for served in app.stores().iter() {
        let disk = async { served.store().disk_space().await.unwrap_or_default() };
        let queues = async {
            let jobs = served.jobs().ok()?.clone();
            queues(app, served.store(), jobs).await.ok()
        };
        samples.push(look(&served.name, disk, queues).await);
    }
    for (name, store) in app.own_stores() {
        // A store of the schema may have the same name, and comes first.
        if app.store(name).is_err() {
            let disk = async { store.disk_space().await.unwrap_or_default() };
            samples.push(look(name, disk, async { None }).await);
        }
    }
    samples
}

/// Looks at one store for as long as that may take.
async fn look(
    store: &str,
    disk: impl Future<Output = Option<DiskSpace>>,
    queues: impl Future<Output = Option<Counted>>,
) -> StoreSample {
    let (mut seen_disk, mut seen_queues) = (None, None);
    let looked = async {
        seen_disk = disk.await;
        seen_queues = queues.await;
    };
    if timeout(STORE_TIME_MAX, looked).await.is_err() {
        tracing::warn!(store, "metrics of the store are left out: it did not answer in time");
    }
    StoreSample { store: store.to_owned(), disk: seen_disk, queues: seen_queues }
}

/// Counts the messages of a store as an expensive read, so that nobody waits for it.
async fn queues(app: &App, store: &Store, jobs: Jobs) -> Result<Counted> {
    let counted = store.clone();
    let read = async move {
        let mut queues = Vec::new();
        let names = queue_names(&counted, QUEUES_COUNTED_MAX).await?;
        // As many as were asked for: there may be others.
        let mut is_truncated = names.len() >= QUEUES_COUNTED_MAX;
        for name in names.into_iter().take(QUEUES_COUNTED_MAX) {
            // What lies where queues are, and is none.
            let Ok(queue) = jobs.queue(&name) else { continue };
            let stats = queue.stats_up_to(MESSAGES_COUNTED_MAX).await?;
            let counts = [stats.ready, stats.delayed, stats.claimed, stats.dead];
            is_truncated |= counts.iter().any(|count| count.more);
            queues.push(QueueSample::new(name, &stats));
        }
        Ok(Counted { queues, is_truncated })
    };
    app.reads().run(&Identity::local(), store, read).await
}

impl QueueSample {
    fn new(queue: String, stats: &QueueStats) -> Self {
        let oldest = stats.oldest.map_or(0.0, |age| age.as_secs_f64().max(0.0));
        Self {
            queue,
            ready: stats.ready.count,
            delayed: stats.delayed.count,
            claimed: stats.claimed.count,
            dead: stats.dead.count,
            oldest_seconds: oldest,
        }
    }

    fn by_state(&self) -> [(&'static str, u64); 4] {
        let Self { ready, delayed, claimed, dead, .. } = *self;
        [("ready", ready), ("delayed", delayed), ("claimed", claimed), ("dead", dead)]
    }

    fn messages(&self) -> u64 {
        self.by_state().iter().map(|(_, count)| count).sum()
    }
}

type Seconds = Gauge<f64, std::sync::atomic::AtomicU64>;

/// The numbers of one scrape.
#[derive(Debug, Default)]
struct Families {
    size: Family<OfStore, Gauge>,
    free: Family<OfStore, Gauge>,
    disk: Family<OfStore, Gauge>,
    messages: Family<OfState, Gauge>,
    truncated: Family<OfStore, Gauge>,
    oldest: Family<OfStore, Seconds>,
    queue_messages: Family<OfQueueState, Gauge>,
    queue_oldest: Family<OfQueue, Seconds>,
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Families {
    fn add(&self, sample: &StoreSample) {
        let of = OfStore { store: sample.store.clone() };
        if let Some(DiskSpace { store_bytes, free_bytes, disk_bytes }) = sample.disk {
            self.size.get_or_create(&of).set(number(store_bytes));
            self.free.get_or_create(&of).set(number(free_bytes));
            self.disk.get_or_create(&of).set(number(disk_bytes));
        }
        let Some(Counted { queues, is_truncated }) = &sample.queues else { return };
        self.truncated.get_or_create(&of).set(i64::from(*is_truncated));
        for state in ["ready", "delayed", "claimed", "dead"] {
            self.messages.get_or_create(&OfState { store: sample.store.clone(), state }).set(0);
        }
        for (state, count) in queues.iter().flat_map(QueueSample::by_state) {
            let of = OfState { store: sample.store.clone(), state };
            self.messages.get_or_create(&of).inc_by(number(count));
        }
        let oldest = queues.iter().map(|queue| queue.oldest_seconds).fold(0.0, f64::max);
        self.oldest.get_or_create(&of).set(oldest);
    }

    /// By queue, for those with the most messages.
    fn add_queues(&self, sample: &StoreSample) {
        let mut queues: Vec<&QueueSample> =
            sample.queues.iter().flat_map(|counted| &counted.queues).collect();
        queues.sort_by_key(|queue| std::cmp::Reverse(queue.messages()));
        for one in queues.into_iter().take(QUEUES_NAMED_MAX) {
            let (store, queue) = (&sample.store, &one.queue);
            for (state, count) in one.by_state() {
                let of = OfQueueState { store: store.clone(), queue: queue.clone(), state };
                self.queue_messages.get_or_create(&of).set(number(count));
            }
            let of = OfQueue { store: store.clone(), queue: queue.clone() };
            self.queue_oldest.get_or_create(&of).set(one.oldest_seconds);
        }
    }

    fn register(self, registry: &mut Registry) {
        for (name, about, family) in [
            ("store_size_bytes", "Bytes that a store occupies on its disk", self.size),
            ("store_free_disk_bytes", "Bytes that are free on the disk of a store", self.free),
            ("store_disk_bytes", "Bytes of the disk of a store", self.disk),
        ] {
            registry.register(name, about, family);
        }
        registry.register("messages", "Messages of all queues of a store, by state", self.messages);
        registry.register(
            "messages_truncated",
            "1 if a store has more messages or queues than are counted, else 0",
            self.truncated,
        );
        registry.register(
            "messages_oldest_seconds",
            "How long the first message in line has waited, of all queues of a store",
            self.oldest,
        );
        registry.register("queue_messages", "Messages of a queue, by state", self.queue_messages);
        registry.register(
            "queue_oldest_seconds",
            "How long the first message in line of a queue has waited",
            self.queue_oldest,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_is_left_out_after_a_while() {
        let disk = DiskSpace { store_bytes: 1, free_bytes: 2, disk_bytes: 3 };
        let sample = look("main", async { Some(disk) }, pending()).await;
        assert!(sample.disk.is_some() && sample.queues.is_none());
        let sample = look("main", pending(), async { None }).await;
        assert!(sample.disk.is_none());
    }
}
