//! Changing many issues, in commits of several.

use std::collections::BTreeSet;

use keyward_engine::{Coded, Commit, Error as StoreError, ErrorKind, Expect, Outcome, Put};
use keyward_key::Key;
use keyward_locks::{Error as LockError, Guard};

use super::limits::BATCH_MAX;
use super::{By, Change, Event, Issue, IssueId, PageIssues, Part, Versioned, What, part};
use crate::{Error, Result, places};

/// How often a commit is tried: others may change its issues in between, and answers get lost.
const ATTEMPTS_MAX: usize = 16;

/// What became of the findings of an analysis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// The issues that were made.
    pub created: Vec<IssueId>,
    /// The issues that are no longer stale.
    pub refreshed: Vec<IssueId>,
}

/// One issue of many to be written. What is so already is not written again, so that writing may begin
/// anew wherever it ended.
pub(super) struct Item {
    pub id: IssueId,
    pub becomes: Becomes,
    /// What is recorded with it.
    pub event: Event,
}

pub(super) enum Becomes {
    /// It is made.
    Made(Box<Issue>),
    /// It is no longer stale, and refers to these places.
    Refreshed(Vec<Part>),
    /// It is stale, if this says so.
    Stale(super::stale::Outdated),
}

impl Item {
    /// What to write, if anything.
    fn next(&self, now: Option<&Issue>) -> Option<Issue> {
        let mut issue = match (&self.becomes, now) {
            (Becomes::Made(issue), None) => return Some((**issue).clone()),
            (Becomes::Refreshed(description), Some(now)) if now.stale && !now.archived => {
                Issue { stale: false, description: description.clone(), ..now.clone() }
            }
            (Becomes::Stale(outdated), Some(now)) if outdated.concerns(now) => {
                Issue { stale: true, ..now.clone() }
            }
            _ => return None,
        };
        issue.record(self.event.clone());
        Some(issue)
    }
}

impl PageIssues {
    /// Writes what [`merge`](super::merge) made of the findings of an analysis, in commits of at most
    /// 50 issues, under a lock that the caller holds exclusively: on all issues of the page, or the
    /// whole page. Refused as a whole if the page has no room for the new ones.
    ///
    /// If it ends in between, what was written before stays; merging the same findings again gives
    /// what is missing. Issues that are no longer stale, were archived or removed meanwhile are left
    /// alone.
    pub async fn apply_findings(
        &self,
        guard: &Guard,
        changes: Vec<Change>,
        by: &By<'_>,
    ) -> Result<Applied> {
        by.check()?;
        self.check_covers(guard, &places::lock(&["issues"])?)?;
        let mut items = Vec::with_capacity(changes.len());
        let (mut created, mut refreshing) = (Vec::new(), BTreeSet::new());
        for change in changes {
            items.push(match change {
                // An issue is written once.
                Change::Refresh { issue, .. } if !refreshing.insert(issue) => continue,
                Change::Create(new) => {
                    let (id, event) = (IssueId::random()?, IssueId::random()?);
                    let event = self.event(event, by, What::Created);
                    let issue = Box::new(Issue::new(id, new.checked()?, event.clone()));
                    created.push(id);
                    Item { id, becomes: Becomes::Made(issue), event }
                }
                Change::Refresh { issue: id, description } => {
                    part::check(&description)?;
                    let event = self.event(IssueId::random()?, by, What::Refreshed);
                    Item { id, becomes: Becomes::Refreshed(description), event }
                }
            });
        }
        self.check_room(created.len()).await?;
        let mut refreshed = self.write_many(Some(guard), &items).await?;
        refreshed.retain(|id| refreshing.contains(id));
        Ok(Applied { created, refreshed })
    }

    /// Writes issues, some at a time, and says which were written.
    pub(super) async fn write_many(
        &self,
        guard: Option<&Guard>,
        items: &[Item],
    ) -> Result<Vec<IssueId>> {
        let mut written = Vec::new();
        let mut rest = items;
        while !rest.is_empty() {
            let taken = self.write_some(guard, rest, &mut written).await?;
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(written)
    }

    /// Writes the first of some issues in one commit, and says how many are done with.
    async fn write_some(
        &self,
        guard: Option<&Guard>,
        items: &[Item],
        written: &mut Vec<IssueId>,
    ) -> Result<usize> {
        let some = items.get(..BATCH_MAX).unwrap_or(items);
        let keys = some.iter().map(|item| self.key(item.id)).collect::<Result<Vec<Key>>>()?;
        let mut lost: Option<StoreError> = None;
        // Those that were sent without an answer.
        let mut sent = BTreeSet::new();
        for _ in 0..ATTEMPTS_MAX {
            let entries = match (self.store.get_many(&keys).await, &lost) {
                (Err(error), Some(_)) if error.kind().retryable() => continue,
                (entries, _) => entries?,
            };
            let room = self.store.limits().commit_bytes_max / 2;
            let (mut commit, mut size, mut taken) = (Commit::new(), 0, 0);
            let (mut wanted, mut landed) = (Vec::new(), Vec::new());
            for ((item, key), entry) in some.iter().zip(&keys).zip(entries) {
                let now = entry.map(|entry| Versioned::decode(key, entry)).transpose()?;
                if let Some(issue) = item.next(now.as_ref().map(|now| &now.issue)) {
                    let value = issue.encode()?;
                    size += value.len();
                    if size > room && !wanted.is_empty() {
                        break;
                    }
                    let expect = now.map_or(Expect::Absent, |now| Expect::Version(now.version));
                    commit = commit.check(key.clone(), expect).put(key.clone(), Put::new(value));
                    wanted.push(item.id);
                } else if now.is_some_and(|now| now.issue.has_event(item.event.id))
                    && sent.contains(&item.id)
                {
                    landed.push(item.id);
                }
                taken += 1;
            }
            if wanted.is_empty() {
                written.append(&mut landed);
                return Ok(taken);
            }
            match self.commit(guard, commit).await {
                Ok(Outcome::Applied { .. }) => {
                    written.append(&mut landed);
                    written.append(&mut wanted);
                    return Ok(taken);
                }
                Ok(Outcome::Conflicted { .. }) => {}
                Err(LockError::Store(error)) if error.kind() == ErrorKind::OutcomeUnknown => {
                    sent.extend(wanted);
                    lost.get_or_insert(error);
                }
                Err(error) if lost.is_some() && error.retryable() => {}
                Err(error) => return Err(lost.map_or_else(|| error.into(), Error::Store)),
            }
        }
        let key = self.root.key().clone();
        let contended = || Error::Lock(LockError::Contended { key, attempts: ATTEMPTS_MAX });
        Err(lost.map_or_else(contended, Error::Store))
    }

    async fn commit(&self, guard: Option<&Guard>, commit: Commit) -> Result<Outcome, LockError> {
        match guard {
            Some(guard) => guard.commit(commit).await,
            None => Ok(self.store.commit(commit).await?),
        }
    }
}
