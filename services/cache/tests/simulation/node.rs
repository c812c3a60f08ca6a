//! A process that asks for results.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::SignedDuration;
use keyward_cache::{Cache, Error, Fetch, Options, Source};
use keyward_engine::{Store, Tier, WatchSupport};
use keyward_key::Key;
use keyward_testkit::{Faults, FaultyEngine, Rates, VirtualClock};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::journal::{self, Journal};
use crate::recorder::Recorder;

const KEYS: [&str; 3] = ["result:a", "result:b", MADE];
/// Made from the first.
const MADE: &str = "result:c";
const REQUESTS: usize = 6;
/// How many callers of one process ask at the same time.
const CALLERS: usize = 2;
const LEASE: Duration = Duration::from_secs(4);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What engine the nodes share.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub tier: Tier,
    pub watches: bool,
}

pub struct Node {
    engine: FaultyEngine,
    clock: VirtualClock,
    cache: Cache,
    rng: Rng,
    journal: Rc<RefCell<Journal>>,
}

impl Node {
    /// A process whose calls are late, fail, get lost, and that crashes and stands still; its clock
    /// is up to five minutes off.
    pub fn new(
        number: u64,
        kind: Kind,
        engine: Arc<Recorder>,
        clock: VirtualClock,
        mut rng: Rng,
        journal: Rc<RefCell<Journal>>,
    ) -> Self {
        let rates = Rates {
            fail: 0.01,
            unanswered: 0.01,
            delay: 0.5,
            delay_max: Duration::from_millis(200),
            crash: 0.002,
            late: 0.01,
            late_max: LEASE * 2,
        };
        let faults = Faults::seeded(rng.u64(..), rates);
        let clock = clock.skewed(SignedDuration::from_secs(rng.i64(-300..300)));
        Self::with(number, kind, engine, clock, faults, rng, journal)
    }

    pub fn healthy(
        kind: Kind,
        engine: Arc<Recorder>,
        clock: VirtualClock,
        journal: Rc<RefCell<Journal>>,
    ) -> Self {
        Self::with(99, kind, engine, clock, Faults::none(), Rng::with_seed(0), journal)
    }

    fn with(
        number: u64,
        kind: Kind,
        engine: Arc<Recorder>,
        clock: VirtualClock,
        faults: Faults,
        rng: Rng,
        journal: Rc<RefCell<Journal>>,
    ) -> Self {
        let engine = FaultyEngine::new(engine, faults).acting_as(|capabilities| {
            if !kind.watches {
                capabilities.watch = WatchSupport::Unsupported;
            }
        });
        let cache = open(&engine, clock, number);
        Self { engine, clock, cache, rng, journal }
    }

    /// Asks for results, in between comes to harm.
    pub async fn work(mut self) {
        for _ in 0..REQUESTS {
            sleep(Duration::from_millis(self.rng.u64(..5_000))).await;
            let callers: Vec<_> = (0..CALLERS).map(|_| self.ask()).collect();
            if self.rng.u8(..) < 40 {
                self.stand_still().await;
            }
            for caller in callers {
                caller.await.unwrap();
            }
            if self.engine.is_crashed() {
                self.journal.borrow_mut().counts.crashes += 1;
                self.engine = self.engine.revive();
                self.cache = open(&self.engine, self.clock, self.rng.u64(..));
            }
        }
    }

    fn ask(&mut self) -> JoinHandle<()> {
        let key = Key::parse(KEYS[self.rng.usize(..KEYS.len())]).unwrap();
        let takes = Duration::from_millis(self.rng.u64(..3_000));
        let fails = self.rng.u8(..) < 20;
        // Some give up.
        let patience = match self.rng.u8(..) < 30 {
            true => Duration::from_millis(self.rng.u64(..3_000)),
            false => Duration::MAX,
        };
        let (cache, journal) = (self.cache.clone(), self.journal.clone());
        tokio::task::spawn_local(async move {
            if tokio::time::timeout(patience, ask(&cache, &key, takes, fails, &journal))
                .await
                .is_err()
            {
                journal.borrow_mut().counts.given_up += 1;
            }
        })
    }

    /// Stands still for up to three leases, with everything that is under way.
    async fn stand_still(&mut self) {
        sleep(Duration::from_millis(self.rng.u64(..1_500))).await;
        self.journal.borrow_mut().counts.pauses += 1;
        self.engine.pause();
        sleep(LEASE.mul_f64(self.rng.f64() * 3.0)).await;
        self.engine.resume();
    }

    /// Whatever happened before, everything can be had.
    pub async fn look_at_everything(self) {
        for key in KEYS {
            let key = Key::parse(key).unwrap();
            let before = self.journal.borrow().counts.answered;
            ask(&self.cache, &key, Duration::from_secs(1), false, &self.journal).await;
            assert_eq!(self.journal.borrow().counts.answered, before + 1, "{key} cannot be had");
        }
    }
}

fn open(engine: &FaultyEngine, clock: VirtualClock, seed: u64) -> Cache {
    let options = Options { seed: Some(seed), ..Options::default() };
    Cache::new(Store::new(engine.clone()), clock, options).unwrap()
}

async fn ask(
    cache: &Cache,
    key: &Key,
    takes: Duration,
    fails: bool,
    journal: &Rc<RefCell<Journal>>,
) {
    let modified = journal.borrow().modified();
    journal.borrow_mut().counts.asked += 1;
    let plain = || Fetch::of(Source::Modified(modified)).lease(LEASE).wait_max(WAIT_MAX);
    let value = async |of: Option<u64>| -> Result<_, String> {
        sleep(takes).await;
        if fails {
            Err("by chance".into())
        } else {
            Ok(journal.borrow_mut().value(key, modified, of))
        }
    };
    let answer = if key.to_string() == MADE {
        let parent = Key::parse(KEYS[0]).unwrap();
        let compute = || async {
            let asked = parent.clone();
            let first =
                || async { Ok::<_, String>(journal.borrow_mut().value(&asked, modified, None)) };
            let made = cache.get_or_compute(&parent, &plain(), first).await;
            let made = made.map_err(|error| error.to_string())?;
            value(Some(journal::run(&made.value))).await
        };
        cache.get_or_compute(key, &plain().depends_on(parent.clone()), compute).await
    } else {
        cache.get_or_compute(key, &plain(), || value(None)).await
    };
    let mut journal = journal.borrow_mut();
    match answer {
        Ok(cached) => journal.answered(key, modified, &cached.value),
        Err(error) => {
            journal.counts.lost += u64::from(matches!(error, Error::Lost { .. }));
            journal.counts.failed += 1;
        }
    }
}
