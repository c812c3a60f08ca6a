use std::time::Duration;

use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, Error, ErrorKind, ExpirySupport, Limits,
    Result, ScanOrder, Sharing, StoreUrl, Tier, WatchSupport,
};

/// How a memory engine behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Which promises it keeps.
    pub tier: Tier,
    /// How many commits a watcher may be behind.
    pub history: usize,
}

/// How late reads are on the advisory tier.
const LAG: Duration = Duration::from_secs(1);

impl Default for Options {
    fn default() -> Self {
        Self { tier: Tier::Atomic, history: 10_000 }
    }
}

impl Options {
    /// The default options on another tier.
    pub fn tier(tier: Tier) -> Self {
        Self { tier, ..Self::default() }
    }

    /// Reads the options of a `memory:` URL.
    pub fn from_url(mut url: StoreUrl) -> Result<Self> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
        let mut options = Self::default();
        if !url.place().is_empty() {
            return invalid(format!(
                "a memory store has no place, but {:?} was given",
                url.place()
            ));
        }
        if let Some(tier) = url.take("tier") {
            options.tier = match tier.as_str() {
                "atomic" => Tier::Atomic,
                "recoverable" => Tier::Recoverable,
                "advisory" => Tier::Advisory,
                other => {
                    return invalid(format!(
                        "the tier is atomic, recoverable or advisory, not {other:?}"
                    ));
                }
            };
        }
        if let Some(history) = url.take("history") {
            options.history = match history.parse() {
                Ok(history) if history > 0 => history,
                _ => {
                    return invalid(format!("the history is a number above zero, not {history:?}"));
                }
            };
        }
        url.finish(&["tier", "history"])?;
        Ok(options)
    }

    pub(crate) fn lag(self) -> Duration {
        if self.tier == Tier::Advisory { LAG } else { Duration::ZERO }
    }

    /// What such a store can do. Nothing is opened to tell it.
    pub fn capabilities(self) -> Capabilities {
        let atomic = self.tier == Tier::Atomic;
        Capabilities {
            engine: "memory",
            scan_order: ScanOrder::Ordered,
            consistency: match self.tier {
                Tier::Advisory => Consistency::Eventual { lag: LAG },
                Tier::Atomic | Tier::Recoverable => Consistency::Strong,
            },
            compare: self.tier != Tier::Advisory,
            add: atomic,
            watch: if atomic { WatchSupport::Resumable } else { WatchSupport::Unsupported },
            expiry: ExpirySupport::Supported {
                granularity: Duration::from_millis(1),
                ttl_min: Duration::from_millis(1),
            },
            clock: ClockSource::Process,
            durability: Durability::Volatile,
            sharing: Sharing::Process,
            limits: Limits {
                key_bytes_max: 4_096,
                value_bytes_max: 16 << 20,
                metadata_bytes_max: 64 << 10,
                commit_keys_max: if atomic { 10_000 } else { 1 },
                commit_bytes_max: 64 << 20,
                get_keys_max: 1_000,
                scan_rows_max: 10_000,
            },
        }
    }
}
