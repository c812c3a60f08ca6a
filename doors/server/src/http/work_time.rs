//! How long an answer may take. The clock stands still while the server waits for the client.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The time that is left to answer one request. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct WorkTime {
    /// When it is over; `None` while the clock stands still.
    deadline: Arc<watch::Sender<Option<Instant>>>,
}

impl WorkTime {
    /// So much time from now on.
    pub fn new(time_max: Duration) -> Self {
        Self { deadline: Arc::new(watch::Sender::new(Some(Instant::now() + time_max))) }
    }

    /// Stops the clock until what is returned is dropped.
    pub fn pause(&self) -> Pause {
        let deadline = self.deadline.send_replace(None);
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        Pause { time: self.clone(), left: left.unwrap_or_default() }
    }

    /// Waits until no time is left.
    pub async fn over(&self) {
        let mut deadline = self.deadline.subscribe();
        loop {
            let at = *deadline.borrow_and_update();
            let elapsed = async {
                match at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = elapsed => return,
                // The sender lives as long as this does.
                _ = deadline.changed() => {}
            }
        }
    }
}

/// A clock that stands still until this is dropped.
#[derive(Debug)]
pub(crate) struct Pause {
    time: WorkTime,
    left: Duration,
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.time.deadline.send_replace(Some(Instant::now() + self.left));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_for_the_client_does_not_count() {
        let time = WorkTime::new(Duration::from_secs(30));
        sleep(Duration::from_secs(10)).await;
        let pause = time.pause();
        assert!(timeout(Duration::from_secs(3_600), time.over()).await.is_err());
        drop(pause);
        assert!(timeout(Duration::from_secs(19), time.over()).await.is_err());
        assert!(timeout(Duration::from_secs(2), time.over()).await.is_ok());
    }
}
