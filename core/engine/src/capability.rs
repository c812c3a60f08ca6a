use std::fmt;
use std::time::Duration;

/// What an engine can do, honestly. [`Store`](crate::Store) refuses the rest with a clear error;
/// nothing is emulated in secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The engine's name, as in its URLs.
    pub engine: &'static str,
    /// Whether scans come in key order.
    pub scan_order: ScanOrder,
    /// Whether a read sees every write acknowledged before it.
    pub consistency: Consistency,
    /// Whether commits may carry checks.
    pub compare: bool,
    /// Whether commits may add to numbers.
    pub add: bool,
    /// Whether changes can be watched.
    pub watch: WatchSupport,
    /// How finely entries expire.
    pub expiry: ExpirySupport,
    /// Whose clock decides about expiry.
    pub clock: ClockSource,
    /// What an acknowledged commit survives.
    pub durability: Durability,
    /// Who may open the same store at the same time.
    pub sharing: Sharing,
    /// How large things may be.
    pub limits: Limits,
}

impl Capabilities {
    /// How strong the promises above the engine can be. An engine whose reads of keys are late is advisory even if it
    /// compares: who finds a key absent, or free, may be reading the past.
    pub fn tier(&self) -> Tier {
        let compares_current = self.compare && self.consistency.get_lag().is_zero();
        match (compares_current, self.limits.commit_keys_max) {
            (true, 2..) => Tier::Atomic,
            (true, _) => Tier::Recoverable,
            (false, _) => Tier::Advisory,
        }
    }
}

/// How strong the promises above an engine can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Commits of several keys: records and their indexes change together.
    Atomic,
    /// Compare-and-swap of one key, and current reads of keys: indexes follow by a protocol that recovers from crashes.
    Recoverable,
    /// Neither: the last writer wins, indexes are best effort.
    Advisory,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Atomic => "atomic",
            Self::Recoverable => "recoverable",
            Self::Advisory => "advisory",
        })
    }
}

/// Whether scans come in key order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScanOrder {
    /// In the order of the keys' segments, in both directions.
    Ordered,
    /// In any order, ascending only, with cursors of the engine's own.
    Unordered,
}

/// Whether a read sees every write acknowledged before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Always.
    Strong,
    /// Reads of keys always. Scans may leave out keys that were added lately, and show entries as they were.
    LateScans {
        /// The lag of scans to expect.
        lag: Duration,
    },
    /// After a while: at most about this long.
    Eventual {
        /// The lag of all reads to expect.
        lag: Duration,
    },
}

impl Consistency {
    /// How late any read may be, scans included.
    pub fn lag(self) -> Duration {
        match self {
            Self::Strong => Duration::ZERO,
            Self::LateScans { lag } | Self::Eventual { lag } => lag,
        }
    }

    /// How late reads of keys may be.
    pub fn get_lag(self) -> Duration {
        match self {
            Self::Strong | Self::LateScans { .. } => Duration::ZERO,
            Self::Eventual { lag } => lag,
        }
    }
}

/// Whether changes can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchSupport {
    /// Yes, and a watch can resume from an earlier revision while its history is kept.
    Resumable,
    /// Yes, and a watch can resume from an earlier revision that this process was told, while it has the store open. To
    /// other processes it is too old. Commits have no revisions, and several changes of a key may be told as one.
    Live,
    /// No.
    Unsupported,
}

impl WatchSupport {
    /// Whether a watch tells what changes from now on.
    pub fn is_supported(self) -> bool {
        self != Self::Unsupported
    }
}

/// How finely entries expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpirySupport {
    /// Entries can expire.
    Supported {
        /// Ends are rounded up to a multiple of this.
        granularity: Duration,
        /// The shortest time to live.
        ttl_min: Duration,
    },
    /// Entries cannot expire.
    Unsupported,
}

/// Whose clock decides about expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockSource {
    /// The database server's own.
    Server,
    /// The machine's, shared by every process that can open the store. If it is set back, entries
    /// that had expired and were not yet reclaimed are there again until their time comes again.
    Machine,
    /// Each process's own.
    Process,
}

/// What an acknowledged commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Kill and power loss.
    Synced,
    /// Kill; a power loss may undo the last commits, but never tears one.
    Relaxed,
    /// Nothing: the data lives as long as the process.
    Volatile,
}

/// Who may open the same store at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// One process.
    Process,
    /// Processes of one machine.
    Machine,
    /// Processes of any machine that reaches the server.
    Network,
}

/// How large things may be. All sizes are of the bytes that the engine stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The tuple encoding of a key.
    pub key_bytes_max: usize,
    /// A value.
    pub value_bytes_max: usize,
    /// An entry's metadata.
    pub metadata_bytes_max: usize,
    /// Distinct keys in one commit, checked or written.
    pub commit_keys_max: usize,
    /// Keys, values and metadata of one commit together.
    pub commit_bytes_max: usize,
    /// Keys in one read.
    pub get_keys_max: usize,
    /// Rows in one page of a scan.
    pub scan_rows_max: usize,
}

impl Limits {
    /// The smaller of each pair; reads always get at least one key or row.
    #[must_use]
    pub fn tightened(self, other: Self) -> Self {
        Self {
            key_bytes_max: self.key_bytes_max.min(other.key_bytes_max),
            value_bytes_max: self.value_bytes_max.min(other.value_bytes_max),
            metadata_bytes_max: self.metadata_bytes_max.min(other.metadata_bytes_max),
            commit_keys_max: self.commit_keys_max.min(other.commit_keys_max),
            commit_bytes_max: self.commit_bytes_max.min(other.commit_bytes_max),
            get_keys_max: self.get_keys_max.min(other.get_keys_max).max(1),
            scan_rows_max: self.scan_rows_max.min(other.scan_rows_max).max(1),
        }
    }
}
