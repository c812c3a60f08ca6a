//! Several engines on one store, as in several processes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{ChangeKind, Commit, Event, Expect, Scan, Store};
use keyward_key::{Key, KeyRange};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::server::{Fresh, address, config, connect, key, put, putting, runtime, unused_name};

/// Commits at once, by turns over two engines, and tells which were applied.
async fn at_once(stores: &[Store; 2], commits: Vec<Commit>) -> Vec<bool> {
    let start = Arc::new(Barrier::new(commits.len()));
    let mut racing = JoinSet::new();
    for (n, commit) in commits.into_iter().enumerate() {
        let (store, start) = (stores[n % 2].clone(), start.clone());
        racing.spawn(async move {
            start.wait().await;
            (n, store.commit(commit).await.unwrap().is_applied())
        });
    }
    let mut applied = racing.join_all().await;
    applied.sort_unstable();
    applied.into_iter().map(|(_, applied)| applied).collect()
}

#[test]
fn of_racing_creates_over_two_engines_exactly_one_wins() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let stores = [fresh.store().await, fresh.store().await];
        for round in 0..20 {
            let slot = key(&format!("slot:{}", round / 2));
            let create = |n: usize| {
                let put = put(&n.to_string());
                Commit::new().check(slot.clone(), Expect::Absent).put(slot.clone(), put)
            };
            let applied = at_once(&stores, (0..16).map(create).collect()).await;
            let winners: Vec<usize> = (0..16).filter(|&n| applied[n]).collect();
            assert_eq!(winners.len(), 1, "{winners:?} all believe they won");
            let held = stores[0].get(&slot).await.unwrap().unwrap();
            assert_eq!(held.value.as_integer(), Some(winners[0] as i64));
            stores[1].delete(slot).await.unwrap();
        }
    });
}

/// Each guarded by what the other writes: in whatever order they went, one would have seen the
/// other.
#[test]
fn commits_that_guard_against_each_other_are_never_both_applied() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let stores = [fresh.store().await, fresh.store().await];
        let (left, right) = (key("left"), key("right"));
        let began = Instant::now();
        for round in 0..60 {
            let mut expects = [Expect::Absent, Expect::Absent];
            if round % 2 == 1 {
                for (side, expect) in [&left, &right].into_iter().zip(&mut expects) {
                    *expect = Expect::Version(stores[0].put(side.clone(), put("0")).await.unwrap());
                }
            }
            let [left_is, right_is] = expects;
            let commits = vec![
                Commit::new().check(left.clone(), left_is).put(right.clone(), put("1")),
                Commit::new().check(right.clone(), right_is).put(left.clone(), put("1")),
            ];
            let applied = at_once(&stores, commits).await;
            assert_eq!(applied.iter().filter(|&&applied| applied).count(), 1, "{applied:?}");
            let both = Commit::new().delete(left.clone()).delete(right.clone());
            assert!(stores[0].commit(both).await.unwrap().is_applied());
        }
        // Each deadlock would cost a second.
        assert!(began.elapsed() < Duration::from_secs(30), "they wait for each other");
    });
}

/// Each makes what the other removes: in whatever order they went, one key is left. The one around
/// the engine has made `a` and removed `b`, and has not ended, when the engine removes `a`.
#[test]
fn of_two_commits_that_make_what_the_other_removes_one_comes_last() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.store().await;
        store.put(key("b"), put("0")).await.unwrap();
        let client = connect(&config()).await;
        let number = fresh.number(&client).await;
        client.batch_execute("BEGIN").await.unwrap();
        let turn = "SELECT FROM keyward.commit($1::int, '{a,b}', '{NULL,NULL}', '{1,2}', '{1,NULL}',
            '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}')";
        client.query_one(turn, &[&number]).await.unwrap();
        let turning = tokio::spawn({
            let store = store.clone();
            async move { store.commit(Commit::new().delete(key("a")).put(key("b"), put("2"))).await }
        });
        fresh.waiting(&connect(&config()).await).await;
        client.batch_execute("COMMIT").await.unwrap();
        assert!(turning.await.unwrap().unwrap().is_applied());
        let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
        let found: Vec<Key> = page.rows.iter().map(|row| row.key.clone()).collect();
        assert_eq!(found, [key("b")]);
    });
}

#[test]
fn many_commits_guarded_by_one_key_do_not_wait_for_each_other() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.store().await;
        let guard = store.put(key("guard"), put("1")).await.unwrap();
        let client = connect(&config()).await;
        let held = format!(
            "BEGIN; SELECT FROM keyward.entries WHERE store = {} AND key = 'guard' FOR SHARE",
            fresh.number(&client).await
        );
        client.batch_execute(&held).await.unwrap();
        let guarded = putting("guarded", "1").check(key("guard"), Expect::Version(guard));
        let committed = timeout(Duration::from_secs(10), store.commit(guarded)).await;
        assert!(committed.expect("it waits").unwrap().is_applied());
    });
}

