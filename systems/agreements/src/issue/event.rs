use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{IssueId, Severity, State};
use crate::SourceId;

/// What happened to an issue, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its own id, by which a change whose answer was lost is found again.
    pub id: IssueId,
    /// When.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub at: Timestamp,
    /// Who did it.
    pub who: String,
    /// What.
    pub change: What,
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Members that are not known here.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What can happen to an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "camelCase")]
pub enum What {
    /// It was made.
    Created,
    /// It went from one state to another.
    Transition {
        /// The state before.
        from: State,
        /// The state after.
        to: State,
    },
    /// It was given another severity.
    Classified {
        /// The severity before.
        from: Severity,
        /// The severity after.
        to: Severity,
    },
    /// Its annotations were changed.
    Annotated,
    /// It was put away.
    Archived,
    /// It was brought back.
    Unarchived,
    /// A policy that it refers to changed, or is gone.
    Stale {
        /// The policy.
        source: SourceId,
    },
    /// An analysis found it again, and where.
    Refreshed,
}

/// `moved it from pending to active`.
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("created it"),
            Self::Transition { from, to } => write!(f, "moved it from {from} to {to}"),
            Self::Classified { from, to } => {
                write!(f, "changed its severity from {from} to {to}")
            }
            Self::Annotated => f.write_str("annotated it"),
            Self::Archived => f.write_str("archived it"),
            Self::Unarchived => f.write_str("brought it back from the archive"),
            Self::Stale { source } => write!(f, "marked it as stale since {source} changed"),
            Self::Refreshed => f.write_str("found it again by analysis"),
        }
    }
}

/// `ada moved it from pending to active at 2026-01-01T00:00:00.000000Z`.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at {:.6}", self.who, self.change, self.at)
    }
}
