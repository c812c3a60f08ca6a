//! Telling consumers of changes.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::join_all;
use keyward_engine::{Commit, Json, Outcome, Store};
use keyward_key::Key;
use keyward_queue::{Attempt, Ended, Failure, Worker, WorkerOptions};
use serde::{Deserialize, Serialize};

use crate::consumer::{self, Change, Consumer, Done, Repaired};
use crate::{Error, Operation, Policy, Registry, Result};

/// How many changes are told of at the same time.
const CONCURRENCY: usize = 8;

/// What was worked off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drained {
    /// Changes that every consumer has accepted.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Changes that are still in the queue: they wait to be tried again, others have them in hand, or
    /// there is nobody to tell.
    pub left: u64,
}

impl Registry {
    /// Tells consumers of changes, until `shutdown`; and puts exports right: after each run, as soon as
    /// nothing waits, and once a day.
    ///
    /// Each change goes to all consumers. Those that have accepted it are not told again when it is
    /// tried again for the sake of others. A change that failed as often as the settings say is a dead
    /// letter. Any number of processes may do this at once. Without consumers nothing is touched: the
    /// queue is somebody else's.
    ///
    /// From `shutdown` on, what was begun may end within half a minute; then commands are killed, and
    /// the change goes back to the queue. Dropping the future ends everything at once, but for files
    /// that are being written.
    pub async fn work(&self, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
        if self.settings().consumers.is_empty() {
            shutdown.await;
            return Ok(());
        }
        let telling = Arc::new(Telling::new(self));
        let worker = WorkerOptions { concurrency: CONCURRENCY, ..WorkerOptions::default() };
        let worker = Worker::new(self.queue().clone(), worker);
        let teller = telling.clone();
        let working = worker.run(
            move |delivery| {
                let telling = teller.clone();
                async move {
                    tokio::select! {
                        biased;
                        told = telling.tell(delivery.attempt()) => told.map(|()| None),
                        () = delivery.lost() => Err(Failure::new(LOST)),
                    }
                }
            },
            shutdown,
        );
        tokio::select! {
            worked = working => worked.map(|_| ()).map_err(Error::from),
            never = consumer::tend(self, &telling.consumers) => match never {},
        }
    }

    /// Tells consumers of all changes that can be told of now, and returns. What fails is tried again
    /// later, when it is time, by whoever works then.
    pub async fn drain(&self) -> Result<Drained> {
        let mut drained = Drained::default();
        let mut consumers = Vec::new();
        if !self.settings().consumers.is_empty() {
            let telling = Arc::new(Telling::new(self));
            loop {
                let attempts = self.queue().claim(CONCURRENCY).await?.attempts;
                if attempts.is_empty() {
                    break;
                }
                let ended = join_all(attempts.iter().map(|attempt| telling.end(attempt))).await;
                for ended in ended {
                    match ended? {
                        Some(true) => drained.completed += 1,
                        Some(false) => drained.failed += 1,
                        None => {}
                    }
                }
            }
            consumers = Consumer::all(self);
        }
        let stats = self.queue().stats().await?;
        drained.left = stats.ready.count + stats.delayed.count + stats.claimed.count;
        if drained.left == 0 && drained.completed > 0 && stats.dead.count == 0 {
            for consumer in &consumers {
                let noted = consumer.note_run(self).await;
                let named = consumer.name.clone();
                noted.map_err(|reason| Error::Consumer { consumer: named, reason })?;
            }
        }
        Ok(drained)
    }

    /// Compares what an export has with what it should have, and puts it right: what is missing or
    /// other than it was written is written, and what it has written of policies that are gone is
    /// removed. Files that it has not written are left alone. Dead letters that have nothing left to
    /// tell are dropped.
    ///
    /// What cannot be put right is told in the answer; an export that cannot be reached is an error.
    pub async fn repair(&self, consumer: &str) -> Result<Repaired> {
        let Some(declared) = self.settings().consumers.get(consumer) else {
            let (registry, consumer) = (self.name().to_owned(), consumer.to_owned());
            return Err(Error::UnknownConsumer { registry, consumer });
        };
        consumer::repair(self, &Consumer::new(self, consumer, declared)).await
    }
}

const LOST: &str = "the change is no longer in hand";

/// What the payload of a message says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    #[serde(skip)]
    policy_name: String,
    pub sha: String,
    pub operation: Operation,
    #[serde(default)]
    title: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    renamed_from: Option<String>,
    /// The run that found the change.
    #[serde(skip)]
    run: Option<String>,
}

impl Message {
    pub fn parse(
        policy: &str,
        payload: &Json,
        version: Option<&str>,
    ) -> Result<Self, serde_json::Error> {
        let mut message: Self = serde_json::from_slice(payload.as_bytes())?;
        message.policy_name = policy.to_owned();
        message.run =
            version.and_then(|version| version.split_once('/')).map(|(_, run)| run.to_owned());
        Ok(message)
    }

    /// What consumers are told, without the document.
    pub fn change(self, registry: &str, policy: Option<&Policy>) -> Change {
        let Self { policy_name, sha, operation, title, path, renamed_from, run } = self;
        Change {
            registry: registry.to_owned(),
            operation,
            policy_name,
            title: policy.map_or(title, |policy| policy.title.clone()),
            status: policy.map(|policy| policy.status.clone()),
            sha,
            path: policy.map_or(path, |policy| policy.path.clone()),
            last_updated: policy.map(|policy| policy.last_updated.clone()),
            renamed_from,
            run,
            content: None,
            entry: policy.map(|policy| policy.entry.clone()),
        }
    }
}

