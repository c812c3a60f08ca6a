//! Committing: one commit in the coordinator decides, and then the value store follows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use keyward_engine::{
    Check, Commit, Error, ErrorKind, Expect, Json, Outcome, Put, Result, Version, Write,
};
use keyward_key::Key;

use crate::catalog::is_catalog;
use crate::head::{Hash, Head};
use crate::layout;
use crate::pending::{Mark, Pending};
use crate::push::Planned;
use crate::shared::Shared;
use crate::work::Step;

/// How often a commit is tried again because keys it deletes, or keeps in the coordinator, come and go.
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

/// The head of a key before a commit.
enum Before {
    Absent,
    /// Bookkeeping that stays in the coordinator.
    Kept(Version),
    /// An entry that the value store has, or is to have.
    Data(Version),
}

impl Before {
    fn expect(&self) -> Expect {
        match self {
            Self::Absent => Expect::Absent,
            Self::Kept(version) | Self::Data(version) => Expect::Version(version.clone()),
        }
    }
}

/// A change of one key that the value store must follow.
struct Change {
    key: Key,
    mark: Mark,
    value: Option<Json>,
    metadata: Option<Json>,
}

impl Shared {
    pub(crate) async fn write(self: &Arc<Self>, commit: Commit) -> Result<Outcome> {
        refuse_reserved(&commit)?;
        let writes = commit.writes.len();
        let touched: HashSet<Key> = commit.writes.iter().map(|write| write.key().clone()).collect();
        let deleted: HashSet<Key> = commit
            .writes
            .iter()
            .filter(|write| matches!(write, Write::Delete(_)))
            .map(|write| write.key().clone())
            .collect();
        let mut room = self.room_beside(&commit);
        for round in 0..ROUNDS_MAX {
            // The last round does not insist that what is absent stays so: that is right as well, but may push what
            // need not be.
            let is_last = round + 1 == ROUNDS_MAX;
            let mut before = self.before(&commit).await?;
            if is_last {
                before.retain(|key, before| {
                    !matches!(before, Before::Absent) || !deleted.contains(key)
                });
            }
            let done =
                self.work.take_done(if is_last { 0 } else { room }, |key| !touched.contains(key));
            let now = self.now();
            let plan = self.plan(commit.clone(), &before, &done, now)?;
            let changed: Vec<Key> =
                plan.changes.iter().map(|(change, _)| change.key.clone()).collect();
            let flight = self.work.begin(changed.clone());
            let failed = match self.coordinator.commit(plan.commit).await {
                Ok(Outcome::Applied { revision, mut versions }) => {
                    let planned = planned(plan.changes, &versions, now);
                    versions.truncate(writes);
                    self.follow(planned, flight).await;
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
        let message = "the keys of the commit changed again and again while it was planned";
        Err(Error::new(ErrorKind::Unavailable, message))
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

    /// The heads of the keys to delete, and of those that get bookkeeping. Deleting what is absent, and deleting or
    /// replacing bookkeeping, changes nothing in the value store, so nothing is to be pushed either.
    async fn before(&self, commit: &Commit) -> Result<HashMap<Key, Before>> {
        let absent: HashSet<&Key> = commit
            .checks
            .iter()
            .filter(|check| check.expect == Expect::Absent)
            .map(|check| &check.key)
            .collect();
        let mut before = HashMap::new();
        let mut unknown = Vec::new();
        for write in &commit.writes {
            let key = write.key();
            let matters = match write {
                Write::Put(_, put) => is_catalog(&put.value),
                Write::Delete(_) => true,
                Write::Add(..) => false,
            };
            if !matters || self.is_kept(key) {
                continue;
            }
            // If it is not absent, the commit conflicts.
            if absent.contains(key) {
                before.insert(key.clone(), Before::Absent);
            } else {
                unknown.push(key.clone());
            }
        }
        let heads = self.rows(&unknown).await?;
        for (key, head) in unknown.into_iter().zip(heads) {
            let state = match head {
                None => Before::Absent,
                Some(head) => match Head::read(&key, &head.value)? {
                    Head::Kept(_) => Before::Kept(head.version),
                    _ => Before::Data(head.version),
                },
            };
            before.insert(key, state);
        }
        Ok(before)
    }

    fn plan(
        &self,
        commit: Commit,
        before: &HashMap<Key, Before>,
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
            let key = write.key();
            let before = before.get(key);
            // Whether the value store need not follow depends on the head: it must still be the same.
            let mut unchanged = |before: &Before| {
                if !checked.contains(key) {
                    checks.push(Check { key: key.clone(), expect: before.expect() });
                }
            };
            let change = match &write {
                _ if self.is_kept(key) => None,
                Write::Put(_, put) if is_catalog(&put.value) => {
                    if let Some(before) = before {
                        unchanged(before);
                    }
                    // What the catalog replaces leaves the value store. What another program has there, and nobody
                    // here knows of, stays.
                    matches!(before, Some(Before::Data(_))).then(|| deletion_of(key, now))
                }
                Write::Put(_, put) => Some(change_to(key, put, now)),
                Write::Delete(_) => match before {
                    Some(before @ (Before::Absent | Before::Kept(_))) => {
                        unchanged(before);
                        None
                    }
                    Some(Before::Data(_)) | None => Some(deletion_of(key, now)),
                },
                Write::Add(..) => return Err(cannot_add(key)),
            };
            writes.push(match write {
                Write::Put(key, put) if !self.is_kept(&key) => {
                    Write::Put(key, head_put(put, &change))
                }
                write => write,
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

/// A put as its head. What the value store does not follow, or follows by deleting, is bookkeeping.
fn head_put(put: Put, change: &Option<Change>) -> Put {
    let head = match change.as_ref().and_then(|change| change.mark.hash.as_ref().zip(Some(change)))
    {
        Some((hash, change)) if !change.mark.inline => Head::Stored(hash.clone()),
        Some(_) => Head::Inline(put.value.clone()),
        None => Head::Kept(put.value.clone()),
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
        let pending = Pending { mark, version, head, is_kept: false, value, metadata };
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
