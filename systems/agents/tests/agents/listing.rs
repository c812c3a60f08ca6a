//! Keys, namespaces and entries in pages.

use std::sync::Arc;

use keyward_agents::{Actor, Agents, Options};
use keyward_engine::{Store, Tier};
use keyward_stores::{Place, on_engines};
use keyward_testkit::{Faults, FaultyEngine, TestClock};

use crate::fixture::{Fixture, json, keys, namespaces, put, set};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded,
    postgres: Postgres;
    namespaces_and_keys_are_listed_in_order_each_in_its_place,
    a_namespace_is_cleared_and_counted,
    a_namespace_tells_what_it_holds,
    ten_thousand_and_fifty_keys_are_listed,
);

async fn namespaces_and_keys_are_listed_in_order_each_in_its_place(place: Place) {
    let fixture = Fixture::new(place).await;
    let names = ["a", "cache:github", "files", "files:apache/repo", "files:my-repo", "학칙"];
    for name in names.iter().rev() {
        let namespace = fixture.namespace(name);
        for key in ["src/main.py", "b", "a:b", "src/lib.rs", "src"] {
            put(&namespace, key, "1").await;
        }
    }
    put(&fixture.user("adam").use_namespace("zzz").unwrap(), "k", "1").await;
    for limit in [1, 2, 1_000] {
        assert_eq!(namespaces(&fixture.user("ada"), limit).await, names);
        for name in names {
            let namespace = fixture.namespace(name);
            assert_eq!(
                keys(&namespace, "", limit).await,
                ["a:b", "b", "src", "src/lib.rs", "src/main.py"]
            );
            assert_eq!(keys(&namespace, "src/", limit).await, ["src/lib.rs", "src/main.py"]);
            assert_eq!(keys(&namespace, "a:", limit).await, ["a:b"]);
            assert!(keys(&namespace, "x", limit).await.is_empty());
        }
    }
    let page = fixture.namespace("files").get_all("src", None, 2).await.unwrap();
    let found: Vec<&str> = page.entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(found, ["src", "src/lib.rs"]);
    let rest = fixture.namespace("files").get_all("src", page.next, 2).await.unwrap();
    assert_eq!((rest.entries[0].key.as_str(), rest.next), ("src/main.py", None));
    assert!(namespaces(&fixture.user("nobody"), 10).await.is_empty());
}

async fn a_namespace_is_cleared_and_counted(place: Place) {
    let fixture = Fixture::new(place).await;
    let files = fixture.namespace("files");
    let entries = (0..250).map(|n| (format!("k{n:03}"), set("1"))).collect();
    for written in files.set_many(entries).await.unwrap() {
        assert!(written.is_accepted());
    }
    put(&fixture.namespace("files:my-repo"), "k", "1").await;
    assert!(files.get("k000").await.unwrap().is_some());
    fixture.agents.flush().await.unwrap();
    assert_eq!(files.count("k1").await.unwrap(), 100);
    assert_eq!(files.clear("k1").await.unwrap(), 100);
    assert_eq!(files.count("").await.unwrap(), 150);
    assert_eq!(files.clear("").await.unwrap(), 150);
    assert_eq!(files.clear("").await.unwrap(), 0);
    assert_eq!(keys(&fixture.namespace("files:my-repo"), "", 10).await, ["k"]);
    assert_eq!(namespaces(&fixture.user("ada"), 10).await, ["files:my-repo"]);
    // Nothing is remembered of those that are gone.
    fixture.agents.close().await.unwrap();
    let rows = keyward_key::Prefix::from_segments(["system", "access"]);
    let scan = keyward_engine::Scan::new(keyward_key::KeyRange::under(&rows)).limit(1_000);
    let rows = fixture.store().scan(&scan).await.unwrap().rows;
    assert_eq!(
        rows.len(),
        1,
        "{:?}",
        rows.iter().map(|row| row.key.to_string()).collect::<Vec<_>>()
    );
}

async fn a_namespace_tells_what_it_holds(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("default");
    let empty = notes.stats().await.unwrap();
    assert_eq!((empty.record_count, empty.updated_at.as_deref()), (0, None));
    let entries = (0..150).map(|n| (format!("k{n:03}"), set("12345"))).collect();
    for written in notes.set_many(entries).await.unwrap() {
        assert!(written.is_accepted());
    }
    fixture.place.clock().advance(std::time::Duration::from_secs(1));
    let said = set("12345").metadata(json(r#"{"a":1}"#));
    let nobody = fixture.agents.user("ada", Actor::nobody()).use_namespace("default").unwrap();
    assert!(nobody.set("k007", said).await.unwrap().is_accepted());
    let reader =
        fixture.agents.user("ada", Actor::agent("reader")).use_namespace("default").unwrap();
    assert!(reader.get("k149").await.unwrap().is_some());
    let stats = notes.stats().await.unwrap();
    assert_eq!(
        stats.to_json().as_str(),
        r#"{"namespace":"default","recordCount":150,"sizeBytes":757,"agents":["reader","tester"],"updatedAt":"2026-01-01T00:00:01.000000Z"}"#
    );
}

async fn ten_thousand_and_fifty_keys_are_listed(place: Place) {
    let fixture = Fixture::new(place).await;
    let many = fixture.namespace("many");
    let all: Vec<String> = (0..10_050).map(|n| format!("key-{n:05}")).collect();
    for some in all.chunks(1_000) {
        let entries = some.iter().map(|key| (key.clone(), set("1"))).collect();
        many.set_many(entries).await.unwrap();
    }
    assert_eq!(keys(&many, "", 1_000).await, all);
    assert_eq!(keys(&many, "key-1", 7).await.len(), 50);
    assert_eq!(many.count("").await.unwrap(), 10_050);
    // Beside them, listing the namespaces reads next to nothing.
    assert_eq!(namespaces(&fixture.user("ada"), 100).await, ["many"]);
}

#[tokio::test]
async fn listing_namespaces_jumps_over_their_entries() {
    let clock = TestClock::new();
    let memory =
        keyward_memory::Memory::with(keyward_memory::Options::tier(Tier::Atomic), clock.clone());
    let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
    let agents = Agents::alone(Store::new(engine.clone()), Options::default(), clock).unwrap();
    let ada = agents.user("ada", Actor::nobody());
    for namespace in ["a", "b", "c"] {
        let namespace = ada.use_namespace(namespace).unwrap();
        for some in 0..3 {
            let entries = (0..1_000).map(|n| (format!("{some}-{n}"), set("1"))).collect();
            namespace.set_many(entries).await.unwrap();
        }
    }
    let before = engine.calls();
    assert_eq!(namespaces(&ada, 100).await, ["a", "b", "c"]);
    let calls = engine.calls() - before;
    assert!(calls <= 6, "{calls} calls for three namespaces");
}
