//! Writing steps into the store: entries and messages together, as somebody who may be killed, lose an
//! answer, or lose the lock, between any two of them.

use std::collections::HashMap;

use keyward_engine::{
    Commit, Entry, Error as StoreError, ErrorKind, Expect, Json, Outcome, Put, Store, moment_text,
};
use keyward_key::Key;
use keyward_locks::{Error as LockError, Guard};
use keyward_queue::{Error as QueueError, Message};
use serde::Serialize;

use crate::entry::{file_number, written};
use crate::{Error, Operation, Policy, Problem, Registry, Result, Step};

/// How many policies are written in one commit.
pub(crate) const BATCH_MAX: usize = 50;
/// How often policies are tried together before each is tried alone.
const TRIES_TOGETHER: usize = 4;
/// How often a policy is tried alone before it is left to the next run.
const TRIES_ALONE: usize = 16;

/// How steps are written.
pub(crate) struct Writing<'r> {
    pub registry: &'r Registry,
    pub guard: &'r Guard,
    pub run: &'r str,
    /// Whether deprecated members stay.
    pub keeps_deprecated: bool,
}

/// What became of steps that were to be written in one commit.
pub(crate) enum Written {
    /// They are in the store.
    Applied,
    /// Others wrote in between, again and again.
    Contended,
    /// The store refuses them as they are.
    Refused(String),
}

/// What was written so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub added: u64,
    pub updated: u64,
    pub deleted: u64,
    pub problems: Vec<Problem>,
}

impl Tally {
    pub fn count(&mut self, steps: &[Step]) {
        for step in steps {
            *match step.operation {
                Operation::Add => &mut self.added,
                Operation::Update => &mut self.updated,
                Operation::Delete => &mut self.deleted,
            } += 1;
        }
    }

    pub fn total(&self) -> u64 {
        self.added + self.updated + self.deleted + self.problems.len() as u64
    }
}

impl Writing<'_> {
    /// Writes some steps: together, or where that does not work one by one. Those that do not work alone
    /// either are named. Fails only if nothing can be written now.
    pub async fn batch(&self, steps: &[Step], tally: &mut Tally) -> Result<()> {
        if let Written::Applied = self.together(steps, &Commit::new()).await? {
            tally.count(steps);
            return Ok(());
        }
        for step in steps {
            let one = std::slice::from_ref(step);
            self.clear_foreign_rows(step).await?;
            let reason = match self.attempt(one, &Commit::new(), TRIES_ALONE).await? {
                Written::Applied => {
                    tally.count(one);
                    continue;
                }
                Written::Contended => {
                    format!("others kept changing {:?}; the next run tries again", step.policy_name)
                }
                Written::Refused(reason) => {
                    format!("the store does not take {:?}: {reason}", step.policy_name)
                }
            };
            let path = if step.path.is_empty() { &step.policy_name } else { &step.path };
            tally.problems.push(Problem::new(path, reason));
        }
        Ok(())
    }

    /// Takes away rows of a policy that are not the queue's: those that the original wrote. What they
    /// told of is out of date, or is what the step tells of.
    async fn clear_foreign_rows(&self, step: &Step) -> Result<()> {
        let queue = &self.registry.inner.queue;
        for _ in 0..2 {
            let Err(QueueError::Damaged { key, .. }) = queue.message(&step.policy_name).await
            else {
                return Ok(());
            };
            let Ok(key) = Key::parse(&key) else { return Ok(()) };
            if let Some(entry) = self.registry.inner.store.get(&key).await? {
                let version = Expect::Version(entry.version);
                let commit = Commit::new().check(key.clone(), version).delete(key);
                drop(self.guard.commit(commit).await?);
            }
        }
        Ok(())
    }

    /// Writes steps, and something besides, in one commit.
    pub async fn together(&self, steps: &[Step], besides: &Commit) -> Result<Written> {
        self.attempt(steps, besides, TRIES_TOGETHER).await
    }

    async fn attempt(&self, steps: &[Step], besides: &Commit, tries: usize) -> Result<Written> {
        for _ in 0..tries {
            let prepared = match self.prepare(steps, besides).await {
                Err(error) => match refusal(&error) {
                    Some(reason) => return Ok(Written::Refused(reason)),
                    None => return Err(error),
                },
                Ok(prepared) => prepared,
            };
            let Some((commit, fates)) = prepared else { return Ok(Written::Applied) };
            match self.guard.commit(commit).await {
                Ok(Outcome::Applied { .. }) => {
                    self.registry.inner.queue.count_enqueued(&fates);
                    return Ok(Written::Applied);
                }
                Ok(Outcome::Conflicted { .. }) => {
                    self.registry.inner.metrics.conflicts.inc();
                }
                // What was sent may have landed, or may land until the next commit through the guard.
                // What is read then says which; and what lands in between changes the versions that
                // the next commit goes by.
                Err(LockError::Store(error)) if error.kind() == ErrorKind::OutcomeUnknown => {}
                Err(error) => {
                    let error = Error::from(error);
                    return match refusal(&error) {
                        Some(reason) => Ok(Written::Refused(reason)),
                        None => Err(error),
                    };
                }
            }
        }
        Ok(Written::Contended)
    }

    /// The commit that does what is left to be done of some steps; `None` if nothing is.
    async fn prepare(
        &self,
        steps: &[Step],
        besides: &Commit,
    ) -> Result<Option<(Commit, Vec<keyward_queue::Enqueued>)>> {
        let inner = &self.registry.inner;
        let known = Known::read(&inner.store, self.registry, steps).await?;
        let now = moment_text(self.registry.now());
        let mut commit = Commit::new();
        let mut messages = Vec::with_capacity(steps.len());
        for step in steps {
            let (key, entry) = known.policy(self.registry, &step.policy_name);
            let before = match &step.moved_from_title {
                Some(title) => known.policy(self.registry, title).1,
                None => entry,
            };
            let policy = entry.map(|entry| Policy::of(&step.policy_name, entry.value.clone()));
            let is_done = match step.operation {
                Operation::Delete => policy.is_none(),
                _ => policy.is_some_and(|policy| policy.is_as(step)),
            };
            if is_done {
                continue;
            }
            commit = commit.check(key.clone(), expected(entry));
            commit = match step.operation {
                Operation::Delete => commit.delete(key),
                _ => {
                    let value = before.map(|entry| &entry.value);
                    let layout = self.registry.layout();
                    let value = written(value, step, &now, self.keeps_deprecated, layout)?;
                    let metadata = before.and_then(|entry| entry.metadata.clone());
                    commit.put(key, Put { value, metadata, expiry: None })
                }
            };
            if let Some(title) = &step.moved_from_title {
                let (old_key, old) = known.policy(self.registry, title);
                commit = commit.check(old_key.clone(), expected(old)).delete(old_key);
            }
            messages.push(self.message(step, before)?);
        }
        let mut fates = Vec::new();
        if !messages.is_empty() {
            (commit, fates) = inner.queue.enqueue_in(commit, messages).await?;
        }
        commit.checks.extend(besides.checks.iter().cloned());
        commit.writes.extend(besides.writes.iter().cloned());
        Ok((!commit.writes.is_empty()).then_some((commit, fates)))
    }

    /// What consumers are told of a step.
    pub fn message(&self, step: &Step, before: Option<&Entry>) -> Result<Message> {
        let number = before.and_then(|entry| file_number(&entry.value));
        let change = Change {
            policy_name: &step.policy_name,
            sha: &step.sha,
            operation: step.operation,
            title: &step.title,
            path: &step.path,
            renamed_from: step.renamed_from.as_deref(),
            file_no: number.as_ref().and_then(|raw| serde_json::from_str(raw.as_str()).ok()),
        };
        let payload =
            Json::from_value(&change).map_err(|error| Error::Invalid(error.to_string()))?;
        // The run is part of the version: a policy that comes back with the content that it had when it
        // was deleted is a change.
        let version = format!("{}/{}", step.sha, self.run);
        Ok(Message::new(payload).id(&*step.policy_name).version(version).replacing())
    }
}

