//! The behaviours every engine must show, on each tier of the memory engine.

use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine, Tier};
use keyward_memory::{Memory, Options};
use keyward_testkit::{Place, TestClock, conformance};

struct InMemory(Tier);

impl InMemory {
    fn engine(&self, clock: TestClock, change: impl FnOnce(&mut Options)) -> Arc<dyn Engine> {
        let mut options = Options::tier(self.0);
        change(&mut options);
        Arc::new(Memory::with(options, clock))
    }
}

impl Place for InMemory {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async move { self.engine(clock, |_| {}) })
    }

    fn open_with_history(
        &self,
        clock: TestClock,
        commits: usize,
    ) -> Option<BoxFuture<'_, Arc<dyn Engine>>> {
        let engine = self.engine(clock, |options| options.history = commits);
        Some(Box::pin(async move { engine }))
    }
}

conformance!(atomic, InMemory(Tier::Atomic));
conformance!(recoverable, InMemory(Tier::Recoverable));
conformance!(advisory, InMemory(Tier::Advisory));
