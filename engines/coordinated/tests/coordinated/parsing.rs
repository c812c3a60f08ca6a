//! A value store that parses values, and shows the members of objects in an order of its own.

use std::sync::Arc;

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Json, Outcome, Page, Result, Scan, Stats,
    Store, Tier,
};
use keyward_key::Key;
use keyward_memory::{Memory, Options};
use keyward_testkit::{Call, Faults, TestClock};

use crate::setup::{LAG, Setup, key, put, value};

/// Sorts the members of what it shows.
struct Sorting(Memory);

fn sorted(entry: Entry) -> Entry {
    let value: serde_json::Value = serde_json::from_slice(entry.value.as_bytes()).unwrap();
    Entry { value: Json::from_stored(value.to_string()), ..entry }
}

impl Engine for Sorting {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async move {
            let entries = self.0.get_many(keys).await?;
            Ok(entries.into_iter().map(|entry| entry.map(sorted)).collect())
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.0.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        self.0.commit(commit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.0.stats()
    }
}

const WRITTEN: &str = r#"{"title":"학칙","by":{"z":1,"a":[2]}}"#;
const SHOWN: &str = r#"{"by":{"a":[2],"z":1},"title":"학칙"}"#;

fn setup() -> Setup {
    let clock = TestClock::new();
    let values = Memory::with(Options::tier(Tier::Advisory), clock.clone());
    Setup::over(Arc::new(Sorting(values)), clock, Faults::none(), Faults::none())
}

fn pushes(setup: &Setup) -> usize {
    setup.values.trace().iter().filter(|(call, _)| *call == Call::Commit).count()
}

#[tokio::test]
async fn a_value_settles_when_its_members_come_back_in_another_order() {
    let setup = setup();
    let engine = Arc::new(setup.open().await);
    let store = Store::from_arc(engine.clone());
    let slot = key("policy:학칙");
    let version = store.put(slot.clone(), put(WRITTEN)).await.unwrap();
    assert_eq!(value(&store, &slot).await.as_deref(), Some(WRITTEN), "exact until it settles");
    setup.wait();
    let settled = engine.settle().await.unwrap();
    assert_eq!((settled.pushed, settled.settled, settled.waiting), (0, 1, 0));
    for _ in 0..2 {
        let entry = store.get(&slot).await.unwrap().unwrap();
        assert_eq!((entry.value.as_str(), &entry.version), (SHOWN, &version), "it did not change");
        setup.wait();
        assert_eq!(engine.settle().await.unwrap().waiting, 0);
    }
    assert_eq!(pushes(&setup), 1);

    // A change of the value is one.
    setup.write_there(&slot, r#"{"title":"학칙","by":{"z":2,"a":[2]}}"#).await;
    setup.clock.advance(LAG);
    assert_ne!(store.get(&slot).await.unwrap().unwrap().version, version);
}

#[tokio::test]
async fn a_text_of_the_same_value_that_was_never_pushed_is_pushed_once() {
    let setup = setup();
    setup.write_there(&key("slot"), SHOWN).await;
    setup.clock.advance(LAG);
    let store = Store::new(setup.open().await);
    let values = setup.values.revive();
    let away = setup.open_with(values.clone(), setup.coordinator.revive()).await.unwrap();
    values.kill();
    Store::new(away).put(key("slot"), put(WRITTEN)).await.unwrap();
    drop(store);
    assert_eq!(pushes(&setup), 0);
    setup.wait();
    let engine = Arc::new(setup.open().await);
    assert_eq!(pushes(&setup), 1);
    setup.wait();
    assert_eq!(engine.settle().await.unwrap().waiting, 0);
    assert_eq!(pushes(&setup), 1);
}
