//! Beginning runs when they are due, once among all servers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use keyward_engine::{Clock, Coded, Commit, Entry, Expect, Json, Outcome, Put, Store, moment_text};
use keyward_key::Key;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use crate::schedule::Schedule;
use crate::{Error, Registry, Result, SyncMetadata, Synced};

/// The longest sleep: a machine that was suspended, or whose clock was set, notices within it.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// How far ahead of this one another server's clock may be.
const AHEAD_MAX: SignedDuration = SignedDuration::from_hours(1);
/// How long after a run that came to nothing it is tried again.
const RETRIES: [SignedDuration; 3] =
    [SignedDuration::from_mins(1), SignedDuration::from_mins(5), SignedDuration::from_mins(25)];
/// How long to wait after the store did not answer: doubled from the first to the last.
const TROUBLE_MIN: Duration = Duration::from_secs(1);
const TROUBLE_MAX: Duration = Duration::from_secs(60);

impl Registry {
    /// Begins runs when the schedule says, until told to stop: `begin` is called with the moment at which
    /// one is due, and does it, usually by [`Registry::sync`]. One that is being done when it is told to
    /// stop is waited for. Without a schedule, it only waits to be told.
    ///
    /// - Of all processes that do this for the same registry in the same store, one begins each run.
    /// - What was due while none did it is made good by one run, as soon as one does, and likewise a run
    ///   that was begun by a process that was killed. A registry that has neither been scheduled nor ever
    ///   run waits for its first moment.
    /// - A run that another one is in the way of, or whose error is worth a second try, is tried again after
    ///   1, 5 and 25 minutes, unless the next one is due before that.
    /// - A store that does not answer is asked again for as long as it takes, and the log says so.
    ///
    /// An error only for settings that are no schedule, and if the store cannot be read at the beginning.
    pub async fn keep_schedule<R>(
        &self,
        shutdown: impl Future<Output = ()> + Send,
        mut begin: impl FnMut(Timestamp) -> R + Send,
    ) -> Result<()>
    where
        R: Future<Output = Result<Synced>> + Send,
    {
        let schedule = self.inner.settings.schedule.schedule();
        let Some(schedule) = schedule.map_err(|error| Error::Invalid(error.to_string()))? else {
            shutdown.await;
            return Ok(());
        };
        let scheduler = Scheduler {
            store: self.inner.store.clone(),
            registry: self.inner.name.clone(),
            key: self.inner.places.schedule(),
            schedule,
            clock: self.inner.clock.clone(),
            ran: self.ran().await?,
        };
        let begin = |moment| {
            let run = begin(moment);
            async {
                match run.await {
                    Ok(Synced::Done(_) | Synced::Unchanged { .. }) => true,
                    Ok(Synced::Busy { .. }) => false,
                    Err(error) => {
                        warn!(registry = self.name(), %error, "a scheduled run failed");
                        !error.retryable()
                    }
                }
            }
        };
        scheduler.run(shutdown, begin).await;
        Ok(())
    }

    /// When a run is due next, by the schedule alone; none without one.
    pub fn next_run(&self) -> Option<Timestamp> {
        self.inner.settings.schedule.schedule().ok()??.next(self.inner.clock.now())
    }

    /// When the last run ended, if there ever was one.
    async fn ran(&self) -> Result<Option<Timestamp>> {
        let found = self.inner.store.get(&self.inner.places.last_run).await?;
        let last = found
            .and_then(|entry| serde_json::from_slice::<SyncMetadata>(entry.value.as_bytes()).ok());
        Ok(last.and_then(|last| last.timestamp.parse().ok()))
    }
}

/// Begins the runs of a registry when they are due.
struct Scheduler {
    store: Store,
    registry: String,
    key: Key,
    schedule: Schedule,
    clock: Arc<dyn Clock>,
    /// When the registry last ran, before anything was scheduled.
    ran: Option<Timestamp>,
}

/// The last run that was due and begun, as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Begun {
    /// When it was due: the first moment, of several that were missed.
    moment: String,
    /// When it was begun, by the clock of the server that did.
    begun_at: String,
    /// Whether it came to an end.
    finished: bool,
}

/// What there is to do.
#[derive(Debug)]
enum Due {
    /// This run, which nobody else begins.
    Now { moment: Timestamp, begun: Begun },
    /// Nothing before this moment; nothing at all, if there is none.
    Later(Option<Timestamp>),
}

impl Scheduler {
    /// Begins runs until told to stop. `begin` does one, and says whether it came to something; a run that
    /// is being done is waited for before the end.
    async fn run<R: Future<Output = bool>>(
        &self,
        shutdown: impl Future<Output = ()>,
        mut begin: impl FnMut(Timestamp) -> R,
    ) {
        let mut shutdown = pin!(shutdown);
        let mut unfinished_too = true;
        loop {
            let (moment, begun) = tokio::select! {
                biased;
                () = &mut shutdown => return,
                due = self.due(unfinished_too) => due,
            };
            unfinished_too = false;
            info!(registry = self.registry, %moment, "a scheduled run begins");
            let mut waits = RETRIES.into_iter();
            loop {
                if begin(moment).await {
                    self.finish(begun).await;
                    break;
                }
                let Some(wait) = waits.next() else { break };
                tokio::select! {
                    biased;
                    () = &mut shutdown => return,
                    next_is_due = self.pass(wait) => if next_is_due { break },
                }
            }
        }
    }

