//! Values that do not fit what is declared by now.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded, Put, Store, Tier};
use keyward_records::{Caller, Precondition, Query, Written};
use keyward_testkit::{Faults, FaultyEngine, When};

use crate::declared::{memory, open, open_store};
use crate::fixture::{all, draft, json, key};

const PLAIN: &str = r#"
[stores.app]
[spaces.tasks]
key = "shared:tasks:{task}"
ownership = "shared"
"#;

const INDEXED: &str = r#"
[stores.app]
[spaces.tasks]
key = "shared:tasks:{task}"
ownership = "shared"
[spaces.tasks.indexes.due]
field = "due"
type = "time"
[spaces.tasks.indexes.by_title]
field = "title"
type = "text"
"#;

#[tokio::test(start_paused = true)]
async fn what_a_new_index_cannot_take_can_be_corrected_and_removed() {
    let (memory, clock) = memory(Tier::Atomic);
    let plain = open(&memory, &clock, PLAIN).space("tasks", &Caller::operator()).unwrap();
    let (wrong, worse) = (key("shared:tasks:wrong"), key("shared:tasks:worse"));
    for key in [&wrong, &worse] {
        assert!(plain.put(key, draft(r#"{"due":"tomorrow"}"#)).await.unwrap().is_accepted());
    }
    let tasks = open(&memory, &clock, INDEXED).space("tasks", &Caller::operator()).unwrap();
    let right = draft(r#"{"due":"2026-01-02T00:00:00Z"}"#);
    assert!(tasks.put(&wrong, right).await.unwrap().is_accepted());
    assert_eq!(tasks.delete(&worse, Precondition::Any).await.unwrap(), Written::Removed);
}

/// A value that was written beside the records, under readable indexes of which one cannot take it.
async fn a_raw_value_can_be_corrected_and_removed(tier: Tier) {
    let (memory, clock) = memory(tier);
    let records = open(&memory, &clock, INDEXED);
    let tasks = records.space("tasks", &Caller::operator()).unwrap();
    let right = r#"{"due":"2026-01-01T00:00:00Z","title":"right"}"#;
    assert!(tasks.put(&key("shared:tasks:a"), draft(right)).await.unwrap().is_accepted());
    let raw = Put::new(json(r#"{"due":"tomorrow","title":"raw"}"#));
    for id in ["shared:tasks:b", "shared:tasks:c"] {
        records.store().put(key(id), raw.clone()).await.unwrap();
    }
    // Where reads are late, they are so by a second.
    clock.advance(Duration::from_secs(2));
    // A value that an index cannot take is still refused where it is new.
    let refused = tasks.put(&key("shared:tasks:b"), draft(r#"{"due":"soon"}"#)).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unindexable);
    assert!(tasks.put(&key("shared:tasks:b"), draft(right)).await.unwrap().is_accepted());
    let removed = tasks.delete(&key("shared:tasks:c"), Precondition::Any).await.unwrap();
    assert_eq!(removed, Written::Removed);
    clock.advance(Duration::from_secs(2));
    assert_eq!(all(&tasks, Query::index("by_title")).await, ["a", "b"]);
    assert_eq!(all(&tasks, Query::index("due")).await, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_raw_value_can_be_corrected_and_removed_on_the_atomic_tier() {
    a_raw_value_can_be_corrected_and_removed(Tier::Atomic).await;
}

#[tokio::test(start_paused = true)]
async fn a_raw_value_can_be_corrected_and_removed_on_the_recoverable_tier() {
    a_raw_value_can_be_corrected_and_removed(Tier::Recoverable).await;
}

#[tokio::test(start_paused = true)]
async fn a_raw_value_can_be_corrected_and_removed_on_the_advisory_tier() {
    a_raw_value_can_be_corrected_and_removed(Tier::Advisory).await;
}

const SESSIONS: &str = r#"
[stores.app]
[spaces.sessions]
key = "user:{user}:sessions:{id}"
ownership = "user"
ttl = "1h"
sliding = true
"#;

/// The same, of later: values must have a field, and an index is kept.
const STRICT: &str = r#"
[stores.app]
[spaces.sessions]
key = "user:{user}:sessions:{id}"
ownership = "user"
ttl = "1h"
sliding = true
value = { type = "object", required = ["device"] }
[spaces.sessions.indexes.seen]
field = "seen"
type = "time"
"#;

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_any_more_is_read_and_lives_on() {
    let (memory, clock) = memory(Tier::Atomic);
    let id = key("user:ada:sessions:1");
    let before = open(&memory, &clock, SESSIONS).space("sessions", &Caller::user("ada")).unwrap();
    assert!(before.put(&id, draft(r#"{"seen":"now"}"#)).await.unwrap().is_accepted());
    let now = open(&memory, &clock, STRICT).space("sessions", &Caller::user("ada")).unwrap();
    for _ in 0..4 {
        clock.advance(Duration::from_secs(31 * 60));
        assert!(now.get(&id).await.unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_is_read_though_its_life_cannot_be_prolonged() {
    let (memory, clock) = memory(Tier::Atomic);
    let id = key("user:ada:sessions:1");
    let healthy = open(&memory, &clock, SESSIONS).space("sessions", &Caller::user("ada")).unwrap();
    assert!(healthy.put(&id, draft("{}")).await.unwrap().is_accepted());
    clock.advance(Duration::from_secs(31 * 60));
    // The first call reads the record; all that the touch would do fails.
    let engine = FaultyEngine::new(Arc::new(memory), Faults::crash_at(1, When::Before));
    let failing = open_store(Store::new(engine), &clock, SESSIONS);
    let failing = failing.space("sessions", &Caller::user("ada")).unwrap();
    assert_eq!(failing.get(&id).await.unwrap().unwrap().value.as_str(), "{}");
}
