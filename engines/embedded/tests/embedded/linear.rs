//! Histories of threads and processes on one store, some of them killed: whatever they saw of a key
//! could have happened one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fastrand::Rng;
use keyward_engine::{Commit, Expect, Json, Outcome, Put, Store, Version};
use keyward_testkit::{Model, Replay, Test, Timed, linearize, seeds};
use rustix::time::{ClockId, clock_gettime};

use crate::child::{self, key, open};
use crate::process::{self, Process, tell};

const PATH: &str =
    "embedded::linear::what_threads_and_processes_see_of_a_key_could_have_happened_in_a_row";
const PROCESSES: u32 = 2;
/// Clients of one process; with eight at once a history can still be checked.
const CLIENTS: u32 = 4;
const KEYS: [&str; 2] = ["a", "b"];
const OPERATIONS: u32 = 200;
const STORES: u64 = 3;

/// One value: each write has its own, so that a value tells its version.
type Value = Option<u64>;

/// What a client did to a key, and what it saw.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Op {
    Read(Value),
    Write(Value),
    /// From one value to another, if it was there.
    Swap {
        from: Value,
        to: Value,
        applied: bool,
    },
}

struct Entry;

impl Model for Entry {
    type State = Value;
    type Operation = Op;

    fn initial(&self) -> Value {
        None
    }

    fn apply(&self, state: &Value, operation: &Op) -> Option<Value> {
        match operation {
            Op::Read(seen) => (seen == state).then_some(*state),
            Op::Write(value) => Some(*value),
            Op::Swap { from, to, applied: true } => (from == state).then_some(*to),
            Op::Swap { from, applied: false, .. } => (from != state).then_some(*state),
        }
    }
}

#[test]
fn what_threads_and_processes_see_of_a_key_could_have_happened_in_a_row() {
    if let Some((role, directory)) = child::role() {
        return play(&role, &directory);
    }
    for seed in seeds(STORES, 50) {
        let _replay = Replay::new(Test { package: "keyward-embedded", path: PATH }, seed);
        let mut rng = Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let mut history = History::default();
        let processes: Vec<Process> = (0..PROCESSES)
            .map(|n| {
                let role = format!("{n} {}", rng.u64(..));
                let name = process::name(PATH);
                Process::start(&mut child::command(name, &role, directory.path()))
            })
            .collect();
        for (n, process) in processes.into_iter().enumerate() {
            if n == 0 && rng.bool() {
                // Some commits are then under way, and nobody learns what became of them.
                let time = Duration::from_millis(rng.u64(..100));
                process.run_on(time, |line| history.hear(line));
                process.kill(|line| history.hear(line));
            } else {
                assert!(process.finish(|line| history.hear(line)).success());
            }
        }
        history.check();
    }
}

/// Operations by key, and those that were begun.
#[derive(Default)]
struct History {
    begun: BTreeMap<u64, (u64, String, Op)>,
    ended: BTreeMap<String, Vec<Timed<Op>>>,
}

impl History {
    /// `begin ID TIME KEY OPERATION` and `end ID TIME OPERATION`.
    fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        let (Some(word), Some(id), Some(time)) = (words.next(), words.next(), words.next()) else {
            return;
        };
        let (Ok(id), Ok(time)) = (id.parse(), time.parse()) else { return };
        match word {
            "begin" => {
                let key = words.next().unwrap().to_owned();
                self.begun.insert(id, (time, key, parse(words)));
            }
            "end" => {
                let (called, key, _) = self.begun.remove(&id).unwrap();
                let timed = Timed { called, returned: Some(time), operation: parse(words) };
                self.ended.entry(key).or_default().push(timed);
            }
            _ => {}
        }
    }

    fn check(mut self) {
        for (called, key, operation) in self.begun.into_values() {
            // A read that nobody saw the end of tells nothing.
            if !matches!(operation, Op::Read(_)) {
                let timed = Timed { called, returned: None, operation };
                self.ended.entry(key).or_default().push(timed);
            }
        }
        assert_eq!(self.ended.keys().map(String::as_str).collect::<Vec<_>>(), KEYS);
        for (key, history) in self.ended {
            let values: BTreeSet<Value> =
                history.iter().map(|timed| seen(&timed.operation)).collect();
            assert!(values.len() > 10, "{key}: nothing happened");
            linearize(&Entry, &history).unwrap_or_else(|found| panic!("{key}: {found:#?}"));
        }
    }
}

