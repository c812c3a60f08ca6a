//! Rounds of faults on a server of the test's own, while several engines write, read and watch:
//! what was acknowledged is there, what was refused is not, and what nobody knew is whole or absent.

mod crowd;
mod fault;
mod ledger;
mod notices;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use keyward_engine::Store;
use keyward_postgres::{Options, Postgres};
use keyward_testkit::{Replay, Test, seeds};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crowd::{Round, SOON, Watcher, Writer};
use fault::{Fault, STATEMENT_TIMEOUT};
use ledger::{Deed, Fate, Ledger, contents, fate_of_outcome};

use crate::own_server::OwnServer;
use crate::proxy::Proxy;
use crate::server::runtime;

/// Each like a process of its own.
const ENGINES: usize = 3;
const WRITERS_EACH: usize = 3;
/// Fewer than there are writers and readers, so that they wait for each other's connections.
const POOL_MAX: usize = 2;
/// How many commits are made before something goes wrong.
const QUIET: usize = 30;

/// What all the rounds of a fault came to.
#[derive(Default)]
struct Sum {
    rounds: usize,
    made: usize,
    conflicted: usize,
    not_done: usize,
    unknown: usize,
    unknown_made: usize,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, made, conflicted, not_done, unknown, unknown_made } = self;
        write!(
            f,
            "{rounds} rounds, {made} acknowledged, {conflicted} conflicts, {not_done} not done, \
             {unknown} unknown of which {unknown_made} made"
        )
    }
}

/// A server, those who use it, and what they were told.
struct Ordeal {
    server: OwnServer,
    proxy: Proxy,
    stores: Vec<Store>,
    /// One with the network of the others, and one with a network that has no faults.
    watchers: [Watcher; 2],
    ledger: Arc<Mutex<Ledger>>,
    rng: Rng,
    rounds: u32,
}

impl Ordeal {
    async fn begin(seed: u64) -> Self {
        let mut server = OwnServer::on_small_disk(96);
        server.start().await;
        let proxy = Proxy::before(&server).await;
        let patient = Options { pool_max: 4, connect_timeout: SOON, ..Options::default() };
        // Over a network without faults. By its user, it can be told from the others.
        let administrator = server.administrator().await;
        administrator.batch_execute("CREATE ROLE witness SUPERUSER LOGIN").await.unwrap();
        let witness = Proxy::before(&server).await.address().replace("keyward:", "witness:");
        let witness = Store::new(Postgres::open(&witness, patient.clone()).await.unwrap());
        let options = Options {
            pool_max: POOL_MAX,
            statement_timeout: STATEMENT_TIMEOUT,
            connect_timeout: STATEMENT_TIMEOUT / 2,
            ..Options::default()
        };
        let mut stores = Vec::new();
        for _ in 0..ENGINES {
            stores.push(proxy.open(options.clone()).await);
        }
        let watchers =
            [Watcher::start(proxy.open(patient).await).await, Watcher::start(witness).await];
        let (ledger, rng) = (Arc::default(), Rng::with_seed(seed));
        Self { server, proxy, stores, watchers, ledger, rng, rounds: 0 }
    }

    /// One round: all is well, something goes wrong, all must be well again.
    async fn endure(&mut self, fault: Fault, sum: &mut Sum) {
        self.rounds += 1;
        let full = matches!(fault, Fault::DiskFull | Fault::LogFull);
        let large = fault == Fault::DiskFull;
        let padding = if large { 6_000 } else { self.rng.usize(0..500) };
        let round = Arc::new(Round::new(self.rounds, padding, full));
        let mut crowd = JoinSet::new();
        for (engine, store) in self.stores.iter().enumerate() {
            crowd.spawn(crowd::read(store.clone(), round.clone()));
            for writer in 0..WRITERS_EACH {
                let writer = Writer {
                    number: engine * WRITERS_EACH + writer,
                    store: store.clone(),
                    round: round.clone(),
                    ledger: self.ledger.clone(),
                    rng: self.rng.fork(),
                };
                crowd.spawn(writer.write());
            }
        }
        until("commits are made", || round.made.load(Ordering::SeqCst) >= QUIET).await;
        fault.happen(&mut self.server, &self.proxy, &round, &mut self.rng).await;
        round.lift();
        let well = async {
            while let Some(ended) = crowd.join_next().await {
                ended.unwrap();
            }
        };
        timeout(SOON, well).await.expect("every writer commits again, without opening anything");

        let unknown_made = self.check().await;
        sum.rounds += 1;
        sum.made += round.made.load(Ordering::SeqCst);
        sum.conflicted += round.conflicted.load(Ordering::SeqCst);
        sum.not_done += round.not_done.load(Ordering::SeqCst);
        sum.unknown += round.unknown.load(Ordering::SeqCst);
        sum.unknown_made += unknown_made;
    }

