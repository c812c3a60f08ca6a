//! One run: fetch, plan, apply, and say that it is done.

use std::sync::atomic::Ordering;
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Commit, Error as StoreError, ErrorKind, Expect, Json, Outcome, Put,
};
use keyward_locks::{Error as LockError, Guard, LockPath, Mode, Request, Tried};
use serde::{Deserialize, Serialize};

use crate::apply::{BATCH_MAX, Tally, Writing, Written};
use crate::places::run_id;
use crate::planner::Before;
use crate::state::State;
use crate::{Error, Plan, Problem, Registry, Result, Run, RunStatus, SyncMetadata, Trigger};

/// How long a run that was killed keeps the next one waiting.
const LEASE: Duration = Duration::from_secs(60);
/// How often a commit whose answers are lost is sent.
const SURE_TRIES: usize = 4;
const FAIL_TRIES: usize = 4;

/// How a registry is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SyncOptions {
    /// The whole tree is compared, also where only what changed would do.
    pub full: bool,
    /// More of the registry may be deleted than the settings say.
    pub allow_mass_delete: bool,
}

/// How a sync ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Synced {
    /// It ran; the run says how it ended. A run that failed is an error instead.
    Done(Run),
    /// The registry is at the newest commit already; nothing was done.
    Unchanged {
        /// The commit.
        commit: String,
    },
    /// Another run is under way; nothing was done.
    Busy {
        /// Who runs it, for people.
        holder: String,
        /// Since when, by their clock.
        since: String,
    },
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase", tag = "step")]
pub enum Progress {
    /// The newest commit is being fetched.
    Fetching,
    /// The tree is being compared with the registry.
    Comparing {
        /// How many entries were compared so far.
        compared: u64,
    },
    /// New files are being read.
    Reading {
        /// How many so far.
        read: u64,
        /// Of how many.
        total: u64,
    },
    /// Changes are being written.
    Applying {
        /// How many so far.
        applied: u64,
        /// Of how many.
        total: u64,
    },
}

impl Registry {
    /// What a sync would do now. Fetches the newest commit, takes no lock, and changes nothing in the
    /// store. A mass delete is no error here.
    pub async fn plan(&self, options: &SyncOptions) -> Result<Plan> {
        let commit = self.inner.source.fetch().await?;
        let (before, _) = self.before().await?;
        self.plan_for(&commit, &before, options, &|_| ()).await
    }

    /// Brings the registry to the newest commit of its branch, and tells how far it is.
    ///
    /// May be dropped at any moment, or killed: the next one finishes what it began. Fails if the source
    /// cannot be read whole, if more would be deleted than may be, and if the store fails or the lock is
    /// lost; `metadata:sync:lastCommit` has not moved then. A failure is written into the history if the
    /// store takes it.
    pub async fn sync(
        &self,
        trigger: Trigger,
        options: &SyncOptions,
        seen: impl Fn(Progress) + Send + Sync,
    ) -> Result<Synced> {
        let guard = match self.lock("sync").await? {
            Tried::Granted(guard) => guard,
            Tried::Held(holder) => {
                self.inner.metrics.busy.inc();
                return Ok(Synced::Busy { holder: holder.who.to_string(), since: holder.since });
            }
        };
        let synced = self.sync_under(&guard, trigger, options, &seen).await;
        // What cannot be given back now ends with its lease.
        let _ = guard.release().await;
        synced
    }

    /// Asks for the lock that a run holds.
    pub(crate) async fn lock(&self, purpose: &str) -> Result<Tried> {
        let root = self.inner.locks.root(self.inner.places.lock())?;
        let request = Request::default().ttl(LEASE).purpose(format!("{purpose} {}", self.name()));
        Ok(root.try_acquire(&[LockPath::root()], Mode::Exclusive, &request).await?)
    }

