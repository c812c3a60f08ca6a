//! A message as its row holds it.

use std::fmt;

use keyward_engine::{Entry, Json, moment_text};
use keyward_key::Key;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::moment::Moment;
use crate::places::Places;
use crate::{Error, Result};

/// How a row holds its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As the member `payload`.
    Nested,
    /// The payload's members beside the row's.
    Spread,
}

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// In line.
    Ready,
    /// Waiting for its time: enqueued with a delay, or failed and backing off.
    Delayed,
    /// Given to a worker.
    Claimed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "ready",
            Self::Delayed => "delayed",
            Self::Claimed => "claimed",
        })
    }
}

/// An attempt that ended without a completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastAttempt {
    /// Which one it was, counted from 1.
    pub attempt: u32,
    /// The worker.
    pub by: String,
    /// When it was claimed, by the worker's clock.
    pub claimed_at: String,
    /// When it ended, by the clock of who saw it end.
    pub ended_at: String,
    /// Why.
    pub error: String,
    /// The attempt's own mark.
    pub nonce: String,
}

/// The current attempt of a claimed message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Current {
    pub number: u32,
    pub nonce: String,
    pub by: String,
    pub at: Moment,
    /// How long it is held without a sign of life, where who claimed it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
}

/// What a row says of the job that its message is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobTag {
    pub submitted_at: Moment,
    pub retention_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub digest: String,
}

/// Everything of a row but the payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// A row that another program wrote has none, and is in line.
    #[serde(default = "in_line")]
    pub state: State,
    #[serde(default)]
    pub retry_count: u32,
    pub created_at: Moment,
    /// The place in line, where it is not the time of creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueued_at: Option<Moment>,
    /// The place in the section `due`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Current>,
    #[serde(default)]
    pub error_message: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastAttempt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobTag>,
    /// Whether the id was given, rather than made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keyed: bool,
    /// Of a dead letter: when it became one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_at: Option<Moment>,
    /// Of a dead letter: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip, default = "null")]
    pub payload: Json,
}

fn null() -> Json {
    Json::from_stored("null")
}

fn in_line() -> State {
    State::Ready
}

/// The members of a row that a spread payload cannot have.
const MEMBERS: [&str; 13] = [
    "version",
    "state",
    "retryCount",
    "createdAt",
    "enqueuedAt",
    "dueAt",
    "attempt",
    "errorMessage",
    "history",
    "job",
    "keyed",
    "deadAt",
    "reason",
];

impl Row {
    /// How many past attempts a row remembers, the latest.
    pub const HISTORY_MAX: usize = 10;
    /// How much of an error's text is kept.
    pub const ERROR_BYTES_MAX: usize = 4_096;
    /// How much larger than when it is enqueued a row may get at the least: room for an attempt, its
    /// times, and what a job adds. What more it has of its past is left out where it does not fit.
    pub const ROOM_BYTES: usize = 1_024;
    /// What is left of a row's past where it does not fit: so many attempts, with so much of each
    /// error.
    pub const BRIEFER: [(usize, usize); 4] = [(Self::HISTORY_MAX, 256), (3, 64), (1, 16), (0, 0)];

    /// The key of the row's index entry.
    pub fn entry(&self, places: &Places, id: &str) -> Key {
        match self.state {
            State::Ready => places.ready(self.place_in_line(), id),
            State::Delayed | State::Claimed => {
                places.due(self.due_at.unwrap_or(self.created_at), id)
            }
        }
    }

    /// What the index entry holds: so that counting need not read the rows.
    pub fn entry_value(&self) -> Json {
        Json::from_stored(match self.state {
            State::Ready => "\"ready\"",
            State::Delayed => "\"delayed\"",
            State::Claimed => "\"claimed\"",
        })
    }

    pub fn place_in_line(&self) -> Moment {
        self.enqueued_at.unwrap_or(self.created_at)
    }

    /// The number of the attempt that a claim would begin.
    pub fn next_attempt(&self) -> u32 {
        self.retry_count.saturating_add(1)
    }

