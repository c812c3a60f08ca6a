//! Watching a table by its stream.

use std::time::Duration;

use aws_sdk_dynamodb::types::{StreamSpecification, StreamViewType};
use futures_util::StreamExt;
use keyward_dynamodb::{DynamoDb, Options};
use keyward_engine::{
    BoxStream, Change, ChangeKind, Commit, Engine, ErrorKind, Event, Expiry, Result, Revision,
    Store, WatchSupport,
};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};
use tokio::time::timeout;

use crate::server::{Fresh, address, key, put, raw, runtime};

const EXPIRED: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ExpiredIteratorException","message":"Iterator expired. The iterator was created more than 15 minutes ago."}"#;
const TRIMMED: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#TrimmedDataAccessException","message":"Attempted access beyond trim horizon in shard."}"#;
const THROTTLED: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#LimitExceededException","message":"Too many requests for the shard."}"#;
const DENIED: &str = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: x is not authorized to perform: dynamodb:GetRecords"}"#;

/// A watch that fails the test rather than wait for ever.
struct Watch(BoxStream<'static, Result<Event>>);

impl Watch {
    /// How long an event may take to arrive.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Begins to watch everything, and gives the revision after which it does.
    async fn start(store: &Store, since: Option<Revision>) -> (Revision, Self) {
        Self::start_in(store, KeyRange::all(), since).await
    }

    async fn start_in(store: &Store, range: KeyRange, since: Option<Revision>) -> (Revision, Self) {
        let mut watch = Self(store.watch(range, since));
        match watch.next().await.unwrap().unwrap() {
            Event::Reached(at) => (at, watch),
            other => panic!("a watch begins with Reached, not {other:?}"),
        }
    }

    async fn next(&mut self) -> Option<Result<Event>> {
        let next = timeout(Self::PATIENCE, self.0.next()).await;
        next.unwrap_or_else(|_| panic!("no event within {:?}", Self::PATIENCE))
    }

    /// The next change, and its revision.
    async fn change(&mut self) -> (Revision, Change) {
        loop {
            match self.next().await.unwrap().unwrap() {
                Event::Reached(_) => {}
                Event::Changed { revision, mut changes } => {
                    assert_eq!(changes.len(), 1, "{changes:?}");
                    return (revision, changes.remove(0));
                }
                other @ Event::TooOld { .. } => panic!("{other:?}"),
            }
        }
    }

    /// The next changes, as many as are expected.
    async fn changes(&mut self, count: usize) -> Vec<Change> {
        let mut changes = Vec::new();
        while changes.len() < count {
            changes.push(self.change().await.1);
        }
        changes
    }
}

fn change(text: &str, kind: ChangeKind) -> Change {
    Change { key: key(text), kind }
}

async fn commit(store: &Store, commit: Commit) {
    assert!(store.commit(commit).await.unwrap().is_applied());
}

/// What happened to one key, in the order in which it was told.
fn kinds(changes: &[Change], key: &Key) -> Vec<ChangeKind> {
    changes.iter().filter(|change| change.key == *key).map(|change| change.kind).collect()
}

/// A table for a store, with a stream.
async fn watched_table(view: StreamViewType) -> Fresh {
    let fresh = Fresh::store_table().await;
    let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view);
    switch(&fresh, stream.build().unwrap()).await;
    fresh
}

async fn switch(fresh: &Fresh, stream: StreamSpecification) {
    let request = raw().update_table().table_name(&fresh.table).stream_specification(stream);
    request.send().await.unwrap();
}

async fn keys_only() -> Fresh {
    watched_table(StreamViewType::KeysOnly).await
}

