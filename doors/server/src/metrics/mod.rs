//! What is counted about requests.

mod process;
mod samples;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use axum::extract::{MatchedPath, Request};
use keyward::agents::Gathered;
use keyward_operations::metrics::ServiceMetrics;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use process::Process;
pub(crate) use samples::Samples;

use crate::app::App;
use crate::auth::Identity;

/// The route of a request, as it was declared: never what a client wrote, which has no bound and may
/// be private. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum RouteName {
    /// What the router found.
    Matched(MatchedPath),
    /// What has a name of its own.
    Fixed(&'static str),
}

impl RouteName {
    pub fn of(request: &Request) -> Self {
        let matched = request.extensions().get().cloned();
        matched.map_or(Self::Fixed("none"), Self::Matched)
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Matched(path) => path.as_str(),
            Self::Fixed(name) => name,
        }
    }
}

impl PartialEq for RouteName {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RouteName {}

impl Hash for RouteName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl EncodeLabelValue for RouteName {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.as_str(), encoder)
    }
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Route {
    pub method: &'static str,
    pub route: RouteName,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Ended {
    pub method: &'static str,
    pub route: RouteName,
    pub status: u16,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Refused {
    pub code: &'static str,
}

/// Why a credential was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Untaken {
    pub reason: &'static str,
}

/// What is counted about requests.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Counters of services that have names of their own.
    shared: Registry,
    pub services: ServiceMetrics,
    pub requests: Family<Ended, Counter>,
    pub seconds: Family<Route, Histogram, fn() -> Histogram>,
    pub refused: Family<Refused, Counter>,
    pub credentials_refused: Family<Untaken, Counter>,
    pub under_way: Gauge,
    pub connections: Gauge,
    pub connections_total: Counter<u64, AtomicU64>,
    pub connections_refused: Counter<u64, AtomicU64>,
    pub watches: Gauge,
    pub watches_unread: Counter<u64, AtomicU64>,
    pub claims_waiting: Gauge,
    pub audit_refused: Counter,
    pub audit_write_failures: Counter,
    agents: AgentMetrics,
    process: Process,
    /// When the TLS certificate expires, as Unix time; 0 without one.
    certificate_not_after: AtomicI64,
}

/// What is counted about agents' entries.
#[derive(Debug, Default)]
struct AgentMetrics {
    entries: Gauge,
    accesses: Gauge,
    lines: Gauge,
    accesses_lost: Counter<u64, AtomicU64>,
    lines_lost: Counter<u64, AtomicU64>,
}

impl AgentMetrics {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "entries_held",
            "Entries with accesses that are not written yet",
            self.entries.clone(),
        );
        registry.register(
            "accesses_held",
            "Accesses that are counted and not written yet",
            self.accesses.clone(),
        );
        registry.register(
            "log_lines_held",
            "Lines of operations logs that are not written yet",
            self.lines.clone(),
        );
        registry.register(
            "accesses_lost",
            "Accesses that were not counted, because there was no room for them",
            self.accesses_lost.clone(),
        );
        registry.register(
            "log_lines_lost",
            "Lines that were not logged, because there was no room for them",
            self.lines_lost.clone(),
        );
    }
}

impl Metrics {
    pub fn new() -> Self {
        let histogram: fn() -> Histogram = || {
            Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0])
        };
        let mut metrics = Self {
            registry: Registry::with_prefix("keyward"),
            shared: Registry::default(),
            services: ServiceMetrics::default(),
            requests: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            refused: Family::default(),
            credentials_refused: Family::default(),
            under_way: Gauge::default(),
            connections: Gauge::default(),
            connections_total: Counter::default(),
            connections_refused: Counter::default(),
            watches: Gauge::default(),
            watches_unread: Counter::default(),
            claims_waiting: Gauge::default(),
            audit_refused: Counter::default(),
            audit_write_failures: Counter::default(),
            agents: AgentMetrics::default(),
            process: Process::default(),
            certificate_not_after: AtomicI64::new(0),
        };
        let registry = &mut metrics.registry;
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program that serves", build);
        registry.register("http_requests", "Requests that were answered", metrics.requests.clone());
        registry.register(
            "http_request_seconds",
            "How long answers took to be made",
            metrics.seconds.clone(),
        );
        registry.register("http_problems", "Error responses, by code", metrics.refused.clone());
        registry.register(
            "credentials_refused",
            "Requests without a valid credential, by what was wrong with it",
            metrics.credentials_refused.clone(),
        );
        registry.register(
            "http_requests_under_way",
            "Requests in flight",
            metrics.under_way.clone(),
        );
        registry.register("http_connections", "Open connections", metrics.connections.clone());
        registry.register(
            "http_connections_accepted",
            "Connections that were accepted",
            metrics.connections_total.clone(),
        );
        registry.register(
            "http_connections_refused",
            "Connections that were closed at once because their address had too many",
            metrics.connections_refused.clone(),
        );
        registry.register("watches", "Open watches", metrics.watches.clone());
        registry.register(
            "watches_unread",
            "Watches that were closed because their clients did not read",
            metrics.watches_unread.clone(),
        );
        metrics.services.register_shared(&mut metrics.shared);
        registry.register(
            "claims_waiting",
            "Claims that wait for messages",
            metrics.claims_waiting.clone(),
        );
        registry.register(
            "audit_refused",
            "Requests refused because the audit log could not be written fast enough",
            metrics.audit_refused.clone(),
        );
        registry.register(
            "audit_write_failures",
            "Writes of the audit log that failed, and are tried again",
            metrics.audit_write_failures.clone(),
        );
        metrics.agents.register(registry.sub_registry_with_prefix("agents"));
        metrics.services.register(registry);
        metrics
    }

    /// Takes over what is gathered about agents' entries.
    pub fn gathered(&self, gathered: &Gathered) {
        let held = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let AgentMetrics { entries, accesses, lines, accesses_lost, lines_lost } = &self.agents;
        entries.set(held(gathered.entries));
        accesses.set(i64::try_from(gathered.accesses).unwrap_or(i64::MAX));
        lines.set(held(gathered.lines));
        accesses_lost.inner().store(gathered.accesses_lost, Ordering::Relaxed);
        lines_lost.inner().store(gathered.lines_lost, Ordering::Relaxed);
    }

    /// Takes over when the TLS certificate expires, as Unix time.
    pub fn certificate_expires(&self, not_after: i64) {
        self.certificate_not_after.store(not_after, Ordering::Relaxed);
    }

    /// Everything that a caller may see, as Prometheus reads it.
    pub async fn text(
        &self,
        app: &App,
        who: Option<&Identity>,
        is_ready: bool,
    ) -> Result<String, fmt::Error> {
        let mut sampled = Registry::with_prefix("keyward");
        let about = "Whether requests can be served, as /readyz says: 1 or 0";
        sampled.register("ready", about, ConstGauge::new(i64::from(is_ready)));
        app.samples().register(app, who, &mut sampled).await;
        let not_after = self.certificate_not_after.load(Ordering::Relaxed);
        if not_after != 0 {
            sampled.register(
                "tls_certificate_not_after_seconds",
                "When the TLS certificate expires, Unix time",
                ConstGauge::new(not_after),
            );
        }
        let mut process = Registry::default();
        self.process.register(&mut process);
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &self.shared)?;
        encode_registry(&mut text, &sampled)?;
        encode_registry(&mut text, &process)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// Counts something for as long as it is there, also if its future is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Counted {
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
