//! From start to stop: what is under way, and when it should end.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether the server goes on. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Lifecycle(Arc<watch::Sender<Phase>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    Stopping,
}

impl Lifecycle {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Serving)))
    }

    /// Takes no new work from now on; what only waits is ended.
    pub fn stop(&self) {
        self.0.send_replace(Phase::Stopping);
    }

    pub fn is_stopping(&self) -> bool {
        *self.0.borrow() == Phase::Stopping
    }

    /// Waits until the server begins to stop.
    pub async fn stopping(&self) {
        let mut phase = self.0.subscribe();
        // The sender lives as long as this does.
        let _ = phase.wait_for(|phase| *phase == Phase::Stopping).await;
    }
}