#[test]
fn changes_of_each_key_are_told_in_their_order() {
    runtime().block_on(async {
        for view in [StreamViewType::KeysOnly, StreamViewType::NewAndOldImages] {
            let fresh = watched_table(view).await;
            let engine = fresh.engine().await;
            assert_eq!(engine.capabilities().watch, WatchSupport::Live);
            let store = Store::new(engine);
            store.put(key("before"), put("1")).await.unwrap();
            let (_, mut watch) = Watch::start(&store, None).await;
            // Each root is new, so each commit also writes a row of roots.
            let several = Commit::new().put(key("a:1"), put("1")).put(key("b"), put("1"));
            commit(&store, several.add(key("n"), 1)).await;
            store.put(key("a:1"), put("1")).await.unwrap();
            store.delete(key("a:1")).await.unwrap();
            let several = Commit::new().put(key("a:1"), put("2")).delete(key("b"));
            commit(&store, several.add(key("n"), 1)).await;
            store.put(key("%00:c"), put("1")).await.unwrap();
            let told = watch.changes(9).await;
            let (put, deleted) = (ChangeKind::Put, ChangeKind::Deleted);
            assert_eq!(kinds(&told, &key("a:1")), [put, put, deleted, put]);
            assert_eq!(kinds(&told, &key("b")), [put, deleted]);
            assert_eq!(kinds(&told, &key("n")), [put, put]);
            assert_eq!(kinds(&told, &key("%00:c")), [put]);
        }
    });
}

#[test]
fn only_what_lies_in_the_range_is_told() {
    runtime().block_on(async {
        let fresh = keys_only().await;
        let store = fresh.store().await;
        let range = KeyRange::under(&Prefix::parse("in").unwrap());
        let (_, mut watch) = Watch::start_in(&store, range, None).await;
        for text in ["out", "in", "in:a", "inner", "in:b"] {
            store.put(key(text), put("1")).await.unwrap();
        }
        let mut told = watch.changes(2).await;
        told.sort_by_key(|change| change.key.clone());
        assert_eq!(told, [change("in:a", ChangeKind::Put), change("in:b", ChangeKind::Put)]);
    });
}

#[test]
fn a_watch_resumes_from_a_revision_of_this_process() {
    runtime().block_on(async {
        let fresh = keys_only().await;
        let store = fresh.store().await;
        let (_, mut watch) = Watch::start(&store, None).await;
        store.put(key("a"), put("1")).await.unwrap();
        let (at, told) = watch.change().await;
        assert_eq!(told, change("a", ChangeKind::Put));
        drop(watch);
        store.put(key("b"), put("1")).await.unwrap();
        store.delete(key("a")).await.unwrap();
        let (began, mut watch) = Watch::start(&store, Some(at)).await;
        assert_eq!(began, at);
        let told = watch.changes(2).await;
        assert_eq!(kinds(&told, &key("b")), [ChangeKind::Put]);
        assert_eq!(kinds(&told, &key("a")), [ChangeKind::Deleted]);
        // Another process does not know the revision.
        let elsewhere = fresh.store().await;
        let (_, _watch) = Watch::start(&elsewhere, None).await;
        let mut foreign = Watch(elsewhere.watch(KeyRange::all(), Some(at)));
        let event = foreign.next().await.unwrap().unwrap();
        assert!(matches!(event, Event::TooOld { .. }), "{event:?}");
        assert!(foreign.next().await.is_none());
    });
}

#[test]
fn two_processes_see_each_others_changes() {
    runtime().block_on(async {
        let fresh = keys_only().await;
        let (one, other) = (fresh.store().await, fresh.store().await);
        let (_, mut ones) = Watch::start(&one, None).await;
        let (_, mut others) = Watch::start(&other, None).await;
        one.put(key("by:one"), put("1")).await.unwrap();
        other.put(key("by:other"), put("1")).await.unwrap();
        for watch in [&mut ones, &mut others] {
            let told = watch.changes(2).await;
            assert_eq!(kinds(&told, &key("by:one")), [ChangeKind::Put]);
            assert_eq!(kinds(&told, &key("by:other")), [ChangeKind::Put]);
        }
    });
}

