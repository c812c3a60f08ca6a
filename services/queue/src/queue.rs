use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keyward_engine::{
    Clock, Commit, Entry, Error as StoreError, ErrorKind, Expect, ExpirySupport, Json, Outcome,
    Put, ScanOrder, Store, Tier, Version,
};
use keyward_key::Key;

use crate::entropy::Entropy;
use crate::job::{self, Trace};
use crate::look::Passed;
use crate::moment::Moment;
use crate::row::Row;
use crate::{Error, Metrics, Options, Places, Result};

/// A queue of messages in a store. Clones are the same queue.
///
/// Every operation is a commit with checks, so any number of processes may share a queue. A future
/// that is dropped has done its commit or not, never half of it; a claim that is dropped may leave
/// messages claimed, which others take over when their lease ends.
#[derive(Clone)]
pub struct Queue {
    pub(crate) inner: Arc<Inner>,
    /// What every change takes with it.
    pub(crate) rider: Option<Arc<Commit>>,
}

pub(crate) struct Inner {
    pub store: Store,
    pub name: String,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    pub places: Places,
    pub metrics: Metrics,
    pub entropy: Entropy,
    /// Where claims go on when nothing at the head can be taken.
    passed: Mutex<Passed>,
    /// Among how many rows at the head a claim chooses: more after lost races.
    pub spread: AtomicUsize,
    made: AtomicU32,
}

/// How a commit of ours ended.
pub(crate) enum Committed {
    Applied(Vec<Option<Version>>),
    Conflicted(Vec<usize>),
    /// The answer was lost.
    Unknown(StoreError),
}

/// What is read of a message at one moment.
pub(crate) struct Found {
    pub row: Option<(Row, Version)>,
    pub dead: Option<(Row, Version)>,
    pub claim: Option<Entry>,
}

/// How often a change is tried again when others keep getting in between.
pub(crate) const TRIES: usize = 32;

impl Queue {
    /// The queue of this name. Refused where the engine cannot keep the promises: below the atomic
    /// tier, without expiry, or with a lease shorter than the engine's shortest time to live.
    pub fn new(store: Store, name: &str, clock: impl Clock, options: Options) -> Result<Self> {
        Self::shared(store, name, Arc::new(clock), options, Metrics::default())
    }

    pub(crate) fn shared(
        store: Store,
        name: &str,
        clock: Arc<dyn Clock>,
        options: Options,
        metrics: Metrics,
    ) -> Result<Self> {
        check_engine(&store, options.lease)?;
        if options.holder.len() > Options::HOLDER_BYTES_MAX {
            return Err(Error::BadMessage(format!(
                "the name of a holder has at most {} bytes, not {}; give a shorter one",
                Options::HOLDER_BYTES_MAX,
                options.holder.len()
            )));
        }
        let places = match &options.places {
            Some(places) => places.clone(),
            None => Places::of(name)?,
        };
        let inner = Inner {
            store,
            name: name.to_owned(),
            clock,
            entropy: Entropy::new(options.seed)?,
            options,
            places,
            metrics,
            passed: Mutex::default(),
            spread: AtomicUsize::new(0),
            made: AtomicU32::new(0),
        };
        Ok(Self { inner: Arc::new(inner), rider: None })
    }

    /// The same queue, whose changes take a rider with them: checks and writes of other data that are
    /// done in the very commit of an enqueuing, of the end of an attempt, of a drop, a requeue, a
    /// pause or a resume, or not at all. A change whose rider's checks do not hold is not made:
    /// [`Error::RiderRefused`]. What turns out to change nothing, such as a duplicate, takes nothing
    /// with it.
    ///
    /// A queue with a rider is for one change: claims and signs of life would take it along as well.
    #[must_use]
    pub fn with_rider(&self, rider: Commit) -> Self {
        Self { inner: self.inner.clone(), rider: Some(Arc::new(rider)) }
    }

