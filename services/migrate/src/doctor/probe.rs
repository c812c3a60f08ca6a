//! Whether an engine does what it says: tried on scratch keys.

use std::fmt;

use futures_util::future::join_all;
use keyward_engine::{
    Clock, Commit, Entry, ErrorKind, Expect, Json, Order, Outcome, Put, Scan, ScanOrder, Store,
    Tier, Version,
};
use keyward_key::{Key, KeyRange, Prefix};

use super::behind::Behind;
use crate::error::{Error, Result};

/// How many writers go at one version at once.
const WRITERS: usize = 16;
/// How often.
const ROUNDS: usize = 8;
/// Scratch keys besides those that are scanned.
const NAMES: [&str; 4] = ["absent", "one", "other", "raced"];
/// Segments whose order is easily got wrong, in their order.
const ORDERED: [&str; 7] = ["", "\u{1}", "-", "0", "a", "a-b", "é"];

/// Whether an engine does what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probed {
    /// Everything that was tried came out as it should.
    Sound {
        /// How many writers raced.
        writers: usize,
        /// How often.
        rounds: usize,
        /// Whether the store behind the engine was tried too: the one that a coordinator's values go to.
        behind: bool,
    },
    /// It broke a promise: what is built on it cannot be trusted.
    Broken(Promise),
    /// It was not known of some writers whether they won.
    Unclear,
    /// The engine does not say that it could.
    Unsupported,
}

/// What every engine that compares and swaps promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Promise {
    /// Of several who change one version, one does.
    OneWinner,
    /// What was acknowledged is there for everybody who reads after it.
    KeptWrite,
    /// A version is never used again, also not after the key was deleted.
    FreshVersion,
    /// A key that exists is not taken for absent, nor one that is absent for present.
    KnownAbsence,
    /// A commit is applied as a whole or not at all.
    WholeCommit,
    /// A scan gives every key of its range once, and in order where the engine says so.
    WholeScan,
    /// The store behind the engine takes what is committed, and shows it.
    PassedOn,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneWinner => "not exactly one of several writers won",
            Self::KeptWrite => "an acknowledged write was not there",
            Self::FreshVersion => "a version was used twice",
            Self::KnownAbsence => "an absent key was taken for one that exists, or the reverse",
            Self::WholeCommit => "a refused commit was applied in part",
            Self::WholeScan => "a scan left out keys, repeated them, or gave them out of order",
            Self::PassedOn => {
                "the value store did not take a value, show it and drop it again; check that its credential may write"
            }
        })
    }
}

impl Promise {
    /// What cannot be trusted where the promise is broken.
    pub fn voids(self) -> &'static [&'static str] {
        match self {
            Self::OneWinner => &[
                "locks and fences",
                "unique indexes",
                "queues and jobs",
                "results computed once",
                "conditions on versions",
            ],
            Self::KeptWrite => {
                &["every acknowledged write, and so everything that is built on this store"]
            }
            Self::FreshVersion => {
                &["conditions on versions of keys that were deleted", "cached reads", "fences"]
            }
            Self::KnownAbsence => {
                &["conditions on absence", "unique indexes", "locks", "idempotency keys"]
            }
            Self::WholeCommit => {
                &["indexes and history of records", "queues and jobs", "fences", "idempotency keys"]
            }
            Self::WholeScan => {
                &["listings", "queries", "exports and copies", "index builds", "this doctor"]
            }
            Self::PassedOn => &["what other programs read in the value store"],
        }
    }
}

/// What a probe writes, and where.
#[derive(Debug, Clone, Copy)]
pub struct Scratch {
    /// The first segments of its keys.
    pub below: &'static [&'static str],
    /// A value with a number in it.
    pub write: fn(i64) -> Json,
    /// The number in a value.
    pub read: fn(&Json) -> Option<i64>,
    /// Whether scans are tried too, where they are not late.
    pub scans: bool,
}

impl Default for Scratch {
    /// Numbers below `system:probe`.
    fn default() -> Self {
        Self {
            below: &["system", "probe"],
            write: Json::from_integer,
            read: Json::as_integer,
            scans: true,
        }
    }
}

/// Tries an engine's promises on scratch keys below `system:probe`, which it removes again. With a coordinator, those
/// keys never leave it: one more below `keyward-probe` goes to the value store and back.
pub async fn probe(store: &Store, clock: &dyn Clock) -> Result<Probed> {
    probe_on(store, clock, Scratch::default()).await
}

