//! Pauses between attempts.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Capabilities, Code, Coded, Commit, Engine, Entry, Outcome, Page, Result, Scan,
    Stats, Store, Tier,
};
use keyward_key::Key;
use keyward_memory::{Memory, Options};
use keyward_records::{Caller, CatalogContent, CatalogedIndex, IndexState, Record, Records};
use keyward_stores::{Kind, Place};
use keyward_testkit::VirtualClock;
use tokio::time::Instant;

use crate::fixture::{draft, json, key, open, own, put, schema};

/// An engine on which somebody else is faster so many times, at every key with this first segment.
struct Busy {
    inner: Memory,
    first: &'static str,
    conflicts: AtomicU32,
}

impl Engine for Busy {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.inner.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.inner.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        let wanted = commit.writes.iter().any(|write| write.key().first() == self.first);
        let left = self.conflicts.load(Ordering::Relaxed);
        if wanted && left > 0 {
            self.conflicts.store(left - 1, Ordering::Relaxed);
            return Box::pin(async { Ok(Outcome::Conflicted { failed: vec![0] }) });
        }
        self.inner.commit(commit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

/// How long a change takes that is refused so many times, and whether it was made.
async fn refused(conflicts: u32) -> (Duration, bool) {
    let clock = VirtualClock::new();
    let inner = Memory::with(Options::tier(Tier::Recoverable), clock);
    let store = Store::new(Busy { inner, first: "user", conflicts: AtomicU32::new(conflicts) });
    let spaces = schema().spaces.into_iter().filter(|space| space.name == "people");
    let records = Records::open(store, spaces, clock).unwrap();
    let people = records.space("people", &Caller::user("ada")).unwrap();
    let began = Instant::now();
    let written = people.put(&key("user:ada"), draft(r#"{"email":"a"}"#)).await;
    if let Err(error) = &written {
        assert_eq!(error.code(), Code::Contended);
    }
    (began.elapsed(), written.is_ok())
}

#[tokio::test(start_paused = true)]
async fn a_change_that_meets_others_waits_longer_each_time_and_then_gives_up() {
    assert_eq!(refused(0).await, (Duration::ZERO, true));
    // From half of 1, 2, 4, 8 and 16 ms up to all of it; tokio's timers have a grain of 1 ms.
    let (took, made) = refused(5).await;
    assert!(made);
    assert!((15..=31 + 5).contains(&took.as_millis()), "{took:?}");
    let (took, made) = refused(u32::MAX).await;
    assert!(!made);
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn rivals_do_not_wait_equally_long() {
    let clock = VirtualClock::new();
    let inner = Memory::with(Options::tier(Tier::Recoverable), clock);
    let store = Store::new(Busy { inner, first: "user", conflicts: AtomicU32::new(u32::MAX) });
    let spaces = schema().spaces.into_iter().filter(|space| space.name == "people");
    let records = Records::open(store, spaces, clock).unwrap();
    let began = Instant::now();
    let wait = async |user: &str| {
        let people = records.space("people", &Caller::user(user)).unwrap();
        let own = key(&format!("user:{user}"));
        people.put(&own, draft(r#"{"email":"a"}"#)).await.unwrap_err();
        began.elapsed()
    };
    let (ada, bob) = tokio::join!(wait("ada"), wait("bob"));
    assert_ne!(ada, bob);
}

/// An index is added to records that others change all the time.
#[tokio::test(start_paused = true)]
async fn making_an_index_waits_for_those_who_change_its_records_and_then_gives_up() {
    let clock = VirtualClock::new();
    let memory = Memory::with(Options::tier(Tier::Atomic), clock);
    let people = |indexed: bool| {
        let mut spaces = schema().spaces;
        spaces.retain(|space| space.name == "people");
        spaces.iter_mut().for_each(|space| space.indexes.retain(|_| indexed));
        spaces
    };
    let plain = Records::open(Store::new(memory.clone()), people(false), clock).unwrap();
    let ada = plain.space("people", &Caller::user("ada")).unwrap();
    let put = ada.put(&key("user:ada"), draft(r#"{"email":"a"}"#)).await.unwrap();
    assert!(put.is_accepted());
    for (conflicts, is_made) in [(0, true), (6, true), (u32::MAX, false)] {
        let conflicts = AtomicU32::new(conflicts);
        let busy = Busy { inner: memory.clone(), first: "index", conflicts };
        let records = Records::open(Store::new(busy), people(true), clock).unwrap();
        let index = records.declarations().next().unwrap().indexes[0].clone();
        let building = CatalogedIndex {
            space: "people".into(),
            definition: index,
            state: IndexState::Building,
        };
        let announce = |content: &mut CatalogContent| {
            content.indexes.insert("email".into(), building.clone());
            Ok(())
        };
        records.change_catalog(announce).await.unwrap();
        // What an earlier turn has made.
        Store::new(memory.clone()).delete(key("index:email:a")).await.unwrap();
        let began = Instant::now();
        let built = records.build_index("email", None, 10).await;
        let took = began.elapsed();
        assert_eq!(built.is_ok(), is_made, "{built:?}");
        match is_made {
            // Once together, then by itself: at once, at once again, and from then on after pauses
            // from half of 1, 2, 4 and 8 ms up to all of them.
            true => assert!(took <= Duration::from_millis(15 + 4), "{took:?}"),
            false => {
                assert_eq!(built.unwrap_err().code(), Code::Contended);
                let bounds = Duration::from_secs(1)..Duration::from_secs(5);
                assert!(bounds.contains(&took), "{took:?}");
            }
        }
    }
}

/// Many who count in one record at once all count, where a commit takes several keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_who_count_in_one_record_all_count() {
    let place = Place::new(Kind::Embedded);
    let records = open(place.store().await, &place);
    let notes = records.space("notes", &Caller::user("ada")).unwrap();
    let count = own(&notes, "count");
    put(&notes, "count", r#"{"title":"t","n":0}"#).await;
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let (notes, count) = (notes.clone(), count.clone());
            tokio::spawn(async move {
                let more = |record: Option<&Record>| {
                    let text = record.unwrap().value.as_str();
                    let n: u64 =
                        text.split("\"n\":").nth(1).unwrap().replace('}', "").parse().unwrap();
                    Ok(Some(json(&format!(r#"{{"title":"t","n":{}}}"#, n + 1))))
                };
                notes.update(&count, more).await.map(|written| written.is_accepted())
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap().unwrap());
    }
    let record = notes.get(&count).await.unwrap().unwrap();
    assert_eq!(record.value.as_str(), r#"{"title":"t","n":200}"#);
}
