//! Processes that are stopped while they hold a lock: others wait for a bounded time, name the
//! holder, and go on when it does.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use keyward_embedded::{Embedded, Options, compact};
use keyward_engine::{Clock, Error, ErrorKind, Result, Store, SystemClock};
use rustix::process::{Signal, getpid, kill_process};

use crate::child::{self, block_on, key, put};
use crate::process::{self, Process, tell};

/// How long a commit may wait in these tests.
const WRITE_TIMEOUT: Duration = Duration::from_millis(500);
/// Far longer than anything here takes on a busy machine, and far shorter than for ever.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it takes at most until a signal has stopped every thread of a process.
const STOP_TIME_MAX: Duration = Duration::from_secs(2);

fn options() -> Options {
    Options { write_timeout: WRITE_TIMEOUT, ..Options::default() }
}

fn try_open(directory: &Path) -> Result<Store> {
    Embedded::open(directory, options()).map(Store::new)
}

fn open(directory: &Path) -> Store {
    try_open(directory).unwrap()
}

/// A clock that stops its process the next time it is read after it was armed. The committer reads
/// it in the middle of a transaction.
#[derive(Debug, Default)]
struct StoppingClock {
    armed: AtomicBool,
}

impl Clock for StoppingClock {
    #[allow(clippy::disallowed_methods, reason = "nothing tells when a signal arrives")]
    fn now(&self) -> Timestamp {
        if self.armed.swap(false, Ordering::Relaxed) {
            kill_process(getpid(), Signal::STOP).unwrap();
            // The kernel gives the signal to any thread, which stops the others once it runs. On a busy machine
            // this one would commit before that.
            std::thread::sleep(STOP_TIME_MAX);
        }
        SystemClock.now()
    }
}

/// A child that commits `before`, and is stopped in the middle of committing `middle`.
fn stop_in_mid_commit(directory: &Path) {
    process::begin();
    let clock = std::sync::Arc::new(StoppingClock::default());
    let engine = Embedded::open_with(directory, Options::default(), clock.clone()).unwrap();
    let store = Store::new(engine);
    block_on(async {
        store.put(key("before"), put("1")).await.unwrap();
        clock.armed.store(true, Ordering::Relaxed);
        store.put(key("middle"), put("1")).await.unwrap();
    });
    drop(store);
    tell("done");
}

/// Starts such a child, and waits until it is stopped.
fn stopped_child(test: &str, directory: &Path) -> Process {
    let process = Process::start(&mut child::command(process::name(test), "stop", directory));
    process.stopped();
    process
}

fn resume(process: Process) {
    process.signal(Signal::CONT);
    assert_eq!(process.line().as_deref(), Some("done"));
    assert!(process.finish(|_| {}).success());
}