    /// Counts the current attempt as ended without a completion.
    pub fn end_attempt(&mut self, now: Moment, error: &str) {
        let error = shortened(error);
        if let Some(current) = self.attempt.take() {
            self.history.push(PastAttempt {
                attempt: current.number,
                by: current.by,
                claimed_at: moment_text(current.at.time()),
                ended_at: moment_text(now.time()),
                error: error.clone(),
                nonce: current.nonce,
            });
            let surplus = self.history.len().saturating_sub(Self::HISTORY_MAX);
            self.history.drain(..surplus);
        }
        self.retry_count = self.retry_count.saturating_add(1);
        self.error_message = Some(error);
    }

    /// Leaves out all but the latest attempts, and all but the beginnings of errors.
    pub fn abridge(&mut self, history_max: usize, error_bytes_max: usize) {
        let surplus = self.history.len().saturating_sub(history_max);
        self.history.drain(..surplus);
        let errors = self.history.iter_mut().map(|past| &mut past.error);
        for error in errors.chain(&mut self.error_message).chain(&mut self.reason) {
            error.truncate(boundary(error, error_bytes_max));
        }
    }

    /// Puts the message in line, where it was.
    pub fn make_ready(&mut self) {
        self.state = State::Ready;
        self.due_at = None;
        self.attempt = None;
    }

    /// Whether two rows carry the same message.
    pub fn has_content_of(&self, other: &Self) -> bool {
        self.version == other.version && self.payload == other.payload
    }

    /// What tells the content of a message from another's.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let version = self.version.as_deref().unwrap_or_default();
        hasher.update(&(version.len() as u64).to_le_bytes());
        hasher.update(version.as_bytes());
        hasher.update(self.payload.as_bytes());
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// The row as a value.
    pub fn encode(&self, layout: Layout) -> Result<Json> {
        let own = serde_json::to_string(self)
            .map_err(|error| Error::BadMessage(format!("the message is not JSON: {error}")))?;
        let (payload, own_members) = (self.payload.as_str(), own.get(1..).unwrap_or_default());
        Ok(Json::from_stored(match layout {
            Layout::Nested => format!("{{\"payload\":{payload},{own_members}"),
            Layout::Spread => match payload.get(1..payload.len().saturating_sub(1)) {
                None | Some("") => own,
                Some(members) => format!("{{{members},{own_members}"),
            },
        }))
    }

    /// Refuses a payload that no row of this layout can hold.
    pub fn admit(payload: &Json, layout: Layout) -> Result<()> {
        let refused = |reason: String| Err(Error::BadMessage(reason));
        if layout == Layout::Nested {
            // A row is one level around its payload.
            return match Json::parse(format!("[{payload}]")) {
                Ok(_) => Ok(()),
                Err(error) => refused(format!("the payload cannot be kept in a row: {error}")),
            };
        }
        let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(payload.as_str()) else {
            return refused("the payload must be an object: its members stand in the row".into());
        };
        match members.iter().find(|(name, _)| MEMBERS.contains(&name.as_str())) {
            Some((name, _)) => refused(format!("a payload cannot have a member {name:?} here")),
            None => Ok(()),
        }
    }

    /// Takes a row from an entry.
    pub fn decode(key: &Key, entry: &Entry, layout: Layout) -> Result<Self> {
        let damaged = |reason: String| Error::Damaged { key: key.to_string(), reason };
        let text = entry.value.as_str();
        let mut row: Self =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let Members(members) =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        row.payload = match layout {
            Layout::Nested => {
                let payload = members.iter().find(|(name, _)| name == "payload");
                let (_, payload) =
                    payload.ok_or_else(|| damaged("it has no member payload".into()))?;
                Json::from_stored(payload.get().to_owned())
            }
            Layout::Spread => {
                let mut spread = String::from("{");
                for (name, value) in &members {
                    if MEMBERS.contains(&name.as_str()) {
                        continue;
                    }
                    if spread.len() > 1 {
                        spread.push(',');
                    }
                    let name =
                        serde_json::to_string(name).map_err(|error| damaged(error.to_string()))?;
                    spread.push_str(&name);
                    spread.push(':');
                    spread.push_str(value.get());
                }
                spread.push('}');
                Json::from_stored(spread)
            }
        };
        Ok(row)
    }
}

/// An error's text as a row keeps it.
pub(crate) fn shortened(text: &str) -> String {
    text[..boundary(text, Row::ERROR_BYTES_MAX)].to_owned()
}

/// Where to end a text of at most so many bytes, between two characters.
pub(crate) fn boundary(text: &str, bytes_max: usize) -> usize {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// The members of an object, in their order, with values as they were written.
struct Members<'j>(Vec<(String, &'j RawValue)>);

