//! Two stores in memory, and engines of several processes on them.

use std::sync::Arc;
use std::time::Duration;

use keyward_coordinated::{Coordinated, Options};
use keyward_engine::{Durability, Engine, Entry, Json, Put, Scan, Sharing, Store, Tier};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use keyward_testkit::{Faults, FaultyEngine, TestClock};

/// How late the value store's reads are.
pub const LAG: Duration = Duration::from_secs(1);
/// How long values stay in the coordinator at least.
pub const GRACE: Duration = Duration::from_secs(600);

/// A value store whose reads are late, and a coordinator, shared by processes.
pub struct Setup {
    pub clock: TestClock,
    pub values: FaultyEngine,
    pub coordinator: FaultyEngine,
}

impl Setup {
    pub fn new() -> Self {
        Self::with(Faults::none(), Faults::none())
    }

    pub fn with(values: Faults, coordinator: Faults) -> Self {
        let clock = TestClock::new();
        let memory = Memory::with(keyward_memory::Options::tier(Tier::Advisory), clock.clone());
        Self::over(Arc::new(memory), clock, values, coordinator)
    }

    /// The same over another value store, which goes by this clock.
    pub fn over(
        values: Arc<dyn Engine>,
        clock: TestClock,
        faults: Faults,
        coordinator_faults: Faults,
    ) -> Self {
        let atomic = keyward_memory::Options::tier(Tier::Atomic);
        let coordinator = Arc::new(Memory::with(atomic, clock.clone()));
        Self {
            values: FaultyEngine::new(values, faults).acting_as(shared),
            coordinator: FaultyEngine::new(coordinator, coordinator_faults).acting_as(shared),
            clock,
        }
    }

    /// The engine of a process that is alive.
    pub async fn open(&self) -> Coordinated {
        self.try_open().await.unwrap()
    }

    pub async fn try_open(&self) -> keyward_engine::Result<Coordinated> {
        self.open_with(self.values.revive(), self.coordinator.revive()).await
    }

    /// The engine of a process with these handles.
    pub async fn open_with(
        &self,
        values: FaultyEngine,
        coordinator: FaultyEngine,
    ) -> keyward_engine::Result<Coordinated> {
        let options = Options::default();
        Coordinated::open(Arc::new(values), Arc::new(coordinator), options, self.clock.clone())
            .await
    }

    /// What another program sees in the value store once everything there is visible.
    pub async fn shown(&self) -> Vec<(Key, Entry)> {
        self.clock.advance(LAG);
        contents(&self.values.inner()).await
    }

    /// The value of a key that another program sees once everything is visible.
    pub async fn shown_value(&self, key: &Key) -> Option<String> {
        self.clock.advance(LAG);
        let entry = self.values.inner().get(key).await.unwrap();
        entry.map(|entry| entry.value.to_string())
    }

    /// Writes into the value store as another program does.
    pub async fn write_there(&self, key: &Key, text: &str) {
        Store::from_arc(self.values.inner()).put(key.clone(), put(text)).await.unwrap();
    }

    /// Deletes from the value store as another program does.
    pub async fn delete_there(&self, key: &Key) {
        Store::from_arc(self.values.inner()).delete(key.clone()).await.unwrap();
    }

    /// Lets so much time pass that everything pushed can be settled.
    pub fn wait(&self) {
        self.clock.advance(GRACE + LAG);
    }

    /// How many keys still have their value in the coordinator.
    pub async fn held(&self) -> usize {
        let rows = contents(&self.coordinator.inner()).await;
        let prefix = "system:coordinator:pending:";
        rows.iter().filter(|(key, _)| key.to_string().starts_with(prefix)).count()
    }
}

fn shared(capabilities: &mut keyward_engine::Capabilities) {
    capabilities.durability = Durability::Synced;
    capabilities.sharing = Sharing::Network;
}

/// Everything in an engine, in the order of the keys.
pub async fn contents(engine: &Arc<dyn Engine>) -> Vec<(Key, Entry)> {
    let page = engine.scan(&Scan::new(KeyRange::all()).limit(10_000)).await.unwrap();
    assert!(page.next.is_none(), "a test has few keys");
    let rows = page.rows.into_iter().map(|row| (row.key, row.entry.unwrap()));
    rows.collect()
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

pub fn put(text: &str) -> Put {
    Put::new(json(text))
}

/// The value that a caller reads.
pub async fn value(store: &Store, key: &Key) -> Option<String> {
    store.get(key).await.unwrap().map(|entry| entry.value.to_string())
}
