//! Many faults while many write.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use keyward_engine::{Commit, ErrorKind, Expect, Json, Outcome, Put, Result};
use keyward_key::Key;

use super::network::{Network, key};
use crate::{Replay, deep, seeds};

const WRITERS: usize = 4;
const COUNTERS: usize = 3;
/// How many of the requests meet a fault.
const RATE: f64 = 0.25;

/// What became of a commit, as far as its writer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Done,
    NotDone,
    Unknown,
}

impl Known {
    fn of(said: &Result<Outcome>) -> Self {
        match said {
            Ok(Outcome::Applied { .. }) => Self::Done,
            Ok(Outcome::Conflicted { .. }) => Self::NotDone,
            Err(error) if error.kind() == ErrorKind::Unavailable => Self::NotDone,
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Self::Unknown,
            Err(error) => panic!("neither Unavailable nor OutcomeUnknown: {error:?}"),
        }
    }
}

/// Writes growing numbers to keys that nobody else writes: one, or two together.
struct Writer {
    keys: Vec<Key>,
    /// The numbers that may be there: the last acknowledged, and unknown ones after it.
    possible: BTreeSet<Option<i64>>,
}

impl Writer {
    fn new(network: &Network, seed: u64, n: usize) -> Self {
        let together = if network.can_write_together(2) { 2 } else { 1 };
        let keys = (0..together).map(|part| key(&format!("own:{seed}:{n}:{part}"))).collect();
        Self { keys, possible: BTreeSet::from([None]) }
    }

    async fn write(&mut self, network: &Network, number: i64) -> Known {
        let commit = self.keys.iter().fold(Commit::new(), |commit, key| {
            commit.put(key.clone(), Put::new(Json::from_integer(number)))
        });
        let known = Known::of(&network.store.commit(commit).await);
        match known {
            Known::Done => self.possible = BTreeSet::from([Some(number)]),
            Known::NotDone => {}
            Known::Unknown => drop(self.possible.insert(Some(number))),
        }
        known
    }

    async fn assert_kept(&self, network: &Network) {
        let entries = network.truth(&self.keys).await;
        let numbers: Vec<_> =
            entries.iter().map(|entry| entry.as_ref()?.value.as_integer()).collect();
        assert!(numbers.iter().all(|n| *n == numbers[0]), "half a commit: {numbers:?}");
        let possible = &self.possible;
        assert!(possible.contains(&numbers[0]), "{:?} is not of {possible:?}", numbers[0]);
    }
}

/// Adds one to the shared number by compare-and-swap.
async fn count(network: &Network, counter: &Key) -> Known {
    let Ok(entry) = network.store.get(counter).await else { return Known::NotDone };
    let number = entry.as_ref().map_or(0, |entry| entry.value.as_integer().unwrap());
    let expect = entry.map_or(Expect::Absent, |entry| Expect::Version(entry.version));
    let commit = Commit::new()
        .check(counter.clone(), expect)
        .put(counter.clone(), Put::new(Json::from_integer(number + 1)));
    Known::of(&network.store.commit(commit).await)
}

async fn assert_counted(network: &Network, counter: &Key, known: &[Known]) {
    let entries = network.truth(std::slice::from_ref(counter)).await;
    let counted = entries[0].as_ref().map_or(0, |entry| entry.value.as_integer().unwrap());
    let tally = |wanted| known.iter().filter(|known| **known == wanted).count() as i64;
    let (done, unknown) = (tally(Known::Done), tally(Known::Unknown));
    assert!(
        (done..=done + unknown).contains(&counted),
        "{counted} counted, {done} acknowledged, {unknown} unknown"
    );
}

pub async fn nothing_acknowledged_is_lost_under_random_faults(network: Network) {
    let rounds = if deep() { 100 } else { 12 };
    for seed in seeds(1, 10) {
        let mut replay = Replay::new(network.test, seed);
        let mut writers: Vec<_> = (0..WRITERS).map(|n| Writer::new(&network, seed, n)).collect();
        let counter = key(&format!("shared:{seed}"));
        let counters = if network.can_compare() { COUNTERS } else { 0 };
        let mut counts = Vec::new();
        network.proxy.fail_randomly(seed, RATE);
        for round in 0..rounds {
            let writes = join_all(writers.iter_mut().map(|writer| writer.write(&network, round)));
            let counting = join_all((0..counters).map(|_| count(&network, &counter)));
            let (wrote, counted) = tokio::join!(writes, counting);
            replay.step(format!("round {round}: wrote {wrote:?}, counted {counted:?}"));
            counts.extend(counted);
            // What a client gave up waiting for lands before the next round.
            network.proxy.quiet().await;
        }
        network.proxy.heal();
        for writer in &mut writers {
            writer.assert_kept(&network).await;
            assert_eq!(writer.write(&network, rounds).await, Known::Done, "the network works");
            writer.assert_kept(&network).await;
        }
        assert_counted(&network, &counter, &counts).await;
    }
}
