use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::filter::folded;
use super::{Issue, IssueId};
use crate::{Error, Result};

/// Characters of a cursor: one with the longest title fits.
const CURSOR_BYTES_MAX: usize = 8 << 10;

/// In which order to list issues. What is equal goes by its id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// The most severe first; of one severity, those that were changed last first.
    #[default]
    Severity,
    /// Those that were made last first.
    Created,
    /// Those that were changed last first.
    Updated,
    /// By title, from A to Z.
    Title,
    /// Pending, active, blocked, resolved; in one state, those that were changed last first.
    State,
}

/// Where an issue stands in an order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Rank(i64, i64, String, IssueId);

impl Sort {
    pub(super) fn rank(self, issue: &Issue) -> Rank {
        let latest = |at: Timestamp| -at.as_microsecond();
        let severest = -i64::from(u8::from(issue.severity));
        let (first, second, third) = match self {
            Self::Severity => (severest, latest(issue.updated), String::new()),
            Self::Created => (latest(issue.created), 0, String::new()),
            Self::Updated => (latest(issue.updated), 0, String::new()),
            Self::Title => (0, 0, folded(&issue.title)),
            Self::State => (issue.state as i64, latest(issue.updated), String::new()),
        };
        Rank(first, second, third, issue.id)
    }

    /// The cursor after an issue.
    pub(super) fn cursor(self, issue: &Issue) -> Result<String> {
        let text = serde_json::to_vec(&(self, self.rank(issue)));
        let text = text.map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(BASE64URL_NOPAD.encode(&text))
    }

    /// Where a cursor of this order is.
    pub(super) fn after(self, cursor: &str) -> Result<Rank> {
        let invalid = || Error::Invalid("the cursor is none of a list of issues".to_owned());
        if cursor.len() > CURSOR_BYTES_MAX {
            return Err(invalid());
        }
        let text = BASE64URL_NOPAD.decode(cursor.as_bytes()).map_err(|_| invalid())?;
        let (sort, rank): (Self, Rank) = serde_json::from_slice(&text).map_err(|_| invalid())?;
        match sort == self {
            true => Ok(rank),
            false => Err(Error::Invalid("the cursor is of a list in another order".to_owned())),
        }
    }
}
