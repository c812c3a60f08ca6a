//! Changing one issue.

use std::time::Duration;

use keyward_engine::{BoxFuture, Coded, Commit, ErrorKind, Expect, Outcome, Put};
use keyward_locks::{Error as LockError, Guard, LockPath, Mode, Request, Who};

use super::edit::Edit;
use super::limits::ISSUES_MAX;
use super::{
    Annotation, By, Event, Issue, IssueId, NewIssue, PageIssues, Severity, State, Versioned, What,
};
use crate::{Error, Result, places};

/// How long the lock outlives a process that died over a change.
const LEASE: Duration = Duration::from_secs(20);
/// How long to wait for whoever else changes an issue: longer than one who is dead can be in the way.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often a change is tried: others may mark the issue as stale in between, and answers get lost.
const ATTEMPTS_MAX: usize = 16;
/// How many of the events that were missed are told.
const TOLD_MAX: usize = 3;

impl PageIssues {
    /// Makes an issue, pending. Refused if the page has 10,000 already; those that are made at the
    /// same moment may be a few more.
    pub async fn create(&self, new: NewIssue, by: &By<'_>) -> Result<Versioned> {
        by.check()?;
        let new = new.checked()?;
        self.check_room(1).await?;
        let (id, event) = (IssueId::random()?, IssueId::random()?);
        let issue = Issue::new(id, new, self.event(event, by, What::Created));
        let held = self.hold(id, "create an issue", by).await?;
        let next = |now: Option<&Versioned>| Ok(now.is_none().then(|| issue.clone()));
        let made = self.write(held.guard(), id, event, next).await;
        held.release().await;
        made
    }

    /// Says how much an issue weighs. If it is so already, nothing is changed or recorded.
    pub async fn classify(
        &self,
        id: IssueId,
        severity: Severity,
        by: &By<'_>,
    ) -> Result<Versioned> {
        self.change(id, &Edit::Classify(severity), by).await
    }

    /// Changes the annotations of an issue.
    pub async fn annotate(
        &self,
        id: IssueId,
        annotation: Annotation,
        by: &By<'_>,
    ) -> Result<Versioned> {
        self.change(id, &Edit::Annotate(annotation), by).await
    }

    /// Moves an issue to another state, if [the table](State::next) has it. Resolving it notes when;
    /// reopening it removes that. Of two who move it at once one is told what the other did:
    /// [`Error::Moved`] or [`Error::Transition`].
    pub async fn transition(&self, id: IssueId, to: State, by: &By<'_>) -> Result<Versioned> {
        self.change(id, &Edit::Transition(to), by).await
    }

    /// Puts an issue away, or brings it back. What is archived refuses every other change
    /// ([`Error::Archived`]); only that its policies changed is still noted.
    pub async fn archive(&self, id: IssueId, archived: bool, by: &By<'_>) -> Result<Versioned> {
        self.change(id, &Edit::Archive(archived), by).await
    }

