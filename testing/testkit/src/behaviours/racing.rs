//! Many at once.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Commit, ErrorKind, Expect, Json, Outcome, Put, Store};
use keyward_key::{Key, KeyRange};
use tokio::sync::{Barrier, watch};
use tokio::task::JoinSet;

use super::{key, put};
use crate::subject::Subject;
use crate::watcher::Watcher;

/// Who wins when many commit the same check at once; exactly one may.
async fn race(store: &Store, contested: &Key, expect: &Expect) -> usize {
    const RACERS: usize = 16;
    let start = Arc::new(Barrier::new(RACERS));
    let mut racers = JoinSet::new();
    for n in 0..RACERS {
        let (store, start) = (store.clone(), start.clone());
        let commit = Commit::new()
            .check(contested.clone(), expect.clone())
            .put(contested.clone(), Put::new(Json::from_integer(n as i64)));
        racers.spawn(async move {
            start.wait().await;
            (n, store.commit(commit).await.unwrap())
        });
    }
    let mut winners = Vec::new();
    for (n, outcome) in racers.join_all().await {
        match outcome {
            Outcome::Applied { .. } => winners.push(n),
            Outcome::Conflicted { failed } => assert_eq!(failed, [0]),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?} all believe they won");
    winners[0]
}

pub async fn of_sixteen_racing_swaps_exactly_one_wins(subject: Subject) {
    let slot = key("contested");
    let mut version = subject.put(&slot, put("null")).await.version;
    if !subject.capabilities().compare {
        let swap = Commit::new().check(slot.clone(), Expect::Version(version)).put(slot, put("1"));
        return subject.assert_refused(swap, ErrorKind::Unsupported).await;
    }
    for _ in 0..20 {
        let winner = race(&subject.store, &slot, &Expect::Version(version)).await;
        subject.settle().await;
        let entry = subject.present(&slot).await;
        assert_eq!(entry.value.as_integer(), Some(winner as i64));
        version = entry.version;
    }
}

pub async fn of_sixteen_racing_creates_exactly_one_wins(subject: Subject) {
    let slot = |n: usize| key(&format!("contested:{n}"));
    if !subject.capabilities().compare {
        let create = Commit::new().check(slot(0), Expect::Absent).put(slot(0), put("1"));
        return subject.assert_refused(create, ErrorKind::Unsupported).await;
    }
    for n in 0..20 {
        // Every other round the key was there before.
        let slot = slot(n / 2);
        let winner = race(&subject.store, &slot, &Expect::Absent).await;
        subject.settle().await;
        let value = subject.present(&slot).await.value;
        assert_eq!(value.as_integer(), Some(winner as i64));
        subject.delete(&slot).await;
    }
}

pub async fn concurrent_additions_sum_exactly(subject: Subject) {
    const TASKS: i64 = 8;
    const EACH: i64 = 50;
    let counter = key("counter");
    if !subject.capabilities().add {
        let add = Commit::new().add(counter, 1);
        return subject.assert_refused(add, ErrorKind::Unsupported).await;
    }
    let mut tasks = JoinSet::new();
    for n in 0..TASKS {
        let (store, counter) = (subject.store.clone(), counter.clone());
        tasks.spawn(async move {
            for _ in 0..EACH {
                let commit = Commit::new().add(counter.clone(), n + 1);
                assert!(store.commit(commit).await.unwrap().is_applied());
            }
        });
    }
    tasks.join_all().await;
    subject.settle().await;
    let sum = (1..=TASKS).sum::<i64>() * EACH;
    let value = subject.present(&counter).await.value;
    assert_eq!(value.as_integer(), Some(sum));
}

pub async fn concurrent_swaps_lose_no_increment(subject: Subject) {
    const TASKS: i64 = 8;
    const EACH: i64 = 12;
    let counter = key("counter");
    let version = subject.put(&counter, put("0")).await.version;
    if !subject.capabilities().compare {
        let swap =
            Commit::new().check(counter.clone(), Expect::Version(version)).put(counter, put("1"));
        return subject.assert_refused(swap, ErrorKind::Unsupported).await;
    }
    // Late readers see others' writes only when time passes.
    let lag = match subject.owns_time() {
        true => subject.capabilities().consistency.get_lag(),
        false => Duration::ZERO,
    };
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (store, counter) = (subject.store.clone(), counter.clone());
        let clock = subject.clock.clone();
        tasks.spawn(async move {
            let mut done = 0;
            while done < EACH {
                let entry = store.get(&counter).await.unwrap().unwrap();
                let next = entry.value.as_integer().unwrap() + 1;
                let swap = Commit::new()
                    .check(counter.clone(), Expect::Version(entry.version))
                    .put(counter.clone(), Put::new(Json::from_integer(next)));
                if store.commit(swap).await.unwrap().is_applied() {
                    done += 1;
                }
                clock.advance(lag);
            }
        });
    }
    tasks.join_all().await;
    subject.settle().await;
    let value = subject.present(&counter).await.value;
    assert_eq!(value.as_integer(), Some(TASKS * EACH));
}