    /// Waits until a run is due that this server is to begin.
    async fn due(&self, mut unfinished_too: bool) -> (Timestamp, Begun) {
        let mut trouble = TROUBLE_MIN;
        loop {
            match self.look(unfinished_too).await {
                Ok(Due::Now { moment, begun }) => return (moment, begun),
                Ok(Due::Later(moment)) => {
                    trouble = TROUBLE_MIN;
                    unfinished_too = false;
                    match moment {
                        Some(moment) => self.sleep_until(moment).await,
                        None => std::future::pending().await,
                    }
                }
                Err(error) => {
                    warn!(registry = self.registry, %error, "the schedule cannot be kept now");
                    tokio::time::sleep(trouble).await;
                    trouble = (trouble * 2).min(TROUBLE_MAX);
                }
            }
        }
    }

    /// Takes the run that is due, if one is.
    async fn look(&self, unfinished_too: bool) -> Result<Due> {
        let found = self.store.get(&self.key).await?;
        let now = self.clock.now();
        let begun = found.as_ref().and_then(Begun::read);
        let expect = found.map_or(Expect::Absent, |entry| Expect::Version(entry.version));
        let Some((begun, last)) = begun.filter(|(_, last)| *last <= now + AHEAD_MAX) else {
            // Nothing was scheduled before, or by a clock that is not to be believed.
            let since = self.ran.filter(|ran| *ran <= now).unwrap_or(now);
            self.take(expect, &Begun::new(since, since, true)).await?;
            // Whoever was faster is seen by the next look.
            return Ok(Due::Later(Some(now)));
        };
        if unfinished_too && !begun.finished {
            let moment = begun.moment.parse().unwrap_or(now);
            return self.taken(expect, moment, now).await;
        }
        match self.schedule.next(last) {
            Some(moment) if moment <= now => self.taken(expect, moment, now).await,
            later => Ok(Due::Later(later)),
        }
    }

    /// Takes a run, unless somebody else has.
    async fn taken(&self, expect: Expect, moment: Timestamp, now: Timestamp) -> Result<Due> {
        let begun = Begun::new(moment, now, false);
        match self.take(expect, &begun).await? {
            true => Ok(Due::Now { moment, begun }),
            false => Ok(Due::Later(Some(now))),
        }
    }

    /// Remembers that a run came to its end, unless somebody has taken another one meanwhile.
    async fn finish(&self, begun: Begun) {
        let done = async {
            let Some(entry) = self.store.get(&self.key).await? else { return Ok(()) };
            if Begun::read(&entry).is_some_and(|(found, _)| found == begun) {
                let expect = Expect::Version(entry.version);
                self.take(expect, &Begun { finished: true, ..begun }).await?;
            }
            Ok::<(), Error>(())
        };
        if let Err(error) = done.await {
            warn!(registry = self.registry, %error, "the end of a scheduled run is not noted");
        }
    }

    /// Writes what was begun, if nobody did since it was read.
    async fn take(&self, expect: Expect, begun: &Begun) -> Result<bool> {
        let value = Json::from_value(begun).map_err(|error| Error::Invalid(error.to_string()))?;
        let put = Put::new(value);
        let commit = Commit::new().check(self.key.clone(), expect).put(self.key.clone(), put);
        let outcome: Outcome = self.store.commit(commit).await?;
        Ok(outcome.is_applied())
    }

    /// Lets time pass: whether the next run is due before so much has.
    async fn pass(&self, wait: SignedDuration) -> bool {
        let now = self.clock.now();
        let until = now + wait;
        let next = self.schedule.next(now).filter(|next| *next <= until);
        self.sleep_until(next.unwrap_or(until)).await;
        next.is_some()
    }

    /// Sleeps until the clock shows a moment.
    async fn sleep_until(&self, moment: Timestamp) {
        loop {
            let left = moment.duration_since(self.clock.now());
            match Duration::try_from(left) {
                Ok(left) if !left.is_zero() => tokio::time::sleep(left.min(SLEEP_MAX)).await,
                _ => return,
            }
        }
    }
}

impl Begun {
    fn new(moment: Timestamp, begun_at: Timestamp, finished: bool) -> Self {
        Self { moment: moment_text(moment), begun_at: moment_text(begun_at), finished }
    }

    /// What a row says, and up to when runs have been begun. None if it says nothing of the kind.
    fn read(entry: &Entry) -> Option<(Self, Timestamp)> {
        let begun: Self = serde_json::from_slice(entry.value.as_bytes()).ok()?;
        let moment: Timestamp = begun.moment.parse().ok()?;
        let begun_at: Timestamp = begun.begun_at.parse().ok()?;
        Some((begun, moment.max(begun_at)))
    }
}
