//! What the app keeps while it works: locks, and when it purged last.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Expiry, Json, Put, moment_text};
use serde_json::{Value, json};

use super::object::Object;
use super::{Taken, What, time};

/// How long the app holds a lock at most.
const LOCK_TIME_MAX: Duration = Duration::from_secs(120);

/// The locks of the two kinds of content of a page, and what the locks of one piece of content begin with.
const LOCKS: [&str; 2] = ["policies", "issues"];
const LOCKS_OF_ONE: [&str; 2] = ["policy:", "issue:"];

/// Whether the value of a page's own key is a lock catalog of the app: `version` and `locks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Catalog {
    /// It is the catalog of a workspace.
    Ours,
    /// Each of its locks is named as the app names them.
    Certain,
    /// It has the members of a catalog and no others. It is one if the page has policies or issues.
    Likely,
    /// It has a member of a catalog, and others.
    Doubtful,
    /// It is something else.
    None,
}

impl Catalog {
    pub fn of(page: &str, value: &Json) -> Self {
        let Ok(Value::Object(members)) = serde_json::from_str(value.as_str()) else {
            return Self::None;
        };
        if members.get("keyward").is_some_and(|name| name == "locks") {
            return Self::Ours;
        }
        let (version, locks) = (members.get("version"), members.get("locks"));
        if version.is_none() && locks.is_none() && !members.is_empty() {
            return Self::None;
        }
        let is_whole = members.keys().all(|name| ["version", "locks"].contains(&&**name))
            && version.is_none_or(Value::is_u64);
        match locks {
            Some(locks) if names_locks(page, locks) => Self::Certain,
            Some(Value::Array(_) | Value::Object(_)) | None if is_whole => Self::Likely,
            _ => Self::Doubtful,
        }
    }
}

/// Whether a catalog has locks, and each has the name of one: as its member, or in its item of a list.
fn names_locks(page: &str, locks: &Value) -> bool {
    let is_name = |text: &str| {
        let is_of_one = |kind: &&str| text.strip_prefix(*kind).is_some_and(|id| !id.is_empty());
        text == page || LOCKS.contains(&text) || LOCKS_OF_ONE.iter().any(is_of_one)
    };
    match locks {
        Value::Object(locks) => !locks.is_empty() && locks.keys().all(|name| is_name(name)),
        Value::Array(locks) => {
            !locks.is_empty()
                && locks.iter().all(|lock| match lock {
                    Value::String(name) => is_name(name),
                    Value::Object(lock) => lock.values().filter_map(Value::as_str).any(is_name),
                    _ => false,
                })
        }
        _ => false,
    }
}

/// What the app's catalog of locks is taken over as.
pub(super) fn locks(value: &Json, now: Timestamp) -> Taken {
    let said: Value = serde_json::from_str(value.as_str()).unwrap_or_default();
    let alive = now.saturating_sub(LOCK_TIME_MAX).unwrap_or(Timestamp::MIN);
    if newest(&said).is_some_and(|newest| newest > alive) {
        let reason =
            "the app took a lock of the page in the last two minutes: stop it, and run this again";
        return Taken::Not(reason.to_owned());
    }
    Taken::Aside(What::Locks, None)
}

/// The latest time that stands anywhere in a catalog.
fn newest(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Array(items) => items.iter().filter_map(newest).max(),
        Value::Object(members) => members.values().filter_map(newest).max(),
        Value::String(_) | Value::Number(_) => {
            let raw = serde_json::value::to_raw_value(value).ok()?;
            // A small number is a version.
            time(&raw).filter(|at| at.as_second() > 86_400)
        }
        Value::Null | Value::Bool(_) => None,
    }
}

