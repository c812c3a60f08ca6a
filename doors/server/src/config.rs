//! What a server is told when it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use keyward::{Clock, SystemClock, agents, queue};
use keyward_operations::config::{
    OperationLimits, RegistryConfig, ServicesConfig, WorkspaceConfig,
};

use crate::audit;
use crate::auth::{Issuer, Secret};
use crate::http::cors::check_origin;
use crate::limits::{Quota, Rates};
use crate::mcp::McpOptions;
use crate::server::StartError;
use crate::tls::{RELOAD_INTERVAL_DEFAULT, Tls};

/// Where a server listens when nobody says.
pub const LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7480);

/// Where the data of a server without a schema lies when nobody says.
pub const STORE_DEFAULT: &str = "embedded:./keyward-data";

/// What a server is told when it starts: sensible as it stands.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// How much a client may ask for.
    pub limits: Limits,
    /// The URL of the control store, where API keys are kept; the first store that is served, if it is
    /// left out.
    pub control: Option<String>,
    /// The URL of the store of the audit log; the control store, if it is left out.
    pub audit: Option<String>,
    /// Whose tokens are taken besides API keys.
    pub issuer: Option<Issuer>,
    /// An API key to take as the first one, an operator's with `admin:*`, if there is none yet.
    pub first_key: Option<Secret>,
    /// That every request needs the [start token](crate::Server::start_token) until there is an API
    /// key.
    pub start_token: bool,
    /// How the server proves that it is the one, on connections that nobody reads along.
    pub tls: Option<Tls>,
    /// How often the files of the certificate are looked at.
    pub tls_reload_interval: Duration,
    /// That connections may be read along, although others can reach the address: behind a proxy
    /// that terminates TLS.
    pub plaintext: bool,
    /// How often callers may ask.
    pub rates: Rates,
    /// How much each tenant may write in a day; without a bound, if it is left out. A server without
    /// credentials has none.
    pub quota: Option<Quota>,
    /// How long the audit log is kept.
    pub audit_kept: Duration,
    /// How many bytes the audit log may take, at least 1 MiB; the oldest lines go first.
    pub audit_bytes_max: u64,
    /// How queues are worked on: leases, retries, how long what is done is remembered. Servers and
    /// workers on one queue should agree on it.
    pub queues: queue::Options,
    /// How much agents may keep in an entry, and how often what is gathered about accesses is written.
    pub agents: agents::Options,
    /// Documents that are kept in git, and are brought into a store.
    pub registries: Vec<RegistryConfig>,
    /// Workspaces of agreements.
    pub agreements: Vec<WorkspaceConfig>,
    /// The origins of pages that may call the server from a browser (CORS), as in
    /// `https://app.example`; none by default.
    pub cors_origins: Vec<String>,
    /// How agents reach it (MCP).
    pub mcp: McpOptions,
    /// Where the time comes from, for the ends of keys, for rates, for the delays of messages, and for
    /// agents' entries.
    pub clock: Arc<dyn Clock>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: LISTEN_DEFAULT,
            limits: Limits::default(),
            control: None,
            audit: None,
            issuer: None,
            first_key: None,
            start_token: false,
            tls: None,
            tls_reload_interval: RELOAD_INTERVAL_DEFAULT,
            plaintext: false,
            rates: Rates::default(),
            quota: None,
            audit_kept: audit::KEPT_DEFAULT,
            audit_bytes_max: audit::BYTES_MAX_DEFAULT,
            queues: queue::Options::default(),
            agents: agents::Options::default(),
            registries: Vec::new(),
            agreements: Vec::new(),
            cors_origins: Vec::new(),
            mcp: McpOptions::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl Config {
    /// Looks whether a server could start with this, as far as that can be told without opening
    /// stores and without asking other machines: the files it names are read.
    pub fn check(&self) -> Result<(), StartError> {
        self.refuse_eavesdroppers()?;
        self.refuse_bad_origins()?;
        self.tls.as_ref().map(Tls::check).transpose()?;
        if let Some(issuer) = &self.issuer {
            let keys = issuer.keys.to_string();
            issuer.check().map_err(|reason| StartError::IssuerKeys { keys, reason })?;
        }
        self.registries.iter().try_for_each(check_registry)?;
        self.agreements.iter().try_for_each(check_workspace)
    }

    /// The settings of what operations work on.
    pub(crate) fn services(&self) -> ServicesConfig {
        let Limits {
            answer_time_max, requests_max, query_reads_max, reads_max, read_wait_max, ..
        } = self.limits;
        ServicesConfig {
            limits: OperationLimits {
                answer_time_max,
                requests_max,
                query_reads_max,
                reads_max,
                read_wait_max,
            },
            queues: self.queues.clone(),
            agents: self.agents.clone(),
            registries: self.registries.clone(),
            agreements: self.agreements.clone(),
            clock: self.clock.clone(),
        }
    }

    /// Refuses CORS origins that no page can have.
    pub(crate) fn refuse_bad_origins(&self) -> Result<(), StartError> {
        self.cors_origins.iter().try_for_each(|origin| {
            check_origin(origin)
                .map_err(|reason| StartError::Origin { origin: origin.clone(), reason })
        })
    }

    /// Refuses connections in plain text that other machines reach, unless they are allowed.
    pub(crate) fn refuse_eavesdroppers(&self) -> Result<(), StartError> {
        match self.listen.ip().is_loopback() || self.tls.is_some() || self.plaintext {
            true => Ok(()),
            false => Err(StartError::ReadAlong(self.listen)),
        }
    }
}

