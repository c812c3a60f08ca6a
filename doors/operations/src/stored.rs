//! The response of operations that write.

use keyward::{Key, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Reply, Status};

/// What was written.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Stored {
    /// The key.
    pub key: Key,
    /// The new version.
    pub version: Version,
    #[serde(skip)]
    status: Status,
    #[serde(skip)]
    is_replayed: bool,
}

impl Stored {
    /// A key with the version that it has now.
    pub(crate) fn new(
        key: Key,
        version: Option<Version>,
        status: Status,
        is_replayed: bool,
    ) -> Self {
        // A write that sets a key has a version; what an engine leaves out stands for none.
        let version = version.unwrap_or_else(|| Version::parse(""));
        Self { key, version, status, is_replayed }
    }
}

impl Reply for Stored {
    const STATUSES: &'static [Status] = &[Status::Done, Status::Created];

    fn status(&self) -> Status {
        self.status
    }

    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }

    fn is_replayed(&self) -> bool {
        self.is_replayed
    }
}
