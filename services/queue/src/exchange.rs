//! Completing messages and taking others in their place, in one commit.

use std::sync::Arc;

use keyward_engine::{Commit, Json};

use crate::claim::{Candidate, Taken};
use crate::queue::Committed;
use crate::{Attempt, Ended, Queue};

/// A message to be completed, with its result.
pub(crate) type Completion = (Arc<Attempt>, Option<Json>);

/// What came of an exchange.
pub(crate) struct Exchanged {
    /// Of each completion whether it was accepted; `None` for those that are to be completed one by
    /// one after all, because that is not known, or the commit could not be done.
    pub ends: Vec<Option<Ended>>,
    /// What was taken. Nothing, where something was in the way: looking again will tell.
    pub attempts: Vec<Attempt>,
}

impl Queue {
    /// Completes messages, and takes others that were seen. A completion that is refused, or a message
    /// that is somebody else's by now, takes no completion with it.
    pub(crate) async fn exchange(
        &self,
        completions: &[Completion],
        mut picked: Vec<Candidate>,
    ) -> Exchanged {
        let mut exchanged = Exchanged { ends: vec![None; completions.len()], attempts: Vec::new() };
        let mut left: Vec<usize> = (0..completions.len()).collect();
        // Every further try has fewer completions than the one before, or takes nothing more.
        while !left.is_empty() {
            let mut commit = Commit::new();
            for (attempt, result) in left.iter().map(|at| &completions[*at]) {
                let Ok(completing) = attempt.completing(result.clone()) else { return exchanged };
                commit.checks.extend(completing.checks);
                commit.writes.extend(completing.writes);
                attempt.completion_sent();
            }
            let writes = commit.writes.len();
            let mut taking = None;
            if !picked.is_empty()
                && let Ok((claim, taken)) = self.taking(std::mem::take(&mut picked))
            {
                commit.checks.extend(claim.checks);
                commit.writes.extend(claim.writes);
                taking = Some(taken);
            }
            let (taken, committed) = match self.commit(commit).await {
                Ok(Committed::Applied(mut versions)) => {
                    for at in left.drain(..) {
                        exchanged.ends[at] = completions[at].0.completion_answered(Ended::Accepted);
                    }
                    (taking, Committed::Applied(versions.split_off(writes.min(versions.len()))))
                }
                // One completion has one check.
                Ok(Committed::Conflicted(failed)) => {
                    let (refused, outrun): (Vec<_>, Vec<_>) =
                        failed.into_iter().partition(|check| *check < left.len());
                    for check in &refused {
                        let at = left[*check];
                        exchanged.ends[at] = completions[at].0.completion_answered(Ended::Refused);
                    }
                    if refused.is_empty() && taking.is_none() {
                        return exchanged;
                    }
                    let checks = left.len();
                    let mut number = 0..;
                    left.retain(|_| !number.next().is_some_and(|check| refused.contains(&check)));
                    let outrun: Vec<_> = outrun.into_iter().map(|check| check - checks).collect();
                    (taking.filter(|_| !outrun.is_empty()), Committed::Conflicted(outrun))
                }
                Ok(Committed::Unknown(error)) => {
                    for at in left.drain(..) {
                        completions[at].0.completion_unanswered();
                    }
                    (taking, Committed::Unknown(error))
                }
                Err(_) => return exchanged,
            };
            if let Some(taking) = taken
                && let Ok(Taken::Held(attempts)) = self.took(taking, committed).await
            {
                exchanged.attempts = attempts;
            }
        }
        exchanged
    }
}
