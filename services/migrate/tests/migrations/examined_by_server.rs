//! What a database server itself finds in a store.

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Error, ErrorKind, Json, Outcome, Page, Result,
    Scan, Sharing, Stats, Store,
};
use keyward_key::{Key, KeyRange};
use keyward_memory::{Memory, Options};
use keyward_migrate::{Doctor, Error as MigrateError, Probed, Report, Scratch, probe_on};
use keyward_testkit::TestClock;

use crate::fixture::{json, key, records, rows};

/// A store whose database finds something.
struct Examined {
    inner: Memory,
    capabilities: Capabilities,
    kind: ErrorKind,
}

impl Examined {
    fn store(clock: &TestClock, sharing: Sharing, kind: ErrorKind) -> Store {
        let inner = Memory::with(Options::default(), clock.clone());
        let capabilities = Capabilities { sharing, ..inner.capabilities().clone() };
        Store::new(Self { inner, capabilities, kind })
    }
}

impl Engine for Examined {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.inner.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.inner.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        self.inner.commit(commit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }

    fn verify<'a>(&'a self, _: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        let error = Error::new(self.kind, "two revisions of k").advise("Choose one of them.");
        Box::pin(async { Err(error) })
    }
}

async fn examined(sharing: Sharing, kind: ErrorKind) -> Result<Report, MigrateError> {
    let clock = TestClock::new();
    let store = Examined::store(&clock, sharing, kind);
    store.put(key("k"), keyward_engine::Put::new(json("1"))).await.unwrap();
    Doctor::new(records(store, &clock, "[stores.app]\n")).without_schema().run(|_| ()).await
}

#[tokio::test]
async fn what_a_server_finds_is_a_finding_and_the_rest_is_looked_through() {
    let report = examined(Sharing::Network, ErrorKind::Corrupt).await.unwrap();
    assert_eq!((report.left(), report.counts.get("damaged")), (1, Some(&1)));
    assert_eq!(report.found[0].message, "two revisions of k. Choose one of them.");
    assert!(!report.found[0].repairable);
    assert!(report.keys > 0);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_an_error_and_a_file_is_verified_by_its_reader() {
    let error = examined(Sharing::Network, ErrorKind::Unavailable).await.unwrap_err();
    assert!(error.to_string().contains("two revisions"), "{error}");
    assert_eq!(examined(Sharing::Machine, ErrorKind::Corrupt).await.unwrap().left(), 0);
}

#[tokio::test]
async fn a_probe_can_write_other_values_to_other_keys() {
    let clock = TestClock::new();
    let store = Store::new(Memory::with(Options::default(), clock.clone()));
    let scratch = Scratch {
        below: &["agents", "probe"],
        write: |number| Json::from_stored(format!(r#"{{"value":{number}}}"#)),
        read: |json| json.as_str().strip_prefix(r#"{"value":"#)?.strip_suffix('}')?.parse().ok(),
        scans: false,
    };
    let probed = probe_on(&store, &clock, scratch).await.unwrap();
    assert_eq!(probed, Probed::Sound { writers: 16, rounds: 8, behind: false });
    assert!(rows(&store, "agents").await.is_empty(), "nothing is left");
}
