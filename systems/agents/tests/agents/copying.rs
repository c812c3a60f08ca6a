//! Copies into a store whose other users go on reading.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keyward_agents::{Actor, Agents, EntryCopy, OnConflict, Options};
use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Expect, Json, Outcome, Page, Put, Result, Scan,
    Stats, Store, Tier, Write,
};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_testkit::{Meaning, TestClock};

use crate::fixture::put;

/// The row of who accessed the entry `k`.
const ROW: &str = "system:access:agents:ada:default:k";

/// A store in which another process counts an access before every second commit of a row.
struct Counting {
    memory: Memory,
    commits: AtomicU64,
    counted: AtomicU64,
}

impl Counting {
    async fn count(&self) {
        let key = Key::parse(ROW).unwrap();
        let found = self.memory.get_many(std::slice::from_ref(&key)).await.unwrap().remove(0);
        let row = found.unwrap();
        let Meaning::Object(mut members) = Meaning::of(row.value.as_str()) else {
            panic!("{} is no row", row.value)
        };
        let count: u64 = members["count"].to_json().parse().unwrap();
        members.insert("count".to_owned(), Meaning::of(&(count + 1).to_string()));
        let mark = format!(r#"[["other",{},0]]"#, count + 1);
        members.insert("marks".to_owned(), Meaning::of(&mark));
        let next = Put::new(Json::parse(Meaning::Object(members).to_json()).unwrap());
        let commit = Commit::new().check(key.clone(), Expect::Version(row.version)).put(key, next);
        assert!(self.memory.commit(commit).await.unwrap().is_applied());
        self.counted.fetch_add(1, Ordering::Relaxed);
    }
}

impl Engine for Counting {
    fn capabilities(&self) -> &Capabilities {
        self.memory.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.memory.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.memory.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            let writes_row = commit.writes.iter().map(Write::key).any(|key| key.to_string() == ROW);
            if writes_row && self.commits.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                self.count().await;
            }
            self.memory.commit(commit).await
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.memory.stats()
    }
}

/// The target has counted, and counts on while the copy writes: nothing of that is taken back.
#[tokio::test]
async fn accesses_that_are_counted_during_a_copy_stay() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        for (of_source, of_target) in [(0, 5), (3, 5), (20, 5), (6, 5)] {
            let clock = TestClock::new();
            let memory = || Memory::with(keyward_memory::Options::tier(tier), clock.clone());
            let open =
                |store: Store| Agents::alone(store, Options::default(), clock.clone()).unwrap();
            let filled = async |agents: &Agents, value: &str, reads: u64| {
                let user = agents.user("ada", Actor::agent("reader"));
                let notes = user.use_namespace("default").unwrap();
                put(&notes, "k", value).await;
                for _ in 0..reads {
                    assert!(notes.get("k").await.unwrap().is_some());
                }
                agents.flush().await.unwrap();
            };
            let (source, there) = (open(Store::new(memory())), memory());
            filled(&open(Store::new(there.clone())), "\"target\"", of_target).await;
            clock.advance(std::time::Duration::from_secs(1));
            filled(&source, "\"source\"", of_source).await;
            let (commits, counted) = Default::default();
            let counting = Arc::new(Counting { memory: there.clone(), commits, counted });
            let target = open(Store::from_arc(counting.clone()));
            let copy = EntryCopy::new(source, target).on_conflict(OnConflict::Replace);
            assert_eq!(copy.apply(|_| ()).await.unwrap().replaced, 1);
            let counted = counting.counted.load(Ordering::Relaxed);
            let what = format!("{tier:?} {of_source} {of_target} {counted}");
            assert!(counted > 0, "{what}");
            let row = there.get_many(&[Key::parse(ROW).unwrap()]).await.unwrap().remove(0).unwrap();
            let row = Meaning::of(row.value.as_str());
            let expected = of_source.max(of_target + counted).to_string();
            assert_eq!(row.member("count").unwrap().to_json(), expected, "{what}");
            // Who counted still recognises what it has written.
            assert!(row.member("marks").unwrap().to_json().contains("\"other\""), "{what}");
            let user = open(Store::new(there)).user("ada", Actor::nobody());
            let entry = user.use_namespace("default").unwrap().entry("k").await.unwrap().unwrap();
            assert_eq!(entry.value.as_str(), "\"source\"", "{what}");
            assert_eq!(entry.access.count.to_string(), expected, "{what}");
            assert_eq!(copy.apply(|_| ()).await.unwrap().equal, 1, "{what}");
        }
    }
}
