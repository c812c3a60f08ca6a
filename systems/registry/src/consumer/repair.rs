//! Exports that put themselves right.

use futures_util::StreamExt;
use keyward_engine::{BoxFuture, Commit, Cursor, Entry, Expect, Outcome, Scan};
use keyward_key::{Key, KeyRange};
use keyward_queue::{DeadLetter, Error as QueueError};
use serde::Serialize;

use super::export::{Export, Files};
use super::{Consumer, Done, FrontMatter, Written};
use crate::delivery::{Message, document};
use crate::{Error, Operation, Policy, Problem, Registry, Result};

/// How many policies are looked at together.
const PAGE: usize = 200;
/// How many files are written at the same time.
const WRITES_MAX: usize = 8;
/// How often a file is written anew, because its policy changed meanwhile.
const TRIES: usize = 8;
/// After so many failures, with nothing put right in between, the export is thought to be away.
const FAILURES_MAX: usize = 16;

/// What was put right.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Repaired {
    /// How many policies were looked at.
    pub checked: u64,
    /// Files that were missing, or other than they should be, and are written now.
    pub written: u64,
    /// Files of policies that are gone, and are removed now.
    pub removed: u64,
    /// Files that nobody knows of here; they are left alone.
    pub unknown: u64,
    /// Dead letters that have nothing left to tell, and are dropped now.
    pub dead_letters: u64,
    /// What could not be put right, at most [`Repaired::PROBLEMS_MAX`] of it.
    pub problems: Vec<Problem>,
    /// How many there were of these.
    pub problem_count: u64,
}

impl Repaired {
    /// How many problems are told one by one.
    pub const PROBLEMS_MAX: usize = 100;
}

/// Compares what an export has with what it should have, and puts it right: writes what is missing or
/// other than it was written, and removes what it has written of policies that are gone. Files that it has
/// not written are never touched.
pub(crate) fn repair<'a>(
    registry: &'a Registry,
    consumer: &'a Consumer,
) -> BoxFuture<'a, Result<Repaired>> {
    Box::pin(async move {
        let refused = |reason| Error::Consumer { consumer: consumer.name.clone(), reason };
        let export = consumer.export().map_err(refused)?;
        let files = export.files().await.map_err(refused)?;
        let mut repair = Repair {
            registry,
            consumer,
            export,
            files,
            known: 0,
            failures: 0,
            repaired: Repaired::default(),
        };
        repair.policies().await?;
        repair.gone().await?;
        repair.dead_letters().await?;
        if repair.repaired.problem_count == 0 {
            consumer.note_run(registry).await.map_err(refused)?;
        }
        let mut repaired = repair.repaired;
        repaired.unknown = repair.files.len().saturating_sub(repair.known);
        Ok(repaired)
    })
}

struct Repair<'a> {
    registry: &'a Registry,
    consumer: &'a Consumer,
    export: &'a Export,
    files: Files,
    /// How many of the files are ours.
    known: u64,
    failures: usize,
    repaired: Repaired,
}

/// What was done with one policy.
enum Right {
    Written,
    Removed,
}

