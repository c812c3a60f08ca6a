//! Several processes on one store.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{Commit, Event, Expect, Outcome, Store};
use keyward_key::{Key, KeyRange};
use keyward_testkit::{Replay, Test, seeds};

use crate::child::{Child, Part, hear, say};
use crate::server::{Fresh, connect, key, put, putting, runtime};
use crate::sharing::Database;

const PROCESSES: usize = 4;

fn start(count: usize, test: &str, fresh: &Fresh) -> Vec<Child> {
    (0..count).map(|n| Child::start(test, &n.to_string(), fresh)).collect()
}

/// Waits until all are ready, and lets them begin at once.
fn let_go(children: &mut [Child]) {
    for child in &mut *children {
        assert_eq!(child.line().as_deref(), Some("ready"));
    }
    for child in children {
        child.tell("go");
    }
}

/// The child's side of it.
fn get_ready() {
    say("ready");
    assert_eq!(hear().as_deref(), Some("go"));
}

fn finish(children: Vec<Child>) {
    for child in children {
        let (_, status) = child.finish();
        assert!(status.success());
    }
}

async fn number(store: &Store, text: &str) -> Option<i64> {
    store.get(&key(text)).await.unwrap().map(|entry| entry.value.as_integer().unwrap())
}

#[test]
fn of_processes_that_race_to_create_a_key_exactly_one_wins() {
    const TEST: &str = "processes::of_processes_that_race_to_create_a_key_exactly_one_wins";
    if let Some(part) = Part::given() {
        let (runtime, mine) = (runtime(), put(&part.role));
        let store = runtime.block_on(part.open());
        while let Some(text) = hear() {
            let slot = key(&text);
            let create = Commit::new().check(slot.clone(), Expect::Absent).put(slot, mine.clone());
            let won = runtime.block_on(store.commit(create)).unwrap().is_applied();
            say(if won { "won" } else { "lost" });
        }
        return;
    }
    let fresh = Fresh::new();
    let mut children = start(PROCESSES, TEST, &fresh);
    let mut winners = Vec::new();
    for round in 0..50 {
        // All of them at once, each time.
        children.iter_mut().for_each(|child| child.tell(&format!("slot:{round}")));
        let said: Vec<String> = children.iter().map(|child| child.line().unwrap()).collect();
        let won: Vec<usize> = (0..PROCESSES).filter(|&n| said[n] == "won").collect();
        assert_eq!(won.len(), 1, "{said:?}");
        winners.push(won[0]);
    }
    finish(children);
    runtime().block_on(async {
        let store = fresh.store().await;
        for (round, winner) in winners.iter().enumerate() {
            assert_eq!(number(&store, &format!("slot:{round}")).await, Some(*winner as i64));
        }
    });
}

#[test]
fn what_processes_add_and_swap_sums_up_exactly() {
    const TEST: &str = "processes::what_processes_add_and_swap_sums_up_exactly";
    const ADDS: i64 = 100;
    const SWAPS: i64 = 25;
    if let Some(part) = Part::given() {
        let (runtime, own) = (runtime(), key(&format!("own:{}", part.role)));
        return runtime.block_on(async {
            let store = part.open().await;
            get_ready();
            for _ in 0..ADDS {
                let add = Commit::new().add(key("added"), 1).add(own.clone(), 1);
                assert!(store.commit(add).await.unwrap().is_applied());
            }
            let mut swapped = 0;
            while swapped < SWAPS {
                let before = store.get(&key("swapped")).await.unwrap();
                let (expect, value) = match before {
                    None => (Expect::Absent, 0),
                    Some(entry) => {
                        (Expect::Version(entry.version), entry.value.as_integer().unwrap())
                    }
                };
                let swap = putting("swapped", &(value + 1).to_string());
                let outcome = store.commit(swap.check(key("swapped"), expect)).await.unwrap();
                swapped += i64::from(outcome.is_applied());
            }
        });
    }
    let fresh = Fresh::new();
    let mut children = start(PROCESSES, TEST, &fresh);
    let_go(&mut children);
    finish(children);
    runtime().block_on(async {
        let store = fresh.store().await;
        assert_eq!(number(&store, "added").await, Some(PROCESSES as i64 * ADDS));
        assert_eq!(number(&store, "swapped").await, Some(PROCESSES as i64 * SWAPS));
        for role in 0..PROCESSES {
            assert_eq!(number(&store, &format!("own:{role}")).await, Some(ADDS));
        }
    });
}

