//! What a consumer has last accepted of a policy.

use std::time::Duration;

use data_encoding::HEXLOWER;
use keyward_engine::{Entry, Expiry, Json, Put};
use keyward_key::Key;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Change, FrontMatter, Written};
use crate::{Error, Operation, Result};

/// How long it is remembered that a policy was deleted. What somebody has written of it meanwhile, who
/// did not know and died before he could find out, is known by that.
const DELETION_KEPT: Duration = Duration::from_secs(7 * 86_400);

/// What a consumer has last accepted of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Done {
    pub operation: Operation,
    pub sha: String,
    /// The run that found the change; `None` where an export was put right without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Of an export: the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Written>,
    /// Of an export: what the front matter was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
}

impl Done {
    /// A change that was accepted.
    pub fn of(change: &Change, file: Option<Written>) -> std::result::Result<Self, String> {
        let front = match file {
            Some(_) => Some(mark(&change.front_matter())?),
            None => None,
        };
        Ok(Self {
            operation: change.operation,
            sha: change.sha.clone(),
            run: change.run.clone(),
            file,
            front,
        })
    }

    /// A file that was put right.
    pub fn put_right(front: &FrontMatter<'_>, file: Written) -> std::result::Result<Self, String> {
        Ok(Self {
            operation: Operation::Update,
            sha: front.sha.to_owned(),
            run: None,
            file: Some(file),
            front: Some(mark(front)?),
        })
    }

    /// A file that was removed.
    pub fn removed() -> Self {
        let (operation, sha) = (Operation::Delete, String::new());
        Self { operation, sha, run: None, file: None, front: None }
    }

    /// Whether it is this change that was accepted.
    pub fn is_of(&self, change: &Change) -> bool {
        change.run.is_some()
            && self.run == change.run
            && self.sha == change.sha
            && self.operation == change.operation
    }

    /// The file that an export has written of a policy as it is now.
    pub fn file_of(
        &self,
        front: &FrontMatter<'_>,
    ) -> std::result::Result<Option<&Written>, String> {
        let is_same = self.front.is_some() && self.front == Some(mark(front)?);
        Ok(self.file.as_ref().filter(|_| is_same))
    }

    pub fn decode(key: &Key, entry: &Entry) -> Result<Self> {
        serde_json::from_slice(entry.value.as_bytes()).map_err(|error| Error::damaged(key, error))
    }

    pub fn encode(&self) -> Result<Put> {
        let json = Json::from_value(self).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(match self.operation {
            Operation::Delete => Put::new(json).expiring(Expiry::After(DELETION_KEPT)),
            Operation::Add | Operation::Update => Put::new(json),
        })
    }
}

fn mark(front: &FrontMatter<'_>) -> std::result::Result<String, String> {
    Ok(HEXLOWER.encode(&Sha256::digest(front.yaml()?)[..16]))
}
