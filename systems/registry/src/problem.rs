use serde::{Deserialize, Serialize};

/// A file, or a policy, that a run left alone, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// The path in the repository; of what has none, the policy's name.
    pub path: String,
    /// What is wrong, and what to do about it.
    pub reason: String,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}
