//! A repository, a store and a registry between them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Engine, Scan, Store};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_memory::Memory;
use keyward_queue::DeadLetter;
use keyward_registry::{Drained, Registry, Settings, SyncOptions, Synced, Trigger};
use keyward_testkit::TestClock;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::repository::Repository;

pub struct Fixture {
    pub repository: Repository,
    pub clock: TestClock,
    pub engine: Arc<dyn Engine>,
    folder: TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        let clock = TestClock::new();
        let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
        let folder = tempfile::tempdir().unwrap();
        Self { repository: Repository::new(), clock, engine: Arc::new(memory), folder }
    }

    /// A path in the test's own folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same, as settings write it.
    pub fn place(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn store(&self) -> Store {
        Store::from_arc(self.engine.clone())
    }

    /// The registry with these consumers, as another process would have it.
    pub fn registry(&self, consumers: Value) -> Registry {
        self.registry_in(self.store(), consumers)
    }

    pub fn registry_in(&self, store: Store, consumers: Value) -> Registry {
        let settings = json!({ "repository": self.repository.location(), "consumers": consumers });
        let settings: Settings = serde_json::from_value(settings).unwrap();
        Registry::open("policies", store, settings, &self.path("cache"), self.clock.clone())
            .unwrap()
    }

    /// Commits what was written to the repository, and syncs.
    pub async fn sync(&self, registry: &Registry) {
        self.repository.commit("a change");
        let options = SyncOptions { full: false, allow_mass_delete: true };
        let synced = registry.sync(Trigger::Hand, &options, |_| ()).await.unwrap();
        assert!(matches!(synced, Synced::Done(_)), "{synced:?}");
        // Runs have a time of their own.
        self.clock.advance(Duration::from_secs(1));
    }

    /// Works off what is there, and lets so much time pass that what failed is tried again.
    pub async fn drain(&self, registry: &Registry) -> Drained {
        let drained = registry.drain().await.unwrap();
        self.clock.advance(Duration::from_secs(60));
        drained
    }

    pub async fn dead_letters(&self, registry: &Registry) -> Vec<DeadLetter> {
        registry.dead_letters(None, 100).await.unwrap().items
    }

    /// The keys below a prefix.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let range = KeyRange::under(&Prefix::parse(prefix).unwrap());
        let page = self.store().scan(&Scan::new(range).limit(1_000)).await.unwrap();
        page.rows.into_iter().map(|row| row.key.to_string()).collect()
    }

    /// What consumers have accepted last: `consumer:policy operation`.
    pub async fn accepted(&self) -> Vec<String> {
        const DONE: &str = "system:registry:policies:done:";
        let mut accepted = Vec::new();
        for key in self.keys(DONE).await {
            let done = self.value(&key).await.unwrap();
            let operation = done["operation"].as_str().unwrap();
            accepted.push(format!("{} {operation}", key.strip_prefix(DONE).unwrap()));
        }
        accepted
    }

    pub async fn value(&self, key: &str) -> Option<Value> {
        let entry = self.store().get(&Key::parse(key).unwrap()).await.unwrap()?;
        Some(serde_json::from_slice(entry.value.as_bytes()).unwrap())
    }
}

pub fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path.as_ref())
        .unwrap_or_else(|error| panic!("{:?}: {error}", path.as_ref()))
}

/// The lines of a file that may not be there.
pub fn lines(path: impl AsRef<Path>) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub fn drained(completed: u64, failed: u64, left: u64) -> Drained {
    Drained { completed, failed, left }
}

/// Waits until something is so, at most half a minute.
pub async fn until(mut look: impl AsyncFnMut() -> bool) {
    for _ in 0..3_000 {
        if look().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never was so");
}
