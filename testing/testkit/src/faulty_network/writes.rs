//! One fault while a commit is made.

use std::time::Duration;

use futures_util::future::join_all;
use keyward_engine::{ErrorKind, Outcome};

use super::network::Network;
use super::trial::{Kind, Trial, conflicting};
use crate::NetworkFault;

/// More requests than any engine needs for a commit of a few keys.
const REQUESTS_MAX: usize = 20;
/// Longer than the engine waits for an answer.
const LATE: Duration = Duration::from_millis(1_300);

/// Makes commits of every kind, with one fault at each of the requests that it takes.
async fn fail_each_request(network: &Network, fault: NetworkFault) {
    for kind in Kind::of(network) {
        for at in 0..REQUESTS_MAX {
            let name = format!("with {fault:?} at request {at}");
            let trial = Trial::new(network, kind, &name).await;
            let fault = network.fail_at(at, fault);
            // Whatever is said is judged there.
            let _ = trial.run(network).await;
            network.proxy.heal();
            if !fault.was_met() {
                assert!(at > 0, "{name}: a commit took no request through the proxy");
                break;
            }
        }
    }
}

pub async fn the_outcome_of_a_commit_cut_before_it_arrives_is_true(network: Network) {
    fail_each_request(&network, NetworkFault::CutBefore).await;
}

pub async fn the_outcome_of_a_commit_cut_after_it_was_done_is_true(network: Network) {
    fail_each_request(&network, NetworkFault::CutAfter).await;
}

pub async fn the_outcome_of_a_commit_whose_answer_is_cut_halfway_is_true(network: Network) {
    fail_each_request(&network, NetworkFault::CutHalfway).await;
}

pub async fn the_outcome_of_a_commit_that_a_gateway_loses_is_true(network: Network) {
    fail_each_request(&network, NetworkFault::AnswerAfter(502)).await;
    fail_each_request(&network, NetworkFault::AnswerAfter(504)).await;
}

pub async fn the_outcome_of_a_commit_that_is_told_to_slow_down_is_true(network: Network) {
    fail_each_request(&network, NetworkFault::Answer(429)).await;
    fail_each_request(&network, NetworkFault::Answer(503)).await;
}

pub async fn the_outcome_of_a_commit_that_meets_a_failing_server_is_true(network: Network) {
    fail_each_request(&network, NetworkFault::Answer(500)).await;
}

/// Slow, but in time; and so late that the engine has given up or sent it again.
pub async fn the_outcome_of_a_commit_that_lands_late_is_true(network: Network) {
    fail_each_request(&network, NetworkFault::Delay(LATE / 40)).await;
    let mut trials = Vec::new();
    for kind in Kind::of(&network) {
        trials.push(Trial::new(&network, kind, "far too late").await);
    }
    // Together, since each waits for a timeout. The first requests to come are the late ones.
    for _ in &trials {
        network.proxy.fail_next(NetworkFault::Delay(LATE));
    }
    join_all(trials.iter().map(|trial| trial.run(&network))).await;
}

pub async fn a_create_whose_answer_is_lost_is_no_conflict(network: Network) {
    if !network.can_compare() {
        return;
    }
    for fault in [NetworkFault::CutAfter, NetworkFault::CutHalfway, NetworkFault::AnswerAfter(504)]
    {
        // Lost again and again: what was sent several times is still nobody else's.
        for times in 1..=3 {
            let name = format!("{fault:?} {times} times");
            let trial = Trial::new(&network, Kind::Create, &name).await;
            for _ in 0..times {
                network.proxy.fail_next(fault);
            }
            match trial.run(&network).await {
                Ok(outcome) => assert!(outcome.is_applied(), "{name}: {outcome:?}"),
                Err(error) => {
                    assert_ne!(error.kind(), ErrorKind::Unavailable, "{name}: it was done: {error}")
                }
            }
            network.proxy.heal();
        }
    }
}

pub async fn a_commit_that_conflicts_is_never_called_applied(network: Network) {
    if !network.can_compare() {
        return;
    }
    for (n, fault) in NetworkFault::EACH.into_iter().enumerate() {
        for kind in [Kind::Create, Kind::Swap] {
            let (contested, commit) = conflicting(&network, kind, &n.to_string()).await;
            let keys = [contested];
            let before = network.truth(&keys).await;
            network.proxy.fail_next(fault);
            let said = network.store.commit(commit).await;
            network.proxy.heal();
            let now = network.truth(&keys).await;
            assert_eq!(now, before, "{kind:?} with {fault:?} changed what another wrote");
            match said {
                Ok(Outcome::Conflicted { failed }) => assert_eq!(failed, [0]),
                Ok(applied) => panic!("{kind:?} with {fault:?} was not done: {applied:?}"),
                Err(error) => {
                    let kinds = [ErrorKind::Unavailable, ErrorKind::OutcomeUnknown];
                    assert!(kinds.contains(&error.kind()), "{kind:?} with {fault:?}: {error:?}");
                }
            }
        }
    }
}
