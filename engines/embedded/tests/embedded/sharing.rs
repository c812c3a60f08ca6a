//! Several handles and several processes on one store.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use futures_util::StreamExt;
use keyward_embedded::{Embedded, Options};
use keyward_engine::{ChangeKind, Commit, Durability, ErrorKind, Event, Expect, Scan, Store};
use keyward_key::{KeyRange, Prefix};

use crate::child::{self, block_on, key, open, put};

const PROCESSES: usize = 4;
const COMMITS: usize = 50;

#[test]
fn a_second_handle_in_one_process_shares_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    let (one, other) = (open(&place), open(&place));
    block_on(async {
        one.put(key("a"), put("1")).await.unwrap();
        assert_eq!(other.get(&key("a")).await.unwrap().unwrap().value.as_str(), "1");
    });
    let relaxed = Options { durability: Durability::Relaxed, ..Options::default() };
    let error = Embedded::open(&place, relaxed).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Misplaced);
    drop((one, other));
    assert!(Embedded::open(&place, relaxed).is_ok());
}

#[test]
fn a_store_can_be_dropped_and_opened_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        for n in 0..50 {
            let store = open(directory.path());
            let commit = Commit::new().add(key("n"), 1);
            assert!(store.commit(commit).await.unwrap().is_applied());
            let value = store.get(&key("n")).await.unwrap().unwrap().value;
            assert_eq!(value.as_integer(), Some(n + 1));
        }
    });
}

#[test]
fn what_was_queued_when_a_store_is_dropped_is_committed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Embedded::open(directory.path(), Options::default()).unwrap();
    let store = Store::new(engine.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let queued: Vec<_> = (0..100)
        .map(|n| {
            let store = store.clone();
            runtime.spawn(async move { store.put(key(&format!("k:{n}")), put("1")).await })
        })
        .collect();
    runtime.block_on(async {
        for commit in queued {
            commit.await.unwrap().unwrap();
        }
    });
    drop((engine, store));
    block_on(async {
        let store = open(directory.path());
        let page = store.scan(&Scan::new(KeyRange::all()).limit(1_000)).await.unwrap();
        assert_eq!(page.rows.len(), 100);
    });
}

/// Four processes increment one number, take part in one race, and write keys of their own.
#[test]
fn processes_share_a_store_and_lose_nothing() {
    const TEST: &str = "sharing::processes_share_a_store_and_lose_nothing";
    if let Some((role, directory)) = child::role() {
        return block_on(work(&role, open(directory)));
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    let children: Vec<Child> = (0..PROCESSES)
        .map(|n| {
            let mut command = child::command(TEST, &n.to_string(), &place);
            command.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    block_on(async {
        let store = open(&place);
        let total = store.get(&key("total")).await.unwrap().unwrap().value.as_integer();
        assert_eq!(total, Some((PROCESSES * COMMITS) as i64));
        let mut wins = 0;
        let mut revisions = BTreeMap::new();
        let own = KeyRange::under(&Prefix::parse("own").unwrap());
        let page = store.scan(&Scan::new(own).limit(10_000)).await.unwrap();
        assert_eq!(page.rows.len(), PROCESSES * COMMITS);
        for row in page.rows {
            let entry = row.entry.unwrap();
            wins += entry.value.as_integer().unwrap();
            assert_eq!(revisions.insert(entry.version.as_number(), row.key), None);
        }
        assert_eq!(wins, COMMITS as i64, "each race has exactly one winner");
    });
}

async fn work(role: &str, store: Store) {
    for n in 0..COMMITS {
        let race = key(&format!("race:{n}"));
        let commit = Commit::new().check(race.clone(), Expect::Absent).put(race, put("1"));
        let won = store.commit(commit).await.unwrap().is_applied();
        let own = key(&format!("own:{role}:{n}"));
        let commit = Commit::new().add(key("total"), 1).put(own, put(if won { "1" } else { "0" }));
        assert!(store.commit(commit).await.unwrap().is_applied());
    }
}

#[test]
fn a_watcher_sees_the_commits_of_another_process() {
    const TEST: &str = "sharing::a_watcher_sees_the_commits_of_another_process";
    if let Some((_, directory)) = child::role() {
        block_on(open(directory).put(key("seen:from-afar"), put("1"))).unwrap();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    block_on(async {
        let mut events = store.watch(KeyRange::under(&Prefix::parse("seen").unwrap()), None);
        let reached = events.next().await.unwrap().unwrap();
        assert!(matches!(reached, Event::Reached(_)));
        let child = child::command(TEST, "write", directory.path()).output().unwrap();
        assert!(child.status.success(), "{}", child::printed(&child));
        let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await.unwrap();
        let Event::Changed { changes, .. } = event.unwrap().unwrap() else { panic!() };
        assert_eq!(changes.len(), 1);
        assert_eq!((&changes[0].key, changes[0].kind), (&key("seen:from-afar"), ChangeKind::Put));
    });
}

/// The table of readers has room for about two thousand, one for each thread that has read.
const READING_THREADS: usize = 300;
const KILLED_READERS: usize = 8;

/// A process that is killed leaves its readers behind, and they must not fill the table: here are
/// more of them than it has room for.
#[test]
fn readers_of_killed_processes_do_not_pile_up() {
    const TEST: &str = "sharing::readers_of_killed_processes_do_not_pile_up";
    if let Some((_, directory)) = child::role() {
        let store = open(directory);
        let all_have_read = std::sync::Barrier::new(READING_THREADS + 1);
        // Threads that end give their place back, so these wait to be killed.
        return std::thread::scope(|scope| {
            for _ in 0..READING_THREADS {
                scope.spawn(|| {
                    if block_on(store.get(&key("x"))).is_err() {
                        // At once, since the others would wait for this one.
                        std::process::exit(1);
                    }
                    all_have_read.wait();
                    loop {
                        std::thread::park();
                    }
                });
            }
            all_have_read.wait();
            std::process::abort();
        });
    }
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    block_on(async {
        store.put(key("x"), put("1")).await.unwrap();
        for _ in 0..KILLED_READERS {
            let mut command = child::command(TEST, "read", directory.path());
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            assert_eq!(status.signal(), Some(6), "the child has read and was aborted");
        }
        assert!(store.get(&key("x")).await.unwrap().is_some());
        store.put(key("x"), put("2")).await.unwrap();
    });
}
