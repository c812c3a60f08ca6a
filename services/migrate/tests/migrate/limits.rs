//! What the target cannot hold, and engines that cannot be walked.

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Error, ErrorKind, Expiry, ExpirySupport, Json,
    Limits, Outcome, Page, Put, Result, Scan, ScanOrder, Stats, Store,
};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_migrate::Copy;

use crate::stores::{content, key, number, put_all, two};

async fn refused(source: &Store, target: &Store) -> Error {
    Copy::new(source.clone(), target.clone()).run(|_| ()).await.unwrap_err()
}

#[tokio::test]
async fn an_entry_over_a_limit_is_named_and_what_stands_before_it_is_copied() {
    let wide = *two().0.limits();
    let value = Put::new(Json::parse(format!("\"{}\"", "x".repeat(98))).unwrap());
    let note = Json::parse(format!("{{\"n\":\"{}\"}}", "x".repeat(92))).unwrap();
    let long = "k".repeat(100);
    for (text, put, limits, what) in [
        (&*long, number(1), Limits { key_bytes_max: 99, ..wide }, "the key is 100 bytes"),
        ("k", value.clone(), Limits { value_bytes_max: 99, ..wide }, "the value is 100 bytes"),
        (
            "k",
            number(1).with_metadata(note),
            Limits { metadata_bytes_max: 99, ..wide },
            "the metadata is 100 bytes",
        ),
        ("k", value, Limits { commit_bytes_max: 99, ..wide }, "the whole entry is 101 bytes"),
    ] {
        let (source, target) = two();
        put_all(&source, &["a", "b", "z"]).await;
        source.put(key(text), put).await.unwrap();
        let target = target.with_limits(limits);
        let error = refused(&source, &target).await;
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        let told = error.to_string();
        assert!(told.starts_with('k') && told.contains("cannot be copied: "), "{told}");
        assert!(told.contains(what) && told.ends_with("at most 99"), "{told}");
        let there: Vec<Key> = content(&target).await.into_keys().collect();
        assert_eq!(there, [key("a"), key("b")]);
    }
}

#[tokio::test]
async fn a_limit_on_the_bytes_of_a_commit_makes_smaller_commits() {
    let (source, target) = two();
    put_all(&source, &["aa", "bb", "cc", "dd", "ee"]).await;
    // Two entries of three bytes each.
    let target = target.clone().with_limits(Limits { commit_bytes_max: 7, ..*target.limits() });
    Copy::new(source.clone(), target.clone()).run(|_| ()).await.unwrap();
    assert_eq!(content(&target).await, content(&source).await);
    assert_eq!(target.stats().await.unwrap().revision.unwrap().0, 3);
}

/// The memory engine, claiming other capabilities.
struct Claiming(Memory, Capabilities);

impl Claiming {
    fn store(change: impl FnOnce(&mut Capabilities)) -> Store {
        let memory = Memory::new();
        let mut capabilities = memory.capabilities().clone();
        change(&mut capabilities);
        Store::new(Self(memory, capabilities))
    }
}

impl Engine for Claiming {
    fn capabilities(&self) -> &Capabilities {
        &self.1
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.0.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.0.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        self.0.commit(commit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.0.stats()
    }
}

#[tokio::test]
async fn stores_without_key_order_are_refused_on_either_side() {
    let ordered = two().0;
    let unordered = Claiming::store(|can| can.scan_order = ScanOrder::Unordered);
    for (source, target) in [(&ordered, &unordered), (&unordered, &ordered)] {
        let copied = refused(source, target).await;
        let compared = keyward_migrate::verify(source, target, |_| ()).await.unwrap_err();
        for error in [copied, compared] {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("keeps no key order"), "{error}");
        }
    }
}

#[tokio::test]
async fn an_entry_that_expires_is_named_if_the_target_cannot_let_it() {
    let (source, _) = two();
    put_all(&source, &["a"]).await;
    let hour = std::time::Duration::from_secs(3_600);
    source.put(key("b"), number(1).expiring(Expiry::After(hour))).await.unwrap();
    let target = Claiming::store(|can| can.expiry = ExpirySupport::Unsupported);
    let error = refused(&source, &target).await;
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().starts_with("b cannot be copied: it expires"), "{error}");
    assert_eq!(content(&target).await.len(), 1);
}

#[tokio::test]
async fn ends_that_the_target_keeps_coarser_count_as_equal() {
    use jiff::Timestamp;
    use std::time::Duration;

    let (source, target) = (
        Store::new(Memory::new()),
        Claiming::store(|can| {
            let granularity = Duration::from_secs(1);
            can.expiry = ExpirySupport::Supported { granularity, ttl_min: granularity };
        }),
    );
    let end = |ms: i64| Expiry::At(Timestamp::from_millisecond(32_503_680_000_000 + ms).unwrap());
    for (text, exact, kept) in [("a", 1, 1_000), ("b", 1_000, 1_000), ("c", 1_001, 1_000)] {
        source.put(key(text), number(1).expiring(end(exact))).await.unwrap();
        target.put(key(text), number(1).expiring(end(kept))).await.unwrap();
    }
    let verified = keyward_migrate::verify(&source, &target, |_| ()).await.unwrap();
    assert_eq!((verified.equal, verified.different), (2, 1));
}