#[test]
fn processes_that_open_an_empty_database_at_once_prepare_it_once() {
    const TEST: &str = "processes::processes_that_open_an_empty_database_at_once_prepare_it_once";
    if let Some(part) = Part::given() {
        let runtime = runtime();
        get_ready();
        return runtime.block_on(async {
            let store = part.open().await;
            assert!(store.commit(Commit::new().add(key("n"), 1)).await.unwrap().is_applied());
        });
    }
    let database = Database::create("");
    let fresh = Fresh::at(database.address.clone());
    let mut children = start(PROCESSES, TEST, &fresh);
    let_go(&mut children);
    finish(children);
    runtime().block_on(async {
        assert_eq!(number(&fresh.store().await, "n").await, Some(PROCESSES as i64));
        let client = connect(&database.address.parse().unwrap()).await;
        for table in ["stores", "schema"] {
            let rows = client.query(&format!("SELECT FROM keyward.{table}"), &[]).await.unwrap();
            assert_eq!(rows.len(), 1, "{table}");
        }
    });
}

/// The `n`th commit of a writer: a key of its own, and two numbers that count them.
fn written(role: &str, n: i64) -> Commit {
    putting(&format!("own:{role}:{n}"), &n.to_string())
        .add(key(&format!("count:{role}")), 1)
        .add(key("total"), 1)
}

/// Writes one commit after the other, and says of each when it is acknowledged.
fn write(part: &Part, commits: i64) {
    runtime().block_on(async {
        let store = part.open().await;
        get_ready();
        for n in 0..commits {
            match store.commit(written(&part.role, n)).await.unwrap() {
                Outcome::Applied { revision, .. } => say(&format!("{n} {}", revision.unwrap().0)),
                conflicted => panic!("{conflicted:?}"),
            }
        }
    });
}

/// The commits that a process said were acknowledged, by number, with their revisions.
fn acknowledged(lines: &[String]) -> Vec<(i64, u64)> {
    // What the test harness says at the end is no such line.
    let parse = |line: &String| {
        let (n, revision) = line.split_once(' ')?;
        Some((n.parse().ok()?, revision.parse().ok()?))
    };
    lines.iter().map_while(parse).collect()
}

/// That a writer's acknowledged commits are there, and at most one more, which was under way.
async fn check(store: &Store, role: &str, acknowledged: &[(i64, u64)]) -> i64 {
    let made = acknowledged.len() as i64;
    let mut keys: Vec<Key> = (0..made + 2).map(|n| key(&format!("own:{role}:{n}"))).collect();
    keys.push(key(&format!("count:{role}")));
    // At one moment, since the one under way may still be made.
    let mut found = store.get_many(&keys).await.unwrap();
    let count = found.pop().unwrap().map_or(0, |entry| entry.value.as_integer().unwrap());
    assert!(count == made || count == made + 1, "{made} were acknowledged, {count} counted");
    for (n, entry) in (0..).zip(&found) {
        assert_eq!(entry.is_some(), n < count, "own:{role}:{n} of {count}");
    }
    for ((n, revision), entry) in acknowledged.iter().zip(&found) {
        let entry = entry.as_ref().unwrap();
        let held = (entry.value.as_integer(), entry.version.as_number());
        assert_eq!(held, (Some(*n), Some(*revision)));
    }
    count
}

