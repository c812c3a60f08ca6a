//! Removing everything below a prefix, once it is confirmed how much that is.

use keyward::locks::Ticket;
use keyward::{Code, Commit, Cursor, Key, KeyRange, Limits, Outcome, Prefix, Scan, Want};

use super::locks::{Fenced, Roots, refuse_roots};
use super::records::{count, remove_below};
use super::spaces::Reached;
use crate::authorize::{admit, admit_prefix};
use crate::identity::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::services::Services;
use crate::stores::Served;
use crate::visibility::Sight;

/// How many keys are read at once.
const READ_TOGETHER: usize = 1_000;
/// How many keys one commit removes at most.
const REMOVED_TOGETHER: usize = 1_000;
/// Up to how many entries are counted.
const COUNT_MAX: usize = 1_000_000;

/// Whether it is known how much is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// Nothing is removed; how much it would be is told.
    DryRun,
    /// So many.
    Count(usize),
    /// Nobody said how many.
    Missing,
}

impl Confirmation {
    /// What a request says with its two parameters.
    pub fn of(dry_run: bool, confirm: Option<usize>) -> Self {
        match (dry_run, confirm) {
            (true, _) => Self::DryRun,
            (false, Some(count)) => Self::Count(count),
            (false, None) => Self::Missing,
        }
    }

    /// Whether to remove so many; refused, if that is not confirmed.
    pub fn check(self, count: usize, what: &str) -> Result<bool> {
        let detail = match self {
            Self::DryRun => return Ok(false),
            Self::Count(said) if said == count => return Ok(true),
            Self::Count(said) => format!("{count} {what} would be removed, not {said}"),
            Self::Missing => format!("{count} {what} would be removed"),
        };
        Err(Problem::new(Code::Unconfirmed, detail)
            .hint(format!(
                "Send it again with confirm={count}, if that is meant; nothing was done."
            ))
            .with("count", count))
    }
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleared {
    /// How many there were.
    pub count: usize,
    /// How many are gone.
    pub removed: usize,
}

/// Removes the records below leading values, if it is confirmed how many these are.
pub async fn clear_records(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    values: keyward::Bindings,
    confirmation: Confirmation,
) -> Result<Cleared> {
    // Whoever may not remove them learns nothing of how many there are.
    reached.require(who, Need::Write)?;
    let found = count(who, services, reached, &values).await?;
    let found = usize::try_from(found).unwrap_or(usize::MAX);
    let removed = match confirmation.check(found, "records")? {
        true => remove_below(who, reached, values, found).await?,
        false => 0,
    };
    Ok(Cleared { count: found, removed })
}

/// Removes the entries below a prefix that a listing shows, if it is confirmed how many these are. Refused as a
/// whole where one of them may not be removed by itself. Many are removed in several commits: what an error
/// leaves behind, the next request removes.
pub async fn clear_entries(
    who: &Identity,
    services: &Services,
    served: &Served,
    prefix: &Prefix,
    confirmation: Confirmation,
    lock: Option<&Ticket>,
) -> Result<Cleared> {
    who.require(Need::Write, &Target::Store(&served.name))?;
    let sight = admit_prefix(who, served, prefix)?;
    // To look at keys is not to change them: the audit log is not told of these.
    let looks = who.for_new_act();
    let mut pages = Pages::new(services, served, prefix, &sight);
    let mut count = 0;
    while let Some(keys) = pages.next(who).await? {
        for key in &keys {
            admit(&looks, served, key, Need::Write)?;
        }
        refuse_roots(served, &keys).await?;
        count += keys.len();
        if count > COUNT_MAX {
            return Err(Problem::new(
                Code::LimitExceeded,
                format!("there are more than {COUNT_MAX} entries"),
            )
            .hint("Remove them in parts, with longer prefixes; nothing was done."));
        }
    }
    if !confirmation.check(count, "entries")? {
        return Ok(Cleared { count, removed: 0 });
    }
    let mut pages = Pages::new(services, served, prefix, &sight);
    let mut removed = 0;
    let together_max = together_max(served.store().limits());
    // What came to be since was not confirmed: no more is removed than there were.
    while removed < count
        && let Some(mut keys) = pages.next(who).await?
    {
        keys.truncate(count - removed);
        for some in keys.chunks(together_max) {
            let done = remove(who, served, some, lock).await;
            done.map_err(|problem| problem.with("deleted", removed))?;
            removed += some.len();
        }
    }
    Ok(Cleared { count, removed })
}

/// How many keys fit into a commit, however long they are.
fn together_max(limits: &Limits) -> usize {
    let fitting = limits.commit_bytes_max / limits.key_bytes_max.max(1);
    // One key is left for the lock.
    let keys_max = limits.commit_keys_max.saturating_sub(1);
    keys_max.min(REMOVED_TOGETHER).min(fitting).max(1)
}

async fn remove(
    who: &Identity,
    served: &Served,
    keys: &[Key],
    lock: Option<&Ticket>,
) -> Result<()> {
    for key in keys {
        admit(who, served, key, Need::Write)?;
    }
    let commit = keys.iter().cloned().fold(Commit::new(), Commit::delete);
    let (commit, fenced) = Fenced::add(who, served, commit, (lock, Roots::Spared)).await?;
    match served.store().commit(commit).await? {
        Outcome::Applied { .. } => Ok(()),
        Outcome::Conflicted { failed } => {
            fenced.check(served, &failed).await?;
            Err(super::records::contended("these entries"))
        }
    }
}

/// The keys below a prefix that a caller sees, a page at a time.
struct Pages<'a> {
    services: &'a Services,
    served: &'a Served,
    sight: &'a Sight,
    range: KeyRange,
    /// Where the last page ended, if there was one.
    position: Position,
}

enum Position {
    Start,
    After(Cursor),
    End,
}

impl<'a> Pages<'a> {
    fn new(services: &'a Services, served: &'a Served, prefix: &Prefix, sight: &'a Sight) -> Self {
        let range = KeyRange::under(prefix);
        Self { services, served, sight, range, position: Position::Start }
    }

    /// The next page, which may be empty; none at the end.
    async fn next(&mut self, who: &Identity) -> Result<Option<Vec<Key>>> {
        let mut scan = Scan::new(self.range.clone()).limit(READ_TOGETHER);
        scan.want = Want::Keys;
        let begins = match std::mem::replace(&mut self.position, Position::End) {
            Position::Start => true,
            Position::After(cursor) => {
                scan.after = Some(cursor);
                false
            }
            Position::End => return Ok(None),
        };
        let (store, sight) = (self.served.store().clone(), self.sight.clone());
        let read = async move {
            let page = store.scan(&scan).await?;
            let keys = page.rows.into_iter().map(|row| row.key).filter(|key| sight.shows(key));
            Ok((keys.collect::<Vec<_>>(), page.next))
        };
        let (reads, store) = (self.services.reads(), self.served.store());
        let (keys, next) = match begins {
            true => reads.run(who, store, read).await?,
            false => reads.resume(who, store, read).await?,
        };
        if let Some(next) = next {
            self.position = Position::After(next);
        }
        Ok(Some(keys))
    }
}
