//! What every request is answered from.

use std::ops::Deref;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use keyward::{Code, Data, Store};
use keyward_operations::services::Services;

use crate::audit::{self, Audit, AuditLog, Keeping, Scribe};
use crate::auth::{Auth, Keys, StartToken, Tokens};
use crate::config::{Config, Limits};
use crate::http::cors::Cors;
use crate::http::origin::Origin;
use crate::lifecycle::Lifecycle;
use crate::limits::{Throttle, Usage};
use crate::log_summary::LogSummary;
use crate::metrics::{Metrics, Samples};
use crate::problem::{Problem, Result};
use crate::shares::Shares;
use crate::stores::{CONTROL_DEFAULT, Stores, control_default};

/// Of so many request slots, one more request may be worked on while its body arrives.
const STREAMS_PART: usize = 8;

/// What every request is answered from. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    services: Services,
    auth: Auth,
    audit: Audit,
    audit_log: AuditLog,
    /// The stores that only the server itself uses, by what for.
    own_stores: Vec<(&'static str, Store)>,
    cors: Cors,
    throttle: Throttle,
    usage: Option<Usage>,
    limits: Limits,
    metrics: Metrics,
    samples: Samples,
    requests: Shares,
    streams: Shares,
    bodies: Shares,
    responses: Shares,
    refusals: LogSummary,
    watches: Shares,
    watch_bytes: Shares,
    run: String,
}

impl App {
    pub async fn open(
        config: &Config,
        data: &Data,
        tokens: Option<Tokens>,
        lifecycle: Lifecycle,
    ) -> Result<(Self, Scribe)> {
        let metrics = Metrics::new();
        let settings = config.services();
        let stores = Stores::open(data, &settings, &metrics.services).await?;
        let control_url = match &config.control {
            Some(url) => Some(url.clone()),
            None => control_beside(data),
        };
        let control = control_store(control_url.as_deref(), data, &stores).await?;
        let (clock, run) = (config.clock.clone(), new_run()?);
        let keys = Keys::new(control.clone(), clock.clone());
        let local = config.listen.ip().is_loopback() && tokens.is_none() && !keys.any().await?;
        let start_token = match local {
            true => Some(StartToken::generate(config.start_token)?),
            false => None,
        };
        let audit_store = match &config.audit {
            Some(url) => keyward::open(url).await?,
            None => control.clone(),
        };
        let keeping = Keeping { time: config.audit_kept, bytes_max: config.audit_bytes_max };
        let (audit, scribe) = audit::open(audit_store.clone(), clock.clone(), keeping, run.clone());
        let audit = audit.counting(metrics.audit_refused.clone());
        let scribe = scribe.counting(metrics.audit_write_failures.clone());
        let own = [
            control_url.is_some().then(|| ("control", control.clone())),
            config.audit.is_some().then(|| ("audit", audit_store.clone())),
        ];
        let services =
            Services::new(&settings, data, stores, keys.clone(), &metrics.services, lifecycle)?;
        let app = Self(Arc::new(Inner {
            own_stores: own.into_iter().flatten().collect(),
            services,
            auth: Auth::new(keys, tokens, start_token),
            audit,
            usage: usage(config, &control),
            audit_log: AuditLog::new(audit_store),
            cors: Cors::new(config),
            throttle: Throttle::new(&config.rates),
            limits: config.limits,
            metrics,
            samples: Samples::default(),
            requests: Shares::halved(config.limits.requests_max),
            streams: Shares::new((config.limits.requests_max / STREAMS_PART).max(1)),
            bodies: Shares::halved(config.limits.bodies_bytes_max),
            responses: Shares::halved(config.limits.responses_bytes_max),
            refusals: LogSummary::default(),
            run,
            watches: Shares::new(config.limits.watches_max),
            watch_bytes: Shares::new(config.limits.watch_bytes_max),
        }));
        Ok((app, scribe))
    }

    /// What operations work on.
    pub fn services(&self) -> &Services {
        &self.0.services
    }

