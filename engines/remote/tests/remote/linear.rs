//! What clients of a server see of a key could have happened one after the other, also where the
//! server is stopped and started again in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use keyward_engine::{Commit, ErrorKind, Expect, Json, Outcome, Put, Store, Version};
use keyward_key::Key;
use keyward_testkit::{Model, Replay, Test, Timed, linearize, seeds};
use tokio::sync::Mutex;

use crate::served::{Served, configured};

const PATH: &str = "remote::linear::what_clients_see_of_a_key_could_have_happened_in_a_row";
const CLIENTS: u64 = 8;
const OPERATIONS: u32 = 30;
const KEYS: [&str; 2] = ["a", "b"];

/// One value: each write has its own, so that a value tells its version.
type Value = Option<u64>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Op {
    Read(Value),
    Write(Value),
    Swap { from: Value, to: Value, applied: bool },
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

/// What all clients did, by key, and the clock that they share: a count of what happened.
#[derive(Default)]
struct History {
    ticks: AtomicU64,
    values: AtomicU64,
    operations: Mutex<BTreeMap<&'static str, Vec<Timed<Op>>>>,
}

impl History {
    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    async fn add(&self, at: &'static str, timed: Timed<Op>) {
        self.operations.lock().await.entry(at).or_default().push(timed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_clients_see_of_a_key_could_have_happened_in_a_row() {
    for seed in seeds(3, 50) {
        let _replay = Replay::new(Test { package: "keyward-remote", path: PATH }, seed);
        let mut rng = Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let url = format!("embedded:{}/data?durability=relaxed", directory.path().display());
        let mut served = Served::on(&url).await;
        let address = served.url.strip_prefix("http://").unwrap().parse().unwrap();
        let history = Arc::new(History::default());
        let clients: Vec<_> = {
            let mut clients = Vec::new();
            for _ in 0..CLIENTS {
                let (store, history) = (served.store().await, history.clone());
                let client = Client { store, history, rng: rng.fork(), known: BTreeMap::new() };
                clients.push(tokio::spawn(client.work()));
            }
            clients
        };
        // On the same address: what was under way is answered or not, and clients find it again.
        while history.ticks.load(Ordering::SeqCst) < u64::from(OPERATIONS) * CLIENTS / 2 {
            tokio::task::yield_now().await;
        }
        served.stop().await;
        let config = keyward_server::Config { listen: address, ..configured() };
        served = Served::start(&config, &keyward_server::without_schema(&url).unwrap()).await;
        for client in clients {
            client.await.unwrap();
        }
        let operations = std::mem::take(&mut *history.operations.lock().await);
        assert_eq!(operations.keys().copied().collect::<Vec<_>>(), KEYS);
        for (key, operations) in operations {
            let writes = operations.iter().filter(|timed| !matches!(timed.operation, Op::Read(_)));
            assert!(writes.count() > 10, "{key}: nothing happened");
            linearize(&Entry, &operations).unwrap_or_else(|found| panic!("{key}: {found:#?}"));
        }
        served.stop().await;
    }
}

struct Client {
    store: Store,
    history: Arc<History>,
    rng: Rng,
    /// What each key was last seen to hold, with its version.
    known: BTreeMap<&'static str, (Value, Option<Version>)>,
}

impl Client {
    async fn work(mut self) {
        for _ in 0..OPERATIONS {
            let at = KEYS[self.rng.usize(..KEYS.len())];
            let id = self.history.values.fetch_add(1, Ordering::Relaxed);
            let value = (self.rng.u8(..8) > 0).then_some(id);
            let (from, version) = self.known.get(at).cloned().unwrap_or_default();
            let planned = match self.rng.u8(..3) {
                0 => Op::Read(None),
                1 => Op::Write(value),
                _ => Op::Swap { from, to: value, applied: true },
            };
            let called = self.history.tick();
            let done = self.act(at, &planned, version).await;
            let returned = done.is_ok().then(|| self.history.tick());
            match done {
                Ok(operation) => self.history.add(at, Timed { called, returned, operation }).await,
                // It may have been done at any time since, or not.
                Err(ErrorKind::OutcomeUnknown) if !matches!(planned, Op::Read(_)) => {
                    self.known.remove(at);
                    let timed = Timed { called, returned, operation: planned };
                    self.history.add(at, timed).await;
                }
                // Nothing was done.
                Err(ErrorKind::Unavailable) => {}
                Err(other) => panic!("{planned:?}: {other:?}"),
            }
        }
    }

    async fn act(
        &mut self,
        at: &'static str,
        planned: &Op,
        version: Option<Version>,
    ) -> Result<Op, ErrorKind> {
        let key = Key::parse(at).unwrap();
        match *planned {
            Op::Read(_) => {
                let entry = self.store.get(&key).await.map_err(|error| error.kind())?;
                let value = entry.as_ref().map(|entry| entry.value.as_integer().unwrap() as u64);
                self.known.insert(at, (value, entry.map(|entry| entry.version)));
                Ok(Op::Read(value))
            }
            Op::Write(value) => {
                let commit = writing(Commit::new(), key, value);
                let outcome = self.store.commit(commit).await.map_err(|error| error.kind())?;
                let versions = outcome.versions().unwrap();
                self.known.insert(at, (value, versions[0].clone()));
                Ok(Op::Write(value))
            }
            Op::Swap { from, to, .. } => {
                let expect = version.map_or(Expect::Absent, Expect::Version);
                let commit = writing(Commit::new().check(key.clone(), expect), key, to);
                match self.store.commit(commit).await.map_err(|error| error.kind())? {
                    Outcome::Applied { versions, .. } => {
                        self.known.insert(at, (to, versions[0].clone()));
                        Ok(Op::Swap { from, to, applied: true })
                    }
                    Outcome::Conflicted { .. } => Ok(Op::Swap { from, to, applied: false }),
                }
            }
        }
    }
}

fn writing(commit: Commit, key: Key, value: Value) -> Commit {
    match value {
        Some(value) => commit.put(key, Put::new(Json::from_integer(value as i64))),
        None => commit.delete(key),
    }
}
