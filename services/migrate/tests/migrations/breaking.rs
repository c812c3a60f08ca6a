//! Engines that break one promise each, and the probe that finds it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Consistency, Engine, Entry, Error, ErrorKind, Order, Outcome,
    Page, Put, Result, Scan, Stats, Store, Tier, Version, Write,
};
use keyward_key::Key;
use keyward_memory::{Memory, Options};
use keyward_migrate::{Probed, Promise, probe};
use keyward_testkit::{Faults, FaultyEngine, TestClock};

use crate::fixture::rows;

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// Checks are not looked at.
    IgnoresChecks,
    /// Checks are looked at, and everybody is told to have won.
    AcknowledgesLosers,
    /// Only checks for absence are not looked at.
    IgnoresAbsence,
    /// One write in five is acknowledged and not done.
    LosesWrites,
    /// Deletes are acknowledged and not done.
    LosesDeletes,
    /// Each key's versions are counted from one, also after it was deleted.
    ReusesVersions,
    /// A conflict leaves the writes of the keys that were not checked.
    AppliesInPart,
    /// Pages come in no order.
    ScansUnordered,
    /// The last key of a range is left out.
    ScansShort,
    /// The first page comes again.
    ScansTwice,
    /// Racing writers do not get through.
    AwayInRaces,
}

struct Broken {
    inner: Memory,
    fault: Fault,
    writes: AtomicU64,
    /// How often a key was written since it was made, and the true version.
    versions: Mutex<HashMap<Key, (u64, Version)>>,
}

impl Broken {
    fn new(fault: Fault, tier: Tier) -> Self {
        let inner = Memory::with(Options::tier(tier), TestClock::new());
        Self { inner, fault, writes: AtomicU64::new(0), versions: Mutex::default() }
    }

    /// The version as this engine shows it.
    fn shown(&self, key: &Key, mut entry: Entry) -> Entry {
        if self.fault == Fault::ReusesVersions
            && let Some((count, _)) = self.versions.lock().unwrap().get(key)
        {
            entry.version = Version::from(*count);
        }
        entry
    }

    async fn commit_with_counts(&self, mut commit: Commit) -> Result<Outcome> {
        for check in &mut commit.checks {
            if let keyward_engine::Expect::Version(version) = &mut check.expect {
                let versions = self.versions.lock().unwrap();
                let known = versions.get(&check.key);
                let known = known.filter(|(count, _)| *version == Version::from(*count));
                let stale = Version::from(u64::MAX);
                *version = known.map_or(stale, |(_, true_version)| true_version.clone());
            }
        }
        let writes = commit.writes.clone();
        let outcome = self.inner.commit(commit).await?;
        let Outcome::Applied { revision, versions } = outcome else { return Ok(outcome) };
        let mut known = self.versions.lock().unwrap();
        let shown = writes.iter().zip(versions).map(|(write, version)| match version {
            Some(version) => {
                let count = known.get(write.key()).map_or(1, |(count, _)| count + 1);
                known.insert(write.key().clone(), (count, version));
                Some(Version::from(count))
            }
            None => {
                known.remove(write.key());
                None
            }
        });
        let versions = shown.collect();
        Ok(Outcome::Applied { revision, versions })
    }
}

