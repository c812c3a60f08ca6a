//! Documents kept in git, in a registry: every morning what is in the repository is in the store, and
//! nothing is ever deleted by mistake.
//!
//! A [`Registry`] belongs to one branch of one repository. A [sync](Registry::sync) looks at the newest
//! commit, [plans](Plan) what has to be added, updated and deleted, and applies that in batches: each
//! policy's entry and the message for those who want to hear of it in one commit. What is promised:
//!
//! - The plan comes from a **whole tree**. A source that cannot be reached, or cannot be read whole,
//!   changes nothing.
//! - A run that is **killed anywhere** is finished by the next one. `metadata:sync:lastCommit` is never
//!   ahead of the entries.
//! - **One run at a time**; a process that was thought dead can write nothing once another has taken
//!   over.
//! - A file that is no valid policy is **named**, and what the registry had under its name stays.
//! - A run that would delete more than half of the registry **stops**, unless it is told to go on.
//!
//! Changes wait in a [queue](Registry::queue) for consumers: commands, HTTP endpoints, exports.
//! `docs/registry.md` has the guide, the keys, and the algorithm.

mod adopt;
mod apply;
mod compare;
mod consumer;
mod delivery;
mod entry;
mod error;
mod metadata;
mod metrics;
mod migrate;
mod name;
mod places;
mod plan;
mod planner;
mod problem;
mod registry;
mod run;
mod runs;
mod schedule;
mod scheduler;
mod search;
mod settings;
mod signature;
pub mod source;
mod state;
mod title;

pub use consumer::{OpenStore, Repaired};
pub use delivery::Drained;
pub use entry::{Content, Policy};
pub use error::{Error, Result};
pub use metadata::SyncMetadata;
pub use metrics::Metrics;
pub use migrate::Migrated;
pub use name::{NameError, PolicyName};
pub use plan::{Operation, Plan, Step};
pub use problem::Problem;
pub use registry::{Options, Page, Registry, Running, Status};
pub use run::{Progress, SyncOptions, Synced};
pub use runs::{Run, RunStatus, Trigger};
pub use schedule::{Schedule, ScheduleError};
pub use settings::{
    Bucket, Consumer, ConsumerKind, Credentials, Cron, Limits, Off, Repository, S3,
    ScheduleSetting, Secret, Settings, SettingsProblem, Webhook,
};
pub use signature::{HookRefused, PushHook};
pub use title::title;
