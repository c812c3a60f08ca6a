use serde::{Deserialize, Serialize};

use crate::{Error, Extracted, Format, Limits};

/// What the parent writes before the document: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) format: Format,
    pub(crate) limits: Limits,
    pub(crate) memory_bytes_max: u64,
    pub(crate) cpu_seconds_max: u64,
    /// The length of the document that follows.
    pub(crate) bytes: u64,
}

/// The line of the request is shorter than this.
pub(crate) const REQUEST_BYTES_MAX: u64 = 4 << 10;

/// What the child answers, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Extracted(Extracted),
    Refused(Error),
}
