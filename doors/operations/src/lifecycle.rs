//! From start to stop: what is under way, and when it should end.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether the server goes on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Lifecycle(Arc<watch::Sender<Phase>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    Stopping,
    Leaving,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Serving)))
    }
}

impl Lifecycle {
    /// Takes no new work from now on; what only waits is ended.
    pub fn stop(&self) {
        self.0.send_modify(|phase| *phase = (*phase).max(Phase::Stopping));
    }

    /// Whether the program has begun to stop.
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow() >= Phase::Stopping
    }

    /// Waits no longer for what is under way either.
    pub fn leave(&self) {
        self.0.send_replace(Phase::Leaving);
    }

    /// Waits until the server begins to stop.
    pub async fn stopping(&self) {
        self.reach(Phase::Stopping).await;
    }

    /// Waits until the server waits no longer for what is under way.
    pub async fn leaving(&self) {
        self.reach(Phase::Leaving).await;
    }

    async fn reach(&self, at_least: Phase) {
        let mut phase = self.0.subscribe();
        // The sender lives as long as this does.
        let _ = phase.wait_for(|phase| *phase >= at_least).await;
    }
}
