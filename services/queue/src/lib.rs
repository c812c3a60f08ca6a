//! Queues with leases, retries and dead letters, and jobs with a status to watch.
//!
//! A [`Queue`] is rows of a store: one for each message, readable JSON. What is promised:
//!
//! - A message is delivered **at least once**, and **at most one completion** of it is accepted: who
//!   was thought dead and taken over from cannot finish ([`Ended::Refused`]).
//! - An attempt counts from the moment it is claimed. A message that fails, or kills its workers, too
//!   often ends among the dead letters with its reason and history; there a person can
//!   [put it back](Queue::requeue) or [drop it](Queue::drop_dead_letter).
//! - Whether a worker is alive is decided by the engine's clock alone. Clocks of processes only say
//!   when a delay is over, and in which order messages come.
//! - A claim reads an index, never the queue: its cost does not grow with the rows.
//!
//! An attempt can be gone on with by its [`Ticket`] in any process, so that who claims for others need
//! not remember what they claimed.
//!
//! [`Queue::enqueue_in`] makes messages part of a commit with other data. [`Worker`] claims messages
//! and runs a handler on each. [`Jobs`] are messages whose course and result are kept to be read and
//! watched. `docs/queues.md` has the guide, and the keys byte by byte.
//!
//! Queues need an engine of the atomic tier: a row and its index entry change together.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use keyward_engine::{Json, Store, SystemClock};
//! use keyward_memory::Memory;
//! use keyward_queue::{Ended, Message, Options, Queue};
//!
//! let store = Store::new(Memory::new());
//! let mails = Queue::new(store, "mails", SystemClock, Options::default())?;
//! mails.enqueue(Message::new(Json::parse(r#"{"to":"ada"}"#)?)).await?;
//!
//! let claims = mails.claim(10).await?;
//! for attempt in claims.attempts {
//!     assert_eq!(attempt.payload().as_str(), r#"{"to":"ada"}"#);
//!     assert_eq!(attempt.complete(None).await?, Ended::Accepted);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attempt;
mod claim;
mod dead;
mod enqueue;
mod entropy;
mod error;
mod exchange;
mod failure;
mod follow;
mod inspect;
mod job;
mod jobs;
mod lease;
mod look;
mod message;
mod metrics;
mod moment;
mod options;
mod places;
mod queue;
mod row;
mod take;
mod ticket;
mod waiting;
mod wake;
mod worker;

pub use attempt::{Attempt, Ended};
pub use claim::{Claimant, Claims};
pub use dead::{DeadLetter, Requeued};
pub use error::{Error, Result};
pub use failure::Failure;
pub use inspect::{Count, Listing, Part, QueueStats, QueuedMessage, queue_names};
pub use job::{Activity, Job, Progress, Status, Trace};
pub use jobs::{Cancelled, JobOptions, Jobs, Submitted};
pub use message::{Enqueued, Message};
pub use metrics::Metrics;
pub use options::{Options, Retry};
pub use places::Places;
pub use queue::Queue;
pub use row::{PastAttempt, State};
pub use ticket::Ticket;
pub use worker::{Delivery, Report, Worker, WorkerOptions};
