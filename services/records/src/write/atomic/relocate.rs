//! Records under other keys: one in one commit, or several in one.

use std::collections::HashSet;
use std::sync::Arc;

use keyward_engine::{Commit, Entry, Json, Outcome, Version, Write};
use keyward_key::Key;

use super::plan::{Assembled, Meaning, Plan};
use super::step::{Versions, step};
use super::{ATTEMPTS_MAX, Backoff, look_again};
use crate::access::Admitted;
use crate::catalog::Snapshot;
use crate::change::{Change, Current, Decision};
use crate::history::{Ahead, Going, Moving, take_back};
use crate::relocate::{Belongs, Relocated, Together};
use crate::space::Space;
use crate::{Error, Result};

/// Moves a record to another key, which may be another space's, unless there is a record already or it
/// does not belong there any more. What goes along is part of the commit that moves it; its versions are
/// given back. Versions of a record that does not move after all stay with it, also those that went ahead.
pub(in crate::write) async fn relocate(
    from: &Space,
    old: &Admitted,
    to: &Space,
    new: &Admitted,
    belongs: &Belongs<'_>,
    along: &Commit,
) -> Result<(Relocated, Vec<Option<Version>>)> {
    let mut ahead = Vec::new();
    let outcome = follow(&Move { from, old, to, new }, belongs, along, &mut ahead).await;
    let stays = match &outcome {
        Ok((relocated, _)) => *relocated != Relocated::Moved,
        // If the store failed, the record may have moved.
        Err(error @ Error::Store(_)) => error.is_of_the_record(),
        Err(_) => true,
    };
    if stays {
        take_back(from, ahead).await?;
    }
    outcome
}

/// Moves a record after those of its versions that have to go ahead, whose keys before and after are added to
/// `ahead`.
async fn follow(
    moves: &Move<'_>,
    belongs: &Belongs<'_>,
    along: &Commit,
    ahead: &mut Vec<(Key, Key)>,
) -> Result<(Relocated, Vec<Option<Version>>)> {
    let Move { old, to, new, .. } = moves;
    to.ensure_indexes().await?;
    let shared = &to.shared;
    let mut catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
    let keys = [old.key.clone(), new.key.clone()];
    let mut backoff = Backoff::new(shared, &old.key);
    let mut attempts = 0;
    while attempts < ATTEMPTS_MAX {
        if attempts > 1 {
            backoff.pause().await;
        }
        attempts += 1;
        let mut entries = shared.store.get_many(&keys).await?.into_iter();
        let held = [entries.next().flatten(), entries.next().flatten()];
        let (planned, mut commit, mut meanings) =
            match prepare(moves, belongs, held, &catalog, Size::of(along)).await? {
                Prepared::Settled(outcome) => return Ok((outcome, Vec::new())),
                Prepared::Ahead(oldest) => {
                    // What went is no attempt that failed: there are fewer left each time.
                    if shared.store.commit(oldest.commit).await?.is_applied() {
                        ahead.extend(oldest.keys);
                        attempts -= 1;
                    }
                    continue;
                }
                Prepared::Commit { planned, commit, meanings } => (planned, commit, meanings),
            };
        meanings.extend((0..along.checks.len()).map(Meaning::Rider));
        join(&mut commit, along.clone());
        match shared.store.commit(commit).await? {
            Outcome::Applied { versions, .. } => {
                return Ok((Relocated::Moved, last(versions, along.writes.len())));
            }
            Outcome::Conflicted { failed } => {
                let failed = failed.iter().filter_map(|&check| meanings.get(check));
                look_again(to, &planned, failed, &mut catalog).await?;
            }
        }
    }
    Err(Error::Contended { key: old.key.clone(), attempts: ATTEMPTS_MAX })
}

