//! What others do between two steps of an operation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyward_agents::{Actor, Agents, Namespace, Options};
use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Outcome, Page, Result, Scan, Stats, Store,
    Tier, Write,
};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_testkit::TestClock;

use crate::fixture::{keys, put};

const SECOND: Duration = Duration::from_secs(1);

/// After what something is done by others, before the answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Read,
    Listing,
    Removal,
}

/// A memory engine that others use right after a read, a listing or a removal of entries.
#[derive(Clone)]
struct Shared {
    inner: Memory,
    others: Arc<Mutex<Option<Others>>>,
}

type Others = (After, BoxFuture<'static, ()>);

impl Shared {
    fn then(&self, after: After, others: impl Future<Output = ()> + Send + 'static) {
        *self.others.lock().unwrap() = Some((after, Box::pin(others)));
    }

    async fn done(&self, what: After) {
        let others = self.others.lock().unwrap().take_if(|(after, _)| *after == what);
        if let Some((_, others)) = others {
            others.await;
        }
    }
}

fn is_entry(key: &Key) -> bool {
    key.segments().next().is_some_and(|first| first == "agents")
}

impl Engine for Shared {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async move {
            let found = self.inner.get_many(keys).await;
            if keys.iter().any(is_entry) {
                self.done(After::Read).await;
            }
            found
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let page = self.inner.scan(scan).await?;
            if page.rows.iter().any(|row| is_entry(&row.key)) {
                self.done(After::Listing).await;
            }
            Ok(page)
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            let removes = |write: &Write| matches!(write, Write::Delete(key) if is_entry(key));
            let removes = commit.writes.iter().any(removes);
            let outcome = self.inner.commit(commit).await;
            if removes {
                self.done(After::Removal).await;
            }
            outcome
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

fn shared(tier: Tier) -> (Shared, Agents, TestClock) {
    let clock = TestClock::new();
    let inner = Memory::with(keyward_memory::Options::tier(tier), clock.clone());
    let engine = Shared { inner, others: Arc::default() };
    let agents = Agents::alone(Store::new(engine.clone()), Options::default(), clock.clone());
    (engine, agents.unwrap(), clock)
}

fn notes(agents: &Agents, actor: Actor) -> Namespace {
    agents.user("ada", actor).use_namespace("notes").unwrap()
}

/// The entry is made again, and read once.
async fn remake(agents: Agents, clock: TestClock, removed: bool) {
    let notes = notes(&agents, Actor::agent("other"));
    assert_eq!(notes.delete("k").await.unwrap(), !removed);
    clock.advance(SECOND);
    put(&notes, "k", "2").await;
    assert!(notes.get("k").await.unwrap().is_some());
}

async fn count(agents: &Agents) -> u64 {
    agents.close().await.unwrap();
    assert_eq!(agents.gathered().entries, 0);
    let nobody = notes(agents, Actor::nobody());
    nobody.entry("k").await.unwrap().unwrap().access.count
}

#[tokio::test]
async fn what_is_read_of_an_entry_made_anew_counts_although_the_old_one_is_being_removed() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let (engine, agents, clock) = shared(tier);
        let notes = notes(&agents, Actor::agent("a"));
        for clears in [false, true] {
            put(&notes, "k", "1").await;
            assert!(notes.get("k").await.unwrap().is_some());
            engine.then(After::Removal, remake(agents.clone(), clock.clone(), true));
            match clears {
                false => assert!(notes.delete("k").await.unwrap()),
                true => assert_eq!(notes.clear("").await.unwrap(), 1),
            }
            assert_eq!(count(&agents).await, 1, "{tier} {clears}");
            assert!(notes.delete("k").await.unwrap());
            clock.advance(SECOND);
        }
    }
}

#[tokio::test]
async fn as_many_entries_are_cleared_as_were_confirmed_although_others_remove_some() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let (engine, agents, _) = shared(tier);
        let notes = notes(&agents, Actor::agent("a"));
        for n in 0..15 {
            put(&notes, &format!("{n:02}"), "1").await;
        }
        let others = notes.clone();
        engine.then(After::Listing, async move {
            for gone in ["00", "01", "02"] {
                assert!(others.delete(gone).await.unwrap());
            }
        });
        assert_eq!(notes.clear_up_to("", 10).await.unwrap(), 10, "{tier}");
        assert_eq!(keys(&notes, "", 100).await, ["13", "14"], "{tier}");
        agents.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_late_note_of_an_entry_that_is_gone_takes_nothing_from_the_one_there_is() {
    let (engine, agents, clock) = shared(Tier::Atomic);
    let notes = notes(&agents, Actor::agent("a"));
    put(&notes, "k", "1").await;
    clock.advance(SECOND);
    engine.then(After::Read, remake(agents.clone(), clock, false));
    // What is read here was removed before it is noted.
    assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), "1");
    assert_eq!(count(&agents).await, 1);
}

/// Without commits of several keys, the row goes after its entry.
#[tokio::test]
async fn the_row_of_an_entry_made_anew_stays_where_the_old_one_is_removed_in_two_steps() {
    let (engine, agents, clock) = shared(Tier::Recoverable);
    let notes = notes(&agents, Actor::agent("a"));
    put(&notes, "k", "1").await;
    assert!(notes.get("k").await.unwrap().is_some());
    agents.flush().await.unwrap();
    let others = agents.clone();
    engine.then(After::Removal, async move {
        remake(others.clone(), clock, true).await;
        others.flush().await.unwrap();
    });
    assert!(notes.delete("k").await.unwrap());
    assert_eq!(count(&agents).await, 1);
    // The row of one that is gone is removed with it.
    assert!(notes.delete("k").await.unwrap());
    let row = "system:access:agents:ada:notes:k".parse().unwrap();
    assert_eq!(Store::new(engine).get(&row).await.unwrap(), None);
}
