//! What the app keeps while it works: locks, and when it purged last.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Expiry, Json, Put, moment_text};
use serde_json::{Value, json};

use super::object::Object;
use super::{Taken, What, time};

/// How long the app holds a lock at most.
const LOCK_TIME_MAX: Duration = Duration::from_secs(120);

/// What a page's own key is taken over as: the app's catalog of locks.
pub(super) fn locks(value: &Json, now: Timestamp) -> Taken {
    let Some(catalog) = Object::read(value.as_str()) else { return Taken::Unknown };
    if catalog.get::<String>("keyward").as_deref() == Some("locks") {
        return Taken::Already;
    }
    let is_catalog = ["locks", "version"].iter().any(|member| catalog.has(member))
        || matches!(value.as_str(), "{}");
    if !is_catalog {
        return Taken::Unknown;
    }
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

/// What the mark of the last purge is taken over as.
pub(super) fn purged(value: &Json, now: Timestamp, interval: Duration) -> Taken {
    let is_ours = Object::read(value.as_str()).is_some_and(|mark| {
        mark.get::<String>("at").is_some() && mark.get::<String>("by").is_some()
    });
    if is_ours {
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
        assert!(matches!(seen(r#"{"keyward":"locks","format":1}"#), Taken::Already));
        for other in ["7", "[]", r#"{"name":"Ada"}"#] {
            assert!(matches!(seen(other), Taken::Unknown), "{other}");
        }
    }

    #[test]
    fn the_mark_of_a_purge_ends_when_the_next_is_due() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let day = Duration::from_secs(86_400);
        let seen = |text: &str| purged(&json_of(text), now, day);
        let Taken::Aside(What::Purged, Some(put)) = seen("\"2026-01-01T12:00:00\"") else {
            panic!()
        };
        assert_eq!(put.expiry, Some(Expiry::At("2026-01-02T12:00:00Z".parse().unwrap())));
        assert!(matches!(seen("1735689600000"), Taken::Aside(What::Purged, None)));
        assert!(matches!(seen(r#"{"at":"x","by":"y"}"#), Taken::Already));
        assert!(matches!(seen("true"), Taken::Not(_)));
    }
}
