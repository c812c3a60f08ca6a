//! `metadata:sync:lastRun`, as the document has it.

use keyward_engine::Json;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, Run, RunStatus};

/// How the last run ended: exactly the members of the original's `SyncMetadata`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncMetadata {
    /// When it ended.
    pub timestamp: String,
    /// How many files it looked at.
    pub total_processed: u64,
    /// Policies added.
    pub added: u64,
    /// Policies updated.
    pub updated: u64,
    /// Policies deleted.
    pub deleted: u64,
    /// `success`, `partial` or `failed`.
    pub status: RunStatus,
    /// How many files and policies were left alone.
    pub error_count: u64,
    /// The commit it looked at.
    #[serde(rename = "commitSHA", default, skip_serializing_if = "Option::is_none")]
    pub commit_sha: Option<String>,
    /// The commit before.
    #[serde(rename = "previousCommitSHA", default, skip_serializing_if = "Option::is_none")]
    pub previous_commit_sha: Option<String>,
}

impl SyncMetadata {
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            timestamp: run.ended_at.clone().unwrap_or_else(|| run.started_at.clone()),
            total_processed: run.scanned,
            added: run.added,
            updated: run.updated,
            deleted: run.deleted,
            status: run.status,
            error_count: run.error_count,
            commit_sha: run.commit.clone(),
            previous_commit_sha: run.previous_commit.clone(),
        }
    }

    pub(crate) fn encode(&self) -> Result<Json> {
        Json::from_value(self).map_err(|error| Error::Invalid(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_members_of_the_document_in_its_order() {
        let metadata = SyncMetadata {
            timestamp: "2025-10-20T16:00:00Z".to_owned(),
            total_processed: 45,
            added: 2,
            updated: 3,
            deleted: 1,
            status: RunStatus::Success,
            error_count: 0,
            commit_sha: Some("def4".to_owned()),
            previous_commit_sha: Some("abc1".to_owned()),
        };
        assert_eq!(
            metadata.encode().unwrap().as_str(),
            r#"{"timestamp":"2025-10-20T16:00:00Z","totalProcessed":45,"added":2,"updated":3,"deleted":1,"status":"success","errorCount":0,"commitSHA":"def4","previousCommitSHA":"abc1"}"#
        );
    }
}
