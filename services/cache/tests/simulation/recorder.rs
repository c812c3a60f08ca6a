//! An engine that knows what was published on it.

use std::sync::{Mutex, PoisonError};

use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, Engine, Entry, Event, Json, Outcome, Page, Result,
    Revision, Scan, Stats, Write,
};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;

/// Remembers every cached value that was put, in order.
pub struct Recorder {
    memory: Memory,
    published: Mutex<Vec<(Key, Json)>>,
}

impl Recorder {
    pub fn new(memory: Memory) -> Self {
        Self { memory, published: Mutex::default() }
    }

    pub fn published(&self) -> Vec<(Key, Json)> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
            // With commits of single keys, a mark stands at the key before the value does.
            let values = commit.writes.iter().filter_map(|write| match write {
                Write::Put(key, put) if key.first() == "result" && put.value.is_object() => {
                    Some((key.clone(), put.value.clone()))
                }
                _ => None,
            });
            let values: Vec<_> = values.collect();
            let outcome = self.memory.commit(commit).await?;
            if outcome.is_applied() {
                let mut all = self.published.lock().unwrap_or_else(PoisonError::into_inner);
                all.extend(values);
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
