//! Completing messages and taking others in their place, in one commit.

use std::sync::Arc;

use keyward_engine::{Commit, Json};

use crate::look::Candidate;
use crate::queue::Committed;
use crate::take::Taken;
use crate::{Attempt, Claimant, Ended, Queue};

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
                && let Ok((claim, taken)) =
                    self.taking(&Claimant::default(), std::mem::take(&mut picked))
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

#[cfg(test)]
mod tests {
    use keyward_engine::Store;
    use keyward_memory::Memory;
    use keyward_testkit::{Call, Fault, Faults, FaultyEngine, TestClock, When};

    use super::*;
    use crate::{Message, Options};

    /// What a claim asks of the engine; the next call is the exchange.
    const CLAIM_CALLS: u64 = 4;

    struct Setting {
        engine: FaultyEngine,
        queue: Queue,
        /// The same queue, on which nothing goes wrong.
        sure: Queue,
    }

    impl Setting {
        async fn new(messages: usize, faults: Faults) -> Self {
            let clock = TestClock::new();
            let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
            let engine = FaultyEngine::new(Arc::new(memory), faults);
            let queue = |store| {
                let options = Options { seed: Some(1), ..Options::default() };
                Queue::new(store, "q", clock.clone(), options).unwrap()
            };
            let sure = queue(Store::from_arc(engine.inner()));
            let payload = Json::from_stored("1");
            sure.enqueue_all(vec![Message::new(payload); messages]).await.unwrap();
            Self { queue: queue(Store::new(engine.clone())), engine, sure }
        }

        /// Takes messages into hand.
        async fn held(&self, count: usize) -> Vec<Completion> {
            let claims = self.queue.claim(count).await.unwrap();
            assert_eq!((claims.attempts.len(), self.engine.calls()), (count, CLAIM_CALLS));
            claims.attempts.into_iter().map(|attempt| (Arc::new(attempt), None)).collect()
        }

        async fn seen(&self) -> Vec<Candidate> {
            self.sure.look_only(9).await.unwrap()
        }

        fn commits(&self) -> usize {
            self.engine.trace().iter().filter(|(call, _)| *call == Call::Commit).count()
        }

        async fn counts(&self) -> (u64, u64) {
            let stats = self.sure.stats().await.unwrap();
            (stats.ready.count, stats.claimed.count)
        }
    }

    const DONE: Option<Ended> = Some(Ended::Accepted);
    const REFUSED: Option<Ended> = Some(Ended::Refused);

    #[tokio::test]
    async fn completions_and_a_claim_are_one_commit() {
        let setting = Setting::new(5, Faults::none()).await;
        let (held, seen) = (setting.held(2).await, setting.seen().await);
        let exchanged = setting.queue.exchange(&held, seen).await;
        assert_eq!(exchanged.ends, [DONE, DONE]);
        assert_eq!(exchanged.attempts.len(), 3);
        // The claim before was the other.
        assert_eq!(setting.commits(), 2);
        assert_eq!(setting.counts().await, (0, 3));
        for attempt in exchanged.attempts {
            assert_eq!(attempt.complete(None).await.unwrap(), Ended::Accepted);
        }
        assert_eq!(setting.queue.metrics().completed.get(), 5);
    }

    #[tokio::test]
    async fn a_completion_that_is_refused_takes_no_other_with_it() {
        let setting = Setting::new(4, Faults::none()).await;
        let (held, seen) = (setting.held(3).await, setting.seen().await);
        assert!(setting.sure.drop_message(held[1].0.id()).await.unwrap());
        let exchanged = setting.queue.exchange(&held, seen).await;
        assert_eq!(exchanged.ends, [DONE, REFUSED, DONE]);
        // What was seen is left to the next look.
        assert!(exchanged.attempts.is_empty());
        assert_eq!(setting.counts().await, (1, 0));
    }

    #[tokio::test]
    async fn a_message_that_is_somebody_elses_by_now_takes_no_completion_with_it() {
        let setting = Setting::new(3, Faults::none()).await;
        let (held, seen) = (setting.held(1).await, setting.seen().await);
        setting.sure.claim(1).await.unwrap();
        let exchanged = setting.queue.exchange(&held, seen).await;
        assert_eq!(exchanged.ends, [DONE]);
        assert!(exchanged.attempts.is_empty());
        assert_eq!(setting.counts().await, (1, 1));
    }

    #[tokio::test]
    async fn a_paused_queue_is_completed_from_and_not_claimed_from() {
        let setting = Setting::new(2, Faults::none()).await;
        let (held, seen) = (setting.held(1).await, setting.seen().await);
        setting.sure.pause("x").await.unwrap();
        let exchanged = setting.queue.exchange(&held, seen).await;
        assert_eq!(exchanged.ends, [DONE]);
        assert!(exchanged.attempts.is_empty());
        assert_eq!(setting.counts().await, (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_lost_leaves_completions_to_be_asked_for_one_by_one() {
        for (when, taken) in [(When::Before, 0), (When::After, 1)] {
            let setting =
                Setting::new(2, Faults::script([(CLAIM_CALLS, Fault::Unanswered(when))])).await;
            let (held, seen) = (setting.held(1).await, setting.seen().await);
            let exchanged = setting.queue.exchange(&held, seen).await;
            assert_eq!(exchanged.ends, [None], "{when:?}");
            // What was taken is found by its mark.
            assert_eq!(exchanged.attempts.len(), taken, "{when:?}");
            assert_eq!(held[0].0.complete(None).await.unwrap(), Ended::Accepted, "{when:?}");
            assert_eq!(setting.queue.metrics().completed.get(), 1, "{when:?}");
        }
    }

    #[tokio::test]
    async fn a_store_that_cannot_be_reached_leaves_everything_as_it_was() {
        let setting = Setting::new(2, Faults::script([(CLAIM_CALLS, Fault::Fail)])).await;
        let (held, seen) = (setting.held(1).await, setting.seen().await);
        let exchanged = setting.queue.exchange(&held, seen).await;
        assert_eq!(exchanged.ends, [None]);
        assert!(exchanged.attempts.is_empty());
        assert_eq!(setting.counts().await, (1, 1));
    }
}
