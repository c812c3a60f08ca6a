//! The behaviours every engine must show.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyward_coordinated::{Coordinated, Options};
use keyward_embedded::Embedded;
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, Consistency, Durability, Engine, Entry, Event,
    Outcome, Page, Result, Revision, Scan, Stats, Tier,
};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use keyward_testkit::{Faults, FaultyEngine, Place, TestClock, conformance};
use tempfile::TempDir;

/// Two stores that outlive their engines, since a store in memory would be empty when it is opened again.
struct Pair {
    values: Mutex<Option<Arc<dyn Engine>>>,
    coordinator: Coordinator,
    reads: Reads,
}

enum Coordinator {
    Memory(Mutex<Option<Arc<dyn Engine>>>),
    Embedded(TempDir),
}

/// Where values are when they are read.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    /// In the coordinator: the value store is late.
    Pending,
    /// In the value store: everything is settled before each read.
    Settled,
}

fn synced(engine: impl Engine, change: impl FnOnce(&mut Capabilities)) -> Arc<dyn Engine> {
    let acting = FaultyEngine::new(Arc::new(engine), Faults::none()).acting_as(|capabilities| {
        capabilities.durability = Durability::Synced;
        change(capabilities);
    });
    Arc::new(acting)
}

impl Pair {
    fn in_memory(reads: Reads) -> Self {
        Self { values: Mutex::default(), coordinator: Coordinator::Memory(Mutex::default()), reads }
    }

    fn on_disk(reads: Reads) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { values: Mutex::default(), coordinator: Coordinator::Embedded(directory), reads }
    }

    fn values(&self, clock: &TestClock) -> Arc<dyn Engine> {
        let make = || match self.reads {
            Reads::Pending => synced(
                Memory::with(keyward_memory::Options::tier(Tier::Advisory), clock.clone()),
                |_| {},
            ),
            // As weak, but never late, so that values settle at once.
            Reads::Settled => {
                let options = keyward_memory::Options::tier(Tier::Recoverable);
                synced(Memory::with(options, clock.clone()), |capabilities| {
                    capabilities.compare = false;
                    capabilities.consistency = Consistency::Eventual { lag: Duration::ZERO };
                })
            }
        };
        self.values.lock().unwrap().get_or_insert_with(make).clone()
    }

    fn coordinator(&self, clock: &TestClock, history: Option<usize>) -> Arc<dyn Engine> {
        match &self.coordinator {
            Coordinator::Memory(kept) => {
                let mut options = keyward_memory::Options::default();
                options.history = history.unwrap_or(options.history);
                let make = || synced(Memory::with(options, clock.clone()), |_| {});
                kept.lock().unwrap().get_or_insert_with(make).clone()
            }
            Coordinator::Embedded(directory) => {
                let mut options = keyward_embedded::Options::default();
                options.history = history.map_or(options.history, |history| history as u64);
                Arc::new(Embedded::open_with(directory.path(), options, clock.clone()).unwrap())
            }
        }
    }

    async fn engine(&self, clock: TestClock, history: Option<usize>) -> Arc<dyn Engine> {
        let mut options = Options::default();
        if self.reads == Reads::Settled {
            options.grace = Duration::ZERO;
        }
        let (values, coordinator) = (self.values(&clock), self.coordinator(&clock, history));
        let engine = Coordinated::open(values, coordinator, options, clock).await.unwrap();
        match self.reads {
            Reads::Pending => Arc::new(engine),
            Reads::Settled => Arc::new(SettledReads(engine)),
        }
    }
}

impl Place for Pair {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(self.engine(clock, None))
    }

    fn open_with_history(
        &self,
        clock: TestClock,
        commits: usize,
    ) -> Option<BoxFuture<'_, Arc<dyn Engine>>> {
        Some(Box::pin(self.engine(clock, Some(commits))))
    }
}

/// An engine that settles before every read, so that values come from the value store.
struct SettledReads(Coordinated);

impl Engine for SettledReads {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async move {
            self.0.settle().await?;
            self.0.get_many(keys).await
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            self.0.settle().await?;
            self.0.scan(scan).await
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        self.0.commit(commit)
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        self.0.watch(range, since)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.0.stats()
    }
}

conformance!(pending, Pair::in_memory(Reads::Pending));
conformance!(settled, Pair::in_memory(Reads::Settled));
conformance!(embedded, Pair::on_disk(Reads::Pending));
