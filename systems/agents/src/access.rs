//! Who accessed an entry: a row beside it, which changes without the entry.

use jiff::Timestamp;
use keyward_engine::{Json, moment_text};
use keyward_records::Result;
use serde::{Deserialize, Serialize};

use crate::error::damaged;

/// How long it is remembered which writes have reached a row. Whoever does not know what became of one
/// finds out within that time.
const MARK_MS_MAX: i64 = 60 * 60 * 1_000;
/// How many writers' last writes a row remembers: the newest. Whoever lost an answer looks again at once, and
/// with each flush after that; its mark is gone by then only if so many others wrote the same row between.
const MARKS_MAX: usize = 128;

/// Who accessed an entry, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// How often agents read it.
    pub count: u64,
    /// The agent that read or wrote it last.
    pub agent: Option<String>,
    /// When, in ISO 8601.
    pub at: Option<String>,
}

/// What a row holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct AccessRow {
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// When the entry was made that this is about: one that has the key now may be another.
    pub born: String,
    /// The last write of each who wrote lately: who, its number, and when in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<(String, u64, i64)>,
    /// The id of the entry's document, where that is another program's too. It is read and never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl AccessRow {
    pub fn read(json: &Json) -> Result<Self> {
        let row = serde_json::from_slice(json.as_bytes());
        row.map_err(|_| damaged(format!("{json} does not tell who accessed an entry")))
    }

    pub fn write(&self) -> Result<Json> {
        Json::from_value(self).map_err(|error| damaged(error.to_string()))
    }

    /// Whether a write has reached the row.
    pub fn has(&self, writer: &str, number: u64) -> bool {
        self.marks.iter().any(|(who, last, _)| who == writer && *last >= number)
    }

    /// Remembers a write, and forgets old ones.
    pub fn mark(&mut self, writer: &str, number: u64, now: Timestamp) {
        let now_ms = now.as_millisecond();
        self.marks.retain(|(who, _, at)| who != writer && now_ms - at < MARK_MS_MAX);
        // They stand in the order of writing.
        let surplus = (self.marks.len() + 1).saturating_sub(MARKS_MAX);
        self.marks.drain(..surplus);
        self.marks.push((writer.to_owned(), number, now_ms));
    }

    /// Whether anybody has accessed the entry.
    pub fn tells(&self) -> bool {
        self.count > 0 || self.agent.is_some() || self.at.is_some()
    }

    /// Notes the last access, unless a later one is known.
    pub fn last(&mut self, agent: &str, at: Timestamp) {
        let known = self.at.as_ref().and_then(|known| known.parse::<Timestamp>().ok());
        if known.is_none_or(|known| known <= at) {
            self.agent = Some(agent.to_owned());
            self.at = Some(moment_text(at));
        }
    }
}

impl From<AccessRow> for Access {
    fn from(AccessRow { count, agent, at, .. }: AccessRow) -> Self {
        Self { count, agent, at }
    }
}
