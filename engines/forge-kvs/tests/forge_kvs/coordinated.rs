//! With a coordinator: an atomic store whose values an app reads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyward_coordinated::Coordinated;
use keyward_engine::{
    BoxFuture, Capabilities, Clock, Commit, Durability, Engine, ErrorKind, Expect, Result, Sharing,
    Store,
};
use keyward_forge_kvs::{Options, Sidecars};
use keyward_memory::Memory;
use keyward_testkit::{Faults, FaultyEngine, Place, TestClock, conformance};
use serde_json::json;

use crate::installation::{Installation, OnTestClock, key, put};

/// An installation, and a coordinator that outlives its engine as one on a disk would.
struct InForge {
    installation: Installation,
    coordinator: Mutex<Option<Arc<dyn Engine>>>,
}

impl InForge {
    fn new() -> Self {
        Self { installation: Installation::new(), coordinator: Mutex::default() }
    }

    fn coordinator(&self, clock: &TestClock, history: Option<usize>) -> Arc<dyn Engine> {
        let make = || {
            let mut options = keyward_memory::Options::default();
            options.history = history.unwrap_or(options.history);
            let memory = Arc::new(Memory::with(options, clock.clone()));
            let shared = |capabilities: &mut Capabilities| {
                capabilities.durability = Durability::Synced;
                capabilities.sharing = Sharing::Network;
            };
            Arc::new(FaultyEngine::new(memory, Faults::none()).acting_as(shared)) as Arc<dyn Engine>
        };
        self.coordinator.lock().unwrap().get_or_insert_with(make).clone()
    }

    async fn coordinated(&self, clock: TestClock, history: Option<usize>) -> Coordinated {
        let mut options = self.installation.options();
        options.sidecars = Sidecars::Needed;
        self.try_coordinated(options, clock, history).await.unwrap()
    }

    async fn try_coordinated(
        &self,
        options: Options,
        clock: TestClock,
        history: Option<usize>,
    ) -> Result<Coordinated> {
        let values = OnTestClock::open(&self.installation, options, clock.clone()).await;
        let coordinator = self.coordinator(&clock, history);
        let options = keyward_coordinated::Options::default();
        Coordinated::open(Arc::new(values), coordinator, options, clock).await
    }
}

impl Place for InForge {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async { Arc::new(self.coordinated(clock, None).await) as Arc<dyn Engine> })
    }

    fn open_with_history(
        &self,
        clock: TestClock,
        commits: usize,
    ) -> Option<BoxFuture<'_, Arc<dyn Engine>>> {
        Some(Box::pin(async move {
            Arc::new(self.coordinated(clock, Some(commits)).await) as Arc<dyn Engine>
        }))
    }
}

conformance!(forge, InForge::new());

/// Longer than a value stays in the coordinator, and reads are late.
const SETTLED: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn an_app_reads_every_value_and_settled_ones_are_read_from_forge() {
    let (place, clock) = (InForge::new(), TestClock::new());
    let engine = Arc::new(place.coordinated(clock.clone(), None).await);
    let store = Store::from_arc(engine.clone());
    let mut versions = Vec::new();
    for n in 0..30 {
        let commit = Commit::new()
            .check(key(&format!("abc123:issue:{n}")), Expect::Absent)
            .put(key(&format!("abc123:issue:{n}")), put(&format!(r#"{{"n":{n},"title":"학칙"}}"#)))
            .put(key("job:7"), put(&n.to_string()));
        let outcome = store.commit(commit).await.unwrap();
        versions.push(outcome.versions().unwrap()[0].clone());
    }
    clock.advance(SETTLED);
    engine.settle().await.unwrap();
    let shown = place.installation.stored(&["abc123:issue:17", "job:7"]).await;
    assert_eq!(shown, [Some(json!({"n": 17, "title": "학칙"})), Some(json!(29))]);
    let names = place.installation.names().await;
    assert_eq!(names.len(), 31, "nothing but the keys themselves: {names:?}");

    for (n, version) in versions.into_iter().enumerate() {
        let entry = store.get(&key(&format!("abc123:issue:{n}"))).await.unwrap().unwrap();
        assert_eq!(entry.value.as_str(), format!(r#"{{"n":{n},"title":"학칙"}}"#));
        assert_eq!(Some(entry.version), version);
    }
}

#[tokio::test]
async fn what_an_app_filled_is_adopted_and_what_it_changes_is_taken_over() {
    let (place, clock) = (InForge::new(), TestClock::new());
    place.installation.control(json!({"now": clock.now().as_millisecond()})).await;
    for (name, value) in [("abc123:policy:a", json!({"text": 1})), ("system:purged", json!(7))] {
        place.installation.write(name, value).await;
    }
    let engine = Arc::new(place.coordinated(clock.clone(), None).await);
    let store = Store::from_arc(engine.clone());
    let policy = key("abc123:policy:a");
    let adopted = store.get(&policy).await.unwrap().unwrap();
    assert_eq!(adopted.value.as_str(), r#"{"text":1}"#);
    assert!(store.get(&key("system:purged")).await.unwrap().is_some());
    assert_eq!(place.installation.names().await.len(), 2, "adopting writes nothing there");

    place.installation.write("abc123:policy:a", json!({"text": 2})).await;
    clock.advance(SETTLED);
    engine.settle().await.unwrap();
    let changed = store.get(&policy).await.unwrap().unwrap();
    assert_eq!(changed.value.as_str(), r#"{"text":2}"#);
    assert_ne!(changed.version, adopted.version);
}

#[tokio::test]
async fn a_coordinator_of_plain_keys_is_refused_for_an_entity_and_for_another_name() {
    let (place, clock) = (InForge::new(), TestClock::new());
    drop(place.coordinated(clock.clone(), None).await);
    let mut renamed = place.installation.options();
    renamed.name = "staging".to_owned();
    for (options, named) in [
        (place.installation.entity_options(), "forge-kvs://test?entity=keyward"),
        (renamed, "forge-kvs://staging"),
    ] {
        let error = place.try_coordinated(options, clock.clone(), None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
        assert!(error.message().contains("belongs to forge-kvs://test,"), "{error}");
        assert!(error.message().contains(named), "{error}");
    }
    drop(place.coordinated(clock, None).await);
}
