//! Processes that are stopped, as by a debugger or a busy machine, in the middle of a commit.

use std::time::Duration;

use keyward_engine::{Json, Outcome, Put, Store};
use keyward_testkit::{Replay, Test, seeds};
use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use crate::child::{Child, Part, hear, say};
use crate::faults::hold;
use crate::server::{Fresh, config, connect, key, put, putting, runtime};

/// How long others may be held up at most.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Commits once, when told to, and says what came of it.
fn commit_once(mut part: Part) {
    part.options.statement_timeout = hear().unwrap().parse().map(Duration::from_millis).unwrap();
    runtime().block_on(async {
        let store = part.open().await;
        match store.commit(putting("a", "2").put(key("child"), put("2"))).await {
            Ok(Outcome::Applied { revision, .. }) => say(&format!("made {}", revision.unwrap().0)),
            Ok(conflicted) => panic!("{conflicted:?}"),
            Err(error) => say(&format!("{:?}", error.kind())),
        }
    });
}

async fn version(store: &Store, text: &str) -> Option<u64> {
    store.get(&key(text)).await.unwrap().and_then(|entry| entry.version.as_number())
}

async fn others(fresh: &Fresh) -> Store {
    fresh.with(|options| options.statement_timeout = STATEMENT_TIMEOUT).await
}

#[test]
fn a_commit_whose_process_is_stopped_ends_without_it() {
    const TEST: &str = "stopping::a_commit_whose_process_is_stopped_ends_without_it";
    if let Some(part) = Part::given() {
        return commit_once(part);
    }
    let fresh = Fresh::new();
    let mut child = Child::start(TEST, "commit", &fresh);
    runtime().block_on(async {
        let store = others(&fresh).await;
        store.put(key("a"), put("1")).await.unwrap();
        let holder = hold(&fresh).await;
        child.tell("60000");
        fresh.waiting(&connect(&config()).await).await;
        child.signal(Signal::STOP);
        drop(holder);
        // The child's commit is made without the child, and holds nothing any more.
        let made = async {
            loop {
                match version(&store, "child").await {
                    Some(made) => break made,
                    None => sleep(Duration::from_millis(10)).await,
                }
            }
        };
        let made = timeout(STATEMENT_TIMEOUT, made).await.expect("it ends in time");
        assert!(store.commit(putting("a", "3")).await.unwrap().is_applied());
        assert_eq!(store.get(&key("a")).await.unwrap().unwrap().value.as_str(), "3");
        child.signal(Signal::CONT);
        assert_eq!(child.line(), Some(format!("made {made}")));
    });
}

#[test]
fn a_commit_whose_process_is_stopped_is_given_up_when_its_time_is_over() {
    const TEST: &str =
        "stopping::a_commit_whose_process_is_stopped_is_given_up_when_its_time_is_over";
    if let Some(part) = Part::given() {
        return commit_once(part);
    }
    let fresh = Fresh::new();
    let mut child = Child::start(TEST, "commit", &fresh);
    runtime().block_on(async {
        let store = others(&fresh).await;
        store.put(key("a"), put("1")).await.unwrap();
        let holder = hold(&fresh).await;
        child.tell("1500");
        let observer = connect(&config()).await;
        let process = fresh.waiting(&observer).await;
        child.signal(Signal::STOP);
        // The server gives up the statement; the holder has not moved.
        let waits = "SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active'";
        let given_up = async {
            while !observer.query(waits, &[&process]).await.unwrap().is_empty() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), given_up).await.expect("it is given up");
        drop(holder);
        assert!(store.commit(putting("a", "3")).await.unwrap().is_applied());
        child.signal(Signal::CONT);
        assert_eq!(child.line().as_deref(), Some("Unavailable"));
        assert_eq!(version(&store, "child").await, None, "it was rolled back");
        assert_eq!(store.get(&key("a")).await.unwrap().unwrap().value.as_str(), "3");
    });
}

/// Commits that are larger than what the network takes at once: a process is stopped anywhere, also
/// when a part of one is sent.
#[test]
fn a_process_that_is_stopped_anywhere_holds_up_nobody() {
    const TEST: Test = Test {
        package: "keyward-postgres",
        path: "postgres::stopping::a_process_that_is_stopped_anywhere_holds_up_nobody",
    };
    const BYTES: usize = 8 << 20;
    if let Some(part) = Part::given() {
        return runtime().block_on(async {
            let store = part.open().await;
            let text: String = (0..BYTES).map(|_| fastrand::alphanumeric()).collect();
            let large = Put::new(Json::from_value(&text).unwrap());
            loop {
                let commit = putting("a", "0").put(key("b"), large.clone());
                assert!(store.commit(commit).await.unwrap().is_applied());
                say("made");
            }
        });
    }
    for seed in seeds(1, 20) {
        let mut replay = Replay::new(TEST, seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let fresh = Fresh::new();
        let (_, name) = TEST.path.split_once("::").unwrap();
        let child = Child::start(name, "write", &fresh);
        runtime().block_on(async {
            let store = others(&fresh).await;
            for n in 0..8 {
                assert_eq!(child.line().as_deref(), Some("made"), "the child goes on");
                let moment = Duration::from_micros(rng.u64(0..200_000));
                replay.step(format!("stopped {moment:?} after a commit"));
                child.overhear(moment);
                child.signal(Signal::STOP);
                for _ in 0..3 {
                    let both = putting("a", &n.to_string()).put(key("b"), put("1"));
                    assert!(store.commit(both).await.unwrap().is_applied());
                }
                child.signal(Signal::CONT);
            }
        });
    }
}
