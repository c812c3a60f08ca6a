//! What a job is doing, for those who watch it.

use std::fmt;

use keyward_queue::Delivery;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::issue::{By, IssueId};

/// What a task is doing. A job that is told of is `scheduling` until a worker has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// It is being put into its queue.
    Submitting,
    /// It waits for a worker.
    Scheduling,
    /// It waits for others who work on the same.
    Locking,
    /// It looks what there is.
    Scanning,
    /// It gets a page or an attachment.
    Fetching,
    /// It writes what it made.
    Caching,
    /// It removes what is gone, or out of date.
    Purging,
    /// It makes the question for a model.
    Prompting,
    /// It hands a text over.
    Uploading,
    /// It makes Markdown of a file.
    Extracting,
    /// It has a text translated.
    Translating,
    /// It has policies compared.
    Analyzing,
}

impl Activity {
    /// All of them, in their order.
    pub const ALL: [Self; 12] = [
        Self::Submitting,
        Self::Scheduling,
        Self::Locking,
        Self::Scanning,
        Self::Fetching,
        Self::Caching,
        Self::Purging,
        Self::Prompting,
        Self::Uploading,
        Self::Extracting,
        Self::Translating,
        Self::Analyzing,
    ];

    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitting => "submitting",
            Self::Scheduling => "scheduling",
            Self::Locking => "locking",
            Self::Scanning => "scanning",
            Self::Fetching => "fetching",
            Self::Caching => "caching",
            Self::Purging => "purging",
            Self::Prompting => "prompting",
            Self::Uploading => "uploading",
            Self::Extracting => "extracting",
            Self::Translating => "translating",
            Self::Analyzing => "analyzing",
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whom a task tells what it is doing: those who watch its job, or nobody.
#[derive(Debug, Clone, Default)]
pub struct Course(Option<Delivery>);

impl Course {
    /// Nobody.
    pub fn untold() -> Self {
        Self(None)
    }

    /// Those who watch a job.
    pub fn of(delivery: Delivery) -> Self {
        Self(Some(delivery))
    }

    /// Who changes an issue, in a job or not: a job that is taken over changes it once.
    pub(crate) fn by(&self, who: &str) -> By<'static> {
        let event = self.0.as_ref().map(|delivery| IssueId::of_job(delivery.id()));
        By { event, ..By::new(who) }
    }

    /// Says what is done from now on. Fails once the job is no longer in hand.
    pub(crate) async fn enter(&self, activity: Activity, detail: &str) -> Result<()> {
        if let Some(delivery) = &self.0 {
            let detail = (!detail.is_empty()).then_some(detail);
            delivery.activity(activity.as_str(), detail).await?;
        }
        Ok(())
    }

    /// Says how far it is.
    pub(crate) async fn progress(&self, done: usize, total: usize) -> Result<()> {
        if let Some(delivery) = &self.0 {
            delivery.progress(done as u64, Some(total as u64)).await?;
        }
        Ok(())
    }
}