fn seen(operation: &Op) -> Value {
    match operation {
        Op::Read(value) | Op::Write(value) => *value,
        Op::Swap { to, .. } => *to,
    }
}

fn parse<'w>(mut words: impl Iterator<Item = &'w str>) -> Op {
    let kind = words.next().unwrap();
    let mut value = || words.next().and_then(|word| word.parse().ok());
    match kind {
        "read" => Op::Read(value()),
        "write" => Op::Write(value()),
        _ => Op::Swap { from: value(), to: value(), applied: kind == "swapped" },
    }
}

fn written(operation: &Op) -> String {
    let text = |value: Value| value.map_or("-".to_owned(), |value| value.to_string());
    match operation {
        Op::Read(value) => format!("read {}", text(*value)),
        Op::Write(value) => format!("write {}", text(*value)),
        Op::Swap { from, to, applied } => {
            let word = if *applied { "swapped" } else { "refused" };
            format!("{word} {} {}", text(*from), text(*to))
        }
    }
}

/// The clock that all processes of a machine share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn play(role: &str, directory: &Path) {
    let (number, seed) = role.split_once(' ').unwrap();
    let (number, mut rng) = (number.parse::<u32>().unwrap(), Rng::with_seed(seed.parse().unwrap()));
    let store = open(directory);
    let ids = Arc::new(AtomicU32::new(0));
    process::begin();
    let threads: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let client = Client {
                store: store.clone(),
                ids: ids.clone(),
                process: number,
                rng: rng.fork(),
                known: BTreeMap::new(),
            };
            std::thread::spawn(move || child::block_on(client.work()))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

struct Client {
    store: Store,
    ids: Arc<AtomicU32>,
    process: u32,
    rng: Rng,
    /// What each key was last seen to hold, with its version.
    known: BTreeMap<&'static str, (Value, Option<Version>)>,
}

impl Client {
    async fn work(mut self) {
        for _ in 0..OPERATIONS / CLIENTS {
            let at = KEYS[self.rng.usize(..KEYS.len())];
            // No other operation has this number, nor the value.
            let number = self.ids.fetch_add(1, Ordering::Relaxed);
            let id = u64::from(self.process) << 32 | u64::from(number);
            let value = (self.rng.u8(..8) > 0).then_some(id);
            let (from, version) = self.known.get(at).cloned().unwrap_or_default();
            let swap = Op::Swap { from, to: value, applied: true };
            let planned = match self.rng.u8(..3) {
                0 => Op::Read(None),
                1 => Op::Write(value),
                _ => swap,
            };
            tell(&format!("begin {id} {} {at} {}", now(), written(&planned)));
            let done = self.act(at, planned, version).await;
            tell(&format!("end {id} {} {}", now(), written(&done)));
        }
    }

    async fn act(&mut self, at: &'static str, planned: Op, version: Option<Version>) -> Op {
        let key = key(at);
        match planned {
            Op::Read(_) => {
                let entry = self.store.get(&key).await.unwrap();
                let value = entry.as_ref().map(|entry| entry.value.as_integer().unwrap() as u64);
                self.known.insert(at, (value, entry.map(|entry| entry.version)));
                Op::Read(value)
            }
            Op::Write(value) => {
                let outcome = self.store.commit(writing(Commit::new(), at, value)).await.unwrap();
                let versions = outcome.versions().unwrap();
                self.known.insert(at, (value, versions[0].clone()));
                Op::Write(value)
            }
            Op::Swap { from, to, .. } => {
                let expect = version.map_or(Expect::Absent, Expect::Version);
                let commit = writing(Commit::new().check(key, expect), at, to);
                match self.store.commit(commit).await.unwrap() {
                    Outcome::Applied { versions, .. } => {
                        self.known.insert(at, (to, versions[0].clone()));
                        Op::Swap { from, to, applied: true }
                    }
                    Outcome::Conflicted { .. } => Op::Swap { from, to, applied: false },
                }
            }
        }
    }
}

fn writing(commit: Commit, at: &str, value: Value) -> Commit {
    match value {
        Some(value) => commit.put(key(at), Put::new(Json::from_integer(value as i64))),
        None => commit.delete(key(at)),
    }
}
