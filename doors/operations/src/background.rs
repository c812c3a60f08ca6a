//! What goes on beside requests, until the server stops.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::lifecycle::Lifecycle;

/// How long it is waited after trouble: doubled from the first to the last.
const TROUBLE_MIN: Duration = Duration::from_secs(1);
const TROUBLE_MAX: Duration = Duration::from_secs(30);

/// What goes on beside requests.
#[derive(Debug)]
pub struct Tasks(Mutex<Option<JoinSet<()>>>);

impl Default for Tasks {
    fn default() -> Self {
        Self(Mutex::new(Some(JoinSet::new())))
    }
}

impl Tasks {
    /// Begins something, unless all has been closed.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut tasks = self.tasks();
        let Some(tasks) = &mut *tasks else { return false };
        // What has ended is forgotten.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
        true
    }

    /// Begins nothing more, waits for what is under way, and drops it after this time.
    pub async fn close(&self, time_max: Duration) {
        let Some(mut tasks) = self.tasks().take() else { return };
        let ended = async { while tasks.join_next().await.is_some() {} };
        if timeout(time_max, ended).await.is_err() {
            tracing::warn!("stopped before everything had ended: what comes next goes on with it");
            tasks.shutdown().await;
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pauses after trouble, each longer than the one before.
#[derive(Debug)]
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(TROUBLE_MIN)
    }
}

impl Pauses {
    /// Waits; whether the server goes on.
    pub async fn wait(&mut self, lifecycle: &Lifecycle) -> bool {
        let time = self.0;
        self.0 = (time * 2).min(TROUBLE_MAX);
        tokio::select! {
            () = lifecycle.stopping() => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_is_waited_for_and_then_dropped() {
        let tasks = Tasks::default();
        let (done, ended) = tokio::sync::oneshot::channel();
        assert!(tasks.spawn(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let _ = done.send(());
        }));
        let (kept, dropped) = tokio::sync::oneshot::channel::<()>();
        assert!(tasks.spawn(async move {
            let _kept = kept;
            pending().await
        }));
        tasks.close(Duration::from_secs(10)).await;
        assert!(ended.await.is_ok());
        assert!(dropped.await.is_err());
        assert!(!tasks.spawn(async {}));
    }
}
