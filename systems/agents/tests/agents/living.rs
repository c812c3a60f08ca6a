//! Entries that end.

use std::time::Duration;

use keyward_agents::{Actor, Life, Namespace, Patch, Settings};
use keyward_engine::{Code, Coded};
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, json, put, set};

// PostgreSQL goes by its own clock, which no test can move.
on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded;
    an_entry_ends_when_it_was_told_to,
    a_namespace_says_how_long_its_entries_live,
    ttl_seconds_are_honoured_where_the_namespace_asks_for_it,
    what_is_known_about_accesses_outlives_nobody,
    what_is_known_about_accesses_stays_as_long_as_its_entry,
);

const MINUTE: Duration = Duration::from_secs(60);

async fn is_there(namespace: &Namespace, key: &str) -> bool {
    // Seen without reading it, which might prolong its life.
    !namespace.list_keys(key, None, 1).await.unwrap().keys.is_empty()
}

async fn an_entry_ends_when_it_was_told_to(place: Place) {
    let fixture = Fixture::new(place).await;
    let cache = fixture.namespace("cache");
    let clock = fixture.place.clock();
    for (key, life) in [
        ("after", Life::After(10 * MINUTE)),
        ("sliding", Life::Sliding(10 * MINUTE)),
        ("never", Life::Never),
    ] {
        assert!(cache.set(key, set("1").life(life)).await.unwrap().is_accepted());
    }
    clock.advance(6 * MINUTE);
    for key in ["after", "sliding", "never"] {
        assert!(cache.get(key).await.unwrap().is_some(), "{key}");
    }
    // A patch keeps an end.
    let patch = Patch::new().value(json("2"));
    assert!(cache.patch("after", patch).await.unwrap().is_accepted());
    clock.advance(6 * MINUTE);
    assert!(!is_there(&cache, "after").await);
    assert!(is_there(&cache, "sliding").await);
    clock.advance(11 * MINUTE);
    assert!(!is_there(&cache, "sliding").await);
    assert!(is_there(&cache, "never").await);
    let zero = cache.set("zero", set("1").ttl(Duration::ZERO)).await.unwrap_err();
    assert_eq!(zero.code(), Code::Invalid);
}

async fn a_namespace_says_how_long_its_entries_live(place: Place) {
    let fixture = Fixture::new(place).await;
    let cache = fixture.namespace("cache");
    let clock = fixture.place.clock();
    let other = fixture.again().await;
    let others = other.user("ada", Actor::agent("rival")).use_namespace("cache").unwrap();
    put(&others, "before", "1").await;
    let settings = Settings { ttl: Some(10 * MINUTE), ..Settings::default() };
    cache.configure(settings).await.unwrap();
    assert_eq!(others.settings().await.unwrap(), settings);
    // Other processes go by it soon.
    clock.advance(Duration::from_secs(6));
    put(&others, "k", "1").await;
    let longer = set("1").ttl(60 * MINUTE);
    assert!(others.set("longer", longer).await.unwrap().is_accepted());
    put(&fixture.namespace("cache:other"), "k", "1").await;
    clock.advance(11 * MINUTE);
    assert_eq!(crate::fixture::keys(&cache, "", 10).await, ["before", "longer"]);
    assert!(is_there(&fixture.namespace("cache:other"), "k").await);
    // Sliding: reading prolongs.
    let settings = Settings { ttl: Some(10 * MINUTE), sliding: true, ..Settings::default() };
    cache.configure(settings).await.unwrap();
    put(&cache, "s", "1").await;
    for _ in 0..3 {
        clock.advance(6 * MINUTE);
        assert!(cache.get("s").await.unwrap().is_some());
    }
    clock.advance(11 * MINUTE);
    assert!(!is_there(&cache, "s").await);
    cache.configure(Settings::default()).await.unwrap();
    assert_eq!(others.settings().await.unwrap(), Settings::default());
    let nonsense = Settings { sliding: true, ..Settings::default() };
    assert_eq!(cache.configure(nonsense).await.unwrap_err().code(), Code::Invalid);
}