    /// The queue's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What this process has counted.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// How it is worked on.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The store it is in.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    pub(crate) fn now(&self) -> Moment {
        Moment::of(self.inner.clock.now())
    }

    /// An id that no message has had: it begins with the time and a count, so that messages that
    /// are enqueued in one millisecond stay in order.
    pub(crate) fn new_id(&self, now: Moment) -> Result<String> {
        let millis = now.time().as_millisecond().max(0);
        let count = self.inner.made.fetch_add(1, Ordering::Relaxed);
        Ok(format!("{millis:011x}{count:08x}{:016x}", self.inner.entropy.bits()?))
    }

    /// Commits, with the rider if there is one; a lost answer is no error yet.
    pub(crate) async fn commit(&self, mut commit: Commit) -> Result<Committed> {
        let writes = commit.writes.len();
        let mut ridden = 0;
        if let Some(rider) = &self.rider {
            ridden = rider.checks.len();
            // Its checks come first: of several that fail, engines may tell only the first.
            commit.checks.splice(..0, rider.checks.iter().cloned());
            commit.writes.extend(rider.writes.iter().cloned());
        }
        match self.inner.store.commit(commit).await {
            Ok(Outcome::Applied { mut versions, .. }) => {
                versions.truncate(writes);
                Ok(Committed::Applied(versions))
            }
            Ok(Outcome::Conflicted { mut failed }) => {
                if failed.iter().any(|check| *check < ridden) {
                    failed.retain(|check| *check < ridden);
                    return Err(Error::RiderRefused { failed });
                }
                failed.iter_mut().for_each(|check| *check -= ridden);
                Ok(Committed::Conflicted(failed))
            }
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                Ok(Committed::Unknown(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads to learn what became of a commit whose answer was lost. If that cannot be read either,
    /// the outcome stays unknown, and is told as such.
    pub(crate) async fn read_again(
        &self,
        keys: &[Key],
        unknown: StoreError,
    ) -> Result<Vec<Option<Entry>>> {
        const READS: u32 = 6;
        const PAUSE: Duration = Duration::from_millis(20);
        for read in 0..READS {
            match self.inner.store.get_many(keys).await {
                Ok(entries) => return Ok(entries),
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    tokio::time::sleep(PAUSE * 2_u32.pow(read)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(unknown.into())
    }

    pub(crate) fn decode(&self, key: &Key, entry: &Entry) -> Result<Row> {
        Row::decode(key, entry, self.inner.places.layout())
    }

    /// The row as the store takes it: where it has grown too large, with less of its past.
    pub(crate) fn encode(&self, row: &Row) -> Result<Put> {
        let layout = self.inner.places.layout();
        let bytes_max = self.inner.store.limits().value_bytes_max;
        let whole = row.encode(layout)?;
        if whole.len() <= bytes_max {
            return Ok(Put::new(whole));
        }
        let mut brief = row.clone();
        for (history_max, error_bytes_max) in Row::BRIEFER {
            brief.abridge(history_max, error_bytes_max);
            let value = brief.encode(layout)?;
            if value.len() <= bytes_max {
                return Ok(Put::new(value));
            }
        }
        // The store says how much too large it is.
        brief.encode(layout).map(Put::new)
    }

    /// What there is of a message.
    pub(crate) async fn find(&self, id: &str) -> Result<Found> {
        let keys = self.keys_of(id);
        let entries = self.inner.store.get_many(&keys).await?;
        self.found(&keys, entries)
    }

    pub(crate) fn keys_of(&self, id: &str) -> [Key; 3] {
        let places = &self.inner.places;
        [places.row(id), places.dead_letter(id), places.claim(id)]
    }

    pub(crate) fn found(&self, keys: &[Key; 3], entries: Vec<Option<Entry>>) -> Result<Found> {
        let mut entries = entries.into_iter();
        let mut row = |key: &Key| match entries.next().flatten() {
            Some(entry) => self.decode(key, &entry).map(|row| Some((row, entry.version))),
            None => Ok(None),
        };
        let (live, dead) = (row(&keys[0])?, row(&keys[1])?);
        Ok(Found { row: live, dead, claim: entries.next().flatten() })
    }

    /// Writes a row with its index entry.
    pub(crate) fn put_row(&self, commit: Commit, id: &str, row: &Row) -> Result<Commit> {
        let places = &self.inner.places;
        Ok(commit
            .put(places.row(id), self.encode(row)?)
            .put(row.entry(places, id), Put::new(row.entry_value())))
    }

    /// Takes a row out of the queue, if it is still at this version: the row, its index entry, its
    /// lease.
    pub(crate) fn remove_row(
        &self,
        commit: Commit,
        id: &str,
        row: &Row,
        version: &Version,
    ) -> Commit {
        let places = &self.inner.places;
        let commit = commit
            .check(places.row(id), Expect::Version(version.clone()))
            .delete(places.row(id))
            .delete(row.entry(places, id));
        match row.attempt {
            Some(_) => commit.delete(places.claim(id)),
            None => commit,
        }
    }

    /// Puts a message among the dead letters. Its job, if it is one, is told.
    pub(crate) fn bury(
        &self,
        commit: Commit,
        id: &str,
        mut row: Row,
        now: Moment,
        reason: &str,
    ) -> Result<Commit> {
        row.make_ready();
        row.dead_at = Some(now);
        row.reason = Some(crate::row::shortened(reason));
        let commit = self.finish_job(commit, id, &row, now, Err(Trace::failed(&row, reason)))?;
        let buried = self.encode(&row)?;
        Ok(commit.put(self.inner.places.dead_letter(id), buried))
    }

    /// Writes how a job ended, if the message is one.
    pub(crate) fn finish_job(
        &self,
        commit: Commit,
        id: &str,
        row: &Row,
        now: Moment,
        end: Result<Json, Trace>,
    ) -> Result<Commit> {
        match &row.job {
            Some(tag) => {
                let put = job::finished(&self.inner.name, tag, now, end)?;
                Ok(commit.put(job::key(id)?, put))
            }
            None => Ok(commit),
        }
    }

    pub(crate) fn passed(&self) -> MutexGuard<'_, Passed> {
        self.inner.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contended(&self, what: impl fmt::Display) -> Error {
        Error::Contended { what: what.to_string(), attempts: TRIES }
    }
}

fn check_engine(store: &Store, lease: Duration) -> Result<()> {
    let capabilities = store.capabilities();
    let (engine, tier) = (capabilities.engine, capabilities.tier());
    if tier != Tier::Atomic {
        return Err(Error::NeedsAtomic { engine, tier });
    }
    if capabilities.scan_order == ScanOrder::Unordered {
        return Err(Error::NeedsOrder { engine });
    }
    check_lease(store, lease)
}

/// Refuses a lease that the engine cannot keep.
pub(crate) fn check_lease(store: &Store, lease: Duration) -> Result<()> {
    let capabilities = store.capabilities();
    let engine = capabilities.engine;
    let refused =
        |reason: String| Err(Error::NoLease { engine, lease_ms: lease.as_millis(), reason });
    match capabilities.expiry {
        ExpirySupport::Unsupported => refused("its entries cannot expire".to_owned()),
        ExpirySupport::Supported { ttl_min, .. } if lease < ttl_min => {
            refused(format!("its entries live at least {} ms", ttl_min.as_millis()))
        }
        ExpirySupport::Supported { .. } if lease.is_zero() => {
            refused("a lease of no time is over at once".to_owned())
        }
        ExpirySupport::Supported { .. } => Ok(()),
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
