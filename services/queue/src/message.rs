use std::time::Duration;

use keyward_engine::Json;

/// What to enqueue.
///
/// ```
/// use std::time::Duration;
/// use keyward_engine::Json;
/// use keyward_queue::Message;
///
/// let message = Message::new(Json::parse(r#"{"policy":"p"}"#)?)
///     .id("p")
///     .version("5d2f")
///     .replacing()
///     .delay(Duration::from_secs(60));
/// # Ok::<(), keyward_engine::JsonError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub(crate) payload: Json,
    pub(crate) id: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) delay: Option<Duration>,
    pub(crate) replaces: bool,
}

impl Message {
    /// A message with an id of its own, for now.
    pub fn new(payload: Json) -> Self {
        Self { payload, id: None, version: None, delay: None, replaces: false }
    }

    /// The same under this id: an idempotency key. While the message is in the queue or among the
    /// dead letters, and for a time after its completion, enqueuing it again is a duplicate.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The same as this version of its content. Messages with the same payload and other versions
    /// are not the same.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The same, to be claimed only after this time, by the clocks of those who claim.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// The same, taking the place of a message with its id and other content, also of a dead letter
    /// or of one that is being worked on: attempts start anew, and a completion of the old content
    /// is refused.
    #[must_use]
    pub fn replacing(mut self) -> Self {
        self.replaces = true;
        self
    }
}

/// What became of a message that was to be enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// It is in the queue.
    Added {
        /// Its id.
        id: String,
    },
    /// It was there already, or was completed lately; nothing was written.
    Duplicate {
        /// Its id.
        id: String,
    },
    /// It took the place of one with other content.
    Replaced {
        /// Its id.
        id: String,
    },
}

impl Enqueued {
    /// The message's id.
    pub fn id(&self) -> &str {
        match self {
            Self::Added { id } | Self::Duplicate { id } | Self::Replaced { id } => id,
        }
    }
}
