//! A repository, a store, and a registry between them.

use std::path::Path;
use std::sync::Arc;

use keyward_engine::{Engine, Json, Put, Store};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_registry::{
    Error, Operation, Policy, Registry, Repository as Address, Run, Settings, Step, SyncOptions,
    Synced, Trigger,
};
use keyward_stores::Place;
use keyward_testkit::{Faults, FaultyEngine, TestClock};

pub use crate::repository::Repository;

pub struct Fixture {
    pub place: Place,
    pub repository: Repository,
    pub registry: Registry,
}

impl Fixture {
    /// A registry of an empty repository.
    pub async fn new(place: Place) -> Self {
        Self::with(place, |_| ()).await
    }

    /// The same with other settings.
    pub async fn with(place: Place, change: impl FnOnce(&mut Settings)) -> Self {
        let repository = Repository::new();
        let mut settings = settings(&repository);
        change(&mut settings);
        let registry = open("policies", place.store().await, settings, &repository, &place);
        Self { place, repository, registry }
    }

    /// The same registry with other settings, as another process would open it.
    pub async fn reopened(&self, change: impl FnOnce(&mut Settings)) -> Registry {
        let mut settings = self.registry.settings().clone();
        change(&mut settings);
        open("policies", self.place.store().await, settings, &self.repository, &self.place)
    }

    /// Commits what is in the working tree, and syncs.
    pub async fn push(&self) -> Run {
        self.repository.commit("a change");
        sync(&self.registry).await
    }

    /// What a sync fails with.
    pub async fn fails(&self) -> Error {
        fails(&self.registry, &SyncOptions::default()).await
    }

    pub async fn policy(&self, name: &str) -> Option<Policy> {
        self.registry.policy(name).await.unwrap()
    }

    pub async fn names(&self) -> Vec<String> {
        names(&self.registry).await
    }

    /// What waits for consumers: operation and name, in the order of names.
    pub async fn queued(&self) -> Vec<String> {
        queued(&self.registry).await
    }

    /// Completes everything that waits.
    pub async fn consume(&self) {
        loop {
            let claims = self.registry.queue().claim(100).await.unwrap();
            if claims.attempts.is_empty() {
                return;
            }
            for attempt in claims.attempts {
                attempt.complete(None).await.unwrap();
            }
        }
    }

    pub async fn get(&self, key: &str) -> Option<String> {
        get(self.registry.store(), key).await
    }

    pub async fn put(&self, key: &str, value: &str) {
        let put = Put::new(Json::parse(value.to_owned()).unwrap());
        self.registry.store().put(Key::parse(key).unwrap(), put).await.unwrap();
    }

    pub async fn last_commit(&self) -> Option<String> {
        self.registry.status().await.unwrap().last_commit
    }
}

pub fn settings(repository: &Repository) -> Settings {
    Settings::new(Address::parse(repository.location()).unwrap())
}

pub fn open(
    name: &str,
    store: Store,
    settings: Settings,
    repository: &Repository,
    place: &Place,
) -> Registry {
    let cache = repository.beside("cache");
    Registry::open(name, store, settings, &cache, place.clock().clone()).unwrap()
}

/// A registry in memory whose calls are counted, and can fail.
pub fn counted(repository: &Repository, cache: &Path) -> (Registry, FaultyEngine) {
    let clock = TestClock::new();
    let options = keyward_memory::Options::default();
    let memory: Arc<dyn Engine> = Arc::new(Memory::with(options, clock.clone()));
    let engine = FaultyEngine::new(memory, Faults::none());
    let store = Store::new(engine.clone());
    let registry = Registry::open("policies", store, settings(repository), cache, clock);
    (registry.unwrap(), engine)
}

/// Syncs, and gives the run.
pub async fn sync(registry: &Registry) -> Run {
    sync_with(registry, &SyncOptions::default()).await
}

pub async fn sync_with(registry: &Registry, options: &SyncOptions) -> Run {
    match registry.sync(Trigger::Hand, options, |_| ()).await.unwrap() {
        Synced::Done(run) => run,
        other => panic!("{other:?}"),
    }
}

pub async fn fails(registry: &Registry, options: &SyncOptions) -> Error {
    registry.sync(Trigger::Hand, options, |_| ()).await.unwrap_err()
}

pub async fn names(registry: &Registry) -> Vec<String> {
    let page = registry.policies(None, 1_000).await.unwrap();
    page.items.into_iter().map(|policy| policy.policy_name).collect()
}

pub async fn queued(registry: &Registry) -> Vec<String> {
    let listing = keyward_queue::Listing { limit: 1_000, ..keyward_queue::Listing::default() };
    let messages = registry.queue().list(&listing).await.unwrap();
    let told = |message: keyward_queue::QueuedMessage| {
        let payload: serde_json::Value = serde_json::from_str(message.payload.as_str()).unwrap();
        assert_eq!(payload["policyName"], message.id);
        format!("{} {}", payload["operation"].as_str().unwrap(), message.id)
    };
    messages.into_iter().map(told).collect()
}

pub async fn get(store: &Store, key: &str) -> Option<String> {
    let entry = store.get(&Key::parse(key).unwrap()).await.unwrap();
    entry.map(|entry| entry.value.as_str().to_owned())
}

/// Steps as people read them.
pub fn told(steps: &[Step]) -> Vec<String> {
    let told = |step: &Step| format!("{} {}", step.operation.as_str(), step.policy_name);
    steps.iter().map(told).collect()
}

pub fn counts(run: &Run) -> (u64, u64, u64) {
    (run.added, run.updated, run.deleted)
}

pub fn is_delete(step: &Step) -> bool {
    step.operation == Operation::Delete
}
