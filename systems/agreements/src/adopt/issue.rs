//! Issues of the app: of its first version, which knows only whether they are resolved, and of its second, with states.

use std::collections::BTreeMap;

use jiff::Timestamp;
use keyward_engine::{Json, Put, moment_text};
use serde_json::Value;
use serde_json::value::RawValue;

use super::object::Object;
use super::{Taken, What, time};
use crate::{Event, Issue, IssueId, PageId, Part, Reference, SourceId, State};

/// Who is named for what happened before an issue was taken over.
const WHO: &str = "adopted";

/// The documents that an issue refers to.
#[derive(Debug, Default)]
pub(super) struct Documents(BTreeMap<SourceId, (String, Timestamp)>);

impl Documents {
    /// Adds what a policy holds, ours or the app's.
    pub fn add(&mut self, source: SourceId, value: &Json) {
        let Some(document) = Object::read(value.as_str()) else { return };
        let made = document.raw("modified").or(document.raw("created")).and_then(time);
        if let (Some(content), Some(made)) = (document.get("content"), made) {
            self.0.insert(source, (content, made));
        }
    }
}

/// The policies that an issue refers to.
pub(super) fn sources(value: &Json) -> Vec<SourceId> {
    let Some(issue) = Object::read(value.as_str()) else { return Vec::new() };
    let references = parts(&issue).into_iter().filter_map(|part| Object::read(part.get()));
    let named = references.filter_map(|reference| reference.get::<String>("source"));
    named.filter_map(|named| SourceId::new(&named).ok()).collect()
}

/// What an issue is taken over as. One that is ours is passed over in the store, and written as it is
/// from an export.
pub(super) fn taken(
    page: &PageId,
    id: &str,
    value: &Json,
    is_stored: bool,
    documents: &Documents,
) -> Taken {
    let ours = Object::read(value.as_str())
        .filter(|issue| issue.has("history"))
        .and_then(|_| serde_json::from_str::<Issue>(value.as_str()).ok());
    match ours {
        Some(_) if is_stored => return Taken::Already,
        Some(issue) if issue.id.to_string() == id => {
            return Taken::As(What::Issue, Put::new(value.clone()));
        }
        _ => {}
    }
    match converted(page, id, value, documents) {
        Ok(value) => Taken::As(What::Issue, Put::new(value)),
        Err(reason) => Taken::Not(reason),
    }
}

fn converted(page: &PageId, id: &str, value: &Json, documents: &Documents) -> Result<Json, String> {
    let mut issue = Object::read(value.as_str()).ok_or("it is no issue: not an object")?;
    let key_id = IssueId::parse(id).map_err(|error| error.to_string())?;
    if let Some(named) =
        issue.get::<String>("id").filter(|named| IssueId::parse(named).ok() != Some(key_id))
    {
        return Err(format!("it says that it is {named}, and its key says {id}"));
    }
    if key_id.to_string() != id {
        return Err(format!("its id must be written {key_id}"));
    }
    let moment = |name: &str, issue: &Object| match issue.raw(name) {
        None => Ok(None),
        Some(raw) => time(raw)
            .map(Some)
            .ok_or_else(|| format!("its time {name}, {}, cannot be read", raw.get())),
    };
    let created = moment("created", &issue)?.ok_or("it is no issue: it has no time of creation")?;
    let resolved = match moment("resolvedAt", &issue)? {
        Some(at) => Some(at),
        None => moment("resolved", &issue)?,
    };
    let updated = moment("updated", &issue)?;
    let updated = updated.unwrap_or(created).max(resolved.unwrap_or(created));
    let (state, archived) = state(&issue, resolved.is_some())?;
    let severity = severity(&issue)?;
    let description: Vec<Part> = parts(&issue)
        .iter()
        .map(|part| self::part(part, documents, created))
        .collect::<Result<_, _>>()?;
    issue.set("id", &key_id)?;
    issue.set("created", &moment_text(created))?;
    issue.set("updated", &moment_text(updated))?;
    issue.set("state", &state)?;
    issue.set("severity", &severity)?;
    if issue.get::<String>("title").is_none() {
        return Err("it is no issue: it has no title".to_owned());
    }
    issue.set("description", &description)?;
    if issue.get::<String>("annotations").is_none() {
        issue.set("annotations", &"")?;
    }
    let archived = archived || issue.get::<bool>("archived").unwrap_or_default();
    issue.set("archived", &archived)?;
    let stale = issue.get::<bool>("stale").unwrap_or_default();
    issue.set("stale", &stale)?;
    issue.retire("resolved");
    if state == State::Resolved {
        issue.set("resolvedAt", &moment_text(resolved.unwrap_or(updated)))?;
    }
    // The same for whoever takes it over, and however often.
    let event = Event {
        id: IssueId::of_job(&format!("adopted:{page}:{id}")),
        at: created,
        who: WHO.to_owned(),
        change: crate::What::Created,
        why: None,
        other: serde_json::Map::new(),
    };
    issue.set("history", &[event])?;
    let value = issue.write()?;
    serde_json::from_str::<Issue>(value.as_str()).map_err(|error| error.to_string())?;
    Ok(value)
}

