//! What really happened: an engine that reads along what is committed.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, Engine, Entry, Event, Outcome, Page, Put, Result,
    Revision, Scan, Stats, Write,
};
use keyward_key::{Key, KeyRange};
use keyward_memory::{Memory, Options};
use keyward_testkit::VirtualClock;
use serde_json::Value;
use tokio::time::Instant;

use crate::LEASE;
use crate::node::Holders;

/// What a message does to those who work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing special.
    Innocent,
    /// Takes several leases.
    Long,
    FailsOnce,
    /// Fails every time.
    Broken,
    /// Kills its worker every time.
    Poisoned,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Queued,
    /// By the attempt with this nonce.
    Completed(String),
    Dead,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    pub kind: Kind,
    pub is_job: bool,
    pub fate: Fate,
    /// The nonces of its attempts.
    pub claims: Vec<String>,
    pub given_back: usize,
    /// The lease as the engine has it: whose, and until when.
    lease: Option<(String, Instant)>,
}

/// What was seen in runs, so that a test that sees nothing is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    pub messages: u64,
    pub claims: u64,
    pub completed: u64,
    pub dead: u64,
    pub taken_over: u64,
    pub refused: u64,
    pub lost: u64,
    pub crashes: u64,
    pub stops: u64,
    pub pauses: u64,
    pub unknown: u64,
}

impl Summary {
    pub fn is_full(&self) -> bool {
        let Self {
            messages,
            claims,
            completed,
            dead,
            taken_over,
            refused,
            lost,
            crashes,
            stops,
            pauses,
            unknown,
        } = *self;
        [claims, completed, dead, taken_over, refused, lost, crashes, stops, pauses, unknown]
            .iter()
            .all(|count| *count > 0)
            && messages == completed + dead
    }
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.claims += other.claims;
        self.completed += other.completed;
        self.dead += other.dead;
        self.taken_over += other.taken_over;
        self.refused += other.refused;
        self.lost += other.lost;
        self.crashes += other.crashes;
        self.stops += other.stops;
        self.pauses += other.pauses;
        self.unknown += other.unknown;
    }
}

#[derive(Clone)]
pub struct Truth {
    memory: Memory,
    state: Arc<Mutex<State>>,
    holders: Holders,
}

#[derive(Default)]
struct State {
    kinds: BTreeMap<String, (Kind, bool)>,
    lives: BTreeMap<String, Life>,
    paused: bool,
    violations: Vec<String>,
    summary: Summary,
}

impl Truth {
    pub fn new(clock: VirtualClock) -> Self {
        let memory = Memory::with(Options::default(), clock);
        Self { memory, state: Arc::default(), holders: Arc::default() }
    }

    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.clone())
    }

    /// Who is at work on what.
    pub fn holders(&self) -> Holders {
        self.holders.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what a message is going to be, before it is enqueued.
    pub fn announce(&self, id: &str, kind: Kind, is_job: bool) {
        self.state().kinds.insert(id.to_owned(), (kind, is_job));
    }

    pub fn kind(&self, id: &str) -> Kind {
        self.state().kinds[id].0
    }

    pub fn is_queued(&self, id: &str) -> bool {
        self.state().lives.contains_key(id)
    }

    pub fn fate(&self, id: &str) -> Fate {
        self.state().lives[id].fate.clone()
    }

    pub fn lives(&self) -> BTreeMap<String, Life> {
        self.state().lives.clone()
    }

    pub fn violated(&self, what: String) {
        self.state().violations.push(what);
    }

    pub fn see(&self, count: impl FnOnce(&mut Summary)) {
        count(&mut self.state().summary);
    }

    pub fn check_no_violation(&self) {
        let state = self.state();
        assert!(state.violations.is_empty(), "{:#?}", state.violations);
    }

    pub fn summary(&self) -> Summary {
        let state = self.state();
        let mut summary = state.summary;
        summary.messages = state.lives.len() as u64;
        for life in state.lives.values() {
            summary.claims += life.claims.len() as u64;
            summary.completed += u64::from(matches!(life.fate, Fate::Completed(_)));
            summary.dead += u64::from(life.fate == Fate::Dead);
        }
        summary
    }
}

fn segments(key: &Key) -> Vec<String> {
    key.segments().map(|segment| segment.into_owned()).collect()
}