/// Tries something until another process lets it.
#[allow(clippy::disallowed_methods, reason = "nothing tells when another process lets go")]
fn in_time<T>(mut work: impl FnMut() -> Result<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match work() {
            Ok(done) => return done,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                assert!(Instant::now() < end, "{error}");
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn holds(store: &Store, text: &str) -> bool {
    block_on(store.get(&key(text))).unwrap().is_some()
}

#[track_caller]
fn names_holder(error: &Error, process: &Process) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let text = error.to_string();
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    let pid = process.id();
    assert!(text.contains(&format!("pid {pid} ({program}")), "{text}");
    assert!(text.contains(&format!("stopped; resume it with kill -CONT {pid}")), "{text}");
    assert!(text.contains("since 2"), "{text}");
}

#[test]
fn a_commit_behind_a_stopped_process_fails_in_its_time_and_names_it() {
    const TEST: &str =
        "embedded::blocked::a_commit_behind_a_stopped_process_fails_in_its_time_and_names_it";
    if let Some((_, directory)) = child::role() {
        return stop_in_mid_commit(&directory);
    }
    let directory = tempfile::tempdir().unwrap();
    let process = stopped_child(TEST, directory.path());
    let store = open(directory.path());
    let began = Instant::now();
    let error = block_on(store.put(key("withdrawn"), put("1"))).unwrap_err();
    names_holder(&error, &process);
    assert!(began.elapsed() >= WRITE_TIMEOUT && began.elapsed() < PATIENCE);
    // Reads go on, and further commits are refused at once.
    assert!(holds(&store, "before") && !holds(&store, "withdrawn"));
    names_holder(&block_on(store.put(key("withdrawn"), put("1"))).unwrap_err(), &process);

    resume(process);
    in_time(|| block_on(store.put(key("after"), put("1"))));
    assert!(holds(&store, "middle") && holds(&store, "after"));
    assert!(!holds(&store, "withdrawn"));
}

#[test]
fn a_blocked_store_is_closed_quickly_and_opened_again_when_it_can_be() {
    const TEST: &str =
        "embedded::blocked::a_blocked_store_is_closed_quickly_and_opened_again_when_it_can_be";
    if let Some((_, directory)) = child::role() {
        return stop_in_mid_commit(&directory);
    }
    let directory = tempfile::tempdir().unwrap();
    let process = stopped_child(TEST, directory.path());
    // One commit is still queued, by a caller that has gone away.
    let patient = Options { write_timeout: PATIENCE * 10, ..Options::default() };
    let store = Store::new(Embedded::open(directory.path(), patient).unwrap());
    block_on(async {
        let queued = store.put(key("withdrawn"), put("1"));
        tokio::time::timeout(Duration::from_millis(50), queued).await.unwrap_err();
    });
    let began = Instant::now();
    drop(store);
    assert!(began.elapsed() < PATIENCE);

    // LMDB still has it open here, and must not open it twice.
    let error = try_open(directory.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("still being closed"), "{error}");
    let moved = directory.path().with_extension("moved");
    std::fs::rename(directory.path(), &moved).unwrap();
    assert!(try_open(&moved).is_err());
    std::fs::rename(&moved, directory.path()).unwrap();
    assert!(compact(directory.path(), options()).is_err());

    resume(process);
    let store = in_time(|| try_open(directory.path()));
    in_time(|| block_on(store.put(key("after"), put("1"))));
    assert!(holds(&store, "middle") && !holds(&store, "withdrawn"));
}

#[test]
fn a_stopped_process_that_is_killed_blocks_nobody() {
    const TEST: &str = "embedded::blocked::a_stopped_process_that_is_killed_blocks_nobody";
    if let Some((_, directory)) = child::role() {
        return stop_in_mid_commit(&directory);
    }
    let directory = tempfile::tempdir().unwrap();
    let process = stopped_child(TEST, directory.path());
    let store = open(directory.path());
    names_holder(&block_on(store.put(key("withdrawn"), put("1"))).unwrap_err(), &process);
    process.kill(|_| {});
    in_time(|| block_on(store.put(key("after"), put("1"))));
    assert!(holds(&store, "before") && !holds(&store, "middle") && !holds(&store, "withdrawn"));
}

#[test]
fn opening_behind_a_process_that_holds_the_gate_fails_in_its_time_and_names_it() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let gate = File::open(directory.path().join("keyward.lock")).unwrap();
    gate.lock().unwrap();
    let error = try_open(directory.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
    drop(gate);
    drop(open(directory.path()));
}

/// A clock that takes longer than a commit may wait, once.
#[derive(Debug)]
struct SlowClock {
    slow: AtomicBool,
}

impl Clock for SlowClock {
    #[allow(clippy::disallowed_methods, reason = "it stands for a slow disk")]
    fn now(&self) -> Timestamp {
        if self.slow.swap(false, Ordering::Relaxed) {
            std::thread::sleep(WRITE_TIMEOUT * 4);
        }
        SystemClock.now()
    }
}

#[test]
fn a_commit_behind_a_slow_one_of_its_own_process_is_given_up_and_blames_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let clock = SlowClock { slow: AtomicBool::new(true) };
    let store = Store::new(Embedded::open_with(directory.path(), options(), clock).unwrap());
    block_on(async {
        let behind = async {
            tokio::time::sleep(WRITE_TIMEOUT / 2).await;
            store.put(key("behind"), put("1")).await
        };
        let (slow, behind) = tokio::join!(store.put(key("slow"), put("1")), behind);
        slow.unwrap();
        let error = behind.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("busy"), "{error}");
        assert!(!error.to_string().contains("process"), "{error}");
    });
    assert!(holds(&store, "slow") && !holds(&store, "behind"));
}
