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
    /// Nothing was done, and then the time was up until which no entry expires that it expects.
    Late(Error),
}

/// A commit on its way.
struct Journey<'c> {
    shared: &'c Shared,
    commit: &'c Commit,
    now: Timestamp,
    mark: Mark,
    /// When the documents under the checked keys were changed, if they were looked at.
    seen: Vec<Option<Timestamp>>,
    /// Until when no entry expires whose version it expects. An attempt after it would be applied to one that has.
    certain_until: Option<Timestamp>,
}

/// What a look at the documents under the checked keys shows.
struct Look {
    /// The checks that do not hold.
    failed: Vec<usize>,
    /// When each document was last changed.
    seen: Vec<Option<Timestamp>>,
    /// When the first entry expires whose version is expected.
    first_end: Option<Timestamp>,
}

impl Shared {
    pub async fn commit(&self, commit: &Commit) -> Result<Outcome> {
        if commit.writes.is_empty() {
            let Look { failed, .. } = self.look(&commit.checks).await?;
            return Ok(match failed.is_empty() {
                true => Outcome::Applied { revision: None, versions: Vec::new() },
                false => Outcome::Conflicted { failed },
            });
        }
        let now = self.clock.now();
        let mark = Mark::new(commit, now)?;
        let seen = vec![None; commit.checks.len()];
        let ends = commit.checks.iter().filter_map(|check| expected(check)?.first_end);
        let certain_until = ends.min();
        let journey = Journey { shared: self, commit, now, mark, seen, certain_until };
        let outcome = journey.go().await?;
        if outcome.is_applied() {
            if let Some(end) = mark.first_end {
                self.note_end(end);
            }
            self.tidy_if_due(now);
        }
        Ok(outcome)
    }

    /// Looks at the documents under the checked keys.
    async fn look(&self, checks: &[Check]) -> Result<Look> {
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
        let expected = checks.iter().zip(&held).filter(|(check, _)| expected(check).is_some());
        let first_end = expected.filter_map(|(_, held)| held.as_ref()?.entry.expires).min();
        Ok(Look { failed, seen, first_end })
    }
}

impl Journey<'_> {
    async fn go(mut self) -> Result<Outcome> {
        let (started, mut pause) = (Instant::now(), PAUSE_FIRST);
        let mut must_look = self.commit.checks.iter().any(is_foreign);
        loop {
            // Each time anew: an entry may have expired since the last attempt.
            if must_look || self.certain_until.is_some_and(|end| end <= self.shared.clock.now()) {
                let look = self.shared.look(&self.commit.checks).await?;
                if !look.failed.is_empty() {
                    return Ok(Outcome::Conflicted { failed: look.failed });
                }
                self.seen = look.seen;
                self.certain_until = look.first_end;
            }
            let last = match self.attempt().await? {
                Attempted::Applied(times) => return Ok(self.applied(&times)),
                // The checks that failed must be named. If all hold by now, it is tried on what was seen.
                Attempted::Unmet if !must_look => {
                    must_look = true;
                    continue;
                }
                Attempted::Unmet | Attempted::Contended => {
                    let message =
                        "others changed the same entries of the Firestore store again and again";
                    Error::new(ErrorKind::Unavailable, message)
                }
                Attempted::Late(error) => {
                    must_look = true;
                    error
                }
            };
            let wait = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
            if started.elapsed() + wait >= self.shared.retry_budget {
                return Err(last);
            }
            sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
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

    /// How much time is left until an entry expires whose version is expected.
    fn time_left(&self) -> Option<Duration> {
        let left = self.certain_until?.duration_since(self.shared.clock.now());
        Some(Duration::try_from(left).unwrap_or_default())
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
        let time_left = self.time_left();
        match shared.client.commit(&body, effect, time_left).await {
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
            Err(error)
                if error.kind() == ErrorKind::Unavailable
                    && time_left.is_some_and(|left| left < shared.retry_budget) =>
            {
                Ok(Attempted::Late(error))
            }
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

/// What the version says that a check expects; none if it expects none, or one that this engine has not given.
fn expected(check: &Check) -> Option<Stamp> {
    match &check.expect {
        Expect::Absent => None,
        Expect::Version(version) => Stamp::parse(version),
    }
}

/// Whether a check expects a version that this engine has not given. It fails, and only a read tells which others do.
fn is_foreign(check: &Check) -> bool {
    matches!(check.expect, Expect::Version(_)) && expected(check).is_none()
}

fn unknown(reason: impl std::fmt::Display) -> Error {
    let message = format!("Firestore's answer to a commit is not known: {reason}");
    Error::new(ErrorKind::OutcomeUnknown, message)
}