/// The state of an issue, and whether it was put away.
fn state(issue: &Object, is_resolved: bool) -> Result<(State, bool), String> {
    let Some(raw) = issue.raw("state") else {
        return Ok((if is_resolved { State::Resolved } else { State::Pending }, false));
    };
    if let Ok(state) = serde_json::from_str(raw.get()) {
        return Ok((state, false));
    }
    match serde_json::from_str::<String>(raw.get()).unwrap_or_default().as_str() {
        "open" => Ok((State::Pending, false)),
        "archived" => Ok((if is_resolved { State::Resolved } else { State::Pending }, true)),
        _ => Err(format!("its state, {}, is none that is known", raw.get())),
    }
}

fn severity(issue: &Object) -> Result<u8, String> {
    let raw = issue.raw("severity").ok_or("it has no severity")?;
    match raw.get() {
        "1" | "\"low\"" => Ok(1),
        "2" | "\"medium\"" => Ok(2),
        "3" | "\"high\"" => Ok(3),
        other => Err(format!("its severity must be 1, 2 or 3, not {other}")),
    }
}

/// The parts of a description: a list of texts and references, or one alone.
fn parts(issue: &Object) -> Vec<Box<RawValue>> {
    let Some(raw) = issue.raw("description") else { return Vec::new() };
    serde_json::from_str(raw.get()).unwrap_or_else(|_| vec![raw.to_owned()])
}