impl Engine for Broken {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async move {
            let entries = self.inner.get_many(keys).await?;
            let shown = |(key, entry): (&Key, Option<Entry>)| Some(self.shown(key, entry?));
            Ok(keys.iter().zip(entries).map(shown).collect())
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            match self.fault {
                Fault::ScansUnordered => {
                    // The other way round, whatever is asked.
                    let order = match scan.order {
                        Order::Ascending => Order::Descending,
                        Order::Descending => Order::Ascending,
                    };
                    self.inner.scan(&Scan { order, ..scan.clone() }).await
                }
                Fault::ScansShort => {
                    let mut page = self.inner.scan(scan).await?;
                    if page.next.is_none() {
                        page.rows.pop();
                    }
                    Ok(page)
                }
                Fault::ScansTwice if self.writes.fetch_add(1, Ordering::Relaxed) == 0 => {
                    let mut page = self.inner.scan(scan).await?;
                    page.rows.extend(page.rows.clone());
                    Ok(page)
                }
                _ => self.inner.scan(scan).await,
            }
        })
    }

    fn commit(&self, mut commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            match self.fault {
                Fault::IgnoresChecks => {
                    commit.checks.clear();
                    self.inner.commit(commit).await
                }
                Fault::IgnoresAbsence => {
                    commit.checks.retain(|check| check.expect != keyward_engine::Expect::Absent);
                    self.inner.commit(commit).await
                }
                Fault::AcknowledgesLosers => {
                    let others = commit.clone();
                    match self.inner.commit(commit).await? {
                        applied @ Outcome::Applied { .. } => Ok(applied),
                        // Those who check for absence are told the truth: that is another fault.
                        lost if others.checks[0].expect == keyward_engine::Expect::Absent => {
                            Ok(lost)
                        }
                        Outcome::Conflicted { .. } => {
                            let entry = self.inner.get(&others.checks[0].key).await?;
                            let versions = vec![entry.map(|entry| entry.version)];
                            Ok(Outcome::Applied { revision: None, versions })
                        }
                    }
                }
                Fault::LosesWrites => {
                    let is_put = matches!(commit.writes[..], [Write::Put(..)]);
                    if is_put && self.writes.fetch_add(1, Ordering::Relaxed).is_multiple_of(5) {
                        let mut other = commit.clone();
                        other.checks.clear();
                        let elsewhere = Key::parse("elsewhere").unwrap();
                        other.writes =
                            vec![Write::Put(elsewhere, Put::new(crate::fixture::json("1")))];
                        return self.inner.commit(other).await;
                    }
                    self.inner.commit(commit).await
                }
                Fault::LosesDeletes => {
                    for write in &mut commit.writes {
                        if let Write::Delete(key) = write {
                            *key = Key::parse("nothing").unwrap();
                        }
                    }
                    self.inner.commit(commit).await
                }
                Fault::ReusesVersions => self.commit_with_counts(commit).await,
                Fault::AwayInRaces if is_race(&commit) => {
                    Err(Error::new(ErrorKind::Unavailable, "the database is busy"))
                }
                Fault::AppliesInPart => {
                    let mut part = commit.clone();
                    let lost = self.inner.commit(commit).await?;
                    if lost.is_applied() {
                        return Ok(lost);
                    }
                    let checked: Vec<Key> = part.checks.drain(..).map(|check| check.key).collect();
                    part.writes.retain(|write| !checked.contains(write.key()));
                    if !part.writes.is_empty() {
                        let _applied = self.inner.commit(part).await?;
                    }
                    Ok(lost)
                }
                _ => self.inner.commit(commit).await,
            }
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

/// Whether a commit is one of the probe's racing writers.
fn is_race(commit: &Commit) -> bool {
    let mut checks = commit.checks.iter();
    checks.any(|check| check.key.segments().last().as_deref() == Some("raced"))
}

async fn probed(fault: Fault, tier: Tier) -> Probed {
    let store = Store::new(Broken::new(fault, tier));
    probe(&store, &TestClock::new()).await.unwrap()
}

#[tokio::test]
async fn a_broken_promise_is_found_and_named() {
    for (fault, promise) in [
        (Fault::IgnoresChecks, Promise::KnownAbsence),
        (Fault::IgnoresAbsence, Promise::KnownAbsence),
        (Fault::AcknowledgesLosers, Promise::OneWinner),
        (Fault::LosesWrites, Promise::KeptWrite),
        (Fault::LosesDeletes, Promise::KeptWrite),
        (Fault::ReusesVersions, Promise::FreshVersion),
        (Fault::ScansUnordered, Promise::WholeScan),
        (Fault::ScansShort, Promise::WholeScan),
        (Fault::ScansTwice, Promise::WholeScan),
    ] {
        for tier in [Tier::Atomic, Tier::Recoverable] {
            assert_eq!(probed(fault, tier).await, Probed::Broken(promise), "{fault:?} {tier}");
        }
    }
    // Where commits take one key, there are no parts.
    let parted = probed(Fault::AppliesInPart, Tier::Atomic).await;
    assert_eq!(parted, Probed::Broken(Promise::WholeCommit));
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_not_called_broken() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        assert_eq!(probed(Fault::AwayInRaces, tier).await, Probed::Unclear, "{tier}");
    }
}

#[tokio::test]
async fn scans_that_are_late_as_declared_are_not_called_broken() {
    let late = |capabilities: &mut Capabilities| {
        capabilities.consistency = Consistency::LateScans { lag: Duration::from_secs(60) };
    };
    for tier in [Tier::Atomic, Tier::Recoverable] {
        // The last key of a range is missing, as it would be in a late scan.
        let engine = Arc::new(Broken::new(Fault::ScansShort, tier));
        let store = Store::new(FaultyEngine::new(engine, Faults::none()).acting_as(late));
        let probed = probe(&store, &TestClock::new()).await.unwrap();
        assert!(matches!(probed, Probed::Sound { .. }), "{probed:?}");
    }
}

#[tokio::test]
async fn an_engine_that_compares_and_reads_late_is_not_asked_to_swap() {
    let late = |capabilities: &mut Capabilities| {
        capabilities.consistency = Consistency::Eventual { lag: Duration::from_secs(60) };
    };
    let engine = Arc::new(Broken::new(Fault::Nothing, Tier::Recoverable));
    let store = Store::new(FaultyEngine::new(engine, Faults::none()).acting_as(late));
    assert_eq!(store.capabilities().tier(), Tier::Advisory);
    assert_eq!(probe(&store, &TestClock::new()).await.unwrap(), Probed::Unsupported);
}

#[tokio::test]
async fn an_engine_that_keeps_its_promises_is_sound_and_left_as_it_was() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let store = Store::new(Broken::new(Fault::Nothing, tier));
        let probed = probe(&store, &TestClock::new()).await.unwrap();
        assert!(matches!(probed, Probed::Sound { .. }), "{probed:?}");
        assert!(rows(&store, "").await.is_empty());
    }
}
