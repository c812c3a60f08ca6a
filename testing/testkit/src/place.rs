use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};

use crate::TestClock;

/// A place where one store lives, for one test: a directory, a database, or nothing at all for a
/// store in memory. This is what an adapter's test file implements.
///
/// A new place is empty and nobody else uses it. Dropping it removes what was there.
pub trait Place: Send + Sync + 'static {
    /// Opens the store.
    ///
    /// The suite opens a place again only after it has dropped the engine, and then expects to find
    /// what it left, unless the engine calls itself
    /// [`Volatile`](keyward_engine::Durability::Volatile). An engine whose clock is the server's
    /// ignores the one given; the suite then waits for real.
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>>;

    /// Opens the store so that it keeps a history of about so many commits, or says that the engine
    /// cannot be told. The suite uses it to see what happens to those who come too late.
    fn open_with_history(
        &self,
        clock: TestClock,
        commits: usize,
    ) -> Option<BoxFuture<'_, Arc<dyn Engine>>> {
        let _ = (clock, commits);
        None
    }
}
