//! A process: locks on an engine that fails, and somebody who works under them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::SignedDuration;
use keyward_engine::{Commit, ErrorKind, Json, Put, Store, Tier, WatchSupport};
use keyward_key::Key;
use keyward_locks::{
    Change, Error, Guard, LockPath, Locks, Mode, Options, Request, Result, Root, Target, Tried,
};
use keyward_testkit::{Faults, FaultyEngine, Rates, VirtualClock};
use tokio::time::{sleep, timeout};

use crate::World;
use crate::engine::{Checked, root_key};
use crate::journal::{Fate, Journal, appended};
use crate::register::Register;

const OPERATIONS: usize = 5;
pub const TTL: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_secs(90);
/// Longer than any request may take to be served or told: its wait, the longest pause, and the
/// retries of a store that fails.
const PATIENCE: Duration = Duration::from_secs(300);
const PATHS: [&str; 6] = ["", "a", "a:b", "a:c", "d", "d:e"];
/// What is written, and the path that protects it.
pub const LEAVES: [(&str, &str); 3] = [("k:ab", "a:b"), ("k:ac", "a:c"), ("k:de", "d:e")];

pub type Shared = Rc<RefCell<Journal>>;

pub struct Node {
    pub world: World,
    clock: VirtualClock,
    engine: FaultyEngine,
    root: Root,
    pub locks: Locks,
    pub rng: Rng,
    register: Register,
}

impl Node {
    /// A process whose clock is wrong and whose calls are late, fail, get lost; and that crashes.
    pub fn new(
        number: u64,
        world: World,
        engine: &Checked,
        clock: VirtualClock,
        mut rng: Rng,
        register: Register,
    ) -> Self {
        let delays = [Duration::from_millis(20), Duration::from_secs(2), TTL * 3 / 2];
        let rates = Rates {
            fail: 0.03,
            unanswered: 0.04,
            delay: 0.4,
            delay_max: delays[rng.usize(..delays.len())],
            crash: 0.01,
            late: 0.02,
            late_max: TTL * 2,
        };
        let skew = SignedDuration::from_secs(rng.i64(-300..=300));
        let faults = Faults::seeded(rng.u64(..) ^ number, rates);
        Self::with(world, engine, clock.skewed(skew), faults, rng, register)
    }

    pub fn healthy(world: World, engine: &Checked, clock: VirtualClock) -> Self {
        let rng = Rng::with_seed(u64::MAX);
        Self::with(world, engine, clock, Faults::none(), rng, Register::default())
    }

    fn with(
        world: World,
        engine: &Checked,
        clock: VirtualClock,
        faults: Faults,
        mut rng: Rng,
        register: Register,
    ) -> Self {
        let engine = FaultyEngine::new(Arc::new(engine.clone()), faults).acting_as(|able| {
            if !world.watches {
                able.watch = WatchSupport::Unsupported;
            }
        });
        let (locks, root) = open(&engine, clock, rng.u64(..));
        Self { world, clock, engine, root, locks, rng, register }
    }

    /// Starts again after a crash, with nothing remembered.
    fn restart(&mut self) {
        self.engine.kill();
        self.engine = self.engine.revive();
        (self.locks, self.root) = open(&self.engine, self.clock, self.rng.u64(..));
    }

    pub async fn run(mut self, journal: Shared) {
        for _ in 0..OPERATIONS {
            let pause = Duration::from_millis(self.rng.u64(..5_000));
            sleep(pause).await;
            match self.rng.u8(..10) {
                0 => self.break_something(&journal).await,
                1 => self.try_once(&journal).await,
                _ => self.lock_and_work(&journal).await,
            }
            if self.engine.is_crashed() {
                journal.borrow_mut().count("crashes");
                self.count(&journal);
                self.restart();
            }
        }
        self.count(&journal);
    }

    fn count(&self, journal: &Shared) {
        let metrics = self.locks.metrics();
        for _ in 0..metrics.takeovers.get() {
            journal.borrow_mut().count("takeovers");
        }
        for _ in 0..metrics.lost.get() {
            journal.borrow_mut().count("lost");
        }
    }

    fn paths(&mut self) -> Vec<LockPath> {
        let count = if self.rng.u8(..4) == 0 { 2 } else { 1 };
        (0..count).map(|_| path(PATHS[self.rng.usize(..PATHS.len())])).collect()
    }

