//! Long work on a store: one at a time, which goes on when nobody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyward::Code;
use tokio::sync::watch;

use crate::problem::{Problem, Result};

/// A kind of long work, and how it stands.
#[derive(Debug)]
pub struct Work<P>(Arc<watch::Sender<Standing<P>>>);

/// How work stands.
#[derive(Debug, Clone)]
pub struct Standing<P> {
    /// Whether it runs now.
    pub running: bool,
    /// How far it came; of the last time, if it does not run.
    pub reached: Option<P>,
    /// Why it ended too early.
    pub failed: Option<Problem>,
}

/// What work tells while it is done. If this is dropped before the work has ended, it was cut off.
#[derive(Debug)]
pub struct Progress<P> {
    standing: Arc<watch::Sender<Standing<P>>>,
    ended: AtomicBool,
}

impl<P> Default for Work<P> {
    fn default() -> Self {
        let standing = Standing { running: false, reached: None, failed: None };
        Self(Arc::new(watch::Sender::new(standing)))
    }
}

impl<P: Clone + Send + Sync + 'static> Work<P> {
    /// How it stands.
    pub fn standing(&self) -> Standing<P> {
        self.0.borrow().clone()
    }

    /// Begins, unless it is being done already.
    pub fn begin<F>(&self, work: impl FnOnce(Arc<Progress<P>>) -> F) -> bool
    where
        F: Future<Output = Result<P>> + Send + 'static,
    {
        let began = self.0.send_if_modified(|standing| {
            let was_running = standing.running;
            *standing = match was_running {
                true => return false,
                false => Standing { running: true, reached: None, failed: None },
            };
            true
        });
        if began {
            let progress = Progress { standing: self.0.clone(), ended: AtomicBool::new(false) };
            let progress = Arc::new(progress);
            let work = work(progress.clone());
            tokio::spawn(async move { progress.end(work.await) });
        }
        began
    }

    /// How it stands when it has ended, or after this time.
    pub async fn ended(&self, time_max: Duration) -> Standing<P> {
        if !time_max.is_zero() {
            let mut standing = self.0.subscribe();
            // In time or not: how it stands is told.
            let _ = tokio::time::timeout(time_max, standing.wait_for(|it| !it.running)).await;
        }
        self.standing()
    }
}

impl<P> Progress<P> {
    /// Tells how far it came.
    pub fn reach(&self, reached: P) {
        self.standing.send_modify(|standing| standing.reached = Some(reached));
    }

    fn end(&self, outcome: Result<P>) {
        if self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        self.standing.send_modify(|standing| {
            standing.running = false;
            match outcome {
                Ok(reached) => standing.reached = Some(reached),
                Err(problem) => standing.failed = Some(problem),
            }
        });
    }
}

impl<P> Drop for Progress<P> {
    fn drop(&mut self) {
        let cut_off = Problem::new(Code::Internal, "the work was cut off by a fault of the server");
        self.end(Err(cut_off.hint("Begin it again: what is done is not done twice.")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn work_is_done_once_at_a_time_and_again_later() {
        let work = Work::default();
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        assert!(work.begin(|progress| async move {
            progress.reach(1);
            let _ = gone.await;
            Ok(2)
        }));
        assert!(!work.begin(|_| async { Ok(9) }));
        assert!(work.ended(Duration::ZERO).await.running);
        drop(go);
        let ended = work.ended(LONG).await;
        assert_eq!((ended.running, ended.reached), (false, Some(2)));
        assert!(work.begin(|_| async { Ok(3) }));
        assert_eq!(work.ended(LONG).await.reached, Some(3));
    }

    #[tokio::test]
    async fn work_that_fails_or_panics_has_ended_and_says_so() {
        let work: Work<u8> = Work::default();
        assert!(work.begin(|_| async { Err(Problem::invalid("no")) }));
        assert_eq!(
            work.ended(LONG).await.failed.map(|problem| problem.code()),
            Some(Code::Invalid)
        );
        assert!(work.begin(|progress| async move {
            progress.reach(1);
            panic!("a fault")
        }));
        let ended = work.ended(LONG).await;
        assert!(!ended.running);
        assert_eq!(ended.failed.map(|problem| problem.code()), Some(Code::Internal));
    }
}
