//! Processes killed with SIGKILL while they write: every acknowledged commit is there, whole.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use keyward_embedded::{Embedded, Options};
use keyward_engine::{Durability, Entry, Json, Store};
use keyward_key::Key;
use keyward_testkit::{Replay, Test};
use tempfile::TempDir;

use crate::child::{self, block_on, key};
use crate::process::{self, Process, SIGKILL, tell};
use crate::shim::Shim;
use crate::workload::{self, Ack, Checked, Contents, Held, State};

/// How many times the processes of one store are killed, before another store is begun.
const CYCLES: u64 = 10;
/// How many writers a process has at once.
const WRITERS: u32 = 4;

/// One seed for each store: 500 kills in a deep run, or `KEYWARD_CYCLES`.
fn seeds(usual: u64) -> Vec<u64> {
    match std::env::var("KEYWARD_CYCLES") {
        Ok(cycles) if std::env::var_os("KEYWARD_SEED").is_none() => {
            (0..cycles.parse::<u64>().unwrap().div_ceil(CYCLES)).collect()
        }
        _ => keyward_testkit::seeds(usual, 500 / CYCLES),
    }
}

/// What was acknowledged, and what must therefore be there.
#[derive(Default)]
struct Tally {
    writers: BTreeMap<u32, Writer>,
    revision: u64,
}

#[derive(Default)]
struct Writer {
    /// How many commits are certainly in the store.
    made: u32,
    /// Whether one more may be: it was under way when the process was killed.
    perhaps: bool,
    /// What the writer's keys hold after those that were made.
    state: State,
}

impl Tally {
    /// Expects a process with these writers.
    fn expect(&mut self, writers: Range<u32>) {
        for writer in writers {
            self.writers.insert(writer, Writer { perhaps: true, ..Writer::default() });
        }
    }

    /// Takes note of a line that a process told.
    fn hear(&mut self, line: &str) {
        let Some(ack) = Ack::parse(line) else { return };
        let writer = self.writers.get_mut(&ack.writer).unwrap();
        assert_eq!(writer.made, ack.n, "{line}");
        writer.advance(ack.writer, Some(ack.revision));
        self.revision = self.revision.max(ack.revision);
    }

    fn acknowledged(&self) -> u32 {
        self.writers.values().map(|writer| writer.made).sum()
    }

    /// Compares a store whose writers are all dead with what was acknowledged.
    async fn check(&mut self, store: &Store) -> Checked<()> {
        let contents = Contents::read(store).await?;
        if contents.revision < self.revision {
            return Err(format!("revision {} came after {}", contents.revision, self.revision));
        }
        self.revision = contents.revision;
        let mut all = State::new();
        let mut total = 0;
        for (number, writer) in &mut self.writers {
            writer.settle(*number, &contents);
            for (key, held) in &writer.state {
                match key.to_string().as_str() {
                    "total" => total += held.value.as_integer().unwrap(),
                    _ => drop(all.insert(key.clone(), held.clone())),
                }
            }
        }
        if total > 0 {
            let value = Json::from_integer(total);
            // Which of the writers was the last to add is not known.
            all.insert(key("total"), Held { value, metadata: None, version: None });
        }
        contents.compare(&all)
    }
}

impl Writer {
    fn advance(&mut self, number: u32, revision: Option<u64>) {
        workload::apply(&mut self.state, &workload::commit(number, self.made), revision);
        self.made += 1;
    }

    /// Finds out whether the commit that was under way was made. From now on that is certain.
    fn settle(&mut self, number: u32, contents: &Contents) {
        if std::mem::take(&mut self.perhaps) && !self.is_in(number, contents) {
            self.advance(number, None);
        }
    }

    /// Whether the writer's own keys hold what they should.
    fn is_in(&self, number: u32, contents: &Contents) -> bool {
        let start = format!("own:{number}:");
        let own = |key: &Key| key.to_string().starts_with(&start);
        let found = contents.entries.iter().filter(|(key, _)| own(key));
        let count = self.state.keys().filter(|key| own(key)).count();
        let as_held = |(key, entry): (&Key, &Entry)| {
            self.state.get(key).is_some_and(|held| workload::is_as(entry, held))
        };
        found.clone().count() == count && found.clone().all(as_held)
    }
}

/// How a store is opened. Some trim their log while they are written to, and some are relaxed: what
/// these risk is a power loss, not a kill.
fn options(seed: u64) -> Options {
    let history = if seed.is_multiple_of(2) { 100_000 } else { 200 };
    let relaxed = seed % 3 == 2;
    let durability = if relaxed { Durability::Relaxed } else { Durability::Synced };
    Options { history, durability, ..Options::default() }
}

/// Kills the processes of one store again and again.
struct Life {
    test: &'static str,
    seed: u64,
    directory: TempDir,
    options: Options,
    rng: Rng,
    tally: Tally,
    writers: u32,
}

impl Life {
    fn new(test: &'static str, seed: u64) -> Self {
        Self {
            test,
            seed,
            directory: tempfile::tempdir().unwrap(),
            options: options(seed),
            rng: Rng::with_seed(seed),
            tally: Tally::default(),
            writers: 0,
        }
    }