    async fn lock_and_work(&mut self, journal: &Shared) {
        let paths = self.paths();
        let mode = if self.rng.u8(..4) == 0 { Mode::Shared } else { Mode::Exclusive };
        let request = Request::default().ttl(TTL).wait_max(WAIT_MAX);
        let acquired = if self.rng.u8(..8) == 0 {
            let patience = Duration::from_millis(self.rng.u64(..20_000));
            let Ok(acquired) = timeout(patience, self.root.acquire(&paths, mode, &request)).await
            else {
                journal.borrow_mut().count("gave up");
                return;
            };
            acquired
        } else {
            let asked = timeout(PATIENCE, self.root.acquire(&paths, mode, &request)).await;
            asked.expect("every waiter is served or told")
        };
        let guard = match acquired {
            Ok(guard) => guard,
            Err(Error::TimedOut { .. }) => {
                return journal.borrow_mut().count("told to wait in vain");
            }
            Err(Error::Store(_)) => return journal.borrow_mut().count("store failed"),
            Err(error) => panic!("{error}"),
        };
        journal.borrow_mut().count("granted");
        let guard = self.register.enter(guard, None);
        if mode == Mode::Exclusive && self.can_detach() && self.rng.u8(..4) == 0 {
            let guard = self.register.strike(guard);
            return self.work_detached(guard, journal).await;
        }
        match mode {
            Mode::Exclusive => self.work(&guard, journal).await,
            Mode::Shared => self.read(&guard).await,
        }
        self.finish(guard, journal).await;
    }

    async fn finish(&mut self, guard: Rc<Guard>, journal: &Shared) {
        let guard = self.register.strike(guard);
        if self.engine.is_crashed() {
            // Its process is gone: nothing is given back.
            std::mem::forget(guard);
        } else if self.rng.bool() {
            let _ = guard.release().await;
        } else {
            journal.borrow_mut().count("dropped");
            drop(guard);
        }
    }

    /// Reads, waits, and writes what it read with something added.
    async fn work(&mut self, guard: &Guard, journal: &Shared) {
        let mine = |leaf: &LockPath| guard.paths().iter().any(|path| path.overlaps(leaf));
        let leaves: Vec<(Key, LockPath)> = LEAVES
            .iter()
            .map(|(key, leaf)| (Key::parse(key).unwrap(), path(leaf)))
            .filter(|(_, leaf)| {
                mine(leaf) && guard.paths().iter().any(|p| p == leaf || p.is_above(leaf))
            })
            .collect();
        for _ in 0..self.rng.usize(..4) {
            self.stand_still(journal);
            let Some((key, leaf)) = self.rng.choice(&leaves).cloned() else { break };
            if self.rng.u8(..4) == 0 && guard.paths().iter().any(|path| path.is_above(&leaf)) {
                let request = Request::default().ttl(TTL);
                let below = guard.descend(&[leaf], Mode::Exclusive, &request).await;
                if let Ok(below) = below {
                    journal.borrow_mut().count("descended");
                    let below = self.register.enter(below, Some(guard));
                    self.write(&below, key, journal).await;
                    self.finish(below, journal).await;
                }
                // From here on the coarse lock's token is lower than what was written.
                return;
            }
            self.write(guard, key, journal).await;
        }
    }

    /// Lets the process stand still for up to some leases.
    pub fn stand_still(&mut self, journal: &Shared) {
        if self.rng.u8(..6) > 0 {
            return;
        }
        journal.borrow_mut().count("pauses");
        let engine = self.engine.clone();
        let time = TTL.mul_f64(self.rng.f64() * 4.0);
        engine.pause();
        tokio::task::spawn_local(async move {
            sleep(time).await;
            engine.resume();
        });
    }

    async fn write(&mut self, guard: &Guard, key: Key, journal: &Shared) {
        let write = journal.borrow_mut().begin(key.clone(), guard.token());
        let think = TTL.mul_f64(self.rng.f64() * 0.4);
        let written = match self.world.tier {
            Tier::Atomic => self.read_think_commit(guard, key, write, think).await,
            _ => {
                sleep(think).await;
                let change = |entry: Option<&_>| {
                    Ok(Change::Put(Put::new(appended(entry, guard.token(), write))))
                };
                guard.update(&key, change).await.map(drop)
            }
        };
        let fate = match written {
            Ok(()) => Fate::Done,
            Err(Error::Store(error)) if error.kind() == ErrorKind::OutcomeUnknown => Fate::Unknown,
            Err(_) => Fate::NotDone,
        };
        journal.borrow_mut().end(write, fate);
    }