/// Commits of every kind over the same few keys. Whatever they meet, no sum is lost and nobody waits
/// for ever.
#[test]
fn mixed_commits_over_the_same_keys_neither_block_nor_lose_anything() {
    const TASKS: usize = 8;
    const EACH: usize = 40;
    let database = Database::create("");
    runtime().block_on(async {
        let fresh = Fresh::at(database.address.clone());
        let stores = [fresh.store().await, fresh.store().await];
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let store = stores[task % 2].clone();
            tasks.spawn(async move {
                for n in 0..EACH {
                    // Two keys in either order, made and removed again and again.
                    let (one, other) =
                        (key(&format!("k:{}", n % 3)), key(&format!("k:{}", task % 3 + 3)));
                    let commit = match (task + n) % 4 {
                        0 => Commit::new().put(one, put("1")).put(other, put("2")),
                        1 => Commit::new().delete(other).put(one, put("1")),
                        2 => Commit::new().delete(one).put(other, put("3")),
                        _ => Commit::new()
                            .check(key("never"), Expect::Absent)
                            .delete(one)
                            .delete(other),
                    };
                    let commit = commit.add(key("total"), 1);
                    assert!(store.commit(commit).await.unwrap().is_applied());
                }
            });
        }
        tasks.join_all().await;
        let total = stores[0].get(&key("total")).await.unwrap().unwrap();
        assert_eq!(total.value.as_integer(), Some((TASKS * EACH) as i64));
        // The server counts them for each database, shortly after.
        drop(stores);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let client = connect(&database.address.parse().unwrap()).await;
        let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        let deadlocks: i64 = client.query_one(deadlocks, &[]).await.unwrap().get(0);
        assert_eq!(deadlocks, 0, "rows are locked in one order");
    });
}

/// Only one who goes around the engine can lock rows in another order.
#[test]
fn a_commit_that_is_given_up_for_another_is_tried_again() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.store().await;
        let both = |value| putting("a", value).put(key("b"), put(value));
        assert!(store.commit(both("1")).await.unwrap().is_applied());
        let client = connect(&config()).await;
        let number = fresh.number(&client).await;
        let lock = async |key: &str| {
            let lock = format!(
                "SELECT FROM keyward.entries WHERE store = {number} AND key = '{key}' FOR UPDATE"
            );
            client.batch_execute(&lock).await.unwrap();
        };
        // The other side of the deadlock does not look for one.
        client.batch_execute("SET deadlock_timeout = '60s'; BEGIN").await.unwrap();
        lock("b").await;
        let committing = tokio::spawn({
            let (store, both) = (store.clone(), both("2"));
            async move { store.commit(both).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        lock("a").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!committing.is_finished(), "it waits once more");
        client.batch_execute("COMMIT").await.unwrap();
        assert!(committing.await.unwrap().unwrap().is_applied());
        let entry = store.get(&key("b")).await.unwrap().unwrap();
        assert_eq!(entry.value.as_integer(), Some(2));
    });
}

#[test]
fn a_watcher_sees_the_commits_of_another_engine_at_once() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let (watching, writing) = (fresh.store().await, fresh.store().await);
        let mut events = watching.watch(KeyRange::all(), None);
        assert!(matches!(events.next().await.unwrap().unwrap(), Event::Reached(_)));
        let mut delays = Vec::new();
        for n in 0..40 {
            assert!(writing.commit(putting("a", &n.to_string())).await.unwrap().is_applied());
            let committed = Instant::now();
            let told = timeout(Duration::from_secs(60), events.next()).await.unwrap();
            let Event::Changed { changes, .. } = told.unwrap().unwrap() else { panic!() };
            assert_eq!((&changes[0].key, changes[0].kind), (&key("a"), ChangeKind::Put));
            delays.push(committed.elapsed());
            tokio::time::sleep(Duration::from_millis(n)).await;
        }
        delays.sort_unstable();
        // Half of them: a busy machine may be late with some.
        assert!(delays[20] < Duration::from_millis(50), "{delays:?}");
    });
}

/// Whatever the database does with texts, keys are bytes to it.
#[test]
fn keys_order_by_bytes_in_databases_of_every_kind() {
    for how in [
        "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'",
        "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'",
    ] {
        let database = Database::create(how);
        runtime().block_on(async {
            let fresh = Fresh::at(database.address.clone());
            let store = fresh.store().await;
            let segments =
                ["a", "B", "b", "A", "ä", "á", "z", "Z", "-", "_", "a b", "ab", "a-b", "학"];
            let mut keys: Vec<Key> = segments
                .iter()
                .map(|segment| Key::from_segments(["x", segment]).unwrap())
                .collect();
            for key in &keys {
                store.put(key.clone(), put("\"학칙\"")).await.unwrap();
            }
            keys.sort();
            let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
            let found: Vec<Key> = page.rows.iter().map(|row| row.key.clone()).collect();
            assert_eq!(found, keys, "{how}");
            let entry = page.rows[0].entry.as_ref().unwrap();
            assert_eq!(entry.value.as_str(), "\"학칙\"");
            // A text that the encoding of the database cannot hold is refused like any other.
            let refused = store.commit(Commit::new().add(keys[0].clone(), 1)).await.unwrap_err();
            assert_eq!(refused.kind(), keyward_engine::ErrorKind::Invalid, "{refused}");
        });
    }
}

/// A database of a test's own.
pub struct Database {
    name: String,
    pub address: String,
}

impl Database {
    pub fn create(how: &str) -> Self {
        let name = unused_name().replace(' ', "_");
        runtime().block_on(async {
            let create = format!("CREATE DATABASE {name} TEMPLATE template0 {how}");
            connect(&config()).await.batch_execute(&create).await.unwrap();
        });
        let address = address();
        let (server, _) = address.rsplit_once('/').unwrap();
        Self { address: format!("{server}/{name}"), name }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        runtime().block_on(async {
            let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
            connect(&config()).await.batch_execute(&drop).await.unwrap();
        });
    }
}