    fn sync_under<'a>(
        &'a self,
        guard: &'a Guard,
        trigger: Trigger,
        options: &'a SyncOptions,
        seen: &'a (dyn Fn(Progress) + Send + Sync),
    ) -> BoxFuture<'a, Result<Synced>> {
        Box::pin(async move {
            let mut run = self.begin(trigger)?;
            // Somebody else's policies are no run of this registry.
            let before = self.occupy(guard).await?;
            run.previous_commit.clone_from(&before.last_commit);
            let outcome = self.advance(guard, &mut run, &before, options, seen).await;
            match outcome {
                Ok(None) => Ok(Synced::Unchanged { commit: run.commit.unwrap_or_default() }),
                Ok(Some(ended)) => {
                    self.tell(&ended);
                    Ok(Synced::Done(ended))
                }
                Err(error) => match self.fail(guard, run, &error).await {
                    // The answer was lost, and it was done after all.
                    Ok(Some(ended)) => {
                        self.tell(&ended);
                        Ok(Synced::Done(ended))
                    }
                    Ok(None) => Err(error),
                    Err(unwritten) => {
                        tracing::warn!(registry = self.name(), %unwritten, "a failed run is in no history");
                        Err(error)
                    }
                },
            }
        })
    }

    /// Fetches, plans and applies. `None` if there is nothing to do.
    async fn advance(
        &self,
        guard: &Guard,
        run: &mut Run,
        before: &Before,
        options: &SyncOptions,
        seen: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Option<Run>> {
        seen(Progress::Fetching);
        let commit = self.inner.source.fetch().await?;
        run.commit = Some(commit.clone());
        let is_over = before.state.is_deprecated_over(self.now(), self.settings().deprecated_kept);
        let cleans = is_over && !before.state.deprecated_dropped;
        if self.is_at(&commit, before, options) && !cleans {
            return Ok(None);
        }
        let plan = self.plan_for(&commit, before, options, seen).await?;
        (run.scanned, run.whole, run.blobs_read) = (plan.scanned, plan.whole, plan.blobs_read);
        if !options.allow_mass_delete {
            plan.check_deletes(self.settings().mass_delete_percent_max)?;
        }
        if before.is_as_the_original_left_it(&plan) && !cleans {
            let ended = self.ended(run, &plan, &Tally::default());
            let noting = self.noting(&ended, &plan, &Tally::default(), before, is_over)?;
            self.commit_surely(guard, self.put_run(noting, &ended)?).await?;
            return Ok(Some(ended));
        }
        let writing = Writing { registry: self, guard, run: &run.id, keeps_deprecated: !is_over };
        let total = plan.steps.len() as u64;
        let mut tally = Tally::default();
        if plan.steps.len() <= BATCH_MAX && !cleans {
            // Few enough for one commit, with all that is said about them.
            tally.count(&plan.steps);
            let ended = self.ended(run, &plan, &tally);
            let besides = self.ending(&ended, &plan, &tally, before, is_over)?;
            if let Written::Applied = writing.together(&plan.steps, &besides).await? {
                seen(Progress::Applying { applied: total, total });
                return Ok(Some(ended));
            }
            tally = Tally::default();
        }
        self.commit_surely(guard, self.beginning(run, before)?).await?;
        for steps in plan.steps.chunks(BATCH_MAX) {
            let applied = writing.batch(steps, &mut tally).await;
            (run.added, run.updated, run.deleted) = (tally.added, tally.updated, tally.deleted);
            applied?;
            seen(Progress::Applying { applied: tally.total(), total });
        }
        if cleans {
            self.drop_deprecated(guard).await?;
        }
        let ended = self.ended(run, &plan, &tally);
        let ending = self.ending(&ended, &plan, &tally, before, is_over)?;
        self.commit_surely(guard, ending).await?;
        Ok(Some(ended))
    }

    /// A run that begins now.
    fn begin(&self, trigger: Trigger) -> Result<Run> {
        let now = self.now();
        let number = match &self.inner.seeded {
            Some(next) => next.fetch_add(1, Ordering::Relaxed),
            None => getrandom::u64()
                .map_err(|error| Error::Invalid(format!("there is no randomness: {error}")))?,
        };
        // Two that begin in one millisecond are in the order in which they begin.
        let millis = now.as_millisecond();
        let last = self.inner.begun.fetch_max(millis, Ordering::Relaxed);
        let millis = if last < millis {
            millis
        } else {
            self.inner.begun.fetch_add(1, Ordering::Relaxed) + 1
        };
        Ok(Run::new(run_id(millis, number), trigger, now))
    }

    /// Makes sure that no other registry keeps its policies here, and reads what the last sync left.
    async fn occupy(&self, guard: &Guard) -> Result<Before> {
        let (before, is_occupied) = self.before().await?;
        if is_occupied {
            return Ok(before);
        }
        self.adopt_messages(guard).await?;
        let key = self.inner.places.occupied.clone();
        let name = Json::from_value(self.name()).map_err(|error| Error::damaged(&key, error))?;
        let claim = Commit::new().check(key.clone(), Expect::Absent).put(key, Put::new(name));
        match guard.commit(claim).await {
            Err(LockError::Store(error)) if error.kind() == ErrorKind::OutcomeUnknown => {}
            outcome => drop(outcome?),
        }
        match self.before().await? {
            (before, true) => Ok(before),
            (_, false) => Err(StoreError::new(
                ErrorKind::Unavailable,
                "the registry's place in the store could not be claimed",
            )
            .into()),
        }
    }

    /// What is written before the first of several batches.
    fn beginning(&self, run: &Run, before: &Before) -> Result<Commit> {
        let commit = Commit::new()
            .put(self.inner.places.state(), Put::new(before.state.unclean().encode()?));
        self.put_run(commit, run)
    }

    /// The run as it ends, when so much was done.
    fn ended(&self, run: &Run, plan: &Plan, tally: &Tally) -> Run {
        let problems = plan.problems.iter().chain(&tally.problems);
        let mut ended = run.clone();
        (ended.added, ended.updated, ended.deleted) = (tally.added, tally.updated, tally.deleted);
        ended.end(self.now(), problems.cloned().collect());
        ended.status = match ended.error_count {
            0 => RunStatus::Success,
            _ => RunStatus::Partial,
        };
        ended
    }

    /// What is written last: how the run ended, then that the registry is at its commit.
    fn ending(
        &self,
        ended: &Run,
        plan: &Plan,
        tally: &Tally,
        before: &Before,
        is_over: bool,
    ) -> Result<Commit> {
        let places = &self.inner.places;
        let commit = Json::from_value(&plan.commit)
            .map_err(|error| Error::damaged(&places.last_commit, error))?;
        let metadata = before.last_commit_metadata.clone();
        let ending = self
            .noting(ended, plan, tally, before, is_over)?
            .put(places.last_run.clone(), Put::new(SyncMetadata::of(ended).encode()?))
            .put(places.last_commit.clone(), Put { metadata, ..Put::new(commit) });
        self.put_run(ending, ended)
    }

    /// What is noted of a registry for the next run.
    fn noting(
        &self,
        ended: &Run,
        plan: &Plan,
        tally: &Tally,
        before: &Before,
        is_over: bool,
    ) -> Result<Commit> {
        // An entry that moved from its title is the same entry.
        let entries = (plan.entries + tally.added).saturating_sub(tally.deleted);
        let state = State {
            commit: Some(plan.commit.clone()),
            fingerprint: self.inner.fingerprint.clone(),
            clean: ended.status == RunStatus::Success,
            entries,
            deprecated_dropped: is_over,
            ..before.state.clone()
        };
        Ok(Commit::new().put(self.inner.places.state(), Put::new(state.encode()?)))
    }

    /// Writes that a run failed, unless it turns out that it has ended well: then it is told.
    async fn fail(&self, guard: &Guard, mut run: Run, error: &Error) -> Result<Option<Run>> {
        run.end(self.now(), vec![Problem::new("", error.to_string())]);
        run.status = RunStatus::Failed;
        for _ in 0..FAIL_TRIES {
            let (key, known) = self.stored_run(&run.id).await?;
            if let Some((known, _)) = &known
                && known.ended_at.is_some()
            {
                return Ok(Some(known.clone()).filter(|known| known.status != RunStatus::Failed));
            }
            let expect = known.map_or(Expect::Absent, |(_, version)| Expect::Version(version));
            let commit = Commit::new().check(key, expect).put(
                self.inner.places.last_run.clone(),
                Put::new(SyncMetadata::of(&run).encode()?),
            );
            match guard.commit(self.put_run(commit, &run)?).await {
                Ok(Outcome::Applied { .. }) => break,
                Ok(Outcome::Conflicted { .. }) => {}
                Err(LockError::Store(error)) if error.kind() == ErrorKind::OutcomeUnknown => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.tell(&run);
        Ok(None)
    }

    /// Commits what may be written twice, until its answer arrives.
    pub(crate) async fn commit_surely(&self, guard: &Guard, commit: Commit) -> Result<()> {
        let mut tries = 0;
        loop {
            tries += 1;
            match guard.commit(commit.clone()).await {
                Ok(Outcome::Applied { .. }) => return Ok(()),
                Ok(Outcome::Conflicted { .. }) => {
                    let message = "a commit without checks was refused";
                    return Err(StoreError::new(ErrorKind::Internal, message).into());
                }
                Err(LockError::Store(error))
                    if error.kind() == ErrorKind::OutcomeUnknown && tries < SURE_TRIES => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Counts a run that has ended.
    fn tell(&self, run: &Run) {
        let metrics = &self.inner.metrics;
        match run.status {
            RunStatus::Success => metrics.succeeded.inc(),
            RunStatus::Partial => metrics.partial.inc(),
            RunStatus::Failed | RunStatus::Running => metrics.failed.inc(),
        };
        if run.status == RunStatus::Success {
            metrics.last_success_seconds.set(self.now().as_second());
        }
        metrics.added.inc_by(run.added);
        metrics.updated.inc_by(run.updated);
        metrics.deleted.inc_by(run.deleted);
        metrics.problems.inc_by(run.error_count);
        metrics.run_seconds.observe(run.duration_ms as f64 / 1_000.0);
        tracing::info!(
            registry = self.name(),
            run = run.id,
            status = run.status.as_str(),
            commit = run.commit,
            added = run.added,
            updated = run.updated,
            deleted = run.deleted,
            errors = run.error_count,
            "synced"
        );
    }
}