/// The same on other scratch keys, for a store that takes only some.
pub async fn probe_on(store: &Store, clock: &dyn Clock, form: Scratch) -> Result<Probed> {
    if store.capabilities().tier() == Tier::Advisory {
        return Ok(Probed::Unsupported);
    }
    let moment = clock.now().as_nanosecond().to_string();
    let below = Prefix::from_segments(form.below).child(&moment);
    let trial = Trial { store, below, form };
    let probed = trial.probe().await;
    trial.remove().await?;
    probed
}

/// A key that never holds anything.
pub(super) fn nothing() -> Result<Key> {
    Key::from_segments(["system", "probe", "nothing"])
        .map_err(|error| Error::Damaged(error.to_string()))
}

/// A probe that is under way.
pub(super) struct Trial<'s> {
    pub(super) store: &'s Store,
    pub(super) below: Prefix,
    form: Scratch,
}

/// What came of writers who raced.
enum Race {
    Won(i64),
    /// None of them, or several.
    Lost,
    Unclear,
}

impl Trial<'_> {
    async fn probe(&self) -> Result<Probed> {
        let tried = [self.absence().await?, self.commits().await?, self.scans().await?];
        if let Some(promise) = tried.into_iter().flatten().next() {
            return Ok(Probed::Broken(promise));
        }
        let raced = self.races().await?;
        let Probed::Sound { writers, rounds, .. } = raced else { return Ok(raced) };
        Ok(match self.behind().await? {
            Behind::Sound => Probed::Sound { writers, rounds, behind: true },
            Behind::Nothing => Probed::Sound { writers, rounds, behind: false },
            Behind::Broken => Probed::Broken(Promise::PassedOn),
            Behind::Away => Probed::Unclear,
        })
    }

    fn key(&self, name: &str) -> Result<Key> {
        let key = self.below.child(name).to_key();
        key.ok_or_else(|| Error::Damaged("a scratch key has no name".into()))
    }

    /// Removes everything, also what a scan does not show.
    async fn remove(&self) -> Result<()> {
        let scanned: &[&str] = if self.scans_are_tried() { &ORDERED } else { &[] };
        for name in NAMES.iter().chain(scanned) {
            self.store.delete(self.key(name)?).await?;
        }
        Ok(())
    }

    /// A scan that is late, as the engine says, tells nothing about what was just written.
    fn scans_are_tried(&self) -> bool {
        self.form.scans && self.store.capabilities().consistency.lag().is_zero()
    }

    pub(super) fn put(&self, number: i64) -> Put {
        Put::new((self.form.write)(number))
    }

    fn number(&self, entry: &Entry) -> Option<i64> {
        (self.form.read)(&entry.value)
    }

    /// Makes and removes one key several times.
    async fn absence(&self) -> Result<Option<Promise>> {
        let key = self.key("absent")?;
        let mut versions: Vec<Version> = Vec::new();
        for number in 0..4 {
            let put = self.put(number);
            let create =
                || Commit::new().check(key.clone(), Expect::Absent).put(key.clone(), put.clone());
            let Outcome::Applied { versions: given, .. } = self.store.commit(create()).await?
            else {
                return Ok(Some(Promise::KnownAbsence));
            };
            let Some(version) = given.into_iter().next().flatten() else {
                return Ok(Some(Promise::FreshVersion));
            };
            let held = self.store.get(&key).await?;
            let is_it = held
                .is_some_and(|held| held.version == version && self.number(&held) == Some(number));
            if !is_it {
                return Ok(Some(Promise::KeptWrite));
            }
            if self.store.commit(create()).await?.is_applied() {
                return Ok(Some(Promise::KnownAbsence));
            }
            if versions.contains(&version) {
                return Ok(Some(Promise::FreshVersion));
            }
            versions.push(version);
            self.store.delete(key.clone()).await?;
            if self.store.get(&key).await?.is_some() {
                return Ok(Some(Promise::KeptWrite));
            }
        }
        Ok(None)
    }

    /// Writes two keys together, where the engine can.
    async fn commits(&self) -> Result<Option<Promise>> {
        if self.store.capabilities().tier() != Tier::Atomic {
            return Ok(None);
        }
        let (one, other) = (self.key("one")?, self.key("other")?);
        let both = |number| {
            let put = self.put(number);
            Commit::new()
                .check(one.clone(), Expect::Absent)
                .put(one.clone(), put.clone())
                .put(other.clone(), put)
        };
        let mut seen = Vec::new();
        for number in 0..2 {
            seen.push(self.store.commit(both(number)).await?.is_applied());
            let held = self.store.get_many(&[one.clone(), other.clone()]).await?;
            let held = held.iter().map(|entry| entry.as_ref().and_then(|it| self.number(it)));
            if !held.eq([Some(0), Some(0)]) {
                let first = number == 0;
                return Ok(Some(if first { Promise::KeptWrite } else { Promise::WholeCommit }));
            }
        }
        Ok((seen != [true, false]).then_some(Promise::KnownAbsence))
    }

    /// Lists keys in pages of one, in both directions.
    async fn scans(&self) -> Result<Option<Promise>> {
        let mut expected = Vec::new();
        if !self.scans_are_tried() {
            return Ok(None);
        }
        for name in ORDERED {
            let key = self.key(name)?;
            self.store.put(key.clone(), self.put(0)).await?;
            expected.push(key);
        }
        let ordered = self.store.capabilities().scan_order == ScanOrder::Ordered;
        for order in [Order::Ascending, Order::Descending] {
            if order == Order::Descending {
                if !ordered {
                    break;
                }
                expected.reverse();
            }
            let mut listed = self.listed(order, expected.len()).await?;
            if !ordered {
                listed.sort();
            }
            // What the other tries left stands between them.
            listed.retain(|key| expected.contains(key) || !self.is_known(key));
            if listed != expected {
                return Ok(Some(Promise::WholeScan));
            }
        }
        Ok(None)
    }

    fn is_known(&self, key: &Key) -> bool {
        let last = key.segments().last().unwrap_or_default();
        NAMES.contains(&&*last)
    }

    async fn listed(&self, order: Order, expected: usize) -> Result<Vec<Key>> {
        let mut scan = Scan::new(KeyRange::under(&self.below)).order(order).limit(1).keys_only();
        let mut listed = Vec::new();
        // An engine that never ends is broken too.
        for _ in 0..4 * (expected + 4) {
            let page = self.store.scan(&scan).await?;
            listed.extend(page.rows.into_iter().map(|row| row.key));
            match page.next {
                Some(next) => scan.after = Some(next),
                None => break,
            }
        }
        Ok(listed)
    }

    /// Lets many writers go at one version at once, several times.
    async fn races(&self) -> Result<Probed> {
        let key = self.key("raced")?;
        self.store.put(key.clone(), self.put(-1)).await?;
        for round in 0..ROUNDS {
            let Some(entry) = self.store.get(&key).await? else {
                return Ok(Probed::Broken(Promise::KeptWrite));
            };
            let winner = match self.race(&key, &entry.version, round * WRITERS).await? {
                Race::Won(winner) => winner,
                Race::Lost => return Ok(Probed::Broken(Promise::OneWinner)),
                Race::Unclear => return Ok(Probed::Unclear),
            };
            let held = self.store.get(&key).await?.and_then(|entry| self.number(&entry));
            if held != Some(winner) {
                return Ok(Probed::Broken(Promise::KeptWrite));
            }
        }
        Ok(Probed::Sound { writers: WRITERS, rounds: ROUNDS, behind: false })
    }

    /// Numbers begin with `first`, and never repeat: where a version is made of the value, writing the same value again
    /// would change nothing.
    async fn race(&self, key: &Key, version: &Version, first: usize) -> Result<Race> {
        let writers = (first..first + WRITERS).map(|writer| {
            let number = i64::try_from(writer).unwrap_or_default();
            let commit = Commit::new()
                .check(key.clone(), Expect::Version(version.clone()))
                .put(key.clone(), self.put(number));
            async move { (number, self.store.commit(commit).await) }
        });
        let mut winners = Vec::new();
        let mut unclear = false;
        for (number, outcome) in join_all(writers).await {
            match outcome {
                Ok(Outcome::Applied { .. }) => winners.push(number),
                Ok(Outcome::Conflicted { .. }) => {}
                // Perhaps nobody got through. If somebody won, it does not count.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::OutcomeUnknown | ErrorKind::Unavailable
                    ) =>
                {
                    unclear = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(match winners[..] {
            [winner] => Race::Won(winner),
            [] if unclear => Race::Unclear,
            _ => Race::Lost,
        })
    }
}
