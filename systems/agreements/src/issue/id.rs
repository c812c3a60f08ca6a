use std::fmt;

use keyward_engine::{Error as StoreError, ErrorKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::{Error, Result};

/// An issue's id within its page: a UUID, chosen at random, written with hyphens and small letters.
///
/// ```
/// use keyward_agreements::IssueId;
///
/// let id = IssueId::parse("F47AC10B-58CC-4372-A567-0E02B2C3D479")?;
/// assert_eq!(id.to_string(), "f47ac10b-58cc-4372-a567-0e02b2c3d479");
/// assert!(IssueId::parse("7").is_err());
/// # Ok::<(), keyward_agreements::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IssueId(Uuid);

impl IssueId {
    /// Reads an id.
    pub fn parse(text: &str) -> Result<Self> {
        let shown: String = text.chars().take(80).collect();
        let refused = |_| Error::Invalid(format!("{shown:?} is no issue's id, which is a UUID"));
        Uuid::try_parse(text).map(Self).map_err(refused)
    }

    /// The id of what a job does: the same, whoever does it.
    pub(crate) fn of_job(job: &str) -> Self {
        let hash = Sha256::digest(job.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Self(Builder::from_random_bytes(bytes).into_uuid())
    }

    /// An id that nobody else chose.
    pub(super) fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            let error = StoreError::new(ErrorKind::Internal, "the system has no random numbers")
                .caused_by(error.to_string());
            Error::Store(error)
        })?;
        Ok(Self(Builder::from_random_bytes(bytes).into_uuid()))
    }
}

impl TryFrom<String> for IssueId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl From<IssueId> for String {
    fn from(id: IssueId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for IssueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_at_random_is_a_uuid_of_version_4_and_reads_back() {
        let id = IssueId::random().unwrap();
        assert_eq!(id.0.get_version_num(), 4);
        assert_eq!(IssueId::parse(&id.to_string()).unwrap(), id);
        assert_ne!(IssueId::random().unwrap(), id);
    }
}
