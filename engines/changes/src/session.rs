//! The task that follows a feed, and the watches that start it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyward_engine::{Change, ChangeLog, Error, ErrorKind, LogSlice, Result, Revision};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::Shared;
use crate::log::{Failure, LOSSES_MAX, Log, Session};
use crate::source::{ChangeSource, Slice, Wait};

/// How many slices are read to catch up with a feed that was left, before its changes are given up.
const CATCH_UP_SLICES_MAX: usize = 20;
/// How long to pause after a read that found nothing, in case the database answers at once.
const QUIET_PAUSE: Duration = Duration::from_millis(20);
/// How long to pause before beginning again for the second time in a row; longer each time.
const LOSS_PAUSE: Duration = Duration::from_millis(200);

/// One watch's view of the log.
pub(crate) struct Watcher<S: ChangeSource> {
    shared: Arc<Shared<S>>,
    told: watch::Receiver<Log<S::Position>>,
    /// Whether this watch has seen to it that a task follows the feed.
    joined: AtomicBool,
}

impl<S: ChangeSource> Watcher<S> {
    pub fn new(shared: Arc<Shared<S>>) -> Self {
        let told = shared.log.subscribe();
        Self { shared, told, joined: AtomicBool::new(false) }
    }

    /// Starts a task unless one follows the feed. Once for each watch: what fails later, the watch reports.
    fn join(&self) {
        if self.joined.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(running) = Running::begin(&self.shared) {
            tokio::spawn(run(running));
        }
    }
}

impl<S: ChangeSource> ChangeLog for Watcher<S> {
    async fn latest(&self) -> Result<Revision> {
        self.join();
        let mut told = self.told.clone();
        let is_ready = |log: &Log<_>| !matches!(log.session, Session::None | Session::Starting);
        let log = told.wait_for(is_ready).await.map_err(|_| closed())?;
        match &log.session {
            Session::Failed(failure) => Err(failure.error()),
            _ => Ok(log.latest()),
        }
    }

    async fn read(&self, after: Revision) -> Result<LogSlice> {
        Ok(self.told.borrow().after(after))
    }

    async fn wait(&mut self, after: Revision) -> Result<()> {
        self.join();
        loop {
            {
                let log = self.told.borrow_and_update();
                if log.latest() != after {
                    return Ok(());
                }
                if let Session::Failed(failure) = &log.session {
                    return Err(failure.error());
                }
            }
            self.told.changed().await.map_err(|_| closed())?;
        }
    }
}

fn lost_again() -> Error {
    let message = format!(
        "the watch ended: {LOSSES_MAX} times in a row, the database did not know the place in its feed of changes that it had just given"
    );
    Error::new(ErrorKind::Unavailable, message)
        .advise("Watch again later. If that fails too, look at what stands between Keyward and the database.")
}

fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the store was closed")
}

/// One session of following the feed. Says how it ended, however that came: of its own session only, since a new watch may
/// have begun the next one.
pub(crate) struct Running<S: ChangeSource> {
    shared: Arc<Shared<S>>,
    generation: u64,
}

impl<S: ChangeSource> Running<S> {
    /// Begins a session, unless one goes on.
    pub fn begin(shared: &Arc<Shared<S>>) -> Option<Self> {
        let mut generation = None;
        shared.log.send_if_modified(|log| {
            generation = log.begin();
            generation.is_some()
        });
        Some(Self { shared: shared.clone(), generation: generation? })
    }

    /// Says that the session failed, if it still goes on.
    pub fn fail(&self, error: &Error) {
        self.shared.log.send_if_modified(|log| {
            let goes_on = log.is_active(self.generation);
            if goes_on {
                log.session = Session::Failed(Failure::new(error));
            }
            goes_on
        });
    }

    /// Waits until nobody watches, and says so.
    async fn abandoned(&self) {
        loop {
            self.shared.log.closed().await;
            // A watch that comes now finds either this task or none: it looks under the same lock.
            let ends = self.shared.log.send_if_modified(|log| {
                let ends = self.shared.log.receiver_count() == 0;
                if ends {
                    log.session = Session::None;
                }
                ends
            });
            if ends {
                return;
            }
        }
    }

    async fn follow(&self) -> Result<()> {
        let Shared { source, log } = &*self.shared;
        self.catch_up().await?;
        log.send_modify(|log| log.session = Session::Following);
        loop {
            let Some(position) = self.position() else {
                self.restart().await?;
                continue;
            };
            match source.read(&position, Wait::ForChanges).await? {
                Slice::Changes { changes, position, more } => {
                    let quiet = changes.is_empty() && !more;
                    self.push(changes, position);
                    if quiet {
                        sleep(QUIET_PAUSE).await;
                    }
                }
                Slice::Lost => self.lost().await?,
            }
        }
    }

    /// Reads what has changed since the feed was last followed; or begins again, if that is too much or unknown.
    async fn catch_up(&self) -> Result<()> {
        for _ in 0..CATCH_UP_SLICES_MAX {
            let Some(position) = self.position() else { break };
            match self.shared.source.read(&position, Wait::No).await? {
                Slice::Changes { changes, position, more } => {
                    self.push(changes, position);
                    if !more {
                        return Ok(());
                    }
                }
                Slice::Lost => return self.lost().await,
            }
        }
        self.restart().await
    }

    fn position(&self) -> Option<S::Position> {
        self.shared.log.borrow().position.clone()
    }

    fn push(&self, changes: Vec<Change>, position: S::Position) {
        self.shared.log.send_if_modified(|log| {
            let is_news = !changes.is_empty();
            log.push(changes, position);
            is_news
        });
    }

    /// Goes on where the feed is now, since the database forgot the place. After the first time in a row, it pauses; again
    /// and again is an error.
    async fn lost(&self) -> Result<()> {
        let mut losses = None;
        self.shared.log.send_if_modified(|log| {
            losses = log.lose();
            false
        });
        let losses = losses.ok_or_else(lost_again)?;
        if losses > 1 {
            sleep(LOSS_PAUSE * (losses - 1)).await;
        }
        self.restart().await
    }

    async fn restart(&self) -> Result<()> {
        let position = self.shared.source.now().await?;
        self.shared.log.send_modify(|log| log.restart(position));
        Ok(())
    }
}

impl<S: ChangeSource> Drop for Running<S> {
    fn drop(&mut self) {
        self.fail(&Error::new(ErrorKind::Unavailable, "the watch was ended"));
    }
}

async fn run<S: ChangeSource>(running: Running<S>) {
    tokio::select! {
        followed = running.follow() => {
            if let Err(error) = followed {
                running.fail(&error);
            }
        }
        () = running.abandoned() => {}
    }
}
