//! Configuration of the services that operations use.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keyward::models::Models;
use keyward::registry::Settings;
use keyward::{Clock, SystemClock, agents, agreements, queue};

/// Settings of what operations work on, whatever door they come through.
#[derive(Debug, Clone)]
pub struct ServicesConfig {
    /// The bounds of what one request may cost.
    pub limits: OperationLimits,
    /// How queues work: leases, retries, how long completed messages are remembered. Servers and
    /// workers of one queue should agree on it.
    pub queues: queue::Options,
    /// How large agents' entries may be, and how often gathered accesses are written.
    pub agents: agents::Options,
    /// Registries of documents that are kept in git.
    pub registries: Vec<RegistryConfig>,
    /// Workspaces of agreements.
    pub agreements: Vec<WorkspaceConfig>,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
}

impl Default for ServicesConfig {
    fn default() -> Self {
        Self {
            limits: OperationLimits::default(),
            queues: queue::Options::default(),
            agents: agents::Options::default(),
            registries: Vec::new(),
            agreements: Vec::new(),
            clock: Arc::new(SystemClock),
        }
    }
}

/// The bounds of what one request may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationLimits {
    /// How long an operation may take. Waiting for locks and watches is not counted.
    pub answer_time_max: Duration,
    /// How many requests are worked on at a time; half of them may wait for something.
    pub requests_max: usize,
    /// How many entries one page of a query, a search or a listing may read.
    pub query_reads_max: usize,
    /// How many expensive reads (queries, listings, scans, counts, exports) run at a time; one tenant
    /// runs at most a quarter of them.
    pub reads_max: usize,
    /// How long an expensive read waits for its turn before it is refused.
    pub read_wait_max: Duration,
}

impl Default for OperationLimits {
    fn default() -> Self {
        Self {
            answer_time_max: Duration::from_secs(30),
            requests_max: 1_024,
            query_reads_max: 20_000,
            reads_max: 32,
            read_wait_max: Duration::from_secs(2),
        }
    }
}

/// A registry of documents that are kept in git.
#[derive(Debug, Clone)]
pub struct RegistryConfig {
    /// The registry's name.
    pub name: String,
    /// Its settings. The store that they name is one of the schema; a schema with one store needs no
    /// name.
    pub settings: Settings,
    /// The directory for fetched repositories; each registry has one of its own in it.
    pub cache: PathBuf,
}

/// A workspace of agreements.
#[derive(Debug, Clone)]
pub struct WorkspaceConfig {
    /// The workspace's name.
    pub name: String,
    /// Its settings. The store that they name is one of the schema; a schema with one store needs no
    /// name.
    pub settings: agreements::Settings,
    /// Models to use instead of those that the settings name.
    pub models: Option<Arc<Models>>,
    /// The program, with its arguments, that extracts files in a process of its own; without one they
    /// are extracted in this process.
    pub sandbox: Option<(PathBuf, Vec<String>)>,
}