fn value(put: &Put) -> Value {
    serde_json::from_str(put.value.as_str()).unwrap()
}

impl State {
    /// Reads along one commit that was applied.
    fn applied(&mut self, commit: &Commit) {
        let put = |key: &[&str]| {
            commit.writes.iter().find_map(|write| match write {
                Write::Put(at, put) if segments(at) == key => Some(value(put)),
                _ => None,
            })
        };
        for write in &commit.writes {
            let key = segments(write.key());
            let key: Vec<&str> = key.iter().map(String::as_str).collect();
            match (&key[..], write) {
                (["system", "queue", "q", "paused"], write) => {
                    self.paused = matches!(write, Write::Put(..));
                }
                (["queue", "q", id], Write::Put(_, row)) => self.row_put(id, &value(row)),
                (["queue", "q", id], Write::Delete(_)) => {
                    let done = put(&["system", "queue", "q", "claim", id]);
                    let done = done.and_then(|mark| mark["done"].as_str().map(str::to_owned));
                    let fate = match (done, put(&["dead-letter", "q", id])) {
                        (Some(nonce), _) => Fate::Completed(nonce),
                        (None, Some(_)) => Fate::Dead,
                        (None, None) => {
                            self.violations.push(format!("{id} was removed for no reason"));
                            continue;
                        }
                    };
                    self.ended(id, fate);
                }
                _ => {}
            }
        }
        for write in &commit.writes {
            let key = segments(write.key());
            let key: Vec<&str> = key.iter().map(String::as_str).collect();
            let ["system", "queue", "q", "claim", id] = &key[..] else { continue };
            let Some(life) = self.lives.get_mut(*id) else { continue };
            life.lease = match write {
                Write::Put(_, mark) => value(mark)["nonce"]
                    .as_str()
                    .map(|nonce| (nonce.to_owned(), Instant::now() + LEASE)),
                _ => None,
            };
        }
    }

    fn row_put(&mut self, id: &str, row: &Value) {
        let Some(life) = self.lives.get_mut(id) else {
            let (kind, is_job) = self.kinds[id];
            let fate = Fate::Queued;
            let (claims, given_back, lease) = (Vec::new(), 0, None);
            self.lives
                .insert(id.to_owned(), Life { kind, is_job, fate, claims, given_back, lease });
            return;
        };
        if life.fate != Fate::Queued {
            self.violations.push(format!("{id} came back after its end: {life:?}"));
        }
        let Some(nonce) = row["attempt"]["nonce"].as_str() else {
            life.given_back += usize::from(row["state"] == "ready");
            return;
        };
        if life.claims.iter().any(|claimed| claimed == nonce) {
            self.violations.push(format!("{id} was claimed twice as one attempt"));
        }
        match &life.lease {
            Some((holder, until)) if holder != nonce && *until > Instant::now() => {
                self.violations.push(format!("{id} was taken from {holder} who held it"));
            }
            Some(_) => self.summary.taken_over += 1,
            None => {}
        }
        life.claims.push(nonce.to_owned());
        if life.claims.len() - life.given_back > crate::ATTEMPTS_MAX as usize {
            self.violations.push(format!("{id} has had more attempts than allowed: {life:?}"));
        }
        if self.paused {
            self.violations.push(format!("{id} was claimed while the queue was paused"));
        }
    }

    fn ended(&mut self, id: &str, fate: Fate) {
        let Some(life) = self.lives.get_mut(id) else {
            self.violations.push(format!("{id} ended before it began"));
            return;
        };
        if life.fate != Fate::Queued {
            self.violations.push(format!("{id} ended twice: {:?}, then {fate:?}", life.fate));
        }
        if let Fate::Completed(nonce) = &fate
            && life.claims.last() != Some(nonce)
        {
            self.violations.push(format!("{id} was completed by a stale attempt: {life:?}"));
        }
        life.fate = fate;
    }
}

impl Engine for Truth {
    fn capabilities(&self) -> &Capabilities {
        self.memory.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.memory.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.memory.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            let outcome = self.memory.commit(commit.clone()).await?;
            if outcome.is_applied() {
                self.state().applied(&commit);
            }
            Ok(outcome)
        })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        self.memory.watch(range, since)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.memory.stats()
    }
}
