//! Committing: one commit in the coordinator decides, and then the value store follows.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use keyward_engine::{
    Check, Commit, Error, ErrorKind, Expect, Json, Outcome, Put, Result, Version, Write,
};
use keyward_key::Key;

use crate::Coordinated;
use crate::head::{Hash, Head};
use crate::layout;
use crate::pending::{Mark, Pending};
use crate::push::Planned;
use crate::work::Step;

/// How often a commit is tried again because keys it deletes come and go.
const ROUNDS_MAX: usize = 4;
/// How many finished rows one commit takes along.
const TAKEN_ALONG: usize = 32;

/// What a caller's commit is in the coordinator.
struct Plan {
    commit: Commit,
    /// The first check that is not the caller's.
    own_checks: usize,
    /// The first check about a finished row.
    done_checks: usize,
    /// Changes to push, and where each pending row is among the writes.
    changes: Vec<(Change, usize)>,
}

/// A change of one key that the value store must follow.
struct Change {
    key: Key,
    mark: Mark,
    value: Option<Json>,
    metadata: Option<Json>,
}

impl Coordinated {
    pub(crate) async fn write(&self, commit: Commit) -> Result<Outcome> {
        refuse_reserved(&commit)?;
        let writes = commit.writes.len();
        let touched: HashSet<Key> = commit.writes.iter().map(|write| write.key().clone()).collect();
        let mut room = self.room_beside(&commit);
        for round in 0..ROUNDS_MAX {
            // The last round deletes without looking: that is right as well, but may push what need not be.
            let is_last = round + 1 == ROUNDS_MAX;
            let absent =
                if is_last { HashSet::new() } else { self.absent_deletes(&commit).await? };
            let done =
                self.work.take_done(if is_last { 0 } else { room }, |key| !touched.contains(key));
            let now = self.now();
            let plan = self.plan(commit.clone(), &absent, &done, now)?;
            let changed: Vec<Key> =
                plan.changes.iter().map(|(change, _)| change.key.clone()).collect();
            let failed = match self.coordinator.commit(plan.commit).await {
                Ok(Outcome::Applied { revision, mut versions }) => {
                    let planned = planned(plan.changes, &versions, now);
                    versions.truncate(writes);
                    self.follow(planned).await;
                    return Ok(Outcome::Applied { revision, versions });
                }
                Ok(Outcome::Conflicted { failed }) => failed,
                Err(error) => {
                    // It may have been applied.
                    self.look_again(changed.iter().chain(done.iter().map(|(key, _)| key)));
                    return Err(error);
                }
            };
            if failed.iter().any(|at| *at >= plan.done_checks) {
                self.look_again(done.iter().map(|(key, _)| key));
                room = 0;
            } else {
                for (key, version) in done {
                    self.work.finish(&key, version);
                }
            }
            let failed: Vec<usize> =
                failed.into_iter().filter(|at| *at < plan.own_checks).collect();
            if !failed.is_empty() {
                return Ok(Outcome::Conflicted { failed });
            }
        }
        let message = "the coordinator refused a commit whose checks all hold";
        Err(Error::new(ErrorKind::Internal, message))
    }

    /// How many finished rows a commit takes along. Only one that certainly changes something takes any: a commit that
    /// changes nothing must not move the revision.
    fn room_beside(&self, commit: &Commit) -> usize {
        let limits = self.coordinator.capabilities().limits;
        let is_small = commit.size() <= self.capabilities.limits.commit_bytes_max / 2;
        let puts = commit.writes.iter().any(|write| matches!(write, Write::Put(..)));
        let rows = commit.writes.len() * 2 + commit.checks.len();
        if is_small && puts {
            limits.commit_keys_max.saturating_sub(rows).min(TAKEN_ALONG)
        } else {
            0
        }
    }

    /// Which of the keys to delete do not exist. Deleting those changes nothing, so nothing is to be pushed either.
    async fn absent_deletes(&self, commit: &Commit) -> Result<HashSet<Key>> {
        let checked: HashMap<&Key, &Expect> =
            commit.checks.iter().map(|check| (&check.key, &check.expect)).collect();
        let deleted = commit.writes.iter().filter_map(|write| match write {
            Write::Delete(key) if !self.is_kept(key) => Some(key),
            _ => None,
        });
        let mut absent = HashSet::new();
        let mut unknown = Vec::new();
        for key in deleted {
            match checked.get(key) {
                Some(Expect::Absent) => _ = absent.insert(key.clone()),
                Some(Expect::Version(_)) => {}
                None => unknown.push(key.clone()),
            }
        }
        let rows = self.rows(&unknown).await?;
        let missing = unknown.into_iter().zip(rows).filter(|(_, row)| row.is_none());
        absent.extend(missing.map(|(key, _)| key));
        Ok(absent)
    }