#[test]
fn more_changes_than_one_request_returns_are_all_told() {
    runtime().block_on(async {
        let fresh = keys_only().await;
        let store = fresh.store().await;
        let (at, watch) = Watch::start(&store, None).await;
        drop(watch);
        for batch in 0..15 {
            let keys = (0..100).map(|n| key(&format!("row:{batch}:{n}")));
            let puts = keys.fold(Commit::new(), |commit, key| commit.put(key, put("1")));
            commit(&store, puts).await;
        }
        let (_, mut watch) = Watch::start(&store, Some(at)).await;
        let mut told = watch.changes(1_500).await;
        told.sort_by_key(|change| change.key.clone());
        told.dedup();
        assert_eq!(told.len(), 1_500);
    });
}

#[test]
fn a_table_that_keyward_creates_can_be_watched() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let create = Options { create: true, ..fresh.options() };
        assert_eq!(create.capabilities().watch, WatchSupport::Unsupported);
        let engine = DynamoDb::open(create).await.unwrap();
        assert_eq!(engine.capabilities().watch, WatchSupport::Live);
        let described = raw().describe_table().table_name(&fresh.table).send().await.unwrap();
        let stream = described.table.unwrap().stream_specification.unwrap();
        assert_eq!(stream.stream_view_type, Some(StreamViewType::KeysOnly));
        let existing = DynamoDb::open_existing(fresh.options()).await.unwrap().unwrap();
        assert_eq!(existing.capabilities().watch, WatchSupport::Live);
        let (_, mut watch) = Watch::start(&Store::new(existing), None).await;
        Store::new(engine).put(key("a"), put("1")).await.unwrap();
        assert_eq!(watch.change().await.1, change("a", ChangeKind::Put));
    });
}

#[test]
fn a_table_without_a_stream_says_how_to_get_one() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        // Others' tables are not changed, also not by `create`.
        for create in [false, true] {
            let options = Options { create, ..fresh.options() };
            let engine = DynamoDb::open_with(options, TestClock::new()).await.unwrap();
            assert_eq!(engine.capabilities().watch, WatchSupport::Unsupported);
            let mut watch = Watch(Store::new(engine).watch(KeyRange::all(), None));
            let refused = watch.next().await.unwrap().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
            assert!(refused.message().contains(&fresh.table), "{refused}");
            let advice = refused.advice().unwrap();
            assert!(advice.contains("KEYS_ONLY") && advice.contains(&fresh.table), "{advice}");
            assert!(watch.next().await.is_none());
        }
    });
}

#[test]
fn what_dynamodb_deletes_is_told() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let options = Options { create: true, ..fresh.options() };
        let store = Store::new(DynamoDb::open(options).await.unwrap());
        let (_, mut watch) = Watch::start(&store, None).await;
        // A year that has passed by any machine's clock.
        let past = TestClock::START;
        store.put(key("a"), put("1").expiring(Expiry::At(past))).await.unwrap();
        assert_eq!(watch.change().await.1, change("a", ChangeKind::Put));
        // Not of which kind: DynamoDB Local says `UNKNOWN_TO_SDK_VERSION`, and not that TTL removed it.
        assert_eq!(watch.change().await.1.key, key("a"));
    });
}

#[test]
fn an_expired_iterator_is_replaced_after_the_last_record() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, keys_only().await);
        let (writer, watched) = (fresh.store().await, fresh.store_through(&proxy).await);
        let (_, mut watch) = Watch::start(&watched, None).await;
        writer.put(key("seen"), put("1")).await.unwrap();
        assert_eq!(watch.change().await.1.key, key("seen"));
        proxy.fail_next(NetworkFault::Refuse(400, EXPIRED));
        let mut n = 0;
        while !proxy.log().iter().any(|request| request.contains("Refuse")) {
            writer.put(key(&n.to_string()), put("1")).await.unwrap();
            assert_eq!(watch.change().await.1, change(&n.to_string(), ChangeKind::Put));
            n += 1;
        }
        writer.put(key("after"), put("1")).await.unwrap();
        assert_eq!(watch.change().await.1.key, key("after"), "nothing is told twice");
    });
}