async fn ttl_seconds_are_honoured_where_the_namespace_asks_for_it(place: Place) {
    let fixture = Fixture::new(place).await;
    let cache = fixture.namespace("cache:github");
    let plain = fixture.namespace("plain");
    let clock = fixture.place.clock();
    let settings = Settings { honour_ttl_seconds: true, ..Settings::default() };
    cache.configure(settings).await.unwrap();
    let hour = || set("[]").metadata(json(r#"{"ttl_seconds":3600}"#));
    for namespace in [&cache, &plain] {
        assert!(namespace.set("repos", hour()).await.unwrap().is_accepted());
    }
    put(&cache, "for ever", "1").await;
    clock.advance(30 * MINUTE);
    // Set again, it begins anew: the metadata is merged, so it still asks for an hour.
    put(&cache, "repos", "[1]").await;
    clock.advance(45 * MINUTE);
    assert!(is_there(&cache, "repos").await);
    let shorter = Patch::new().metadata(json(r#"{"ttl_seconds":60}"#));
    assert!(cache.patch("repos", shorter).await.unwrap().is_accepted());
    clock.advance(2 * MINUTE);
    assert!(!is_there(&cache, "repos").await);
    assert!(is_there(&cache, "for ever").await && is_there(&plain, "repos").await);
    for wrong in [r#"{"ttl_seconds":0}"#, r#"{"ttl_seconds":"3600"}"#] {
        let wrong = cache.set("repos", set("1").metadata(json(wrong))).await.unwrap_err();
        assert_eq!(wrong.code(), Code::BadChange);
    }
    assert!(!is_there(&cache, "repos").await);
}

async fn what_is_known_about_accesses_outlives_nobody(place: Place) {
    let fixture = Fixture::new(place).await;
    let cache = fixture.namespace("cache");
    let clock = fixture.place.clock();
    let day = 24 * 60 * MINUTE;
    assert!(cache.set("k", set("1").life(Life::Sliding(day))).await.unwrap().is_accepted());
    assert!(cache.get("k").await.unwrap().is_some());
    fixture.agents.flush().await.unwrap();
    // Kept alive for a week by readers who are no agents, the count stays.
    let nobody = fixture.agents.user("ada", Actor::nobody()).use_namespace("cache").unwrap();
    for _ in 0..10 {
        clock.advance(18 * 60 * MINUTE);
        assert!(nobody.get("k").await.unwrap().is_some());
        fixture.agents.flush().await.unwrap();
    }
    assert_eq!(nobody.entry("k").await.unwrap().unwrap().access.count, 1);
    clock.advance(3 * day);
    let rows = keyward_key::Prefix::from_segments(["system", "access"]);
    let scan = keyward_engine::Scan::new(keyward_key::KeyRange::under(&rows));
    assert!(fixture.store().scan(&scan).await.unwrap().rows.is_empty());
}

#[tokio::test]
async fn rows_of_entries_that_end_by_the_schema_end_too() {
    const SCHEMA: &str = "[stores.app]\n[spaces.agent_data_store]\nownership = 'user'\n\
                          key = 'agents:{user}:{namespace}:{key}'\nttl = '1h'\n";
    let place = Place::new(keyward_stores::Kind::Memory);
    let agents = crate::fixture::declared(place.store().await, &place, SCHEMA);
    let notes = agents.user("ada", Actor::agent("a")).use_namespace("notes").unwrap();
    put(&notes, "written", "1").await;
    put(&notes, "read", "1").await;
    assert!(notes.get("read").await.unwrap().is_some());
    agents.close().await.unwrap();
    place.clock().advance(48 * 60 * MINUTE);
    let everything = keyward_engine::Scan::new(keyward_key::KeyRange::all());
    let left = agents.records().store().scan(&everything).await.unwrap().rows;
    let left: Vec<String> = left.iter().map(|row| row.key.to_string()).collect();
    assert!(!left.iter().any(|key| key.contains("notes")), "{left:?}");
}

/// Somebody read the entry before its life was prolonged, and tells of it after.
async fn what_is_known_about_accesses_stays_as_long_as_its_entry(place: Place) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let fixture = Fixture::new(place).await;
    let cache = fixture.namespace("cache");
    for (key, life) in [("k1", Life::After(30 * DAY)), ("k2", Life::Never)] {
        let other = fixture.again().await;
        let others = other.user("ada", Actor::agent("other")).use_namespace("cache").unwrap();
        assert!(cache.set(key, set("1").ttl(MINUTE)).await.unwrap().is_accepted());
        assert!(others.get(key).await.unwrap().is_some());
        assert!(cache.set(key, set("2").life(life)).await.unwrap().is_accepted());
        assert!(cache.get(key).await.unwrap().is_some());
        fixture.agents.flush().await.unwrap();
        other.flush().await.unwrap();
    }
    fixture.place.clock().advance(20 * DAY);
    for key in ["k1", "k2"] {
        let nobody = fixture.again().await.user("ada", Actor::nobody());
        let entry = nobody.use_namespace("cache").unwrap().entry(key).await.unwrap();
        assert_eq!(entry.unwrap().access.count, 2, "{key}");
    }
    // And no longer, although somebody saw it without an end.
    let other = fixture.again().await;
    let others = other.user("ada", Actor::agent("other")).use_namespace("cache").unwrap();
    assert!(others.get("k2").await.unwrap().is_some());
    assert!(cache.set("k2", set("3").ttl(MINUTE)).await.unwrap().is_accepted());
    fixture.agents.flush().await.unwrap();
    other.flush().await.unwrap();
    fixture.place.clock().advance(2 * DAY);
    let row = "system:access:agents:ada:cache:k2".parse().unwrap();
    assert_eq!(fixture.store().get(&row).await.unwrap(), None);
}