    fn place(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Starts a process with new writers, which may die by itself before some step.
    fn start(&mut self, die: Option<(&Shim, usize)>) -> Process {
        let role = format!("{} {}", self.writers, self.seed);
        self.tally.expect(self.writers..self.writers + WRITERS);
        self.writers += WRITERS;
        let mut command = child::command(process::name(self.test), &role, &self.place());
        if let Some((shim, step)) = die {
            let root = self.directory.path();
            shim.load(&mut command, root, &root.join("trace"), Some(step));
        }
        Process::start(&mut command)
    }

    /// Lets a process run for some commits, and a little longer.
    fn run(&mut self, process: &Process) {
        let commits = if self.rng.bool() { self.rng.u32(0..8) } else { self.rng.u32(8..200) };
        for _ in 0..commits {
            self.tally.hear(&process.line().expect("the child ended early"));
        }
        let longer = Duration::from_micros(self.rng.u64(0..5_000));
        process.run_on(longer, |line| self.tally.hear(line));
    }

    /// Sees a process go on after another was killed, and kills it too, sooner or later.
    fn outlive(&mut self, process: Process) {
        if self.rng.bool() {
            for _ in 0..50 {
                self.tally.hear(&process.line().expect("the survivor ended"));
            }
            self.look();
        }
        process.kill(|line| self.tally.hear(line));
    }

    fn open(&self) -> Store {
        Store::new(Embedded::open(&self.place(), self.options).unwrap())
    }

    /// Checks the store when nobody writes to it.
    fn check(&mut self) {
        let store = self.open();
        block_on(self.tally.check(&store)).unwrap();
    }

    /// Reads while some are still writing: what belongs together is together.
    fn look(&self) {
        let store = self.open();
        for writer in 0..self.writers {
            let pair = ["left", "right"].map(|name| key(&format!("own:{writer}:{name}")));
            let found = block_on(store.get_many(&pair)).unwrap();
            let mut values = found.into_iter().map(|entry| entry.map(|entry| entry.value));
            assert_eq!(values.next(), values.next());
        }
    }
}

/// The part of a child: opens the store and writes until it is killed.
fn play(role: &str, directory: &Path) {
    let (first, seed) = role.split_once(' ').unwrap();
    let first: u32 = first.parse().unwrap();
    let options = options(seed.parse().unwrap());
    process::begin();
    let store = Store::new(Embedded::open(directory, options).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let write = |writer| {
            workload::write(store.clone(), writer, 0..u32::MAX, |ack| tell(&ack.to_string()))
        };
        let writers = (first..first + WRITERS).map(|writer| tokio::spawn(write(writer)));
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
    });
}

#[allow(clippy::print_stderr, reason = "says how much was tried")]
fn for_each_life(test: &'static str, mut cycle: impl FnMut(&mut Life)) {
    let (mut cycles, mut commits) = (0, 0);
    for seed in seeds(3) {
        let mut replay = Replay::new(Test { package: "keyward-embedded", path: test }, seed);
        let mut life = Life::new(test, seed);
        for n in 0..CYCLES {
            replay.step(format!("kill {n}"));
            cycle(&mut life);
            cycles += 1;
        }
        commits += life.tally.acknowledged();
    }
    eprintln!("{cycles} cycles, {commits} commits found again");
}

#[test]
fn no_acknowledged_commit_is_lost_when_a_process_is_killed() {
    const TEST: &str = "embedded::kills::no_acknowledged_commit_is_lost_when_a_process_is_killed";
    if let Some((role, directory)) = child::role() {
        return play(&role, &directory);
    }
    for_each_life(TEST, |life| {
        let process = life.start(None);
        life.run(&process);
        process.kill(|line| life.tally.hear(line));
        life.check();
    });
}

#[test]
fn no_acknowledged_commit_is_lost_when_processes_that_share_a_store_are_killed() {
    const TEST: &str = "embedded::kills::no_acknowledged_commit_is_lost_when_processes_that_share_a_store_are_killed";
    if let Some((role, directory)) = child::role() {
        return play(&role, &directory);
    }
    let shim = Shim::build();
    for_each_life(TEST, |life| {
        if life.rng.bool() {
            // In the middle of a commit, with the writer's lock held.
            let step = life.rng.usize(0..300);
            let (other, one) = (life.start(None), life.start(Some((&shim, step))));
            let status = one.finish(|line| life.tally.hear(line));
            assert_eq!(status.signal(), Some(SIGKILL));
            life.outlive(other);
        } else {
            let (one, other) = (life.start(None), life.start(None));
            life.run(&one);
            one.kill(|line| life.tally.hear(line));
            life.outlive(other);
        }
        life.check();
    });
}

#[test]
fn a_lost_or_torn_commit_would_be_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let store = child::open(directory.path());
    let tally = |commits: u32| {
        let mut tally = Tally::default();
        tally.expect(0..1);
        (0..commits).for_each(|n| tally.hear(&format!("ack 0 {n} {}", n + 1)));
        tally
    };
    block_on(async {
        workload::write(store.clone(), 0, 0..3, |_| {}).await;
        // One that was not acknowledged may be there.
        tally(2).check(&store).await.unwrap();
        tally(3).check(&store).await.unwrap();
        tally(1).check(&store).await.unwrap_err();
        tally(4).check(&store).await.unwrap_err();
        store.put(key("own:0:left"), child::put("7")).await.unwrap();
        tally(3).check(&store).await.unwrap_err();
    });
}
