//! Taking away what an earlier version said, and leaving that there was one.

use jiff::Timestamp;
use keyward_engine::{Commit, Entry, Expect, Expiry, Json, Outcome, Put};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use super::{prefix, read, row_key};
use crate::access::Act;
use crate::field::{members, object};
use crate::space::Space;
use crate::{Error, Result};

/// How often this is begun again because others change the same row or record.
const ATTEMPTS_MAX: usize = 16;
/// What a version said.
const SAID: [&str; 2] = ["value", "metadata"];
const MEMBER: &str = "redacted";

/// Who took away what an earlier version said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// When, by the clock of whoever did it.
    #[serde(with = "keyward_engine::moment")]
    pub at: Timestamp,
    /// The user who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The agent that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In which run of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl Redaction {
    pub(super) fn read(text: &str) -> Result<Self, ()> {
        serde_json::from_str(text).map_err(drop)
    }
}

impl Space {
    /// Takes the value and metadata of an earlier version away. That there was one, when, and by whom
    /// stays, and who took it away is added. It cannot be undone, and the version cannot be restored.
    /// False if somebody has done it before, or the record was deleted in that version: there is
    /// nothing to take.
    ///
    /// The version that the record has now is refused: its value would still be there. Change or delete
    /// the record first.
    pub async fn redact(&self, key: &Key, seq: u64) -> Result<bool> {
        let target = self.access.admit(key, Act::Write)?;
        self.keeps_history()?;
        let row = row_key(&prefix(&self.access.space.name, &target.key), seq)?;
        for _ in 0..ATTEMPTS_MAX {
            let Some(entry) = self.shared.store.get(&row).await? else {
                return Err(Error::BadChange(format!("version {seq} of {key} is not kept")));
            };
            let past = read(&row, &entry.value)?;
            if past.redacted.is_some() || past.value.is_none() {
                return Ok(false);
            }
            // A number is never used again, so what is superseded now stays so.
            let current = self.current(&target.key).await?;
            if current.is_some_and(|current| current.kept.seq == Some(seq)) {
                return Err(Error::BadChange(format!(
                    "version {seq} of {key} is what the record is now: change or delete the record, \
                     then redact it"
                )));
            }
            let put = self.redacted(&row, &entry)?;
            let check = Expect::Version(entry.version);
            let commit = Commit::new().check(row.clone(), check).put(row.clone(), put);
            if let Outcome::Applied { .. } = self.shared.store.commit(commit).await? {
                return Ok(true);
            }
        }
        Err(Error::Contended { key: row, attempts: ATTEMPTS_MAX })
    }

    /// The row without what it said.
    fn redacted(&self, row: &Key, entry: &Entry) -> Result<Put> {
        let caller = &self.access.caller;
        let owned = |id: Option<&str>| id.map(str::to_owned);
        let redaction = Redaction {
            at: self.shared.clock.now(),
            user: owned(caller.user_id()),
            agent: owned(caller.agent_id()),
            run: owned(caller.run_id()),
        };
        let redaction = serde_json::to_string(&redaction);
        let redaction = redaction.map_err(|error| Error::Damaged(error.to_string()))?;
        let damaged = || Error::Damaged(format!("{row} is no version of a record"));
        let told = members(entry.value.as_str()).ok_or_else(damaged)?;
        let told = told.iter().filter(|(name, _)| !SAID.contains(&&**name));
        let told = told.map(|(name, text)| (&**name, *text));
        let value = object(told.chain([(MEMBER, redaction.as_str())]));
        let expiry = entry.expires.map(Expiry::At);
        Ok(Put { value: Json::from_stored(value), metadata: entry.metadata.clone(), expiry })
    }
}
