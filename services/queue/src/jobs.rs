//! Submitting jobs, and following them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream;
use keyward_engine::{
    BoxStream, Clock, Commit, Cursor, Error as StoreError, Expect, Json, PageBytes, Scan, Store,
    Version,
};

use crate::follow::Watching;
use crate::job::{self, Record, Trace};
use crate::moment::millis;
use crate::queue::{Committed, TRIES};
use crate::row::{JobTag, Row};
use crate::{Error, Job, Message, Metrics, Options, Part, Queue, Result, Status};

/// The jobs of a store: messages of its queues whose course and result are kept.
#[derive(Debug, Clone)]
pub struct Jobs {
    store: Store,
    clock: Arc<dyn Clock>,
    options: Options,
    metrics: Option<Metrics>,
    rider: Option<Arc<Commit>>,
    queues: Arc<Mutex<BTreeMap<String, Queue>>>,
}

/// How a job is submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOptions {
    /// Its id, an idempotency key: the same job submitted again is told as a duplicate. `None` makes
    /// one up.
    pub id: Option<String>,
    /// How long it is kept after its end.
    pub retention: Duration,
    /// How long one attempt may take; an attempt that takes longer has failed.
    pub timeout: Option<Duration>,
    /// Not to be begun before this time has passed.
    pub delay: Option<Duration>,
}

impl Default for JobOptions {
    /// An id is made up, and the end is kept for a day.
    fn default() -> Self {
        Self { id: None, retention: Duration::from_secs(86_400), timeout: None, delay: None }
    }
}

/// What became of a job that was to be submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It is in its queue.
    Added {
        /// Its id.
        id: String,
    },
    /// It was submitted before; nothing was written.
    Duplicate {
        /// Its id.
        id: String,
    },
}

impl Submitted {
    /// The job's id.
    pub fn id(&self) -> &str {
        match self {
            Self::Added { id } | Self::Duplicate { id } => id,
        }
    }
}

/// What became of a job that was to be cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// It is cancelled. A worker that has it in hand is told, and cannot complete it.
    Done,
    /// It had ended so before.
    Finished(Status),
    /// There is no such job.
    Unknown,
}

impl Jobs {
    /// The most jobs on one page.
    pub const LIST_MAX: usize = 1_000;

    /// The jobs of a store. Refused where queues are ([`Queue::new`]).
    pub fn new(store: Store, clock: impl Clock, options: Options) -> Result<Self> {
        let jobs = Self {
            store,
            clock: Arc::new(clock),
            options,
            metrics: None,
            rider: None,
            queues: Arc::default(),
        };
        // Any name shows whether the engine can keep a queue.
        jobs.queue("jobs")?;
        Ok(jobs)
    }

    /// The store they are in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The same, whose queues all count into these numbers, for one sum of many queues.
    #[must_use]
    pub fn counting(self, metrics: Metrics) -> Self {
        Self { metrics: Some(metrics), queues: Arc::default(), ..self }
    }

    /// The same, whose changes and those of its queues take a rider with them, as
    /// [`Queue::with_rider`] says.
    #[must_use]
    pub fn with_rider(&self, rider: Commit) -> Self {
        Self { rider: Some(Arc::new(rider)), ..self.clone() }
    }

    /// A queue that jobs are submitted to.
    pub fn queue(&self, name: &str) -> Result<Queue> {
        Ok(Queue { rider: self.rider.clone(), ..self.kept(name)? })
    }

    fn kept(&self, name: &str) -> Result<Queue> {
        /// Names may come from outside, so there is an end to how many are kept.
        const KEPT_MAX: usize = 1_000;
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(name) {
            return Ok(queue.clone());
        }
        let options = Options { places: None, ..self.options.clone() };
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let metrics = self.metrics.clone().unwrap_or_default();
        let queue = Queue::shared(store, name, clock, options, metrics)?;
        if queues.len() < KEPT_MAX {
            queues.insert(name.to_owned(), queue.clone());
        }
        Ok(queue)
    }

