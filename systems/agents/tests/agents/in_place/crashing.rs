//! Faults at each call, and whole runs of processes that crash, lose answers and have writes land late.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use keyward_agents::{Actor, Agents, DocumentLayout, Namespace, Patch};
use keyward_engine::Documents;
use keyward_testkit::{
    Fault, Faults, FaultyDocuments, Meaning, MemoryDocuments, Rates, Replay, Test, TestClock, When,
    seeds,
};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use super::place::open;
use crate::fixture::{json, set};

/// A process with agent data in documents, whose calls go wrong by plan.
struct Process {
    documents: FaultyDocuments,
    agents: Agents,
    clock: TestClock,
}

impl Process {
    fn new(documents: FaultyDocuments, clock: &TestClock) -> Self {
        let layout = DocumentLayout::open(Arc::new(documents.clone()), clock.clone()).unwrap();
        Self { documents, agents: open(layout, clock), clock: clock.clone() }
    }

    /// The next process, if this one has crashed. Gives whether it has.
    fn revive(&mut self) -> bool {
        let crashed = self.documents.is_crashed();
        if crashed {
            *self = Self::new(self.documents.revive(), &self.clock);
        }
        crashed
    }

    fn namespace(&self, agent: &str) -> Namespace {
        self.agents.user("ada", Actor::agent(agent)).use_namespace("default").unwrap()
    }
}

async fn document(documents: &MemoryDocuments, id: &str) -> Option<Meaning> {
    let found = documents.get_many(&[id.to_owned()]).await.unwrap();
    found[0].as_ref().map(|document| Meaning::of(document.fields.as_str()))
}

