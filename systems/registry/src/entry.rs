//! A policy as its entry holds it.

use std::borrow::Cow;

use bytes::Bytes;
use keyward_engine::Json;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::compare::Layout;
use crate::{Error, Result, Step};

/// A policy of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Its name: the file's, without `.md`.
    pub policy_name: String,
    /// Its title: the first heading.
    pub title: String,
    /// `active`.
    pub status: String,
    /// When it was last added or updated.
    pub last_updated: String,
    /// The id of its content in git. Empty in entries of version 1.
    pub sha: String,
    /// Its path in the repository. Empty in entries of version 1.
    pub path: String,
    /// The policy that had its content before, when it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The whole entry as it is stored, with what is not known here.
    #[serde(skip)]
    pub entry: Json,
}

/// A policy and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The policy.
    pub policy: Policy,
    /// The file's bytes, which are UTF-8.
    pub bytes: Bytes,
}

/// Members that the original no longer uses.
pub(crate) const DEPRECATED: [&str; 3] = ["fileNo", "previewUrl", "downloadUrl"];

impl Policy {
    /// What an entry says of the policy under whose name it is. What is missing is empty.
    pub(crate) fn of(name: &str, entry: Json) -> Self {
        let members = Members::of(&entry);
        let text = |member: &str| members.text(member).unwrap_or_default();
        let policy_name = match text("policyName") {
            named if named.is_empty() => name.to_owned(),
            named => named,
        };
        let (title, status, last_updated) = (text("title"), text("status"), text("lastUpdated"));
        let (sha, path, renamed_from) = (text("sha"), text("path"), members.text("renamedFrom"));
        drop(members);
        Self { policy_name, title, status, last_updated, sha, path, renamed_from, entry }
    }

    /// Whether the entry is of version 1: kept under its title, without a name or a content.
    pub fn is_of_version_1(&self) -> bool {
        self.sha.is_empty() || Members::of(&self.entry).text("policyName").is_none()
    }

    /// Whether the entry says all that a step leaves there.
    pub(crate) fn is_as(&self, step: &Step) -> bool {
        self.policy_name == step.policy_name
            && self.sha == step.sha
            && self.path == step.path
            && self.title == step.title
            && !self.is_of_version_1()
    }
}

/// Whether an entry has members that the original no longer uses.
pub(crate) fn has_deprecated(entry: &Json) -> bool {
    let members = Members::of(entry);
    DEPRECATED.iter().any(|name| members.raw(name).is_some())
}

/// The same entry without them.
pub(crate) fn without_deprecated(entry: &Json) -> Result<Json> {
    let mut members = Members::of(entry);
    members.drop_deprecated();
    members.encode()
}

/// The deprecated number of an entry's file, as it is written there.
pub(crate) fn file_number(entry: &Json) -> Option<Json> {
    Members::of(entry).raw("fileNo").map(|raw| Json::from_stored(raw.to_owned()))
}

/// The entry that a step leaves: what was there, with the members that are known here set anew and
/// everything else as it is written, in its order.
///
/// In a namespace, the programs that read it know no `renamedFrom`: it is set only where an entry has it already.
pub(crate) fn written(
    before: Option<&Json>,
    step: &Step,
    now: &str,
    keeps_deprecated: bool,
    layout: Layout,
) -> Result<Json> {
    let none = Json::from_stored("{}");
    let mut members = Members::of(before.unwrap_or(&none));
    members.set("policyName", &step.policy_name)?;
    members.set("title", &step.title)?;
    if members.text("status").is_none_or(|status| status.is_empty()) {
        members.set("status", "active")?;
    }
    members.set("lastUpdated", now)?;
    members.set("sha", &step.sha)?;
    members.set("path", &step.path)?;
    let has_room = layout == Layout::Own || members.raw("renamedFrom").is_some();
    if let Some(renamed_from) = step.renamed_from.as_ref().filter(|_| has_room) {
        members.set("renamedFrom", renamed_from)?;
    }
    if !keeps_deprecated {
        members.drop_deprecated();
    }
    members.encode()
}

/// The members of an entry, in their order, each as it is written. What is no object has none.
struct Members<'e>(Vec<(Cow<'e, str>, Cow<'e, str>)>);

impl<'e> Members<'e> {
    fn of(entry: &'e Json) -> Self {
        Self(split(entry.as_str()).unwrap_or_default())
    }

    fn raw(&self, name: &str) -> Option<&str> {
        self.position(name).map(|at| &*self.0[at].1)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw).ok())
    }

    fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let value = json_text(text)?;
        match self.position(name) {
            Some(at) => self.0[at].1 = Cow::Owned(value),
            None => self.0.push((Cow::Owned(json_text(name)?), Cow::Owned(value))),
        }
        Ok(())
    }

    fn drop_deprecated(&mut self) {
        self.0.retain(|(raw, _)| !DEPRECATED.iter().any(|name| is_named(raw, name)));
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(raw, _)| is_named(raw, name))
    }

    fn encode(&self) -> Result<Json> {
        let mut text = String::from("{");
        for (at, (name, value)) in self.0.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(name);
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        Json::parse(text).map_err(|error| Error::Invalid(error.to_string()))
    }
}

