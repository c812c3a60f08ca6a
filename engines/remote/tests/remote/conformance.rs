//! The behaviours every engine must show, through a server.

use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{Place, TestClock, conformance};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::served::Served;

/// A server on some engine. The store's clock is the server's own.
struct Behind {
    url: String,
    running: Mutex<Option<Served>>,
    /// Whether a new server is started whenever the store is opened.
    restarts: bool,
    _directory: Option<TempDir>,
}

impl Behind {
    /// What is in memory stays as long as its server.
    fn memory(options: &str) -> Self {
        let url = format!("memory:?{options}");
        Self { url, running: Mutex::default(), restarts: false, _directory: None }
    }

    fn embedded() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("embedded:{}/data?durability=relaxed", directory.path().display());
        Self { url, running: Mutex::default(), restarts: true, _directory: Some(directory) }
    }

    async fn engine(&self, url: &str) -> Arc<dyn Engine> {
        let mut running = self.running.lock().await;
        if self.restarts
            && let Some(old) = running.take()
        {
            old.stop().await;
        }
        let served = match running.take() {
            Some(served) => served,
            None => Served::on(url).await,
        };
        Arc::new(running.insert(served).engine().await)
    }
}

impl Place for Behind {
    fn open(&self, _: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(self.engine(&self.url))
    }

    fn open_with_history(
        &self,
        _: TestClock,
        commits: usize,
    ) -> Option<BoxFuture<'_, Arc<dyn Engine>>> {
        let url = format!("{}&history={commits}", self.url);
        Some(Box::pin(async move { self.engine(&url).await }))
    }
}

conformance!(memory, Behind::memory(""));
conformance!(recoverable, Behind::memory("tier=recoverable"));
conformance!(embedded, Behind::embedded());