    /// Compares everything that was ever asked with what there is. Gives how many commits turned out
    /// to be made of which nobody knew.
    async fn check(&mut self) -> usize {
        if self.ledger.lock().unwrap().count(|fate| fate == Fate::Unknown) > 0 {
            self.let_all_end().await;
        }
        // A commit after all others, so that watchers know when they have heard everything.
        let (name, store) = (format!("{}-bell", self.rounds), self.stores[0].clone());
        let outcome = store.commit(Deed::Note.commit(&name, "")).await.unwrap();
        let fate @ Fate::Made(last) = fate_of_outcome(&outcome) else { panic!("{outcome:?}") };
        self.ledger.lock().unwrap().enter(name, Deed::Note, fate);

        let contents = contents(&self.stores[1]).await.unwrap();
        let unknown_made = self.ledger.lock().unwrap().settle(&contents);
        self.ledger.lock().unwrap().check(&contents).unwrap();
        for watcher in &self.watchers {
            let told = watcher.told_up_to(last).await;
            self.ledger.lock().unwrap().check_told(&told).unwrap();
        }
        unknown_made
    }

    /// Waits until nothing is under way that came through the proxy, and lets nothing more in
    /// meanwhile: what was sent may be done after its sender has given up.
    async fn let_all_end(&self) {
        const UNDER_WAY: &str = "SELECT count(*) FROM pg_stat_activity
            WHERE application_name = 'keyward' AND usename <> 'witness'";
        let administrator = self.server.administrator().await;
        self.proxy.close();
        let until = Instant::now() + SOON;
        loop {
            let row = administrator.query_one(UNDER_WAY, &[]).await.unwrap();
            if row.get::<_, i64>(0) == 0 {
                break;
            }
            assert!(Instant::now() < until, "a commit never ends");
            sleep(Duration::from_millis(10)).await;
        }
        self.proxy.reopen();
    }
}

/// Waits for something that happens soon.
async fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let happens = async {
        while !happens() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, happens).await.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

#[test]
#[allow(clippy::print_stderr, reason = "says how much was tried")]
fn no_fault_of_server_network_or_disk_makes_an_answer_untrue() {
    const TEST: Test = Test {
        package: "keyward-postgres",
        path: "postgres::ordeal::no_fault_of_server_network_or_disk_makes_an_answer_untrue",
    };
    let mut sums: BTreeMap<Fault, Sum> = BTreeMap::new();
    let mut resumed = 0;
    for seed in seeds(1, 10) {
        let mut replay = Replay::new(TEST, seed);
        runtime().block_on(async {
            let mut ordeal = Ordeal::begin(seed).await;
            let mut faults = Fault::ALL;
            ordeal.rng.shuffle(&mut faults);
            for fault in faults {
                replay.step(format!("{fault:?}"));
                ordeal.endure(fault, sums.entry(fault).or_default()).await;
            }
            resumed += ordeal.watchers.iter().map(Watcher::resumed).sum::<usize>();
        });
    }
    for (fault, sum) in sums {
        eprintln!("{fault:?}: {sum}");
    }
    eprintln!("watchers resumed {resumed} times");
}
