//! Documents that lists leave out, as the agent data store tells of them.

use serde::{Deserialize, Serialize};

use crate::user_data::UserData;
use crate::{Error, Result, places};

/// Documents that lists of a user's entries left out, in a store with `layout=document`: their id is not made of their
/// `userId`, `namespace` and `key`, so no program can ask for them by key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Skipped {
    /// How many lists have met since the store was opened; at most 100,000 of a namespace are counted.
    pub documents: u64,
    /// The id of the last one, or of one of the last.
    pub last_id: Option<String>,
}

impl UserData {
    /// The documents that lists of one namespace, or of all, left out since the store was opened. Only stores with
    /// `layout=document` have any. Ask after listing: what was not listed is not known.
    pub async fn skipped(&self, namespace: Option<&str>) -> Result<Skipped> {
        self.admit_read()?;
        let place = places::skipped(&self.user, namespace)?;
        match self.shared().store().get(&place).await? {
            Some(entry) => serde_json::from_slice(entry.value.as_bytes())
                .map_err(|error| Error::Invalid(format!("{place} is unreadable: {error}"))),
            None => Ok(Skipped::default()),
        }
    }
}