impl<'de: 'j, 'j> Deserialize<'de> for Members<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use keyward_engine::Version;

    use super::*;

    fn row(payload: &str) -> Row {
        Row {
            version: Some("sha".into()),
            state: State::Ready,
            retry_count: 2,
            created_at: Moment::of(Timestamp::from_millisecond(1_500).unwrap()),
            enqueued_at: None,
            due_at: None,
            attempt: None,
            error_message: None,
            history: Vec::new(),
            job: None,
            keyed: true,
            dead_at: None,
            reason: None,
            payload: Json::parse(payload.to_owned()).unwrap(),
        }
    }

    fn entry(value: Json) -> Entry {
        Entry { value, metadata: None, version: Version::from(1), expires: None }
    }

    #[test]
    fn a_row_comes_back_with_its_payload_digit_for_digit() {
        let key = Key::parse("queue:q:1").unwrap();
        for payload in ["1.50", "null", "\"x\"", r#"{"b":1e400,"a":[{}]}"#, "{}"] {
            let row = row(payload);
            let value = row.encode(Layout::Nested).unwrap();
            let checked = Json::parse(value.to_bytes()).unwrap();
            assert_eq!(checked, value);
            assert_eq!(Row::decode(&key, &entry(value), Layout::Nested).unwrap(), row);
        }
        for payload in [r#"{"b":1e400,"a":[{"state":1}]}"#, "{}"] {
            let row = row(payload);
            let value = row.encode(Layout::Spread).unwrap();
            assert_eq!(Json::parse(value.to_bytes()).unwrap(), value);
            assert_eq!(Row::decode(&key, &entry(value), Layout::Spread).unwrap(), row);
        }
    }

    #[test]
    fn a_spread_row_reads_like_the_registrys() {
        let row = row(r#"{"policyName":"p","operation":"add"}"#);
        let value = row.encode(Layout::Spread).unwrap();
        assert!(
            value.as_str().starts_with(
                r#"{"policyName":"p","operation":"add","version":"sha","state":"ready","retryCount":2,"createdAt":"1970-01-01T00:00:01.500000Z","errorMessage":null"#
            ),
            "{value}"
        );
    }

    #[test]
    fn a_payload_that_no_row_can_hold_is_refused() {
        let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
        let json = |text: &str| Json::parse(text.to_owned()).unwrap();
        assert!(Row::admit(&json(&deep), Layout::Nested).is_err());
        assert!(Row::admit(&json("1"), Layout::Spread).is_err());
        assert!(Row::admit(&json(r#"{"retryCount":1}"#), Layout::Spread).is_err());
        assert!(Row::admit(&json(r#"{"retryCount":1}"#), Layout::Nested).is_ok());
    }

    #[test]
    fn every_member_of_a_row_is_kept_from_spread_payloads() {
        let full = Row {
            enqueued_at: Some(row("1").created_at),
            due_at: Some(row("1").created_at),
            attempt: Some(Current {
                number: 1,
                nonce: String::new(),
                by: String::new(),
                at: row("1").created_at,
                lease_ms: None,
            }),
            history: vec![PastAttempt {
                attempt: 1,
                by: String::new(),
                claimed_at: String::new(),
                ended_at: String::new(),
                error: String::new(),
                nonce: String::new(),
            }],
            job: Some(JobTag {
                submitted_at: row("1").created_at,
                retention_ms: 1,
                timeout_ms: Some(1),
                digest: String::new(),
            }),
            dead_at: Some(row("1").created_at),
            reason: Some(String::new()),
            ..row("{}")
        };
        let value = full.encode(Layout::Spread).unwrap();
        let Members(members) = serde_json::from_str(value.as_str()).unwrap();
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, MEMBERS);
    }

    #[test]
    fn a_history_and_an_error_stay_bounded() {
        let mut row = row("1");
        let now = row.created_at;
        for number in 1..=30 {
            let nonce = number.to_string();
            row.attempt = Some(Current { number, nonce, by: "w".into(), at: now, lease_ms: None });
            row.end_attempt(now, &"ä".repeat(5_000));
        }
        assert_eq!(row.history.len(), Row::HISTORY_MAX);
        assert_eq!(row.history[0].attempt, 21);
        assert!(row.error_message.unwrap().len() <= Row::ERROR_BYTES_MAX);
    }
}