#[test]
fn what_is_no_longer_kept_is_said_and_not_skipped() {
    runtime().block_on(async {
        for refusal in [EXPIRED, TRIMMED] {
            let (proxy, fresh) = (HttpProxy::start(address()).await, keys_only().await);
            let (writer, watched) = (fresh.store().await, fresh.store_through(&proxy).await);
            // No record was read yet, so nothing else names the place.
            let (_, mut watch) = Watch::start(&watched, None).await;
            proxy.fail_next(NetworkFault::Refuse(400, refusal));
            let event = watch.next().await.unwrap().unwrap();
            assert!(matches!(event, Event::TooOld { .. }), "{event:?}");
            let (_, mut watch) = Watch::start(&watched, None).await;
            writer.put(key("a"), put("1")).await.unwrap();
            assert_eq!(watch.change().await.1.key, key("a"));
        }
    });
}

#[test]
fn a_place_older_than_a_day_is_too_old() {
    runtime().block_on(async {
        let (fresh, clock) = (keys_only().await, TestClock::new());
        let engine = DynamoDb::open_with(fresh.options(), clock.clone()).await.unwrap();
        let store = Store::new(engine);
        let (_, mut watch) = Watch::start(&store, None).await;
        store.put(key("a"), put("1")).await.unwrap();
        assert_eq!(watch.change().await.1.key, key("a"));
        // As when the machine was asleep.
        clock.advance(Duration::from_secs(24 * 3_600));
        let event = watch.next().await.unwrap().unwrap();
        assert!(matches!(event, Event::TooOld { .. }), "{event:?}");
    });
}

#[test]
fn throttled_and_cut_reads_are_tried_again() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, keys_only().await);
        let (writer, watched) = (fresh.store().await, fresh.store_through(&proxy).await);
        let (_, mut watch) = Watch::start(&watched, None).await;
        for fault in [
            NetworkFault::Refuse(400, THROTTLED),
            NetworkFault::CutBefore,
            NetworkFault::CutAfter,
            NetworkFault::Answer(503),
        ] {
            proxy.fail_next(fault);
            writer.put(key("a"), put("1")).await.unwrap();
            assert_eq!(watch.change().await.1, change("a", ChangeKind::Put), "{fault:?}");
        }
    });
}

#[test]
fn a_refused_read_ends_the_watch_and_the_next_one_goes_on() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, keys_only().await);
        let (writer, watched) = (fresh.store().await, fresh.store_through(&proxy).await);
        let (_, mut watch) = Watch::start(&watched, None).await;
        writer.put(key("a"), put("1")).await.unwrap();
        let (at, _) = watch.change().await;
        proxy.fail_next(NetworkFault::Refuse(400, DENIED));
        let error = watch.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
        assert!(error.advice().unwrap().contains("dynamodb:GetRecords"), "{error}");
        assert!(watch.next().await.is_none());
        writer.put(key("b"), put("1")).await.unwrap();
        let (_, mut watch) = Watch::start(&watched, Some(at)).await;
        assert_eq!(watch.change().await.1.key, key("b"));
    });
}

#[test]
fn a_stream_that_is_switched_off_ends_the_watch() {
    runtime().block_on(async {
        let fresh = keys_only().await;
        let store = fresh.store().await;
        let (_, mut watch) = Watch::start(&store, None).await;
        store.put(key("a"), put("1")).await.unwrap();
        assert_eq!(watch.change().await.1.key, key("a"));
        let off = StreamSpecification::builder().stream_enabled(false);
        switch(&fresh, off.build().unwrap()).await;
        let error = watch.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.advice().unwrap().contains("KEYS_ONLY"), "{error}");
    });
}
