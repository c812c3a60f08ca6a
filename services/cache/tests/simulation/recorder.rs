//! An engine that knows what was published on it.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Clock, Commit, Engine, Entry, Event, Json, Outcome, Page,
    Result, Revision, Scan, Stats, Write,
};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use keyward_testkit::VirtualClock;

/// What happened to a cached value.
#[derive(Debug, Clone)]
pub enum Fate {
    Published(Key, Json),
    /// Dropped, at this moment.
    Dropped(Key, Timestamp),
}

/// Remembers what happened to every cached value, in order.
pub struct Recorder {
    memory: Memory,
    clock: VirtualClock,
    fates: Mutex<Vec<Fate>>,
}

impl Recorder {
    pub fn new(memory: Memory, clock: VirtualClock) -> Self {
        Self { memory, clock, fates: Mutex::default() }
    }

    pub fn fates(&self) -> Vec<Fate> {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Engine for Recorder {
    fn capabilities(&self) -> &Capabilities {
        self.memory.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.memory.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.memory.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            let now = self.clock.now();
            let fates = commit.writes.iter().filter_map(|write| match write {
                // With commits of single keys, a mark stands at the key before the value does.
                Write::Put(key, put) if key.first() == "result" && put.value.is_object() => {
                    Some(Fate::Published(key.clone(), put.value.clone()))
                }
                Write::Delete(key) if key.first() == "result" => {
                    Some(Fate::Dropped(key.clone(), now))
                }
                _ => None,
            });
            let fates: Vec<_> = fates.collect();
            let outcome = self.memory.commit(commit).await?;
            if outcome.is_applied() {
                self.fates.lock().unwrap_or_else(PoisonError::into_inner).extend(fates);
            }
            Ok(outcome)
        })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        self.memory.watch(range, since)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.memory.stats()
    }
}
