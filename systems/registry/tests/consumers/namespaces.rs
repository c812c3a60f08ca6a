//! Exports into another store, as a namespace of a service that others read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Json, Put, Scan, Store, Tier};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use keyward_registry::{OpenStore, Options, Registry, Repaired, Settings};
use keyward_testkit::{Faults, FaultyEngine, When};
use serde_json::{Value, json};

use crate::fixture::{Fixture, drained};

/// The namespace that policies are exported to.
struct Namespace {
    fixture: Fixture,
    engine: FaultyEngine,
}

impl Namespace {
    fn new() -> Self {
        let fixture = Fixture::new();
        let options = keyward_memory::Options::tier(Tier::Advisory);
        let memory = Memory::with(options, fixture.clock.clone());
        let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
        Self { fixture, engine }
    }

    fn registry(&self) -> Registry {
        self.registry_with(self.engine.clone(), self.fixture.store())
    }

    /// The registry of a process with this namespace and this store.
    fn registry_with(&self, engine: FaultyEngine, store: Store) -> Registry {
        let settings = json!({
            "repository": self.fixture.repository.location(), "retries": 3,
            "consumers": { "edge": { "store": "cloudflare-kv://account/namespace", "timeout": "5s" } },
        });
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let open_store = OpenStore::new(move |url| {
            assert_eq!(url, "cloudflare-kv://account/namespace");
            let opened = Store::new(engine.clone());
            Box::pin(async { Ok(opened) })
        });
        let options = Options { open_store: Some(open_store), ..Options::default() };
        let (cache, clock) = (self.fixture.path("cache"), self.fixture.clock.clone());
        Registry::open_with("policies", store, settings, Path::new(&cache), clock, options).unwrap()
    }

    /// What others read there, once it is visible.
    async fn shown(&self) -> Vec<(String, String)> {
        self.fixture.clock.advance(Duration::from_secs(60));
        let scan = Scan::new(KeyRange::all()).limit(1_000);
        let rows = self.engine.inner().scan(&scan).await.unwrap().rows.into_iter();
        rows.map(|row| (row.key.to_string(), row.entry.unwrap().value.to_string())).collect()
    }

    /// What the registry itself has under these keys.
    async fn kept(&self) -> Vec<(String, String)> {
        let scan = Scan::new(KeyRange::all()).limit(1_000);
        let rows = self.fixture.store().scan(&scan).await.unwrap().rows.into_iter();
        rows.map(|row| (row.key.to_string(), row.entry.unwrap().value.to_string()))
            .filter(|(key, _)| key.starts_with("policy:") || key.starts_with("metadata:"))
            .collect()
    }

    async fn put(&self, key: &str, value: &str) {
        let put = Put::new(Json::parse(value.to_owned()).unwrap());
        Store::from_arc(self.engine.inner()).put(Key::parse(key).unwrap(), put).await.unwrap();
    }
}