    fn plan(
        &self,
        commit: Commit,
        absent: &HashSet<Key>,
        done: &[(Key, Version)],
        now: Timestamp,
    ) -> Result<Plan> {
        let own_checks = commit.checks.len();
        let checked: HashSet<Key> = commit.checks.iter().map(|check| check.key.clone()).collect();
        let mut changes = Vec::new();
        let mut checks = commit.checks;
        let mut writes = Vec::with_capacity(commit.writes.len() * 2);
        let mut rows = Vec::new();
        let first_row = commit.writes.len();
        for write in commit.writes {
            let change = match &write {
                write if self.is_kept(write.key()) => None,
                Write::Put(key, put) => Some(change_to(key, put, now)),
                Write::Delete(key) if absent.contains(key) => {
                    if !checked.contains(key) {
                        checks.push(Check { key: key.clone(), expect: Expect::Absent });
                    }
                    None
                }
                Write::Delete(key) => Some(deletion_of(key, now)),
                Write::Add(key, _) => return Err(cannot_add(key)),
            };
            writes.push(match (write, &change) {
                (Write::Put(key, put), Some(change)) => Write::Put(key, head_put(put, change)),
                (write, _) => write,
            });
            if let Some(change) = change {
                let held = change.value.as_ref().filter(|_| !change.mark.inline);
                let row = Write::Put(layout::pending(&change.key), change.mark.put(held)?);
                changes.push((change, first_row + rows.len()));
                rows.push(row);
            }
        }
        writes.extend(rows);
        let done_checks = checks.len();
        for (key, version) in done {
            let row = layout::pending(key);
            checks.push(Check { key: row.clone(), expect: Expect::Version(version.clone()) });
            writes.push(Write::Delete(row));
        }
        Ok(Plan { commit: Commit { checks, writes }, own_checks, done_checks, changes })
    }

    /// Plans to read the rows of some keys again, since it is not known what they are.
    fn look_again<'k>(&self, keys: impl Iterator<Item = &'k Key>) {
        let now = self.now();
        for key in keys {
            self.work.plan(key, now, Step::Push);
        }
    }

    /// Brings the value store to what was committed, and does some of what is due besides.
    async fn follow(&self, planned: Vec<Planned>) {
        // Noted first: if the caller drops the commit half-way, the rest is done later.
        self.push_later(&planned);
        futures_util::future::join(self.push(planned), self.tend_some()).await;
    }
}

fn change_to(key: &Key, put: &Put, now: Timestamp) -> Change {
    let expires = put.expiry.map(|expiry| expiry.moment(now));
    let mark = Mark {
        hash: Some(Hash::of(&put.value)),
        committed: now,
        pushed: None,
        expires,
        inline: expires.is_some(),
        foreign: false,
    };
    Change {
        key: key.clone(),
        mark,
        value: Some(put.value.clone()),
        metadata: put.metadata.clone(),
    }
}

fn deletion_of(key: &Key, now: Timestamp) -> Change {
    let mark = Mark {
        hash: None,
        committed: now,
        pushed: None,
        expires: None,
        inline: false,
        foreign: false,
    };
    Change { key: key.clone(), mark, value: None, metadata: None }
}

fn head_put(put: Put, change: &Change) -> Put {
    let head = match (&change.mark.hash, change.mark.inline) {
        (Some(hash), false) => Head::Stored(hash.clone()),
        _ => Head::Inline(put.value.clone()),
    };
    Put { value: head.to_json(), ..put }
}

fn planned(
    changes: Vec<(Change, usize)>,
    versions: &[Option<Version>],
    now: Timestamp,
) -> Vec<Planned> {
    let planned = changes.into_iter().filter_map(|(change, at)| {
        let Change { key, mark, value, metadata } = change;
        let version = versions.get(at)?.clone()?;
        // All that a commit writes has one version, heads and pending rows alike.
        let head = value.is_some().then(|| version.clone());
        let pending = Pending { mark, version, head, value, metadata };
        Some(Planned { key, pending, read_at: now })
    });
    planned.collect()
}

fn refuse_reserved(commit: &Commit) -> Result<()> {
    let keys =
        commit.writes.iter().map(Write::key).chain(commit.checks.iter().map(|check| &check.key));
    match keys.into_iter().find(|key| layout::is_reserved(key)) {
        Some(key) => Err(Error::new(
            ErrorKind::Reserved,
            format!(
                "{key} belongs to the coordinator itself; use a key outside system:coordinator"
            ),
        )),
        None => Ok(()),
    }
}

fn cannot_add(key: &Key) -> Error {
    let message = format!("cannot add to {key}: its value may be in a store that cannot add");
    Error::new(ErrorKind::Unsupported, message)
}