    /// Submits a job to a queue: its record and its message in one commit.
    pub async fn submit(
        &self,
        queue: &str,
        payload: Json,
        options: JobOptions,
    ) -> Result<Submitted> {
        let queue = self.queue(queue)?;
        let now = queue.now();
        let given = options.id.is_some();
        let id = match options.id {
            Some(id) => id,
            None => queue.new_id(now)?,
        };
        let message = Message { delay: options.delay, ..Message::new(payload).id(&*id) };
        let mut draft = queue.draft(message, now)?;
        let tag = JobTag {
            submitted_at: now,
            retention_ms: millis(options.retention),
            timeout_ms: options.timeout.map(millis),
            digest: draft.row.digest(),
        };
        let record = job::submitted(queue.name(), &tag)?;
        draft.row.job = Some(tag.clone());
        let key = job::key(&id)?;
        let commit = Commit::new()
            .check(key.clone(), Expect::Absent)
            .check(queue.inner.places.row(&id), Expect::Absent)
            .check(queue.inner.places.dead_letter(&id), Expect::Absent)
            .put(key.clone(), record);
        let commit = queue.put_row(commit, &id, &draft.row)?;
        let mut unknown: Option<StoreError> = None;
        let mut unsure = false;
        for _ in 0..TRIES {
            match queue.commit(commit.clone()).await.map_err(|error| error.after(unsure))? {
                Committed::Applied(_) => {
                    queue.metrics().enqueued.inc();
                    return Ok(Submitted::Added { id });
                }
                Committed::Conflicted(_) => {}
                Committed::Unknown(error) => unknown = Some(error),
            }
            unsure |= unknown.is_some();
            let found = match unknown.take() {
                Some(error) => queue.read_again(std::slice::from_ref(&key), error).await?,
                None => vec![self.store.get(&key).await?],
            };
            match found.into_iter().next().flatten() {
                Some(entry) => {
                    let record = Record::decode(&key, &entry)?;
                    return match record.digest == tag.digest && record.queue == queue.name() {
                        true if unsure && !given => Ok(Submitted::Added { id }),
                        true => Ok(Submitted::Duplicate { id }),
                        false => Err(queue.taken(id)),
                    };
                }
                // A message of this id that is no job, or one whose job has expired.
                None if !unsure => {
                    let found = queue.find(&id).await?;
                    if found.row.is_some() || found.dead.is_some() {
                        return Err(queue.taken(id));
                    }
                }
                None => {}
            }
        }
        Err(queue.contended(format_args!("the job {id}")))
    }

    /// A job with its status, if it is there. Reading changes nothing.
    pub async fn get(&self, id: &str) -> Result<Option<Job>> {
        Ok(self.read(id).await?.map(|(record, row, _)| {
            let row = row.map(|(row, _)| row);
            record.job(id, row.as_ref())
        }))
    }

    /// What a job is doing, or how it ended; `None` if it is not there.
    pub async fn status(&self, id: &str) -> Result<Option<Status>> {
        Ok(self.get(id).await?.map(|job| job.status))
    }

    /// The record and the row at one moment; the row only of a job that has not ended.
    async fn read(&self, id: &str) -> Result<Option<(Record, Option<(Row, Version)>, Version)>> {
        let key = job::key(id)?;
        let Some(entry) = self.store.get(&key).await? else { return Ok(None) };
        let record = Record::decode(&key, &entry)?;
        if record.is_final() {
            return Ok(Some((record, None, entry.version)));
        }
        let queue = self.queue(&record.queue)?;
        let keys = [key, queue.inner.places.row(id)];
        let mut found = self.store.get_many(&keys).await?.into_iter();
        let Some(entry) = found.next().flatten() else { return Ok(None) };
        let record = Record::decode(&keys[0], &entry)?;
        let row = match found.next().flatten() {
            Some(stored) => Some((queue.decode(&keys[1], &stored)?, stored.version)),
            None => None,
        };
        Ok(Some((record, row, entry.version)))
    }

