//! What documents have no place for is refused, and changes nothing.

use std::path::Path;
use std::time::Duration;

use keyward_agents::{Actor, Life, Settings};
use keyward_engine::{
    Code, Coded, Commit, ErrorKind, Expect, Json, Put, ScanOrder, Tier, Version, WatchSupport,
};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_records::Precondition;

use super::place::{InPlace, entry};
use crate::fixture::{put, set};

on_documents!(
    history_is_refused,
    logs_of_runs_are_refused_and_hold_nothing_up,
    settings_and_ends_are_refused,
    other_keys_are_absent_and_cannot_be_written,
    raw_writes_keep_to_the_form_of_an_entry,
    the_capabilities_say_what_there_is,
);

async fn history_is_refused(place: InPlace) {
    let notes = place.namespace("default").await;
    put(&notes, "k", "1").await;
    put(&notes, "k", "2").await;
    let refusals = [
        notes.history("k", None, 10).await.map(drop),
        notes.restore("k", 1, Precondition::Any).await.map(drop),
        notes.redact("k", 1).await.map(drop),
    ];
    for refused in refusals {
        let refused = refused.unwrap_err();
        assert!(refused.to_string().contains("keeps no history"), "{refused}");
    }
    assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), "2");
}

async fn logs_of_runs_are_refused_and_hold_nothing_up(place: InPlace) {
    let agents = place.agents().await;
    let ada = agents.user("ada", Actor::agent("tester").in_run("r1"));
    let notes = ada.use_namespace("default").unwrap();
    put(&notes, "k", "1").await;
    assert!(notes.get("k").await.unwrap().is_some());
    assert_eq!(ada.runs(None, 10).await.unwrap_err().code(), Code::Unsupported);
    assert_eq!(ada.operations("r1", None, 10).await.unwrap_err().code(), Code::Unsupported);
    agents.close().await.unwrap();
    let gathered = agents.gathered();
    assert_eq!((gathered.lines, gathered.accesses), (0, 0));
    assert!(gathered.lines_lost > 0);
    let document = place.meaning("ada:default:aw==").await;
    assert_eq!(document.member("accessCount").unwrap().to_json(), "1");
}

async fn settings_and_ends_are_refused(place: InPlace) {
    let notes = place.namespace("default").await;
    assert_eq!(notes.settings().await.unwrap(), Settings::default());
    for settings in [
        Settings { honour_ttl_seconds: true, ..Settings::default() },
        Settings { ttl: Some(Duration::from_secs(60)), ..Settings::default() },
        Settings::default(),
    ] {
        let refused = notes.configure(settings).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unsupported, "{refused}");
    }
    for life in [Life::After(Duration::from_secs(60)), Life::Sliding(Duration::from_secs(60))] {
        let refused = notes.set("k", set("1").life(life)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unsupported, "{refused}");
    }
    assert_eq!(place.document("ada:default:aw==").await, None);
    assert!(notes.set("k", set("1").life(Life::Never)).await.unwrap().is_accepted());
    // What metadata say of a life is only said.
    let metadata = Json::parse(r#"{"ttl_seconds":1}"#).unwrap();
    assert!(notes.set("k", set("1").metadata(metadata)).await.unwrap().is_accepted());
    place.clock().advance(Duration::from_secs(3_600));
    assert!(notes.get("k").await.unwrap().is_some());
}

async fn other_keys_are_absent_and_cannot_be_written(place: InPlace) {
    let fields = entry("ada", "default", "k", "1");
    place.load(&[("ada:default:aw==", &fields)]).await;
    let before = place.document("ada:default:aw==").await;
    let agents = place.agents().await;
    let store = agents.records().store();
    for key in [
        "agents",
        "agents:ada",
        "agents:ada:default",
        "agents:ada:default:k:more",
        "agents:ada::k",
        "user:ada",
        "ada:default:aw==",
        "system:access:agents:ada",
        "system:access:user:ada",
        "system:history:x",
        "system:catalog",
        "system:cursor-secret",
        "system:agent-log",
        "system:agent-settings:ada:default",
        "system:agent-log:ada:r1:x",
        "system:server:requests",
        "_design/data_store",
    ] {
        let key = Key::parse(key).unwrap();
        let put = Put::new(Json::parse("1").unwrap());
        let refused = store.put(key.clone(), put.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{key}: {refused}");
        let create = Commit::new().check(key.clone(), Expect::Absent).put(key.clone(), put);
        assert!(!store.commit(create).await.is_ok_and(|outcome| outcome.is_applied()), "{key}");
        let is_fixed = store.get(&key).await.unwrap().is_some();
        assert_eq!(store.delete(key.clone()).await.is_err(), is_fixed, "{key}");
    }
    for range in ["user", "system:history", "system:agent-log", "system:server", "_design"] {
        let range = KeyRange::under(&Prefix::parse(range).unwrap());
        let page = store.scan(&keyward_engine::Scan::new(range)).await.unwrap();
        assert!(page.rows.is_empty() && page.next.is_none());
    }
    assert_eq!(place.document("ada:default:aw==").await, before);
}

async fn raw_writes_keep_to_the_form_of_an_entry(place: InPlace) {
    let fields = entry("ada", "default", "k", "1");
    place.load(&[("ada:default:aw==", &fields)]).await;
    let before = place.document("ada:default:aw==").await;
    let agents = place.agents().await;
    let store = agents.records().store();
    let json = |text: &str| Json::parse(text.to_owned()).unwrap();
    let (key, row) = (
        Key::parse("agents:ada:default:k").unwrap(),
        Key::parse("system:access:agents:ada:default:k").unwrap(),
    );
    for value in ["1", "{}", r#"{"value":1}"#, r#"{"createdAt":"x","updatedAt":"y"}"#] {
        let refused = store.put(key.clone(), Put::new(json(value))).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{value}: {refused}");
    }
    let body = json(
        r#"{"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z","value":1}"#,
    );
    let with = Put::new(body).with_metadata(json(r#"{"a":1}"#));
    let refused = store.put(key.clone(), with).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    let refused = store.put(row, Put::new(json("[]"))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    let refused = store.commit(Commit::new().add(key, 1)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    assert_eq!(place.document("ada:default:aw==").await, before);
}

async fn the_capabilities_say_what_there_is(place: InPlace) {
    let agents = place.agents().await;
    let store = agents.records().store();
    let capabilities = store.capabilities();
    assert_eq!(capabilities.tier(), Tier::Recoverable);
    assert_eq!(capabilities.scan_order, ScanOrder::Ordered);
    assert_eq!((capabilities.add, capabilities.watch), (false, WatchSupport::Unsupported));
    assert_eq!(capabilities.engine, place.documents().await.limits().engine);
    let two = Commit::new()
        .delete(Key::parse("agents:ada:default:k").unwrap())
        .delete(Key::parse("agents:ada:default:l").unwrap());
    assert_eq!(store.commit(two).await.unwrap_err().kind(), ErrorKind::LimitExceeded);
    let none = Path::new("/nonexistent/keyward-in-place");
    assert_eq!(store.backup(none).await.unwrap_err().kind(), ErrorKind::Unsupported);
    // A version of another kind never holds.
    let stale = set("1").expecting(Precondition::Version(Version::parse("1-abc")));
    let notes = place.namespace("default").await;
    assert!(!notes.set("k", stale).await.unwrap().is_accepted());
}
