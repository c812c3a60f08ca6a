//! Histories of threads and processes that take one lock: they could have held it one after the
//! other.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fastrand::Rng;
use keyward_engine::SystemClock;
use keyward_key::Key;
use keyward_locks::{LockPath, Locks, Mode, Options, Request, Root, Tried};
use keyward_testkit::{Model, Replay, Test, Timed, linearize, seeds};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;

const PATH: &str =
    "locks::histories::what_threads_and_processes_see_of_a_lock_could_have_happened_in_a_row";
const DIRECTORY: &str = "KEYWARD_TEST_DIRECTORY";
const SEED: &str = "KEYWARD_TEST_SEED";
const PROCESSES: u64 = 2;
const CLIENTS: u64 = 3;
const TURNS: u64 = 25;

/// What a client saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Took {
        token: u64,
    },
    /// Somebody else had it.
    FoundTaken,
    GaveBack {
        token: u64,
    },
}

/// Who holds the lock, if anybody, and the last token that was given out.
struct Lock;

impl Model for Lock {
    type State = (Option<u64>, u64);
    type Operation = Op;

    fn initial(&self) -> Self::State {
        (None, 0)
    }

    fn apply(&self, (holder, last): &Self::State, operation: &Op) -> Option<Self::State> {
        match *operation {
            Op::Took { token } => {
                (holder.is_none() && token > *last).then_some((Some(token), token))
            }
            Op::FoundTaken => holder.is_some().then_some((*holder, *last)),
            Op::GaveBack { token } => (*holder == Some(token)).then_some((None, *last)),
        }
    }
}

#[test]
fn what_threads_and_processes_see_of_a_lock_could_have_happened_in_a_row() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return play(&PathBuf::from(directory));
    }
    for seed in seeds(3, 40) {
        let _replay = Replay::new(Test { package: "keyward-locks", path: PATH }, seed);
        let directory = tempfile::tempdir().unwrap();
        let start = |n| child(directory.path(), seed * PROCESSES + n);
        let children: Vec<Child> = (0..PROCESSES).map(start).collect();
        let mut history = Vec::new();
        for mut child in children {
            let mut told = String::new();
            child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
            assert!(child.wait().unwrap().success(), "{told}");
            history.extend(told.lines().filter_map(parse));
        }
        let took = |timed: &&Timed<Op>| matches!(timed.operation, Op::Took { .. });
        assert!(history.iter().filter(took).count() as u64 >= PROCESSES * CLIENTS, "{history:?}");
        linearize(&Lock, &history).unwrap_or_else(|found| panic!("{found:#?}"));
    }
}

fn child(directory: &Path, seed: u64) -> Child {
    let name = PATH.split_once("::").unwrap().1;
    Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// `op CALLED RETURNED took TOKEN`, and the like.
fn parse(line: &str) -> Option<Timed<Op>> {
    let mut words = line.strip_prefix("op ")?.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (called, returned) = (number()?, number()?);
    let operation = match (words.next()?, words.next().and_then(|word| word.parse().ok())) {
        ("took", Some(token)) => Op::Took { token },
        ("gave-back", Some(token)) => Op::GaveBack { token },
        _ => Op::FoundTaken,
    };
    Some(Timed { called, returned: Some(returned), operation })
}

/// The clock that all processes of a machine share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn tell(called: u64, what: &str) {
    let line = format!("op {called} {} {what}\n", now());
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

/// What one of the processes does.
fn play(directory: &Path) {
    let mut rng = Rng::with_seed(std::env::var(SEED).unwrap().parse().unwrap());
    // The test harness has begun a line of its own.
    std::io::stdout().lock().write_all(b"\n").unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = keyward_stores::embedded(directory);
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let locks = Locks::new(store.clone(), SystemClock, Options::default()).unwrap();
            let root = locks.root(Key::parse("page7").unwrap()).unwrap();
            clients.push(tokio::spawn(take_turns(root, rng.fork())));
        }
        for client in clients {
            client.await.unwrap();
        }
    });
}

async fn take_turns(root: Root, mut rng: Rng) {
    let path = [LockPath::parse("policies").unwrap()];
    for _ in 0..TURNS {
        let called = now();
        let guard = if rng.bool() {
            root.acquire(&path, Mode::Exclusive, &Request::default()).await.unwrap()
        } else {
            match root.try_acquire(&path, Mode::Exclusive, &Request::default()).await.unwrap() {
                Tried::Granted(guard) => guard,
                Tried::Held(_) => {
                    tell(called, "found-taken");
                    continue;
                }
            }
        };
        let token = guard.token();
        tell(called, &format!("took {token}"));
        if rng.bool() {
            tokio::task::yield_now().await;
        }
        let called = now();
        guard.release().await.unwrap();
        tell(called, &format!("gave-back {token}"));
    }
}