#[tokio::test]
async fn entries_are_copied_as_they_are_and_the_last_commit_with_them() {
    let namespace = Namespace::new();
    let (fixture, registry) = (&namespace.fixture, namespace.registry());
    namespace.put("other:1", r#"{"theirs":1.50}"#).await;
    fixture.repository.write("학칙.md", "# 한국교원대학교 학칙\n").write("b.md", "# B\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(2, 0, 0));
    let theirs = ("other:1".to_owned(), r#"{"theirs":1.50}"#.to_owned());
    let mut expected = namespace.kept().await;
    assert_eq!(expected.len(), 4);
    expected.insert(2, theirs.clone());
    assert_eq!(namespace.shown().await, expected);
    let policy: Value = serde_json::from_str(&expected[4].1).unwrap();
    assert_eq!(
        (&policy["policyName"], &policy["title"]),
        (&json!("학칙"), &json!("한국교원대학교 학칙"))
    );

    fixture.repository.write("학칙.md", "# 개정\n").remove("b.md");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(2, 0, 0));
    let mut expected = namespace.kept().await;
    expected.insert(2, theirs);
    assert_eq!(namespace.shown().await, expected);
    assert_eq!(expected.len(), 4, "b is deleted");
}

#[tokio::test]
async fn a_namespace_that_is_away_is_tried_again_and_put_right_in_the_end() {
    let namespace = Namespace::new();
    let (fixture, registry) = (&namespace.fixture, namespace.registry());
    fixture.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    fixture.sync(&registry).await;
    namespace.engine.kill();
    for left in [2, 2, 0] {
        assert_eq!(fixture.drain(&registry).await, drained(0, 2, left));
    }
    assert_eq!(fixture.dead_letters(&registry).await.len(), 2);
    assert!(registry.repair("edge").await.is_err());
    assert_eq!(namespace.shown().await, []);

    let later = namespace.registry_with(namespace.engine.revive(), fixture.store());
    let repaired = later.repair("edge").await.unwrap();
    let expected = Repaired { checked: 2, written: 2, dead_letters: 2, ..Repaired::default() };
    assert_eq!(repaired, expected);
    assert_eq!(namespace.shown().await, namespace.kept().await);
    // What others changed or removed is put right; what is not ours stays.
    namespace.put("policy:a", "1").await;
    namespace.put("policy:theirs", "2").await;
    Store::from_arc(namespace.engine.inner())
        .delete(Key::parse("policy:b").unwrap())
        .await
        .unwrap();
    fixture.clock.advance(Duration::from_secs(60));
    let repaired = later.repair("edge").await.unwrap();
    let expected = Repaired { checked: 2, written: 2, unknown: 1, ..Repaired::default() };
    assert_eq!(repaired, expected);
    assert_eq!(namespace.shown().await.len(), 5);
    let again = later.repair("edge").await.unwrap();
    assert_eq!(again, Repaired { checked: 2, unknown: 1, ..Repaired::default() });
}

#[tokio::test]
async fn what_an_export_that_died_at_any_call_left_is_done_by_the_next() {
    for of_the_namespace in [true, false] {
        let prepared = async |faults: Faults| {
            let namespace = Namespace::new();
            let (fixture, registry) = (&namespace.fixture, namespace.registry());
            fixture.repository.write("a.md", "# A\n").write("gone.md", "# Gone\n");
            fixture.sync(&registry).await;
            fixture.drain(&registry).await;
            fixture.repository.write("a.md", "# A2\n").write("new.md", "# New\n").remove("gone.md");
            fixture.sync(&registry).await;
            let engine = match of_the_namespace {
                true => FaultyEngine::new(namespace.engine.inner(), faults),
                false => FaultyEngine::new(fixture.engine.clone(), faults),
            };
            let dying = match of_the_namespace {
                true => namespace.registry_with(engine.clone(), fixture.store()),
                false => {
                    namespace.registry_with(namespace.engine.clone(), Store::new(engine.clone()))
                }
            };
            let draining = tokio::time::timeout(Duration::from_secs(30), dying.drain());
            let _ = draining.await.expect("dead processes do not wait");
            (namespace, engine.calls())
        };
        let (_, calls) = prepared(Faults::none()).await;
        assert!(calls >= 5, "{calls}");
        for call in 0..calls {
            for when in [When::Before, When::After] {
                let (namespace, _) = prepared(Faults::crash_at(call, when)).await;
                let told = format!("{of_the_namespace} {when:?} call {call}");
                namespace.fixture.clock.advance(Duration::from_secs(600));
                let registry = namespace.registry();
                let done = namespace.fixture.drain(&registry).await;
                assert_eq!((done.failed, done.left), (0, 0), "{told}");
                registry.repair("edge").await.unwrap();
                assert_eq!(namespace.shown().await, namespace.kept().await, "{told}");
            }
        }
    }
}

#[tokio::test]
async fn a_program_that_opens_no_stores_says_so() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "edge": { "store": "memory:" } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    let error = registry.queue().message("a").await.unwrap().unwrap().error.unwrap();
    assert!(error.contains("consumer edge: this program opens no stores"), "{error}");
}
