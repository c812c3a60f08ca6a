use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How much an issue weighs, kept as a number: 1 is low, 2 is medium, 3 is high.
///
/// ```
/// use keyward_agreements::Severity;
///
/// assert_eq!(Severity::try_from(3)?, Severity::High);
/// assert_eq!(u8::from(Severity::Low), 1);
/// assert!(Severity::try_from(4).is_err());
/// # Ok::<(), keyward_agreements::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Severity {
    /// 1: it can wait.
    Low,
    /// 2: it should be settled.
    Medium,
    /// 3: nothing can be signed before it is settled.
    High,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl TryFrom<u8> for Severity {
    type Error = Error;

    fn try_from(number: u8) -> Result<Self> {
        match number {
            1 => Ok(Self::Low),
            2 => Ok(Self::Medium),
            3 => Ok(Self::High),
            _ => Err(Error::Invalid(format!(
                "a severity is 1 (low), 2 (medium) or 3 (high), not {number}"
            ))),
        }
    }
}

impl From<Severity> for u8 {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Low => 1,
            Severity::Medium => 2,
            Severity::High => 3,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