    fn change<'a>(
        &'a self,
        id: IssueId,
        edit: &'a Edit,
        by: &'a By<'a>,
    ) -> BoxFuture<'a, Result<Versioned>> {
        Box::pin(async move {
            by.check()?;
            // What the caller can have seen. Whatever is changed while this waits was not.
            let seen = self.get(id).await?;
            if by.event.is_some_and(|event| seen.issue.has_event(event)) {
                return Ok(seen);
            }
            check_expected(&seen, by)?;
            let event = by.event.map_or_else(IssueId::random, Ok)?;
            let held = self.hold(id, edit.purpose(), by).await?;
            let next = |now: Option<&Versioned>| {
                let now = now.ok_or_else(|| self.unknown(id))?;
                check_expected(now, by)?;
                if edit.is_overtaken(&seen.issue, &now.issue) {
                    return Err(moved(since(&now.issue, &seen.issue)));
                }
                let mut issue = now.issue.clone();
                let Some(change) = edit.apply(&mut issue)? else { return Ok(None) };
                let happened = self.event(event, by, change);
                if let What::Transition { to, .. } = happened.change {
                    issue.resolved_at = (to == State::Resolved).then_some(happened.at);
                }
                issue.record(happened);
                Ok(Some(issue))
            };
            let changed = self.write(held.guard(), id, event, next).await;
            held.release().await;
            changed
        })
    }

    /// Writes what becomes of an issue, until it is written once. `next` is given the issue as it is,
    /// and says what it becomes, with an event of the given id; or that it stays as it is.
    async fn write(
        &self,
        guard: &Guard,
        id: IssueId,
        event: IssueId,
        next: impl Fn(Option<&Versioned>) -> Result<Option<Issue>>,
    ) -> Result<Versioned> {
        let key = self.key(id)?;
        // The first answer that was lost: what was sent may have landed, or may land still.
        let mut lost: Option<Error> = None;
        for _ in 0..ATTEMPTS_MAX {
            let now = match (self.find(id).await, &lost) {
                (Err(error), Some(_)) if error.retryable() => continue,
                (now, _) => now?,
            };
            if lost.is_some()
                && let Some(now) = &now
                && now.issue.has_event(event)
            {
                return Ok(now.clone());
            }
            // If the issue is as it was when an answer was lost, this says again what it said then,
            // and the guard outruns what was sent; if it is another, what was sent is refused.
            let Some(issue) = next(now.as_ref())? else {
                return now.ok_or_else(|| self.unknown(id));
            };
            let expect = now.map_or(Expect::Absent, |now| Expect::Version(now.version));
            let put = Put::new(issue.encode()?);
            let commit = Commit::new().check(key.clone(), expect).put(key.clone(), put);
            match guard.commit(commit).await {
                Ok(Outcome::Applied { versions, .. }) => {
                    if let Some(version) = versions.into_iter().next().flatten() {
                        return Ok(Versioned { issue, version });
                    }
                }
                Ok(Outcome::Conflicted { .. }) => {}
                Err(error) if is_unknown(&error) => {
                    lost.get_or_insert(error.into());
                }
                Err(error) if lost.is_some() && error.retryable() => {}
                Err(error) if lost.is_none() => return Err(error.into()),
                // The lock is lost as well: all that can be done is to look once more.
                Err(_) => {
                    let found = self.find(id).await.ok().flatten();
                    let landed = found.filter(|now| now.issue.has_event(event));
                    return landed.ok_or_else(|| lost.unwrap_or_else(|| self.unknown(id)));
                }
            }
        }
        Err(lost.unwrap_or(Error::Lock(LockError::Contended { key, attempts: ATTEMPTS_MAX })))
    }

    /// The lock of an issue: taken, or one that the caller holds on it or above it. That one keeps
    /// others out as well, and writes through its fence are refused once it is lost.
    async fn hold<'g>(&self, id: IssueId, purpose: &str, by: &By<'g>) -> Result<Held<'g>> {
        let path = places::lock(&["issues", &id.to_string()])?;
        if let Some(guard) = by.under {
            self.check_covers(guard, &path)?;
            return Ok(Held::Given(guard));
        }
        let who = Who { name: by.who.clone(), ..Who::default() };
        let request = Request::default().ttl(LEASE).wait_max(WAIT_MAX).purpose(purpose).who(who);
        Ok(Held::Taken(self.root.acquire(&[path], Mode::Exclusive, &request).await?))
    }

    /// Refuses a lock that does not keep everybody else from a path of this page.
    pub(super) fn check_covers(&self, guard: &Guard, path: &LockPath) -> Result<()> {
        let covers = |held: &LockPath| held == path || held.is_above(path);
        if guard.root().key() == self.root.key()
            && guard.mode() == Mode::Exclusive
            && guard.paths().iter().any(covers)
        {
            return Ok(());
        }
        let page = &self.page;
        let message = format!("this needs an exclusive lock on {path} of {page}, or above it");
        Err(Error::Invalid(message))
    }

    /// Refuses more issues than a page can have.
    pub(super) async fn check_room(&self, more: usize) -> Result<()> {
        if more == 0 || self.count().await? + more <= ISSUES_MAX {
            return Ok(());
        }
        let page = &self.page;
        Err(Error::Invalid(format!(
            "the page {page} has room for {ISSUES_MAX} issues, not for more"
        )))
    }
}

/// A lock that is held for one change.
enum Held<'g> {
    Taken(Guard),
    Given(&'g Guard),
}

impl Held<'_> {
    fn guard(&self) -> &Guard {
        match self {
            Self::Taken(guard) => guard,
            Self::Given(guard) => guard,
        }
    }

    async fn release(self) {
        if let Self::Taken(guard) = self {
            // What cannot be given back now ends with its lease.
            let _ = guard.release().await;
        }
    }
}

fn is_unknown(error: &LockError) -> bool {
    matches!(error, LockError::Store(error) if error.kind() == ErrorKind::OutcomeUnknown)
}

fn check_expected(now: &Versioned, by: &By<'_>) -> Result<()> {
    match &by.expected {
        Some(expected) if *expected != now.version => Err(moved(now.issue.history.last())),
        _ => Ok(()),
    }
}

/// What happened since an issue was seen.
fn since<'n>(now: &'n Issue, seen: &Issue) -> impl Iterator<Item = &'n Event> {
    let last = seen.history.last().map(|event| event.id);
    let after = now.history.iter().position(|event| Some(event.id) == last);
    now.history.iter().skip(after.map_or(0, |at| at + 1))
}

fn moved<'e>(events: impl IntoIterator<Item = &'e Event>) -> Error {
    let mut told: Vec<String> = events.into_iter().map(ToString::to_string).collect();
    told.drain(..told.len().saturating_sub(TOLD_MAX));
    let message = match told.is_empty() {
        true => "nobody knows by whom".to_owned(),
        false => told.join("; "),
    };
    Error::Moved { message }
}