/// The consumers of a registry, being told.
struct Telling {
    registry: Registry,
    consumers: Vec<Consumer>,
}

impl Telling {
    fn new(registry: &Registry) -> Self {
        Self { registry: registry.clone(), consumers: Consumer::all(registry) }
    }

    /// Tells of one change while its lease is kept, and ends the attempt by what comes of it: whether
    /// it was completed; `None` if others have it by now.
    async fn end(self: &Arc<Self>, attempt: &Attempt) -> Result<Option<bool>> {
        let mut telling = std::pin::pin!(self.tell(attempt));
        let told = loop {
            tokio::select! {
                biased;
                told = &mut telling => break told,
                () = tokio::time::sleep(attempt.lease() / 3) => {
                    // A store that is away for a moment may be back before the lease ends.
                    if let Ok(Ended::Refused) = attempt.beat().await {
                        return Ok(None);
                    }
                }
            }
        };
        let is_told = told.is_ok();
        let ended = match told {
            Ok(()) => attempt.complete(None).await?,
            Err(failure) => attempt.fail(failure).await?,
        };
        Ok((ended == Ended::Accepted).then_some(is_told))
    }

    /// Tells all consumers of a change that have not accepted it yet.
    async fn tell(self: &Arc<Self>, attempt: &Attempt) -> Result<(), Failure> {
        let message = Message::parse(attempt.id(), attempt.payload(), attempt.version());
        let message = message.map_err(|error| {
            Failure::permanent(format!("the message is not what a registry wrote: {error}"))
        })?;
        let inner = &self.registry.inner;
        let done_keys: Vec<Key> = self
            .consumers
            .iter()
            .map(|consumer| inner.places.done(&consumer.name, attempt.id()))
            .collect();
        let mut keys = vec![inner.places.policy(attempt.id())];
        keys.extend(done_keys.iter().cloned());
        let mut found = inner.store.get_many(&keys).await?.into_iter();
        let policy = found.next().flatten().map(|entry| Policy::of(attempt.id(), entry.value));
        let is_current = match (&policy, message.operation) {
            (Some(policy), Operation::Add | Operation::Update) => policy.sha == message.sha,
            (None, Operation::Delete) => true,
            _ => false,
        };
        if !is_current {
            // What came after it has a message of its own.
            return Ok(());
        }
        let mut change = message.change(self.registry.name(), policy.as_ref());
        let mut untold = Vec::new();
        for ((at, key), entry) in done_keys.iter().enumerate().zip(found) {
            let done = entry.map(|entry| Done::decode(key, &entry)).transpose()?;
            if !done.is_some_and(|done| done.is_of(&change)) {
                untold.push(at);
            }
        }
        let wants_content = untold.iter().any(|&at| self.consumers[at].wants_content());
        if wants_content && policy.is_some() {
            change.content = Some(document(&self.registry, &change.sha).await?);
        }
        let change = Arc::new(change);
        let telling = untold.into_iter().map(|at| {
            let telling = self.clone().tell_one(at, attempt.clone(), change.clone());
            async move {
                let told = match self.consumers[at].is_export() {
                    // To its end, also if the change is lost meanwhile: who has begun to write a file
                    // looks afterwards whether it is still the right one.
                    true => {
                        tokio::spawn(telling).await.unwrap_or_else(|error| Err(error.to_string()))
                    }
                    false => telling.await,
                };
                told.map_err(|reason| format!("consumer {}: {reason}", self.consumers[at].name))
            }
        });
        let refusals: Vec<String> =
            join_all(telling).await.into_iter().filter_map(Result::err).collect();
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(Failure::new(refusals.join("; "))),
        }
    }

    /// Tells one consumer, and remembers that it has accepted.
    async fn tell_one(
        self: Arc<Self>,
        at: usize,
        attempt: Attempt,
        change: Arc<Change>,
    ) -> Result<(), String> {
        let (consumer, inner) = (&self.consumers[at], &self.registry.inner);
        let written = consumer.tell(&change, self.registry.now()).await?;
        let done = Done::of(&change, written)?.encode().map_err(|error| error.to_string())?;
        let key = inner.places.done(&consumer.name, &change.policy_name);
        let commit = Commit::new().put(key, done);
        let remembered = fenced(&inner.store, &attempt, commit).await;
        if remembered.as_ref().is_err_and(|reason| reason == LOST) {
            // Others may have written what is newer before this was: it must not stay.
            consumer::put_right(&self.registry, consumer, &change.policy_name).await?;
        }
        remembered
    }
}

/// Commits, if the attempt is still the current one; else it is [`LOST`].
async fn fenced(store: &Store, attempt: &Attempt, mut commit: Commit) -> Result<(), String> {
    commit.checks.push(attempt.fence());
    match store.commit(commit).await {
        Ok(Outcome::Applied { .. }) => Ok(()),
        Ok(Outcome::Conflicted { .. }) => Err(LOST.to_owned()),
        Err(error) => Err(format!("was told, and that could not be written down: {error}")),
    }
}

/// The text of a policy, from git.
pub(crate) async fn document(registry: &Registry, sha: &str) -> Result<String, String> {
    let bytes = registry.blob(sha).await.map_err(|error| error.to_string())?;
    String::from_utf8(bytes.into()).map_err(|_| format!("the blob {sha} is no UTF-8"))
}