/// Moves as many records as fit one commit, from the first on. `along` makes what goes along with so many
/// that move. An error is about the first of them, or about all.
pub(in crate::write) async fn relocate_together(
    from: &Space,
    to: &Space,
    moves: &[(Admitted, Admitted)],
    belongs: &Belongs<'_>,
    along: &(dyn Fn(usize) -> Result<Commit> + Send + Sync),
) -> Result<Together> {
    to.ensure_indexes().await?;
    let shared = &to.shared;
    let limits = *shared.store.limits();
    let catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
    // Some of all moves are read at once, and what does not fit one commit is read again.
    let moves = &moves[..moves.len().min((limits.get_keys_max / 2).max(1))];
    let keys: Vec<Key> =
        moves.iter().flat_map(|(old, new)| [old.key.clone(), new.key.clone()]).collect();
    let mut entries = shared.store.get_many(&keys).await?.into_iter();
    // Made for the most that can move, so that what it takes is known beforehand.
    let room = Size::of(&along(moves.len())?);
    let mut batch = Batch::default();
    let mut outcomes = Vec::with_capacity(moves.len());
    for (old, new) in moves {
        let held = [entries.next().flatten(), entries.next().flatten()];
        let moves = Move { from, old, to, new };
        let prepared = match prepare(&moves, belongs, held, &catalog, room).await {
            // It is told when it is the first.
            Err(_) if !outcomes.is_empty() => break,
            prepared => prepared?,
        };
        match prepared {
            Prepared::Settled(outcome) => outcomes.push(outcome),
            Prepared::Ahead(_) if outcomes.is_empty() => return Ok(Together::OneByOne(1)),
            Prepared::Ahead(_) => break,
            Prepared::Commit { commit, .. } => {
                let size = Size::of(&commit);
                let fits = room.and(&batch.size).and(&size);
                if !outcomes.is_empty()
                    && (fits.keys > limits.commit_keys_max
                        || fits.bytes > limits.commit_bytes_max / 2
                        || batch.has_one_of(&commit, shared.catalog.key()))
                {
                    break;
                }
                batch.add(commit, size, shared.catalog.key());
                outcomes.push(Relocated::Moved);
            }
        }
    }
    if batch.moved == 0 {
        return Ok(Together::Done { outcomes, along: Vec::new() });
    }
    let along = along(batch.moved)?;
    let (ours, written) = (batch.commit.checks.len(), along.writes.len());
    let mut commit = batch.commit;
    join(&mut commit, along);
    match shared.store.commit(commit).await? {
        Outcome::Applied { versions, .. } => {
            Ok(Together::Done { outcomes, along: last(versions, written) })
        }
        Outcome::Conflicted { failed } => {
            let refused: Vec<usize> =
                failed.iter().filter_map(|check| check.checked_sub(ours)).collect();
            if !refused.is_empty() {
                return Err(Error::RiderRefused { failed: refused });
            }
            // Somebody changed one of them, or has a unique value: one by one tells which.
            Ok(Together::OneByOne(outcomes.len()))
        }
    }
}

/// What has to be done to move one record.
enum Prepared {
    /// Nothing.
    Settled(Relocated),
    /// Its oldest versions go first.
    Ahead(Ahead),
    Commit {
        planned: Plan,
        commit: Commit,
        meanings: Vec<Meaning>,
    },
}

/// A record's way from one key to another.
struct Move<'m> {
    from: &'m Space,
    old: &'m Admitted,
    to: &'m Space,
    new: &'m Admitted,
}