#[test]
fn a_killed_process_takes_nothing_acknowledged_with_it_and_holds_up_nobody() {
    const TEST: Test = Test {
        package: "keyward-postgres",
        path: "postgres::processes::a_killed_process_takes_nothing_acknowledged_with_it_and_holds_up_nobody",
    };
    if let Some(part) = Part::given() {
        return write(&part, i64::MAX);
    }
    for seed in seeds(4, 50) {
        let mut replay = Replay::new(TEST, seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let fresh = Fresh::new();
        let (_, name) = TEST.path.split_once("::").unwrap();
        let mut children = start(3, name, &fresh);
        let_go(&mut children);
        let mut said: Vec<Vec<String>> = vec![Vec::new(); children.len()];
        // The last one is the one who goes on.
        for role in 0..children.len() {
            let acks = rng.usize(0..150);
            let longer = Duration::from_micros(rng.u64(0..5_000));
            replay.step(format!("{role} is killed {longer:?} after {acks} commits"));
            for _ in 0..acks {
                said[role].push(children[0].line().expect("it goes on"));
            }
            said[role].extend(children[0].overhear(longer));
            said[role].extend(children.remove(0).kill());
            // Everybody else commits as before.
            for (child, said) in children.iter().zip(&mut said[role + 1..]) {
                said.extend((0..30).map(|_| child.line().expect("the others go on")));
            }
        }
        runtime().block_on(async {
            let store = fresh.store().await;
            for (role, said) in said.iter().enumerate() {
                check(&store, &role.to_string(), &acknowledged(said)).await;
            }
            let keys = ["total", "count:0", "count:1", "count:2"].map(key);
            let found = store.get_many(&keys).await.unwrap();
            let count = |at: usize| found[at].as_ref().map_or(0, |e| e.value.as_integer().unwrap());
            assert_eq!(count(0), count(1) + count(2) + count(3));
        });
    }
}

#[test]
fn a_watching_process_is_told_of_all_others_in_order() {
    const TEST: &str = "processes::a_watching_process_is_told_of_all_others_in_order";
    const COMMITS: i64 = 60;
    if let Some(part) = Part::given() {
        if part.role != "watch" {
            return write(&part, COMMITS);
        }
        return runtime().block_on(async {
            let store = part.open().await;
            let mut events = store.watch(KeyRange::all(), None);
            while let Some(event) = events.next().await {
                match event.unwrap() {
                    Event::Reached(_) => say("reached"),
                    Event::Changed { revision, changes } => {
                        let keys: Vec<String> =
                            changes.iter().map(|change| change.key.to_string()).collect();
                        say(&format!("{} {}", revision.0, keys.join(" ")));
                        if keys == ["end"] {
                            break;
                        }
                    }
                    Event::TooOld { earliest } => panic!("it begins at {earliest}"),
                }
            }
        });
    }
    let fresh = Fresh::new();
    let watcher = Child::start(TEST, "watch", &fresh);
    assert_eq!(watcher.line().as_deref(), Some("reached"));
    let mut writers = start(3, TEST, &fresh);
    let_go(&mut writers);
    let mut expected = BTreeMap::new();
    for (role, writer) in writers.into_iter().enumerate() {
        let (said, status) = writer.finish();
        assert!(status.success());
        let acknowledged = acknowledged(&said);
        assert_eq!(acknowledged.len() as i64, COMMITS);
        for (n, revision) in acknowledged {
            expected.insert(revision, format!("count:{role} own:{role}:{n} total"));
        }
    }
    let end = runtime().block_on(async {
        fresh.store().await.put(key("end"), put("1")).await.unwrap().as_number().unwrap()
    });
    expected.insert(end, "end".to_owned());
    let (said, status) = watcher.finish();
    assert!(status.success());
    let told: Vec<(u64, String)> = said
        .iter()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(revision, keys)| Some((revision.parse().ok()?, keys.to_owned())))
        .collect();
    assert_eq!(told, expected.into_iter().collect::<Vec<_>>());
}
