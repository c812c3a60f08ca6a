use jiff::Timestamp;
use keyward_engine::Json;
use keyward_key::Key;
use serde::{Deserialize, Deserializer, Serialize};

use super::limits::{EVENT_BYTES_MAX, EVENTS_MAX};
use super::{Event, IssueId, Members, NewIssue, Part, Reference, Severity, State};
use crate::{Error, Result};

/// Something to be settled before an agreement is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    /// Its id.
    pub id: IssueId,
    /// When it was made.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub created: Timestamp,
    /// When it was last changed.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub updated: Timestamp,
    /// Where it stands.
    pub state: State,
    /// How much it weighs: 1 is low, 2 is medium, 3 is high.
    pub severity: Severity,
    /// What it is about.
    pub title: String,
    /// What it is, and where it shows.
    pub description: Vec<Part>,
    /// What people note about it, in Markdown.
    pub annotations: String,
    /// Whether it was put away: it is not listed then, and takes no change.
    pub archived: bool,
    /// Whether a policy that it refers to has changed since, or is gone.
    pub stale: bool,
    /// When it was settled, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "keyward_engine::moment::optional::serialize")]
    pub resolved_at: Option<Timestamp>,
    /// What happened to it, oldest first: at most 500 events, of which the first is that it was made.
    pub history: Vec<Event>,
    /// How many events after the first are not kept any more.
    #[serde(skip_serializing_if = "is_zero")]
    pub history_dropped: u64,
    /// Members that are not known here.
    #[serde(flatten)]
    pub other: Members,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Issue {
    pub(super) fn new(id: IssueId, new: NewIssue, created: Event) -> Self {
        Self {
            id,
            created: created.at,
            updated: created.at,
            state: State::Pending,
            severity: new.severity,
            title: new.title,
            description: new.description,
            annotations: new.annotations,
            archived: false,
            stale: false,
            resolved_at: None,
            history: vec![created],
            history_dropped: 0,
            other: Members::default(),
        }
    }

    /// The places in policies that it refers to.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.description.iter().filter_map(Part::reference)
    }

    /// Adds what happened, and drops the oldest if it is too much. That it was made stays.
    pub(super) fn record(&mut self, event: Event) {
        // The clocks of two machines may differ.
        self.updated = self.updated.max(event.at);
        self.history.push(event);
        let size = |event: &Event| event.why.as_ref().map_or(0, String::len);
        let mut bytes: usize = self.history.iter().map(size).sum();
        let mut kept_from = 1;
        // What just happened is never dropped.
        while kept_from + 1 < self.history.len()
            && (self.history.len() - kept_from >= EVENTS_MAX || bytes > EVENT_BYTES_MAX)
        {
            bytes -= size(&self.history[kept_from]);
            kept_from += 1;
        }
        self.history.drain(1..kept_from);
        self.history_dropped += (kept_from - 1) as u64;
    }

    pub(super) fn has_event(&self, id: IssueId) -> bool {
        self.history.iter().rev().any(|event| event.id == id)
    }

    pub(super) fn decode(key: &Key, value: &Json) -> Result<Self> {
        serde_json::from_slice(value.as_bytes()).map_err(|error| Error::damaged(key, error))
    }

    pub(super) fn encode(&self) -> Result<Json> {
        Json::from_value(self).map_err(|error| Error::Invalid(error.to_string()))
    }
}

impl<'de> Deserialize<'de> for Issue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        Ok(Self {
            id: members.take("id")?,
            created: members.take("created")?,
            updated: members.take("updated")?,
            state: members.take("state")?,
            severity: members.take("severity")?,
            title: members.take("title")?,
            description: members.take_if("description")?.unwrap_or_default(),
            annotations: members.take_if("annotations")?.unwrap_or_default(),
            archived: members.take_if("archived")?.unwrap_or_default(),
            stale: members.take_if("stale")?.unwrap_or_default(),
            resolved_at: members.take_if("resolvedAt")?.unwrap_or_default(),
            history: members.take_if("history")?.unwrap_or_default(),
            history_dropped: members.take_if("historyDropped")?.unwrap_or_default(),
            other: members,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::What;
    use super::*;

    fn event(why: Option<String>) -> Event {
        Event {
            id: IssueId::random().unwrap(),
            at: Timestamp::UNIX_EPOCH,
            who: "ada".to_owned(),
            change: What::Annotated,
            why,
            other: serde_json::Map::new(),
        }
    }

    fn issue() -> Issue {
        let created = Event { change: What::Created, ..event(None) };
        let new = NewIssue::new("t", Severity::High);
        Issue::new(IssueId::random().unwrap(), new, created)
    }

    #[test]
    fn an_issue_is_written_as_the_document_says_and_read_back() {
        let mut issue = issue();
        issue.resolved_at = Some(Timestamp::UNIX_EPOCH);
        issue.history_dropped = 2;
        let json = issue.encode().unwrap();
        let (id, event) = (issue.id, issue.history[0].id);
        assert_eq!(
            json.as_str(),
            format!(
                r#"{{"id":"{id}","created":"1970-01-01T00:00:00.000000Z","updated":"1970-01-01T00:00:00.000000Z","state":"pending","severity":3,"title":"t","description":[],"annotations":"","archived":false,"stale":false,"resolvedAt":"1970-01-01T00:00:00.000000Z","history":[{{"id":"{event}","at":"1970-01-01T00:00:00.000000Z","who":"ada","change":{{"what":"created"}}}}],"historyDropped":2}}"#
            )
        );
        let key = Key::parse("p:issue:i").unwrap();
        assert_eq!(Issue::decode(&key, &json).unwrap(), issue);
    }

    #[test]
    fn what_is_not_known_survives_digit_for_digit() {
        let known = issue().encode().unwrap();
        let more = r#""ticket":{"n":12345678901234567890123,"x":1.000e2}}"#;
        let json = format!("{},{more}", known.as_str().strip_suffix('}').unwrap());
        let issue: Issue = serde_json::from_str(&json).unwrap();
        assert_eq!(issue.other.names().collect::<Vec<_>>(), ["ticket"]);
        assert_eq!(issue.other.raw("ticket"), Some(r#"{"n":12345678901234567890123,"x":1.000e2}"#));
        assert_eq!(issue.encode().unwrap().as_str(), json);
    }

    #[test]
    fn a_severity_that_there_is_not_makes_no_issue() {
        let json = issue().encode().unwrap().as_str().replace("\"severity\":3", "\"severity\":4");
        let refused = serde_json::from_str::<Issue>(&json).unwrap_err().to_string();
        assert!(refused.contains("severity"), "{refused}");
    }

    #[test]
    fn a_history_keeps_its_beginning_and_its_end() {
        let mut issue = issue();
        for n in 0..600 {
            issue.record(event(Some(n.to_string())));
        }
        assert_eq!((issue.history.len(), issue.history_dropped), (EVENTS_MAX, 101));
        assert_eq!(issue.history[0].change, What::Created);
        assert_eq!(issue.history[1].why.as_deref(), Some("101"));
        assert_eq!(issue.history[499].why.as_deref(), Some("599"));
    }

    #[test]
    fn long_reasons_are_dropped_before_an_entry_is_too_large() {
        let mut issue = issue();
        for _ in 0..600 {
            issue.record(event(Some("🦀".repeat(2_000))));
        }
        assert!(issue.encode().unwrap().len() < 1 << 20);
        assert_eq!(issue.history.len() as u64 + issue.history_dropped, 601);
    }
}
