//! The responses of operations that delete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::clearing;
use crate::operation::{Reply, Status};

/// What was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    /// How many there were.
    pub deleted: usize,
    #[serde(skip)]
    is_replayed: bool,
}

impl Deleted {
    /// One thing, now or by an earlier request with the same idempotency key.
    pub fn one(is_replayed: bool) -> Self {
        Self { deleted: 1, is_replayed }
    }
}

impl Reply for Deleted {
    const STATUSES: &'static [Status] = &[Status::Empty];

    fn status(&self) -> Status {
        Status::Empty
    }

    fn is_replayed(&self) -> bool {
        self.is_replayed
    }
}

/// What was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cleared {
    /// How many there were.
    pub count: usize,
    /// How many were deleted.
    pub deleted: usize,
}

impl From<clearing::Cleared> for Cleared {
    fn from(cleared: clearing::Cleared) -> Self {
        Self { count: cleared.count, deleted: cleared.removed }
    }
}

impl Reply for Cleared {}