/// What has to be done to move a record, by what both keys hold. Its commit leaves room for what goes along.
async fn prepare(
    &Move { from, old, to, new }: &Move<'_>,
    belongs: &Belongs<'_>,
    held: [Option<Entry>; 2],
    catalog: &Arc<Snapshot>,
    along: Size,
) -> Result<Prepared> {
    let current = |key: &Key, entry: Option<Entry>| {
        entry.map(|entry| Current::new(key.clone(), entry)).transpose()
    };
    let [leaving, there] = held;
    let (leaving, there) = (current(&old.key, leaving)?, current(&new.key, there)?);
    let Some(leaving) = leaving else { return Ok(Prepared::Settled(Relocated::Absent)) };
    // Asked of the version that the commit checks.
    if !belongs(&leaving.record, &new.key) {
        return Ok(Prepared::Settled(Relocated::Changed));
    }
    let same = there.as_ref().is_some_and(|there| leaving.says_the_same_as(there));
    if there.is_some() && !same {
        return Ok(Prepared::Settled(Relocated::Taken));
    }
    let mut placing = Change::placing(new.clone(), &leaving);
    let mut decision = placing.decide(&to.access.space, there.as_ref())?;
    if same {
        decision = Decision::Leave;
    }
    // Read after the record: whatever is new by then has moved its version.
    let moving = match same {
        true => None,
        false => Moving::read(from, &old.key, to, &new.key).await?,
    };
    let (removed, placed) = match &moving {
        None => (Versions::Next, Versions::Next),
        Some(moving) => {
            let until_ms = leaving.kept.past_until_ms;
            let placed = match moving.newest() {
                None => Versions::Next,
                newest => Versions::Moved { newest, until_ms },
            };
            (Versions::Moved { newest: None, until_ms: None }, placed)
        }
    };
    let (out_of, into) =
        (catalog.kept(&from.access.space.name), catalog.kept(&to.access.space.name));
    let removing = Change::removing(old.clone());
    let removal = Decision::Remove;
    let steps = vec![
        step(from, &out_of, &removing, Some(&leaving), removal, removed).await?,
        step(to, &into, &placing, there.as_ref(), decision, placed).await?,
    ];
    let planned = Plan { steps };
    let Assembled { commit, mut meanings, .. } = planned.assemble(to, catalog)?;
    let Some(moving) = moving else { return Ok(Prepared::Commit { planned, commit, meanings }) };
    match moving.go(commit, (along.keys, along.bytes), to.shared.store.limits())? {
        Going::Along(commit, checks) => {
            meanings.extend(std::iter::repeat_with(|| Meaning::History).take(checks));
            Ok(Prepared::Commit { planned, commit, meanings })
        }
        Going::Ahead(oldest) => Ok(Prepared::Ahead(oldest)),
    }
}

/// The commits of several records in one. All of them check the catalog, which is checked once.
#[derive(Default)]
struct Batch {
    commit: Commit,
    keys: HashSet<Key>,
    size: Size,
    moved: usize,
}

impl Batch {
    /// Whether a record of the batch touches a key that this one touches too, such as a unique value
    /// that one gives up and the other wants: then they go one after the other.
    fn has_one_of(&self, commit: &Commit, catalog: &Key) -> bool {
        touched(commit).any(|key| key != catalog && self.keys.contains(key))
    }

    fn add(&mut self, commit: Commit, size: Size, catalog: &Key) {
        self.keys.extend(touched(&commit).cloned());
        self.size = self.size.and(&size);
        let first = self.moved == 0;
        let checks = commit.checks.into_iter().filter(|check| first || check.key != *catalog);
        self.commit.checks.extend(checks);
        self.commit.writes.extend(commit.writes);
        self.moved += 1;
    }
}

fn touched(commit: &Commit) -> impl Iterator<Item = &Key> {
    let checked = commit.checks.iter().map(|check| &check.key);
    checked.chain(commit.writes.iter().map(Write::key))
}

/// What a commit takes at most.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    keys: usize,
    bytes: usize,
}

impl Size {
    fn of(commit: &Commit) -> Self {
        let keys = commit.checks.len() + commit.writes.len();
        let values = commit.writes.iter().map(|write| match write {
            Write::Put(_, put) => put.value.len() + put.metadata.as_ref().map_or(0, Json::len),
            Write::Delete(_) | Write::Add(..) => 0,
        });
        let bytes = touched(commit).map(|key| key.as_bytes().len()).chain(values).sum();
        Self { keys, bytes }
    }

    fn and(&self, other: &Self) -> Self {
        Self { keys: self.keys + other.keys, bytes: self.bytes + other.bytes }
    }
}

fn join(commit: &mut Commit, along: Commit) {
    commit.checks.extend(along.checks);
    commit.writes.extend(along.writes);
}

/// The versions of the last writes of a commit.
fn last(mut versions: Vec<Option<Version>>, writes: usize) -> Vec<Option<Version>> {
    let first = versions.len().saturating_sub(writes);
    versions.split_off(first)
}
