//! Faults that go on until the network heals.

use futures_util::future::join_all;
use keyward_engine::{ErrorKind, Json, Put};

use super::network::{Network, key, rows};
use super::reads::{assert_right_or_unavailable, fill};
use super::trial::{Kind, Trial};
use crate::NetworkFault;

/// Commits and reads while every request meets a fault that lets no answer through.
async fn suffer(network: &Network, fault: NetworkFault) {
    let filled = fill(network).await;
    let mut trials = Vec::new();
    for kind in Kind::of(network) {
        trials.push(Trial::new(network, kind, &format!("while {fault:?}")).await);
    }
    network.proxy.fail_always(fault);
    // Together, since each uses up its time.
    let commits = join_all(trials.iter().map(|trial| network.store.commit(trial.commit.clone())));
    let first = &filled[0].0;
    let (said, read, scanned) =
        tokio::join!(commits, network.store.get(first), rows(&network.store, 5));
    network.proxy.heal();
    for (trial, said) in trials.iter().zip(&said) {
        assert!(said.is_err(), "{said:?} without an answer, {fault:?}");
        trial.judge(network, said).await;
    }
    for error in [read.err(), scanned.err()] {
        let error = error.unwrap_or_else(|| panic!("a read without an answer, {fault:?}"));
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    let all = rows(&network.witness, 5).await.unwrap();
    assert_right_or_unavailable(network, &all).await;
}

pub async fn while_nothing_arrives_commits_and_reads_fail_honestly(network: Network) {
    suffer(&network, NetworkFault::CutBefore).await;
}

pub async fn while_no_answer_arrives_commits_and_reads_fail_honestly(network: Network) {
    suffer(&network, NetworkFault::CutAfter).await;
}

pub async fn while_the_server_is_overloaded_commits_and_reads_fail_honestly(network: Network) {
    suffer(&network, NetworkFault::Answer(503)).await;
}

pub async fn work_goes_on_after_the_network_heals(network: Network) {
    let slot = key("slot");
    for (n, fault) in [NetworkFault::CutBefore, NetworkFault::CutHalfway].into_iter().enumerate() {
        network.proxy.fail_always(fault);
        let read = network.store.get(&slot).await;
        assert!(read.is_err(), "{read:?} without an answer, {fault:?}");
        network.proxy.heal();
        // At the first attempt: the engine holds no grudge and no broken connection.
        let value = Json::from_integer(n as i64);
        let version = network.store.put(slot.clone(), Put::new(value.clone())).await.unwrap();
        network.settle().await;
        let entry = network.store.get(&slot).await.unwrap().unwrap();
        assert_eq!((&entry.value, &entry.version), (&value, &version));
        assert_eq!(rows(&network.store, 5).await.unwrap(), [(slot.clone(), entry)]);
    }
}