pub async fn a_reader_never_sees_half_a_commit(subject: Subject) {
    let keys = ["left", "middle:of", "right"].map(key);
    let commit = |n: i64| {
        keys.iter().fold(Commit::new(), |commit, key| {
            commit.put(key.clone(), Put::new(Json::from_integer(n)))
        })
    };
    if subject.limits().commit_keys_max < keys.len() {
        return subject.assert_refused(commit(1), ErrorKind::LimitExceeded).await;
    }
    assert!(subject.commit(commit(0)).await.is_applied());
    let commits: Vec<Commit> = (1..100).map(commit).collect();
    let written = watch::Sender::new(0);
    let mut seen = written.subscribe();
    let store = subject.store.clone();
    let writer = tokio::spawn(async move {
        for commit in commits.iter().cycle() {
            assert!(store.commit(commit.clone()).await.unwrap().is_applied());
            written.send_modify(|commits| *commits += 1);
            tokio::task::yield_now().await;
        }
    });
    // Enough of both, whichever is the slower.
    let mut reads = 0;
    while reads < 2_000 || *seen.borrow_and_update() < 200 {
        let entries = subject.store.get_many(&keys).await.unwrap();
        let values: Vec<_> = entries.iter().map(|e| &e.as_ref().unwrap().value).collect();
        assert!(values.iter().all(|v| *v == values[0]), "{values:?}");
        assert!(!writer.is_finished(), "the writer failed");
        reads += 1;
    }
    writer.abort();
}

pub async fn a_watcher_sees_every_commit_of_many_writers_once_in_order(subject: Subject) {
    if !subject.can_resume() {
        return super::watching::assert_cannot_resume(&subject).await;
    }
    const WRITERS: usize = 8;
    const EACH: usize = 25;
    let mut watcher = Watcher::start(&subject, KeyRange::all(), None).await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = subject.store.clone();
        writers.spawn(async move {
            let mut made = Vec::new();
            for n in 0..EACH {
                let key = key(&format!("{writer}:{n}"));
                let commit = Commit::new().put(key.clone(), put("1"));
                match store.commit(commit).await.unwrap() {
                    Outcome::Applied { revision, .. } => made.push((revision.unwrap(), key)),
                    conflicted => panic!("{conflicted:?} without a check"),
                }
            }
            assert!(made.is_sorted(), "a writer's own commits are in order");
            made
        });
    }
    // Watches while they write, up to a mark that is set when all are done.
    let watching = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < WRITERS * EACH {
            let next = watcher.at();
            let told = watcher.changes_until(keyward_engine::Revision(next.0 + 1)).await;
            seen.extend(told);
        }
        seen
    });
    let mut made: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    made.sort();
    let seen: Vec<_> = watching.await.unwrap();
    let seen: Vec<_> = seen
        .into_iter()
        .map(|(revision, changes)| {
            assert_eq!(changes.len(), 1);
            (revision, changes[0].0.clone())
        })
        .collect();
    assert_eq!(seen, made);
}