fn part(raw: &RawValue, documents: &Documents, created: Timestamp) -> Result<Part, String> {
    if let Ok(text) = serde_json::from_str(raw.get()) {
        return Ok(Part::Text(text));
    }
    let unread = || format!("a part of its description, {}, cannot be read", raw.get());
    let reference = Object::read(raw.get()).ok_or_else(unread)?;
    let source: String = reference.get("source").ok_or_else(unread)?;
    let source = SourceId::new(&source).map_err(|error| error.to_string())?;
    let (title, excerpt) = (reference.get::<String>("title"), reference.get::<String>("excerpt"));
    let (title, excerpt) = (title.unwrap_or_default(), excerpt.ok_or_else(unread)?);
    let none = (String::new(), created);
    let (content, modified) = documents.0.get(&source).unwrap_or(&none);
    let mut made = Reference::new(source, title, excerpt, *modified, content);
    // Where the app had found it, in whatever it counts, and what else it says.
    let said: BTreeMap<String, Value> = serde_json::from_str(raw.get()).map_err(|_| unread())?;
    let known = ["source", "title", "excerpt", "offset", "length"];
    let mut before = serde_json::Map::new();
    for (name, value) in said {
        if name == "offset" || name == "length" {
            before.insert(name, value);
        } else if !known.contains(&&*name) {
            made.other.insert(name, value);
        }
    }
    if !before.is_empty() {
        made.other.insert("adopted".to_owned(), Value::Object(before));
    }
    Ok(Part::Reference(made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Precision, Severity};

    const ID: &str = "f47ac10b-58cc-4372-a567-0e02b2c3d479";

    fn adopt(text: &str) -> Result<(Issue, String), String> {
        let page = PageId::new("abc123").unwrap();
        let mut documents = Documents::default();
        let document = r#"{"content":"é The leave is one year.","created":"2025-09-01T10:00:00"}"#;
        let source = SourceId::new("att789").unwrap();
        documents.add(source, &Json::parse(document.to_owned()).unwrap());
        let text = text.replace("ID", ID);
        match taken(&page, ID, &Json::parse(text).unwrap(), true, &documents) {
            Taken::As(What::Issue, put) => {
                let written = put.value.to_string();
                let again = taken(&page, ID, &put.value, true, &documents);
                assert!(matches!(again, Taken::Already), "{again:?}");
                let exported = taken(&page, ID, &put.value, false, &documents);
                assert!(matches!(exported, Taken::As(_, as_is) if as_is.value == put.value));
                Ok((serde_json::from_str(&written).unwrap(), written))
            }
            Taken::Not(reason) => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_issue_of_the_first_version_is_resolved_when_it_says_when() {
        let (issue, written) = adopt(
            r#"{"id":"ID","created":"2025-09-02T10:00:00","resolved":"2025-09-03T10:00:00","severity":2,"title":"T","description":"a text","annotations":"note","n":1.50}"#,
        )
        .unwrap();
        assert_eq!((issue.state, issue.severity), (State::Resolved, Severity::Medium));
        assert_eq!(issue.resolved_at.unwrap().to_string(), "2025-09-03T10:00:00Z");
        assert_eq!(issue.updated, issue.resolved_at.unwrap());
        assert_eq!(issue.description, [Part::Text("a text".to_owned())]);
        assert_eq!(issue.annotations, "note");
        assert_eq!((issue.history.len(), &*issue.history[0].who), (1, "adopted"));
        assert!(written.contains(r#""n":1.50"#), "{written}");
        assert!(written.contains(r#""resolved":"2025-09-03T10:00:00""#), "{written}");
        let (open, _) = adopt(r#"{"created":1756807200000,"severity":3,"title":"T"}"#).unwrap();
        assert_eq!((open.state, open.resolved_at), (State::Pending, None));
    }

    #[test]
    fn the_states_of_the_second_version_are_ours() {
        let at = |state: &str| {
            adopt(&format!(
                r#"{{"id":"ID","created":"2025-09-02T10:00:00Z","updated":"2025-09-04T10:00:00Z","state":"{state}","severity":1,"title":"T","description":[]}}"#
            ))
        };
        for (state, expected, archived) in [
            ("pending", State::Pending, false),
            ("active", State::Active, false),
            ("blocked", State::Blocked, false),
            ("resolved", State::Resolved, false),
            ("open", State::Pending, false),
            ("archived", State::Pending, true),
        ] {
            let (issue, written) = at(state).unwrap();
            assert_eq!((issue.state, issue.archived), (expected, archived), "{state}");
            assert_eq!(issue.resolved_at.is_some(), expected == State::Resolved);
            assert!(written.contains(&format!("\"{state}\"")), "{written}");
        }
        assert!(at("lost").unwrap_err().contains("\"lost\""));
    }

    #[test]
    fn a_reference_is_found_again_in_its_document() {
        let (issue, written) = adopt(
            r#"{"id":"ID","created":"2025-09-02T10:00:00","severity":1,"title":"T","description":["see ",{"source":"att789","title":"Leave","excerpt":"one year","offset":99,"length":8,"page":2},{"source":"gone","title":"G","excerpt":"x","offset":7,"length":1}]}"#,
        )
        .unwrap();
        let references: Vec<&Reference> = issue.references().collect();
        assert_eq!((references[0].offset, references[0].length), (15, 8));
        assert_eq!(references[0].located, Precision::Exact);
        assert_eq!(references[0].modified.to_string(), "2025-09-01T10:00:00Z");
        assert_eq!(references[0].other["page"], 2);
        assert_eq!(references[1].located, Precision::None);
        assert_eq!(references[1].other["adopted"]["offset"], 7);
        assert_eq!(references[1].modified, issue.created);
        assert!(written.contains(r#""offset":99"#), "{written}");
    }

    #[test]
    fn what_is_no_issue_is_told() {
        for (text, told) in [
            ("7", "not an object"),
            (r#"{"severity":1,"title":"T"}"#, "time of creation"),
            (r#"{"created":1,"severity":4,"title":"T"}"#, "not 4"),
            (r#"{"created":1,"severity":1}"#, "no title"),
            (r#"{"id":"other","created":1,"severity":1,"title":"T"}"#, "other"),
            (r#"{"created":1,"severity":1,"title":"T","description":[7]}"#, "7"),
        ] {
            let refused = adopt(text).unwrap_err();
            assert!(refused.contains(told), "{text}: {refused}");
        }
    }
}
