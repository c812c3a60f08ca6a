//! What has to be done.

use serde::{Deserialize, Serialize};

use crate::{Error, Problem};

/// What a sync does, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The registry.
    pub registry: String,
    /// The commit that was looked at.
    pub commit: String,
    /// The commit that the registry is at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_commit: Option<String>,
    /// What has to be done, in the order of names.
    pub steps: Vec<Step>,
    /// Files that are no valid policies; what the registry has under their names stays.
    pub problems: Vec<Problem>,
    /// How many files are policies; if only changes were looked at, how many changed.
    pub scanned: u64,
    /// How many policies the registry has.
    pub entries: u64,
    /// Whether the whole tree was compared, or only what changed since the last run.
    pub whole: bool,
    /// How many blobs were read.
    pub blobs_read: u64,
}

impl Plan {
    /// How many steps do this.
    pub fn count(&self, operation: Operation) -> u64 {
        self.steps.iter().filter(|step| step.operation == operation).count() as u64
    }

    /// Whether more would be deleted than may be. A policy whose content goes on under another name is
    /// not lost, and one alone is no mass.
    pub(crate) fn check_deletes(&self, percent_max: u8) -> Result<(), Error> {
        let renamed = self.steps.iter().filter(|step| step.renamed_from.is_some()).count() as u64;
        let deletes = self.count(Operation::Delete).saturating_sub(renamed);
        if deletes > 1 && deletes * 100 > u64::from(percent_max) * self.entries {
            return Err(Error::MassDelete { deletes, entries: self.entries, percent_max });
        }
        Ok(())
    }
}

/// What has to be done with one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What.
    pub operation: Operation,
    /// Which policy.
    pub policy_name: String,
    /// Its title; of a deleted one, the last.
    pub title: String,
    /// The blob's id; of a deleted one, the last.
    pub sha: String,
    /// The path in the repository; of a deleted one, the last.
    pub path: String,
    /// The blob's id before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_sha: Option<String>,
    /// The path before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// The policy that had this content before, and is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The title under which an entry of version 1 is kept, which moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from_title: Option<String>,
}

/// What is done with a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// It is new.
    Add,
    /// Its content or its path is another.
    Update,
    /// It is gone.
    Delete,
}

impl Operation {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}