/// Does everything once, each step again until it is done. Gives the reads that were lost with a process.
async fn do_everything(process: &mut Process) -> u64 {
    let mut lost = 0;
    for step in 0..9 {
        loop {
            let notes = process.namespace("tester");
            let metadata = |text: &str| json(text);
            let done = match step {
                0 => notes.set("k", set("1").metadata(metadata(r#"{"a":1}"#))).await.map(drop),
                1 => notes.get("k").await.map(drop),
                2 => process.agents.flush().await,
                3 => notes.set("k", set("2").metadata(metadata(r#"{"b":2}"#))).await.map(drop),
                4 => {
                    let patch = Patch::new().metadata(metadata(r#"{"c":3}"#));
                    notes.patch("k", patch).await.map(drop)
                }
                5 => notes.set("m", set("5").metadata(metadata(r#"{"m":1}"#))).await.map(drop),
                // What is known about accesses may stay behind, the entry may not.
                6 => notes.rename("m", "l").await.map(drop),
                7 => notes.set("gone", set("1")).await.map(drop),
                _ => notes.delete("gone").await.map(drop),
            };
            let held = process.agents.gathered().accesses;
            if process.revive() {
                lost += held;
            }
            if done.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
    while process.agents.close().await.is_err() {
        let held = process.agents.gathered().accesses;
        if process.revive() {
            lost += held;
        }
    }
    lost
}

/// Whatever happens at whichever call: what was acknowledged is there, and no access counts twice.
#[test]
fn any_fault_at_any_call_loses_nothing_that_was_acknowledged() {
    let faults = [
        Fault::Fail,
        Fault::Unanswered(When::Before),
        Fault::Unanswered(When::After),
        Fault::Late(Duration::from_millis(1)),
        Fault::Late(Duration::from_secs(1)),
        Fault::Crash(When::Before),
        Fault::Crash(When::After),
    ];
    for by_fields in [false, true] {
        let calls = run_with(by_fields, Faults::none());
        assert!(calls > 10, "{calls}");
        for call in 0..calls {
            for fault in faults {
                run_with(by_fields, Faults::script([(call, fault)]));
                // And once more at the next call, which may be the one that looks what became of it.
                if matches!(fault, Fault::Unanswered(_) | Fault::Late(_)) {
                    run_with(by_fields, Faults::script([(call, fault), (call + 1, fault)]));
                }
            }
        }
    }
}

/// Gives the number of calls.
fn run_with(by_fields: bool, faults: Faults) -> u64 {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let said = format!("{faults:?}");
    runtime.block_on(async {
        let memory = MemoryDocuments::new();
        let memory = if by_fields { memory.comparing_fields() } else { memory };
        memory.prepare(true).await.unwrap();
        let clock = TestClock::new();
        let faulty = FaultyDocuments::new(Arc::new(memory.clone()), faults);
        let mut process = Process::new(faulty.clone(), &clock);
        let lost = do_everything(&mut process).await;
        // What is still on its way lands.
        tokio::time::sleep(Duration::from_secs(10)).await;
        let entry = document(&memory, "ada:default:aw==").await.unwrap();
        assert_eq!(entry.member("value"), Some(&Meaning::of("2")), "{said}");
        let metadata = entry.member("metadata").unwrap();
        assert_eq!(*metadata, Meaning::of(r#"{"a":1,"b":2,"c":3}"#), "{said}");
        let count: u64 = entry.member("accessCount").unwrap().to_json().parse().unwrap();
        assert!(count <= 1, "{count} accesses of 1: {said}");
        assert_eq!(count + lost.min(1 - count), 1, "the access is lost: {said}");
        let moved = document(&memory, "ada:default:bA==").await;
        let moved = moved.unwrap_or_else(|| panic!("the renamed entry is missing: {said}"));
        assert_eq!(moved.member("value"), Some(&Meaning::of("5")), "{said}");
        for gone in ["ada:default:bQ==", "ada:default:Z29uZQ=="] {
            assert_eq!(document(&memory, gone).await, None, "{said}");
        }
        faulty.calls()
    })
}

const PROCESSES: usize = 3;
const OPERATIONS: usize = 30;
/// Entries that all processes read and write. Each has another one of its own besides.
const SHARED: [&str; 2] = ["a", "b"];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Reads {
    /// By processes that went on, or stopped cleanly.
    sure: u64,
    /// By processes that crashed before they had written them.
    in_doubt: u64,
}

#[derive(Debug, Default)]
struct Run {
    reads: BTreeMap<String, Reads>,
    /// The members of metadata that were set, by entry.
    acknowledged: BTreeMap<String, BTreeSet<String>>,
    crashes: usize,
}

#[test]
fn runs_of_crashing_processes_lose_nothing_and_count_nothing_twice() {
    const PATH: &str = "agents::in_place::crashing::runs_of_crashing_processes_lose_nothing_and_count_nothing_twice";
    let (mut crashes, mut exact) = (0, 0);
    for seed in seeds(60, 4_000) {
        let _replay = Replay::new(Test { package: "keyward-agents", path: PATH }, seed);
        let (run, counted, metadata) = simulate(seed);
        for (key, reads) in &run.reads {
            let counted = counted[key];
            assert!(counted <= reads.sure + reads.in_doubt, "{key} has {counted}: {run:?}");
            // Where nobody else writes, an answer that was lost is always understood.
            if !SHARED.contains(&key.as_str()) {
                assert!(counted >= reads.sure, "{key} has {counted}: {run:?}");
                exact += u64::from(reads.in_doubt == 0 && reads.sure > 0);
            }
        }
        for (key, names) in &run.acknowledged {
            let missing: Vec<&String> = names.difference(&metadata[key]).collect();
            assert!(missing.is_empty(), "{key} lost {missing:?}: {run:?}");
        }
        crashes += run.crashes;
    }
    assert!((crashes > 0 && exact > 0) || std::env::var_os("KEYWARD_SEED").is_some());
}

type Counts = BTreeMap<String, u64>;

fn simulate(seed: u64) -> (Run, Counts, BTreeMap<String, BTreeSet<String>>) {
    let memory = MemoryDocuments::new();
    let memory = if seed.is_multiple_of(3) { memory.comparing_fields() } else { memory };
    let clock = TestClock::new();
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let told = Rc::new(RefCell::new(Run::default()));
    let (mut counted, mut said) = (BTreeMap::new(), BTreeMap::new());
    let mut rng = Rng::with_seed(seed);
    LocalSet::new().block_on(&runtime, async {
        memory.prepare(true).await.unwrap();
        let healthy = FaultyDocuments::new(Arc::new(memory.clone()), Faults::none());
        let first = Process::new(healthy, &clock).namespace("first");
        let own = (0..PROCESSES).map(|n| format!("own-{n}"));
        let keys: Vec<String> = SHARED.iter().map(|key| (*key).to_owned()).chain(own).collect();
        for key in &keys {
            assert!(first.set(key, set("0")).await.unwrap().is_accepted());
        }
        let mut tasks = Vec::new();
        for n in 0..PROCESSES {
            let task = Worker {
                n,
                memory: memory.clone(),
                clock: clock.clone(),
                crashing: seed.is_multiple_of(2),
                rng: Rng::with_seed(rng.u64(..)),
                told: told.clone(),
                held: BTreeMap::new(),
            };
            tasks.push(tokio::task::spawn_local(task.work()));
        }
        for task in tasks {
            task.await.unwrap();
        }
        // What is still on its way lands.
        tokio::time::sleep(Duration::from_secs(10)).await;
        for key in keys {
            let id = format!("ada:default:{}", data_encoding::BASE64URL.encode(key.as_bytes()));
            let found = document(&memory, &id).await.unwrap();
            let count = found.member("accessCount").unwrap().to_json().parse().unwrap();
            counted.insert(key.clone(), count);
            let names = match found.member("metadata") {
                Some(Meaning::Object(members)) => members.keys().cloned().collect(),
                _ => BTreeSet::new(),
            };
            said.insert(key, names);
        }
    });
    (told.take(), counted, said)
}

struct Worker {
    n: usize,
    memory: MemoryDocuments,
    clock: TestClock,
    crashing: bool,
    rng: Rng,
    told: Rc<RefCell<Run>>,
    /// Reads that are not known to be written.
    held: BTreeMap<String, u64>,
}

impl Worker {
    async fn work(mut self) {
        let rates = Rates {
            fail: 0.05,
            unanswered: 0.08,
            delay: 0.6,
            delay_max: Duration::from_millis(10),
            late: 0.06,
            late_max: Duration::from_millis(200),
            crash: if self.crashing { 0.02 } else { 0.0 },
        };
        let faults = Faults::seeded(self.rng.u64(..), rates);
        let faulty = FaultyDocuments::new(Arc::new(self.memory.clone()), faults);
        let mut process = Process::new(faulty, &self.clock);
        let agent = format!("agent-{}", self.n);
        for operation in 0..OPERATIONS {
            self.clock.advance(Duration::from_millis(self.rng.u64(1..1_000)));
            let notes = process.namespace(&agent);
            let own = format!("own-{}", self.n);
            let key = match self.rng.usize(..3) {
                2 => own,
                n => SHARED[n].to_owned(),
            };
            match self.rng.u8(..10) {
                0..3 => {
                    let name = format!("m{}-{operation}", self.n);
                    let metadata = json(&format!(r#"{{"{name}":1}}"#));
                    let change = set(&operation.to_string()).metadata(metadata);
                    if notes.set(&key, change).await.is_ok_and(|written| written.is_accepted()) {
                        self.told.borrow_mut().acknowledged.entry(key).or_default().insert(name);
                    }
                }
                3 | 4 => {
                    let flushed = process.agents.flush().await;
                    if flushed.is_ok() && process.agents.gathered().accesses == 0 {
                        self.settle(true);
                    }
                }
                _ => {
                    if notes.get(&key).await.is_ok() {
                        *self.held.entry(key).or_default() += 1;
                    }
                }
            }
            if process.revive() {
                self.crashed();
            }
        }
        // A clean stop: tried until the database answers.
        loop {
            let closed = process.agents.close().await;
            if process.documents.is_crashed() {
                return self.crashed();
            }
            if closed.is_ok() {
                return self.settle(true);
            }
        }
    }

    fn crashed(&mut self) {
        self.told.borrow_mut().crashes += 1;
        self.settle(false);
    }

    fn settle(&mut self, sure: bool) {
        for (key, count) in std::mem::take(&mut self.held) {
            let mut told = self.told.borrow_mut();
            let reads = told.reads.entry(key).or_default();
            match sure {
                true => reads.sure += count,
                false => reads.in_doubt += count,
            }
        }
    }
}