/// What consumers are told: the members of the document's queue entries that are the registry's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change<'s> {
    policy_name: &'s str,
    sha: &'s str,
    operation: Operation,
    title: &'s str,
    path: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_no: Option<&'s serde_json::value::RawValue>,
}

/// The entries of some policies, read together.
struct Known(HashMap<Key, Entry>);

impl Known {
    async fn read(store: &Store, registry: &Registry, steps: &[Step]) -> Result<Self> {
        let names = steps.iter().flat_map(|step| {
            [Some(&step.policy_name), step.moved_from_title.as_ref()].into_iter().flatten()
        });
        let keys: Vec<Key> = names.map(|name| registry.inner.places.policy(name)).collect();
        if keys.is_empty() {
            return Ok(Self(HashMap::new()));
        }
        let entries = store.get_many(&keys).await?;
        let known = keys.into_iter().zip(entries);
        Ok(Self(known.filter_map(|(key, entry)| Some((key, entry?))).collect()))
    }

    fn policy(&self, registry: &Registry, name: &str) -> (Key, Option<&Entry>) {
        let key = registry.inner.places.policy(name);
        let entry = self.0.get(&key);
        (key, entry)
    }
}

fn expected(entry: Option<&Entry>) -> Expect {
    entry.map_or(Expect::Absent, |entry| Expect::Version(entry.version.clone()))
}

/// Why the store, or the queue, does not take what it was given, if that is what an error says: others
/// may still be taken.
fn refusal(error: &Error) -> Option<String> {
    let by_store =
        |error: &StoreError| matches!(error.kind(), ErrorKind::LimitExceeded | ErrorKind::Invalid);
    let is_refusal = match error {
        Error::Store(error) | Error::Lock(LockError::Store(error)) => by_store(error),
        Error::Queue(QueueError::Store(error)) => by_store(error),
        Error::Queue(error) => {
            matches!(error, QueueError::BadMessage(_) | QueueError::Damaged { .. })
        }
        Error::Invalid(_) => true,
        _ => false,
    };
    is_refusal.then(|| error.to_string())
}
