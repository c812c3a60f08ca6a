//! Commits: one `:commit` with preconditions.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Check, Commit, Error, ErrorKind, Expect, Outcome, Result, Version, Write};
use keyward_http::Effect;
use keyward_key::Key;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::client::Answer;
use crate::document::{Fields, Held, id_of};
use crate::engine::Shared;
use crate::version::{Mark, Stamp};

/// The pause before a commit is tried again that met others; twice as long each time.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[derive(Serialize)]
pub(crate) struct Writes<'a> {
    pub writes: Vec<Operation<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operation<'a> {
    #[serde(flatten)]
    pub action: Action<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_document: Option<Precondition>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action<'a> {
    Update(Update<'a>),
    Delete(String),
    /// Only the precondition. Google's own clients send it for documents that a transaction only read.
    Verify(String),
}

#[derive(Serialize)]
pub(crate) struct Update<'a> {
    pub name: String,
    pub fields: Fields<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Precondition {
    Exists(bool),
    UpdateTime(#[serde(with = "crate::moment")] Timestamp),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Committed {
    pub write_results: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Written {
    pub update_time: Option<String>,
}

/// How an attempt at a commit ended.
enum Attempted {
    /// The times of the documents that were put, in the order of the writes.
    Applied(Vec<Option<Timestamp>>),
    /// A precondition did not hold.
    Unmet,
    /// Others wrote at the same time.
    Contended,
}

/// A commit on its way.
struct Journey<'c> {
    shared: &'c Shared,
    commit: &'c Commit,
    now: Timestamp,
    mark: Mark,
    /// When the documents under the checked keys were changed, if they were looked at.
    seen: Vec<Option<Timestamp>>,
}

impl Shared {
    pub async fn commit(&self, commit: &Commit) -> Result<Outcome> {
        if commit.writes.is_empty() {
            let (failed, _) = self.look(&commit.checks).await?;
            return Ok(match failed.is_empty() {
                true => Outcome::Applied { revision: None, versions: Vec::new() },
                false => Outcome::Conflicted { failed },
            });
        }
        let now = self.clock.now();
        let mark = Mark::new(commit, now);
        let seen = vec![None; commit.checks.len()];
        let outcome = Journey { shared: self, commit, now, mark, seen }.go().await?;
        if outcome.is_applied() {
            if let Some(end) = mark.first_end {
                self.note_end(end);
            }
            self.tidy_if_due(now);
        }
        Ok(outcome)
    }

    /// The checks that do not hold now, and when each document was last changed.
    async fn look(&self, checks: &[Check]) -> Result<(Vec<usize>, Vec<Option<Timestamp>>)> {
        let held = self.held(checks.iter().map(|check| &check.key)).await?;
        let now = self.clock.now();
        let fails = |(n, (check, held)): (usize, (&Check, &Option<Held>))| {
            let entry =
                held.as_ref().map(|held| &held.entry).filter(|entry| !entry.is_expired(now));
            let holds = match (&check.expect, entry) {
                (Expect::Absent, entry) => entry.is_none(),
                (Expect::Version(version), entry) => {
                    entry.is_some_and(|entry| entry.version == *version)
                }
            };
            (!holds).then_some(n)
        };
        let failed = checks.iter().zip(&held).enumerate().filter_map(fails).collect();
        let seen = held.iter().map(|held| held.as_ref().map(|held| held.stamp.updated)).collect();
        Ok((failed, seen))
    }
}

impl Journey<'_> {
    async fn go(mut self) -> Result<Outcome> {
        let (started, mut pause) = (Instant::now(), PAUSE_FIRST);
        let mut must_look = self.commit.checks.iter().any(|check| self.is_doubtful(&check.expect));
        loop {
            if must_look {
                let (failed, seen) = self.shared.look(&self.commit.checks).await?;
                if !failed.is_empty() {
                    return Ok(Outcome::Conflicted { failed });
                }
                self.seen = seen;
            }
            match self.attempt().await? {
                Attempted::Applied(times) => return Ok(self.applied(&times)),
                // The checks that failed must be named. If all hold by now, it is tried on what was seen.
                Attempted::Unmet if !must_look => {
                    must_look = true;
                    continue;
                }
                Attempted::Unmet | Attempted::Contended => {}
            }
            let wait = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
            if started.elapsed() + wait >= self.shared.retry_budget {
                let message =
                    "others changed the same entries of the Firestore store again and again";
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
            sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Whether only a read tells that a check holds: the entry may have expired, or there is no such version.
    fn is_doubtful(&self, expect: &Expect) -> bool {
        match expect {
            Expect::Absent => false,
            Expect::Version(version) => Stamp::parse(version)
                .is_none_or(|stamp| stamp.first_end.is_some_and(|end| end <= self.now)),
        }
    }

    fn precondition(&self, check: usize) -> Option<Precondition> {
        match &self.commit.checks.get(check)?.expect {
            // What was seen there had expired.
            Expect::Absent => Some(match self.seen.get(check).copied().flatten() {
                Some(updated) => Precondition::UpdateTime(updated),
                None => Precondition::Exists(false),
            }),
            Expect::Version(version) => {
                Stamp::parse(version).map(|stamp| Precondition::UpdateTime(stamp.updated))
            }
        }
    }

    /// Sends the commit.
    async fn attempt(&self) -> Result<Attempted> {
        let (Self { shared, commit, .. }, mark) = (self, self.mark.to_string());
        let ids: Vec<String> = commit.writes.iter().map(|write| id_of(write.key())).collect();
        let checked = |key: &Key| commit.checks.iter().position(|check| check.key == *key);
        let name = |id: &str| shared.client.collection.name(id);
        let mut operations = Vec::with_capacity(commit.writes.len() + commit.checks.len());
        let mut happens_once = false;
        for (write, id) in commit.writes.iter().zip(&ids) {
            let current_document = checked(write.key()).and_then(|check| self.precondition(check));
            // Once it is applied, this document never has that time again.
            happens_once |= matches!(current_document, Some(Precondition::UpdateTime(_)));
            let action = match write {
                Write::Put(_, put) => {
                    let fields = Fields::new(id, put, &mark, self.now);
                    Action::Update(Update { name: name(id), fields })
                }
                Write::Delete(_) if current_document == Some(Precondition::Exists(false)) => {
                    Action::Verify(name(id))
                }
                Write::Delete(_) => Action::Delete(name(id)),
                Write::Add(..) => {
                    let message = "the firestore engine cannot add to numbers";
                    return Err(Error::new(ErrorKind::Unsupported, message));
                }
            };
            operations.push(Operation { action, current_document });
        }
        for (n, check) in commit.checks.iter().enumerate() {
            if !commit.writes.iter().any(|write| *write.key() == check.key) {
                let action = Action::Verify(name(&id_of(&check.key)));
                operations.push(Operation { action, current_document: self.precondition(n) });
            }
        }
        // One that could be applied twice must not be sent twice: others may write in between.
        let effect = if happens_once { Effect::WritesOnce } else { Effect::Writes };
        let body = Writes { writes: operations };
        match shared.client.call("commit", &body, effect).await {
            Ok(Answer { result: Ok(body), .. }) => match serde_json::from_slice(&body) {
                Ok(committed) => self.times(committed),
                Err(error) => self.settle(unknown(error)).await,
            },
            Ok(Answer { result: Err(refusal), resent: true }) => {
                let reason = format!("an attempt got no answer, and the next: {}", refusal.message);
                self.settle(unknown(reason)).await
            }
            Ok(Answer { result: Err(refusal), resent: false }) => match refusal {
                refusal if refusal.is_contended() => Ok(Attempted::Contended),
                refusal if refusal.is_unmet() && !commit.checks.is_empty() => Ok(Attempted::Unmet),
                refusal => Err(refusal.into_error("write to")),
            },
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => self.settle(error).await,
            Err(error) => Err(error),
        }
    }

    /// Finds out whether a commit was applied whose answer was lost: its mark is there as long as nobody has written since.
    /// One without it may still be under way.
    async fn settle(&self, error: Error) -> Result<Attempted> {
        let puts = self.commit.writes.iter().filter(|write| matches!(write, Write::Put(..)));
        let Ok(held) = self.shared.held(puts.map(Write::key)).await else { return Err(error) };
        let ours = held.iter().flatten().find(|held| held.mark.is_same(self.mark));
        let Some(ours) = ours else { return Err(error) };
        let time = |write: &Write| matches!(write, Write::Put(..)).then_some(ours.stamp.updated);
        Ok(Attempted::Applied(self.commit.writes.iter().map(time).collect()))
    }

    fn times(&self, committed: Committed) -> Result<Attempted> {
        let mut results = committed.write_results.into_iter();
        let times = self.commit.writes.iter().map(|write| {
            let time = results.next().and_then(|written| written.update_time?.parse().ok());
            match write {
                Write::Put(..) => time.map(Some).ok_or_else(|| unknown("it has no update times")),
                Write::Delete(_) | Write::Add(..) => Ok(None),
            }
        });
        let times: Vec<Option<Timestamp>> = times.collect::<Result<_>>()?;
        if let (Some(emulator), Some(time)) = (&self.shared.emulator, times.iter().flatten().next())
        {
            emulator.note(*time);
        }
        Ok(Attempted::Applied(times))
    }

    fn applied(&self, times: &[Option<Timestamp>]) -> Outcome {
        let first_end = self.mark.first_end;
        let version = |time: &Option<Timestamp>| -> Option<Version> {
            time.map(|updated| Stamp { updated, first_end }.version())
        };
        Outcome::Applied { revision: None, versions: times.iter().map(version).collect() }
    }
}

fn unknown(reason: impl std::fmt::Display) -> Error {
    let message = format!("Firestore's answer to a commit is not known: {reason}");
    Error::new(ErrorKind::OutcomeUnknown, message)
}