    /// Nothing but the lock keeps others from writing between the read and the commit.
    async fn read_think_commit(
        &self,
        guard: &Guard,
        key: Key,
        write: usize,
        think: Duration,
    ) -> Result<()> {
        let before = guard.get(&key).await?;
        sleep(think).await;
        let put = Put::new(appended(before.as_ref(), guard.token(), write));
        let outcome = guard.commit(Commit::new().put(key, put)).await?;
        assert!(outcome.is_applied());
        Ok(())
    }

    /// What a holder who shares reads stays the same while it holds.
    async fn read(&mut self, guard: &Guard) {
        if self.world.tier != Tier::Atomic {
            return;
        }
        for (key, leaf) in LEAVES {
            let (key, leaf) = (Key::parse(key).unwrap(), path(leaf));
            if !guard.paths().iter().any(|path| *path == leaf || path.is_above(&leaf)) {
                continue;
            }
            let Ok(before) = guard.get(&key).await else { continue };
            sleep(TTL.mul_f64(self.rng.f64() * 0.5)).await;
            let Ok(after) = guard.get(&key).await else { continue };
            let still_held =
                Commit::new().put(Key::parse("seen").unwrap(), Put::new(Json::from_integer(1)));
            if guard.commit(still_held).await.is_ok() {
                assert_eq!(before, after, "somebody wrote under a shared lock");
            }
        }
    }

    async fn try_once(&mut self, journal: &Shared) {
        let (paths, mode) = (self.paths(), Mode::Exclusive);
        match self.root.try_acquire(&paths, mode, &Request::default().ttl(TTL)).await {
            Ok(Tried::Granted(guard)) => {
                journal.borrow_mut().count("granted");
                let guard = self.register.enter(guard, None);
                self.work(&guard, journal).await;
                self.finish(guard, journal).await;
            }
            Ok(Tried::Held(holder)) => {
                let overlaps = |held: &LockPath| paths.iter().any(|path| held.overlaps(path));
                assert!(
                    holder.paths.iter().any(overlaps),
                    "{holder:?} is not in the way of {paths:?}"
                );
                journal.borrow_mut().count("tried in vain");
            }
            Err(Error::Store(_)) => journal.borrow_mut().count("store failed"),
            Err(error) => panic!("{error}"),
        }
    }

    async fn break_something(&mut self, journal: &Shared) {
        let Ok(standing) = self.root.list().await else { return };
        let Some(holder) = self.rng.choice(&standing.holders).cloned() else { return };
        let target = Target::Token(holder.token);
        self.register.breaks(holder.token);
        if self.root.break_lock(&target, "the operator", "for a test").await.is_err() {
            return;
        }
        journal.borrow_mut().count("breaks");
        self.register.broke(holder.token);
        // The holder does not know yet, and goes on.
        let request = Request::default().ttl(TTL);
        let taken = self.root.try_acquire(&holder.paths, Mode::Exclusive, &request).await;
        if let Ok(Tried::Granted(guard)) = taken {
            let guard = self.register.enter(guard, None);
            self.work(&guard, journal).await;
            self.finish(guard, journal).await;
        }
    }

    /// When everybody is gone, everything can be had within a few leases, and nothing is left.
    pub async fn settle(self) {
        let request = Request::default().ttl(TTL).wait_max(TTL * 6);
        let all = self.root.acquire(&[LockPath::root()], Mode::Exclusive, &request).await.unwrap();
        all.release().await.unwrap();
        let standing = self.root.list().await.unwrap();
        assert_eq!((standing.holders.len(), standing.waiters.len()), (0, 0), "{standing:?}");
    }
}

fn open(engine: &FaultyEngine, clock: VirtualClock, seed: u64) -> (Locks, Root) {
    let options = Options { seed: Some(seed), ..Options::default() };
    let locks = Locks::new(Store::new(engine.clone()), clock, options).unwrap();
    let root = locks.root(root_key()).unwrap();
    (locks, root)
}

pub fn path(text: &str) -> LockPath {
    LockPath::parse(text).unwrap()
}
