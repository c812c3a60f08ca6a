//! The behaviours every engine must show, through a server.

use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{Place, TestClock, conformance};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::served::Served;

/// A server on some engine, which ends when the store is closed. The store's clock is the server's own.
struct Behind {
    url: String,
    running: Mutex<Option<Served>>,
    _directory: Option<TempDir>,
}

impl Behind {
    fn memory(options: &str) -> Self {
        let url = format!("memory:?{options}");
        Self { url, running: Mutex::default(), _directory: None }
    }

    fn embedded() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("embedded:{}/data?durability=relaxed", directory.path().display());
        Self { url, running: Mutex::default(), _directory: Some(directory) }
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        let mut running = self.running.lock().await;
        if let Some(old) = running.take() {
            old.stop().await;
        }
        Arc::new(running.insert(Served::on(&self.url).await).engine().await)
    }
}

/// The history is not made short: what waits on the way to a slow watcher is told to it, so that it may
/// have fallen behind without having missed anything. `watching.rs` has what is told of a history that
/// is gone.
impl Place for Behind {
    fn open(&self, _: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(self.engine())
    }
}

conformance!(memory, Behind::memory(""));
conformance!(recoverable, Behind::memory("tier=recoverable"));
conformance!(embedded, Behind::embedded());