    /// The statuses of a job from now on, each once, the last one final. Ends without one if the job
    /// is not there, or no longer. By the store's feed where it has one; else by looking again,
    /// more and more seldom.
    pub fn watch(&self, id: &str) -> BoxStream<'static, Result<Status>> {
        let watching = Watching::new(self.clone(), id);
        Box::pin(stream::unfold(Some(watching), |watching| async move {
            let mut watching = watching?;
            match watching.next().await {
                Ok(Some(status)) => {
                    let more = (!status.is_final()).then_some(watching);
                    Some((Ok(status), more))
                }
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    /// Cancels a job: it leaves its queue, and its status is a trace that says so. `by` is who
    /// wanted it.
    pub async fn cancel(&self, id: &str, by: &str) -> Result<Cancelled> {
        let mut tried = false;
        for _ in 0..TRIES {
            let read = self.read(id).await.map_err(|error| error.after(tried))?;
            let Some((record, row, version)) = read else {
                return Ok(Cancelled::Unknown);
            };
            let queue = self.queue(&record.queue)?;
            if record.is_final() {
                let status = record.job(id, None).status;
                let is_mine =
                    tried && matches!(&status, Status::Trace(trace) if trace.kind == "cancelled");
                return Ok(if is_mine { Cancelled::Done } else { Cancelled::Finished(status) });
            }
            let attempts = row.as_ref().map_or(0, |(row, _)| match row.attempt {
                Some(_) => row.next_attempt(),
                None => row.retry_count,
            });
            let trace = Trace::cancelled(&format!("cancelled by {by}"), attempts);
            let end = job::finished(queue.name(), &record.tag(), queue.now(), Err(trace))?;
            let key = job::key(id)?;
            let mut commit =
                Commit::new().check(key.clone(), Expect::Version(version)).put(key, end);
            if let Some((row, version)) = &row {
                commit = queue.remove_row(commit, id, row, version);
            }
            match queue.commit(commit).await.map_err(|error| error.after(tried))? {
                Committed::Applied(_) => return Ok(Cancelled::Done),
                Committed::Conflicted(_) => {}
                Committed::Unknown(_) => tried = true,
            }
        }
        Err(Error::Contended { what: format!("the job {id}"), attempts: TRIES })
    }

    /// One page of the jobs, by id: at most `limit` after the id `after`. What a job is doing is read
    /// with it.
    pub async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Job>> {
        Ok(self.list_part(after, limit, usize::MAX).await?.items)
    }

    /// The same, ending with the job that brings the page to `bytes_max`.
    pub async fn list_part(
        &self,
        after: Option<&str>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Part<Job>> {
        let limit = limit.clamp(1, Self::LIST_MAX);
        let mut cursor = after.map(job::key).transpose()?.map(|key| Cursor::after_key(&key));
        let mut bytes = PageBytes::new(bytes_max);
        let mut items: Vec<Job> = Vec::new();
        loop {
            let scan = Scan::new(job::range()).limit(limit - items.len()).after(cursor).keys_only();
            let page = self.store.scan(&scan).await?;
            let mut read = page.rows.iter();
            while let Some(row) = read.next() {
                if row.key.depth() != 2 {
                    continue;
                }
                let id = row.key.segments().nth(1).unwrap_or_default().into_owned();
                match self.get(&id).await {
                    Ok(Some(job)) => {
                        bytes.add(job.status.bytes());
                        items.push(job);
                    }
                    // Others may keep something else at such a key.
                    Ok(None) | Err(Error::Damaged { .. }) => continue,
                    Err(error) => return Err(error),
                }
                if items.len() >= limit || bytes.is_full() {
                    let is_more = read.len() > 0 || page.next.is_some();
                    let next = items.last().filter(|_| is_more).map(|job| job.id.clone());
                    return Ok(Part { items, next });
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(Part { items, next: None });
            }
        }
    }
}

/// How a job ended, if it has.
pub(crate) async fn final_status(queue: &Queue, id: &str) -> Result<Option<Status>> {
    let key = job::key(id)?;
    let Some(entry) = queue.store().get(&key).await? else { return Ok(None) };
    let record = Record::decode(&key, &entry)?;
    Ok(record.is_final().then(|| record.job(id, None).status))
}