    /// Ends what goes on beside requests, and waits for what is under way.
    pub async fn close_background(&self) {
        let time_max = self.limits().drain_time_max;
        tokio::join!(self.registries().close(time_max), self.agreements().close(time_max));
    }

    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// Where acts are told.
    pub fn audit(&self) -> &Audit {
        &self.0.audit
    }

    /// Where acts are read.
    pub fn audit_log(&self) -> &AuditLog {
        &self.0.audit_log
    }

    /// The stores that only the server itself uses, by what for.
    pub fn own_stores(&self) -> impl Iterator<Item = (&str, &Store)> {
        self.0.own_stores.iter().map(|(name, store)| (*name, store))
    }

    /// Which pages may call the server from a browser.
    pub fn cors(&self) -> &Cors {
        &self.0.cors
    }

    /// Warns of allowed origins that can do nothing yet: without keys, pages of other sites would act as
    /// the local user, who may do everything.
    pub fn warn_of_idle_origins(&self) {
        let idle = |origin: &&Origin| !origin.is_this_machine();
        if self.auth().is_local() && self.cors().origins().iter().any(|one| idle(&one)) {
            tracing::warn!(
                "pages of other sites are refused until there is an API key, although their origins \
                 are allowed (cors_origins)"
            );
        }
    }

    pub fn throttle(&self) -> &Throttle {
        &self.0.throttle
    }

    /// What tenants have written, if there is a quota.
    pub fn usage(&self) -> Option<&Usage> {
        self.0.usage.as_ref()
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The last look at sizes and messages, for metrics.
    pub fn samples(&self) -> &Samples {
        &self.0.samples
    }

    /// One slot for each request that may be worked on.
    pub fn requests(&self) -> &Shares {
        &self.0.requests
    }

    /// One place for each request that is worked on while its body arrives.
    pub fn streams(&self) -> &Shares {
        &self.0.streams
    }

    /// One unit for each byte of request bodies that may be in memory.
    pub fn bodies(&self) -> &Shares {
        &self.0.bodies
    }

    /// The bytes of responses that wait for their clients.
    pub fn responses(&self) -> &Shares {
        &self.0.responses
    }

    /// What is refused too often to be logged one by one.
    pub fn refusals(&self) -> &LogSummary {
        &self.0.refusals
    }

    /// What tells this run of a server from others, in the ids of requests.
    pub fn run(&self) -> &str {
        &self.0.run
    }

    /// One place for each watch that may be open.
    pub fn watches(&self) -> &Shares {
        &self.0.watches
    }

    /// The bytes that wait for clients of watches that do not read.
    pub fn watch_bytes(&self) -> &Shares {
        &self.0.watch_bytes
    }
}

/// Operations work on the services alone; what only a server has is beside them.
impl Deref for App {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.0.services
    }
}

/// A control store of its own, if none of the stores can be one.
fn control_beside(data: &Data) -> Option<String> {
    if data.schema().stores.is_empty() || control_default(data).is_some() {
        return None;
    }
    tracing::info!(
        store = CONTROL_DEFAULT,
        "stores with layout=document keep agent entries only: API keys and the audit log are in a store beside them"
    );
    Some(CONTROL_DEFAULT.to_owned())
}

/// Where the server keeps what it knows for itself.
async fn control_store(url: Option<&str>, data: &Data, stores: &Stores) -> Result<Store> {
    if let Some(url) = url {
        return Ok(keyward::open(url).await?);
    }
    match control_default(data) {
        Some(store) => Ok(stores.get(store)?.store().clone()),
        None => {
            Err(Problem::invalid("the schema declares no store, and none is configured as control"))
        }
    }
}

fn usage(config: &Config, control: &Store) -> Option<Usage> {
    let quota = config.quota?;
    Some(Usage::new(quota, control.clone(), config.clock.clone()))
}

fn new_run() -> Result<String> {
    let mut bytes = [0; 5];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(Code::Internal, format!("there is no randomness: {error}"))
    })?;
    Ok(HEXLOWER.encode(&bytes))
}