impl Repair<'_> {
    /// Looks at every policy that there is.
    async fn policies(&mut self) -> Result<()> {
        let range = self.registry.inner.places.policies();
        let mut after = None;
        loop {
            let (rows, next) = self.page(&range, after).await?;
            let mut wrong = Vec::new();
            let policies: Vec<Policy> = rows
                .into_iter()
                .filter_map(|(key, entry)| named(self.registry.inner.places.name_of(&key)?, entry))
                .collect();
            let keys: Vec<Key> =
                policies.iter().map(|policy| self.done_key(&policy.policy_name)).collect();
            let found = self.registry.inner.store.get_many(&keys).await?;
            for ((policy, key), done) in policies.iter().zip(&keys).zip(found) {
                self.repaired.checked += 1;
                let name = &policy.policy_name;
                self.known += u64::from(self.files.has(name));
                let done = done.map(|entry| Done::decode(key, &entry)).transpose()?;
                match self.is_right(policy, done.as_ref()).await {
                    Ok(true) => {}
                    Ok(false) => wrong.push(name.clone()),
                    Err(reason) => self.failed(name, reason)?,
                }
            }
            self.put_right(wrong).await?;
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn is_right(&self, policy: &Policy, done: Option<&Done>) -> Result<bool, String> {
        if let Export::Namespace(_) = self.export {
            // What it should have stands in the registry itself.
            let wanted = Written::of(policy.entry.as_str());
            return self.export.has(&self.files, &policy.policy_name, &wanted).await;
        }
        let Some(done) = done else { return Ok(false) };
        let Some(file) = done.file_of(&FrontMatter::from(policy))? else { return Ok(false) };
        self.export.has(&self.files, &policy.policy_name, file).await
    }

    /// Looks at what was written of policies that are gone.
    async fn gone(&mut self) -> Result<()> {
        let range = self.registry.inner.places.done_by(&self.consumer.name);
        let mut after = None;
        loop {
            let (rows, next) = self.page(&range, after).await?;
            let mut names = Vec::new();
            for (key, entry) in rows {
                let Some(name) = last(&key) else { continue };
                let is_removed = Done::decode(&key, &entry)?.operation == Operation::Delete;
                if !is_removed || self.files.has(&name) {
                    names.push(name);
                }
            }
            let keys: Vec<Key> =
                names.iter().map(|name| self.registry.inner.places.policy(name)).collect();
            let found = self.registry.inner.store.get_many(&keys).await?;
            let gone = names.into_iter().zip(found).filter(|(_, entry)| entry.is_none());
            let gone: Vec<String> = gone.map(|(name, _)| name).collect();
            self.known += gone.iter().filter(|name| self.files.has(name)).count() as u64;
            self.put_right(gone).await?;
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Puts some policies right, several at a time.
    async fn put_right(&mut self, names: Vec<String>) -> Result<()> {
        let (registry, consumer, export) = (self.registry, self.consumer, self.export);
        let mut working = futures_util::stream::iter(names)
            .map(|name| async move {
                let right = write_anew(registry, consumer, export, &name).await;
                (name, right)
            })
            .buffer_unordered(WRITES_MAX);
        while let Some((name, right)) = working.next().await {
            match right {
                Ok(right) => {
                    self.failures = 0;
                    match right {
                        Right::Written => self.repaired.written += 1,
                        Right::Removed => {
                            self.repaired.removed += u64::from(self.files.has(&name));
                        }
                    }
                }
                Err(Error::Consumer { reason, .. }) => self.failed(&name, reason)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn failed(&mut self, name: &str, reason: String) -> Result<()> {
        self.failures += 1;
        self.repaired.problem_count += 1;
        if self.failures >= FAILURES_MAX {
            return Err(Error::Consumer { consumer: self.consumer.name.clone(), reason });
        }
        if self.repaired.problems.len() < Repaired::PROBLEMS_MAX {
            self.repaired.problems.push(Problem::new(name, reason));
        }
        Ok(())
    }

    /// Drops dead letters that have nothing left to tell: this export has the policy as it is now, and
    /// every other consumer has accepted the change.
    async fn dead_letters(&mut self) -> Result<()> {
        let mut after: Option<String> = None;
        loop {
            let page = self.registry.dead_letters(after.as_deref(), PAGE).await?;
            for letter in &page.items {
                if self.drop_if_told(letter).await? {
                    self.repaired.dead_letters += 1;
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn drop_if_told(&self, letter: &DeadLetter) -> Result<bool> {
        let name = &letter.id;
        let Ok(message) = Message::parse(name, &letter.payload, letter.version.as_deref()) else {
            return Ok(false);
        };
        let places = &self.registry.inner.places;
        let entry_key = places.policy(name);
        let entry = self.registry.inner.store.get(&entry_key).await?;
        let policy = entry.clone().and_then(|entry| named(name.clone(), entry));
        let change = match (&policy, message.operation) {
            (Some(policy), Operation::Add | Operation::Update) if policy.sha == message.sha => {
                message.change(self.registry.name(), Some(policy))
            }
            (None, Operation::Delete) => message.change(self.registry.name(), None),
            // Another message will come, or has.
            _ => return Ok(false),
        };
        let rider = Commit::new()
            // Only if the policy is what it was when this was found out.
            .check(entry_key, entry.map_or(Expect::Absent, |entry| Expect::Version(entry.version)));
        for (consumer, declared) in &self.registry.settings().consumers {
            let key = places.done(consumer, name);
            let done = match self.registry.inner.store.get(&key).await? {
                Some(entry) => Some(Done::decode(&key, &entry)?),
                None => None,
            };
            let is_told = match (declared.kind.is_export(), &policy, done) {
                (true, Some(policy), Some(done)) => {
                    let file = done.file_of(&FrontMatter::from(policy));
                    file.map_err(Error::Invalid)?.is_some()
                }
                (true, None, done) => done.is_none_or(|done| done.operation == Operation::Delete),
                (_, _, done) => done.is_some_and(|done| done.is_of(&change)),
            };
            if !is_told {
                return Ok(false);
            }
        }
        match self.registry.queue().with_rider(rider).drop_dead_letter(name).await {
            Ok(dropped) => Ok(dropped),
            Err(QueueError::RiderRefused { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn page(
        &self,
        range: &KeyRange,
        after: Option<Cursor>,
    ) -> Result<(Vec<(Key, Entry)>, Option<Cursor>)> {
        let scan = Scan::new(range.clone()).limit(PAGE).after(after);
        let page = self.registry.inner.store.scan(&scan).await?;
        let rows = page.rows.into_iter().filter_map(|row| Some((row.key, row.entry?)));
        Ok((rows.collect(), page.next))
    }

    fn done_key(&self, name: &str) -> Key {
        self.registry.inner.places.done(&self.consumer.name, name)
    }
}

/// Makes what an export has of one policy what it should be; others have nothing.
pub(crate) async fn put_right(
    registry: &Registry,
    consumer: &Consumer,
    name: &str,
) -> Result<(), String> {
    match consumer.export() {
        Ok(export) => match write_anew(registry, consumer, export, name).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        },
        Err(_) => Ok(()),
    }
}

/// Makes the file of one policy what it should be. Whoever writes last looks whether the policy is
/// still what was written, so that what is left in the end is right.
async fn write_anew(
    registry: &Registry,
    consumer: &Consumer,
    export: &Export,
    name: &str,
) -> Result<Right> {
    let refused = |reason| Error::Consumer { consumer: consumer.name.clone(), reason };
    let places = &registry.inner.places;
    let (entry_key, done_key) = (places.policy(name), places.done(&consumer.name, name));
    for _ in 0..TRIES {
        let entry = registry.inner.store.get(&entry_key).await?;
        let (commit, right) = match entry {
            Some(entry) => {
                let version = entry.version.clone();
                let policy =
                    Policy { policy_name: name.to_owned(), ..Policy::of(name, entry.value) };
                let front = FrontMatter::from(&policy);
                let text = match export {
                    Export::Namespace(_) => policy.entry.as_str().to_owned(),
                    Export::Folder { .. } | Export::Bucket(_) => {
                        let content = document(registry, &policy.sha).await.map_err(refused)?;
                        front.above(&content).map_err(refused)?
                    }
                };
                let written = export.write(name, text).await.map_err(refused)?;
                let done = Done::put_right(&front, written).map_err(refused)?;
                let commit = Commit::new()
                    .check(entry_key.clone(), Expect::Version(version))
                    .put(done_key.clone(), done.encode()?);
                (commit, Right::Written)
            }
            None => {
                export.remove(name).await.map_err(refused)?;
                let commit = Commit::new()
                    .check(entry_key.clone(), Expect::Absent)
                    .put(done_key.clone(), Done::removed().encode()?);
                (commit, Right::Removed)
            }
        };
        if let Outcome::Applied { .. } = registry.inner.store.commit(commit).await? {
            return Ok(right);
        }
    }
    Err(refused(format!("{name} kept changing while its file was written; try again")))
}

/// The policy of an entry, under the name that its key has. An entry of version 1 that was not moved yet
/// has no content, and so no file.
fn named(name: String, entry: Entry) -> Option<Policy> {
    let policy = Policy::of(&name, entry.value);
    (!policy.sha.is_empty()).then_some(Policy { policy_name: name, ..policy })
}

fn last(key: &Key) -> Option<String> {
    key.segments().last().map(|segment| segment.into_owned())
}