/// What the mark of the last purge is taken over as. One that is ours is passed over in the store; from
/// an export it is taken over like the app's.
pub(super) fn purged(value: &Json, is_stored: bool, now: Timestamp, interval: Duration) -> Taken {
    let is_ours = Object::read(value.as_str()).is_some_and(|mark| {
        mark.get::<String>("at").is_some() && mark.get::<String>("by").is_some()
    });
    if is_ours && is_stored {
        return Taken::Already;
    }
    let said: Value = serde_json::from_str(value.as_str()).unwrap_or_default();
    let Some(at) = newest(&said) else {
        return Taken::Not(format!("it holds no time of a purge, but {value}"));
    };
    let next = at.saturating_add(interval).unwrap_or(Timestamp::MAX);
    let mark = Json::from_value(&json!({ "at": moment_text(at), "by": "adopted" }));
    match mark {
        Ok(mark) if next > now => {
            let put = Put { value: mark, metadata: None, expiry: Some(Expiry::At(next)) };
            Taken::Aside(What::Purged, Some(put))
        }
        _ => Taken::Aside(What::Purged, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_of(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn a_catalog_is_moved_aside_unless_the_app_works_on_the_page() {
        let now: Timestamp = "2026-01-01T00:02:00Z".parse().unwrap();
        let seen = |text: &str| locks(&json_of(text), now);
        let old = r#"{"version":7,"locks":{"policy:1":{"at":"2025-12-31T23:59:00Z","owner":"a"}}}"#;
        assert!(matches!(seen(old), Taken::Aside(What::Locks, None)));
        assert!(matches!(seen(r#"{"version":8,"locks":[]}"#), Taken::Aside(What::Locks, None)));
        for live in [
            r#"{"locks":[{"timestamp":"2026-01-01T00:01:00"}]}"#,
            r#"{"locks":{"issues":1767225660000}}"#,
        ] {
            assert!(matches!(seen(live), Taken::Not(_)), "{live}");
        }
    }

    #[test]
    fn a_catalog_is_known_by_its_members_and_the_names_of_its_locks() {
        for (text, expected) in [
            (r#"{"keyward":"locks","format":1}"#, Catalog::Ours),
            (r#"{"version":7,"locks":{"policy:1":{"owner":"a"},"issues":{}}}"#, Catalog::Certain),
            (r#"{"locks":[{"id":"abc123"}],"more":1}"#, Catalog::Certain),
            (r#"{"locks":["policies","issue:7"]}"#, Catalog::Certain),
            (r#"{"version":8,"locks":[]}"#, Catalog::Likely),
            (r#"{"locks":[{"timestamp":"2026-01-01T00:01:00"}]}"#, Catalog::Likely),
            (r#"{"version":8}"#, Catalog::Likely),
            ("{}", Catalog::Likely),
            (r#"{"version":2,"theme":"dark"}"#, Catalog::Doubtful),
            (r#"{"version":"2.0"}"#, Catalog::Doubtful),
            (r#"{"locks":{"door":true},"theme":"dark"}"#, Catalog::Doubtful),
            (r#"{"locks":{"policy:":1},"theme":"dark"}"#, Catalog::Doubtful),
            (r#"{"locks":true}"#, Catalog::Doubtful),
            (r#"{"name":"Ada"}"#, Catalog::None),
            ("[]", Catalog::None),
            ("7", Catalog::None),
        ] {
            assert_eq!(Catalog::of("abc123", &json_of(text)), expected, "{text}");
        }
    }

    #[test]
    fn the_mark_of_a_purge_ends_when_the_next_is_due() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let day = Duration::from_secs(86_400);
        let seen = |text: &str| purged(&json_of(text), true, now, day);
        let Taken::Aside(What::Purged, Some(put)) = seen("\"2026-01-01T12:00:00\"") else {
            panic!()
        };
        assert_eq!(put.expiry, Some(Expiry::At("2026-01-02T12:00:00Z".parse().unwrap())));
        assert!(matches!(seen("1735689600000"), Taken::Aside(What::Purged, None)));
        assert!(matches!(seen(r#"{"at":"x","by":"y"}"#), Taken::Already));
        let ours = json_of(r#"{"at":"2026-01-01T12:00:00Z","by":"y"}"#);
        assert!(matches!(purged(&ours, true, now, day), Taken::Already));
        assert!(matches!(purged(&ours, false, now, day), Taken::Aside(What::Purged, Some(_))));
        assert!(matches!(seen("true"), Taken::Not(_)));
    }
}
