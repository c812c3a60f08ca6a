//! Histories of threads and processes that work on one queue: what they saw of each message could have
//! happened one after the other.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fastrand::Rng;
use keyward_engine::{Json, SystemClock};
use keyward_queue::{Ended, Enqueued, Message, Options, Queue};
use keyward_testkit::{Model, Replay, Test, Timed, linearize, seeds};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;

const PATH: &str =
    "queue::histories::what_threads_and_processes_see_of_a_message_could_have_happened_in_a_row";
const DIRECTORY: &str = "KEYWARD_TEST_DIRECTORY";
const SEED: &str = "KEYWARD_TEST_SEED";
const PROCESSES: u64 = 2;
const CLIENTS: u64 = 3;
const TURNS: u64 = 25;
const MESSAGES: u64 = 8;

/// What a client did to a message, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Op {
    Added,
    FoundThere,
    Claimed(String),
    Completed(String),
    GivenBack(String),
    /// An end that came too late.
    Refused(String),
}

/// How a message stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Standing {
    Unknown,
    Ready,
    Held(String),
    Done(String),
}

struct OneMessage;

impl Model for OneMessage {
    type State = Standing;
    type Operation = Op;

    fn initial(&self) -> Standing {
        Standing::Unknown
    }

    fn apply(&self, state: &Standing, operation: &Op) -> Option<Standing> {
        match (operation, state) {
            (Op::Added, Standing::Unknown) => Some(Standing::Ready),
            (Op::FoundThere, Standing::Unknown) => None,
            (Op::FoundThere, there) => Some(there.clone()),
            (Op::Claimed(nonce), Standing::Ready) => Some(Standing::Held(nonce.clone())),
            (Op::Completed(nonce), Standing::Held(holder)) if nonce == holder => {
                Some(Standing::Done(nonce.clone()))
            }
            (Op::GivenBack(nonce), Standing::Held(holder)) if nonce == holder => {
                Some(Standing::Ready)
            }
            (Op::Refused(nonce), state) if *state != Standing::Held(nonce.clone()) => {
                Some(state.clone())
            }
            _ => None,
        }
    }
}

#[test]
fn what_threads_and_processes_see_of_a_message_could_have_happened_in_a_row() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return play(&PathBuf::from(directory));
    }
    for seed in seeds(3, 40) {
        let _replay = Replay::new(Test { package: "keyward-queue", path: PATH }, seed);
        let directory = tempfile::tempdir().unwrap();
        let start = |n| child(directory.path(), seed * PROCESSES + n);
        let children: Vec<Child> = (0..PROCESSES).map(start).collect();
        let mut histories: BTreeMap<String, Vec<Timed<Op>>> = BTreeMap::new();
        for mut child in children {
            let mut told = String::new();
            child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
            assert!(child.wait().unwrap().success(), "{told}");
            for (message, timed) in told.lines().filter_map(parse) {
                histories.entry(message).or_default().push(timed);
            }
        }
        let ended = |timed: &&Timed<Op>| matches!(timed.operation, Op::Completed(_));
        let completed = histories.values().flatten().filter(ended).count() as u64;
        assert!((1..=MESSAGES).contains(&completed), "{histories:#?}");
        for (message, history) in &histories {
            linearize(&OneMessage, history).unwrap_or_else(|found| panic!("{message}: {found:#?}"));
        }
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

/// `op CALLED RETURNED MESSAGE claimed NONCE`, and the like.
fn parse(line: &str) -> Option<(String, Timed<Op>)> {
    let mut words = line.strip_prefix("op ")?.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (called, returned) = (number()?, number()?);
    let (message, what) = (words.next()?.to_owned(), words.next()?);
    let nonce = words.next().unwrap_or_default().to_owned();
    let operation = match what {
        "added" => Op::Added,
        "found-there" => Op::FoundThere,
        "claimed" => Op::Claimed(nonce),
        "completed" => Op::Completed(nonce),
        "given-back" => Op::GivenBack(nonce),
        _ => Op::Refused(nonce),
    };
    Some((message, Timed { called, returned: Some(returned), operation }))
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
            let queue = Queue::new(store.clone(), "mails", SystemClock, Options::default());
            clients.push(tokio::spawn(take_turns(queue.unwrap(), rng.fork())));
        }
        for client in clients {
            client.await.unwrap();
        }
    });
}

async fn take_turns(queue: Queue, mut rng: Rng) {
    for _ in 0..TURNS {
        let called = now();
        if rng.u8(..3) == 0 {
            let id = format!("m{}", rng.u64(..MESSAGES));
            let message = Message::new(Json::from_integer(7)).id(&id);
            match queue.enqueue(message).await.unwrap() {
                Enqueued::Added { .. } => tell(called, &format!("{id} added")),
                Enqueued::Duplicate { .. } => tell(called, &format!("{id} found-there")),
                Enqueued::Replaced { .. } => panic!("nobody replaces {id}"),
            }
            continue;
        }
        let claims = queue.claim(1 + rng.usize(..2)).await.unwrap();
        for attempt in &claims.attempts {
            tell(called, &format!("{} claimed {}", attempt.id(), attempt.nonce()));
        }
        for attempt in &claims.attempts {
            let (called, gives_back) = (now(), rng.bool());
            let ended = match gives_back {
                true => attempt.give_back().await.unwrap(),
                false => attempt.complete(None).await.unwrap(),
            };
            let what = match (ended, gives_back) {
                (Ended::Accepted, true) => "given-back",
                (Ended::Accepted, false) => "completed",
                (Ended::Refused, _) => "refused",
            };
            tell(called, &format!("{} {what} {}", attempt.id(), attempt.nonce()));
        }
    }
}
