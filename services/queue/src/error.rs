use keyward_engine::{Code, Coded, Error as StoreError, ErrorKind, Tier};

/// The result of an operation on a queue or job.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed. Unless it is the store's own error, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store below refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine cannot change a row and its index entry together.
    #[error(
        "queues need commits of several keys, and the {engine} engine has the {tier} tier: \
         a message could be lost between its row and its place in the queue"
    )]
    NeedsAtomic {
        /// The engine.
        engine: &'static str,
        /// Its tier.
        tier: Tier,
    },
    /// The engine keeps no order of keys.
    #[error("queues need scans in the order of keys, which the {engine} engine does not keep")]
    NeedsOrder {
        /// The engine.
        engine: &'static str,
    },
    /// The engine cannot keep a lease as asked for.
    #[error("leases of {lease_ms} ms cannot be kept by the {engine} engine: {reason}")]
    NoLease {
        /// The engine.
        engine: &'static str,
        /// The lease asked for.
        lease_ms: u128,
        /// What it cannot do.
        reason: String,
    },
    /// The name, the holder, the id or the payload cannot be used.
    #[error("{0}")]
    BadMessage(String),
    /// Another message has this id.
    #[error("the queue {queue} already has a message {id:?} with other content")]
    IdTaken {
        /// The queue.
        queue: String,
        /// The id.
        id: String,
    },
    /// The attempt is no longer the current one: the lease ended and another worker took over, or
    /// the message was cancelled, dropped or replaced.
    #[error("the message {id:?} is no longer held by this attempt")]
    Lost {
        /// The message.
        id: String,
    },
    /// What was to be done together with a change does not hold; neither was done.
    #[error("the checks {failed:?} of what rides along with the change do not hold")]
    RiderRefused {
        /// Which of the rider's checks.
        failed: Vec<usize>,
    },
    /// Others changed the same rows again and again.
    #[error("others kept changing {what} at the same time; gave up after {attempts} attempts")]
    Contended {
        /// What was to be changed.
        what: String,
        /// How often it was tried.
        attempts: usize,
    },
    /// A row makes no sense.
    #[error("what the store keeps at {key} is not what a queue wrote: {reason}")]
    Damaged {
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// No randomness to be had.
    #[error("the system gives no random numbers: {0}")]
    NoEntropy(String),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::NeedsAtomic { .. } | Self::NeedsOrder { .. } | Self::NoLease { .. } => {
                Code::Unsupported
            }
            Self::BadMessage(_) => Code::BadMessage,
            Self::IdTaken { .. } => Code::IdTaken,
            Self::Lost { .. } => Code::AttemptLost,
            Self::RiderRefused { .. } => Code::RiderRefused,
            Self::Contended { .. } => Code::Contended,
            Self::Damaged { .. } => Code::Corrupt,
            Self::NoEntropy(_) => Code::Internal,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Store(error) => error.hint(),
            Self::NeedsAtomic { tier: Tier::Advisory, .. } => {
                "Name a coordinator for the store, or keep the queue in one of the atomic tier, such as embedded."
            }
            Self::NeedsAtomic { .. } | Self::NeedsOrder { .. } => {
                "Keep the queue in a store of the atomic tier, such as embedded."
            }
            Self::NoLease { .. } => "Choose a longer lease, or another engine.",
            Self::IdTaken { .. } => "Choose another id, or replace the message.",
            Self::Damaged { .. } => "Look at the key, and delete it if nobody needs it.",
            _ => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.retryable(),
            Self::Contended { .. } => true,
            _ => false,
        }
    }
}

impl Error {
    /// The same, after an earlier try whose answer was lost: that something cannot be reached now
    /// does not tell whether it was done then.
    pub(crate) fn after(self, unsure: bool) -> Self {
        if unsure && self.is_passing() {
            let message = format!("an answer was lost, and then: {self}");
            return Self::Store(StoreError::new(ErrorKind::OutcomeUnknown, message));
        }
        self
    }

    /// Whether the store only could not be reached.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Store(error)
            if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::OutcomeUnknown))
            || matches!(self, Self::Contended { .. })
    }
}