/// Whether a name as it is written, with its quotes and escapes, is this one.
fn is_named(raw: &str, name: &str) -> bool {
    match raw.contains('\\') {
        true => serde_json::from_str::<String>(raw).is_ok_and(|text| text == name),
        false => raw.get(1..raw.len().saturating_sub(1)) == Some(name),
    }
}

fn json_text(text: &str) -> Result<String> {
    serde_json::to_string(text).map_err(|error| Error::Invalid(error.to_string()))
}

/// The members of an object without white space between its tokens.
fn split(text: &str) -> Option<Vec<(Cow<'_, str>, Cow<'_, str>)>> {
    let mut rest = text.strip_prefix('{')?;
    let mut members = Vec::new();
    while rest != "}" {
        let name = token(&mut rest)?;
        rest = rest.strip_prefix(':')?;
        let value = token(&mut rest)?;
        members.push((Cow::Borrowed(name), Cow::Borrowed(value)));
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(members)
}

/// The value that a text begins with, as it is written.
fn token<'t>(rest: &mut &'t str) -> Option<&'t str> {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&'t RawValue>();
    let raw = values.next()?.ok()?.get();
    *rest = rest.get(values.byte_offset()..)?;
    Some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    fn step() -> Step {
        Step {
            operation: Operation::Update,
            policy_name: "학칙".to_owned(),
            title: "학칙 \"개정\"".to_owned(),
            sha: "a".repeat(40),
            path: "p/학칙.md".to_owned(),
            old_sha: None,
            old_path: None,
            renamed_from: None,
            moved_from_title: None,
        }
    }

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn a_new_entry_has_the_members_of_the_document() {
        let entry = written(None, &step(), "2026-01-01T00:00:00Z", true, Layout::Own).unwrap();
        let sha = "a".repeat(40);
        assert_eq!(
            entry.as_str(),
            format!(
                r#"{{"policyName":"학칙","title":"학칙 \"개정\"","status":"active","lastUpdated":"2026-01-01T00:00:00Z","sha":"{sha}","path":"p/학칙.md"}}"#
            )
        );
    }

    #[test]
    fn what_is_not_known_survives_digit_for_digit_in_its_place() {
        let before = json(
            r#"{"x":1.000e2,"sha":"old","\u0070ath":"old","deep":{"a":[1,{"b":null}],"t":"\u00e9"},"n":12345678901234567890123,"status":"archived","e\u00e9":true}"#,
        );
        let entry = written(Some(&before), &step(), "now", true, Layout::Own).unwrap();
        let sha = "a".repeat(40);
        assert_eq!(
            entry.as_str(),
            format!(
                r#"{{"x":1.000e2,"sha":"{sha}","\u0070ath":"p/학칙.md","deep":{{"a":[1,{{"b":null}}],"t":"\u00e9"}},"n":12345678901234567890123,"status":"archived","e\u00e9":true,"policyName":"학칙","title":"학칙 \"개정\"","lastUpdated":"now"}}"#
            )
        );
        assert!(Policy::of("학칙", entry).is_as(&step()));
    }

    #[test]
    fn in_a_namespace_an_entry_gets_no_member_that_its_readers_do_not_know() {
        let renamed = Step { renamed_from: Some("옛 이름".to_owned()), ..step() };
        let member = r#""renamedFrom":"옛 이름""#;
        let entry = |before: Option<&Json>, layout| {
            written(before, &renamed, "now", true, layout).unwrap().to_string()
        };
        assert!(entry(None, Layout::Own).contains(member));
        let there = json(r#"{"renamedFrom":"x"}"#);
        assert!(entry(Some(&there), Layout::Namespace).contains(member));
        for before in [None, Some(&json(r#"{"sha":"old"}"#))] {
            assert!(!entry(before, Layout::Namespace).contains("renamedFrom"));
        }
    }

    #[test]
    fn deprecated_members_stay_until_their_time_is_over() {
        let before = json(r#"{"fileNo":"868","previewUrl":"u","downloadUrl":"u","other":1}"#);
        assert!(has_deprecated(&before));
        assert_eq!(file_number(&before).unwrap().as_str(), "\"868\"");
        let kept = written(Some(&before), &step(), "now", true, Layout::Own).unwrap();
        assert!(has_deprecated(&kept));
        let dropped = written(Some(&before), &step(), "now", false, Layout::Own).unwrap();
        assert!(!has_deprecated(&dropped) && dropped.as_str().contains(r#""other":1"#));
        assert_eq!(without_deprecated(&before).unwrap().as_str(), r#"{"other":1}"#);
    }

    #[test]
    fn an_entry_of_version_1_and_what_is_no_entry_are_read() {
        let old = Policy::of("학칙 제1호", json(r#"{"title":"학칙 제1호","fileNo":"868"}"#));
        assert!(old.is_of_version_1());
        assert_eq!((&*old.policy_name, &*old.title), ("학칙 제1호", "학칙 제1호"));
        for text in ["null", "[1]", "7", r#"{"sha":7,"policyName":{}}"#] {
            let odd = Policy::of("n", json(text));
            assert!(
                odd.is_of_version_1() && odd.sha.is_empty() && odd.policy_name == "n",
                "{text}"
            );
        }
    }
}