/// Checks the settings of a registry, as far as that is possible without opening anything.
fn check_registry(one: &RegistryConfig) -> Result<(), StartError> {
    one.settings.check().map_err(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        StartError::Registry { registry: one.name.clone(), reason: told.join("; ") }
    })
}

/// Checks the settings of a workspace, as far as that is possible without opening anything.
fn check_workspace(one: &WorkspaceConfig) -> Result<(), StartError> {
    one.settings.check().map_err(|error| StartError::Agreements {
        workspace: one.name.clone(),
        reason: error.to_string(),
    })
}

/// How much, and how slowly, a client may ask.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest body of a request.
    pub body_bytes_max: usize,
    /// How long the headers of a request may take to arrive, and an idle connection may stay.
    pub header_time_max: Duration,
    /// How long the body of a request may take to arrive.
    pub body_time_max: Duration,
    /// How long an answer may take to be made once the body has arrived. What only waits (locks, watches)
    /// is not bound by it.
    pub answer_time_max: Duration,
    /// How long a write to a connection may make no progress, because the client does not read, before
    /// the connection is closed.
    pub write_time_max: Duration,
    /// How many connections are held at a time; more wait to be accepted.
    pub connections_max: usize,
    /// How many of them one address (of IPv6, one /64 network) may have; more are closed at once. Half of
    /// them, if it is left out.
    pub connections_per_address_max: Option<usize>,
    /// How many requests are worked on at a time, half of them for one credential; more are told that the
    /// server is overloaded. A request counts from the moment its body has arrived.
    pub requests_max: usize,
    /// How many bytes of request bodies are held at a time, half of them for one credential; more are told
    /// that the server is overloaded.
    pub bodies_bytes_max: usize,
    /// How many bytes of responses larger than 16 KiB may wait for their clients to read them, half of them
    /// for one address; beyond that, requests of the address are told that the server is overloaded.
    pub responses_bytes_max: usize,
    /// How many watches are held open at a time.
    pub watches_max: usize,
    /// How many entries one page of a query, a search or a listing may read. One that needs more ends
    /// early and goes on from its cursor; a search for the nearest places is refused.
    pub query_reads_max: usize,
    /// How many expensive reads (queries, listings, scans, counts, exports) run at a time; one tenant
    /// runs at most a quarter of them.
    pub reads_max: usize,
    /// How long an expensive read waits for its turn before it is refused.
    pub read_wait_max: Duration,
    /// How many bytes of events wait for clients that do not read, in all; a quarter of them for one
    /// credential. The first 16 KiB of each watch are not counted.
    pub watch_bytes_max: usize,
    /// How long a watch whose client takes nothing stays open.
    pub watch_stall_time_max: Duration,
    /// How often it is looked whether the credential of an open watch is still valid.
    pub recheck_interval: Duration,
    /// How long a stop takes at most. The last quarter, at most 5 seconds, is kept for writing what
    /// is held in memory.
    pub drain_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 1024 * 1024,
            header_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(30),
            answer_time_max: Duration::from_secs(30),
            write_time_max: Duration::from_secs(20),
            connections_max: 10_000,
            connections_per_address_max: None,
            requests_max: 1_024,
            bodies_bytes_max: 256 * 1024 * 1024,
            responses_bytes_max: 256 * 1024 * 1024,
            watches_max: 8_192,
            query_reads_max: 20_000,
            reads_max: 32,
            read_wait_max: Duration::from_secs(2),
            watch_bytes_max: 64 * 1024 * 1024,
            watch_stall_time_max: Duration::from_secs(20),
            recheck_interval: Duration::from_secs(5),
            drain_time_max: Duration::from_secs(20),
        }
    }
}

impl Limits {
    /// How many connections one address may have: half of all, if nothing is said.
    pub fn connections_of_one_address(&self) -> usize {
        let half = (self.connections_max / 2).max(1);
        self.connections_per_address_max.unwrap_or(half).min(self.connections_max)
    }
}
