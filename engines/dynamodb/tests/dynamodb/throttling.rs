//! Refusals of DynamoDB's own, as a proxy gives them.

use std::time::Duration;

use keyward_dynamodb::{DynamoDb, DynamoDbDocuments};
use keyward_engine::{Commit, Documents, ErrorKind, Expect, Expiry, Outcome, Store};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};

use crate::server::{Fresh, address, json, key, put, putting, runtime};

const THROTTLED: [&str; 5] = [
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"The level of configured provisioned throughput for the table was exceeded."}"#,
    r#"{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Rate exceeded"}"#,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#RequestLimitExceeded","message":"Throughput exceeds the current throughput limit for your account."}"#,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"Transaction cancelled, please refer cancellation reasons for specific reasons [ThrottlingError]","CancellationReasons":[{"Code":"ThrottlingError","Message":"Throughput exceeds the current capacity of your table or index."}]}"#,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict]","CancellationReasons":[{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"}]}"#,
];
const IN_PROGRESS: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionInProgressException","Message":"The transaction with the given request token is already in progress."}"#;
const DENIED: &str = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: x is not authorized to perform: dynamodb:PutItem"}"#;
const EXPIRED: &str = r#"{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"The security token included in the request is expired"}"#;

#[test]
fn throttled_requests_are_sent_again_within_the_budget() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let store = fresh.store_through(&proxy).await;
        for (n, refusal) in THROTTLED.into_iter().enumerate() {
            for _ in 0..3 {
                proxy.fail_next(NetworkFault::Refuse(400, refusal));
            }
            let (outcome, count) = proxy.count(store.commit(putting("a", &n.to_string()))).await;
            assert!(outcome.unwrap().is_applied(), "{refusal}");
            assert_eq!(count, 4, "{refusal}");
            if !refusal.contains("TransactionCanceled") {
                proxy.fail_next(NetworkFault::Refuse(400, refusal));
            }
            let entry = store.get(&key("a")).await.unwrap().unwrap();
            assert_eq!(entry.value.as_integer(), Some(n as i64));
        }
    });
}

/// Lets an operation meet refusals only, and time pass after some of them.
async fn delayed<T>(
    proxy: &HttpProxy,
    clock: &TestClock,
    by: Duration,
    operation: impl Future<Output = T>,
) -> T {
    let before = proxy.requests();
    let later = async {
        while proxy.requests() < before + 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        clock.advance(by);
        proxy.heal();
    };
    tokio::join!(operation, later).0
}

#[test]
fn what_expires_while_a_commit_is_throttled_has_expired_for_it() {
    const TTL: Duration = Duration::from_secs(60);
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let (clock, options) = (TestClock::new(), fresh.options_through(proxy.address()));
        let store = Store::new(DynamoDb::open_with(options, clock.clone()).await.unwrap());
        let ending = || put("40").expiring(Expiry::After(TTL));
        for refusal in THROTTLED {
            let version = store.put(key("lease"), ending()).await.unwrap();
            let checked = Commit::new()
                .check(key("lease"), Expect::Version(version))
                .put(key("guarded"), put("1"));
            proxy.fail_always(NetworkFault::Refuse(400, refusal));
            let outcome = delayed(&proxy, &clock, TTL, store.commit(checked)).await;
            assert_eq!(outcome.unwrap(), Outcome::Conflicted { failed: vec![0] }, "{refusal}");
            assert_eq!(store.get(&key("guarded")).await.unwrap(), None);

            store.put(key("number"), ending()).await.unwrap();
            proxy.fail_always(NetworkFault::Refuse(400, refusal));
            let added = store.commit(Commit::new().add(key("number"), 2));
            assert!(delayed(&proxy, &clock, TTL, added).await.unwrap().is_applied());
            let entry = store.get(&key("number")).await.unwrap().unwrap();
            assert_eq!(entry.value.as_integer(), Some(2), "{refusal}");
        }
    });
}

#[test]
fn a_commit_in_doubt_is_not_sent_again_once_what_it_expects_has_expired() {
    const TTL: Duration = Duration::from_secs(60);
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let (clock, options) = (TestClock::new(), fresh.options_through(proxy.address()));
        let store = Store::new(DynamoDb::open_with(options, clock.clone()).await.unwrap());
        let lease = || async {
            let ending = put("1").expiring(Expiry::After(TTL));
            let version = store.put(key("lease"), ending).await.unwrap();
            Commit::new().check(key("lease"), Expect::Version(version))
        };
        // It may be on its way. If it is not, nothing may be done by now.
        let checked = lease().await.put(key("guarded"), put("1"));
        proxy.fail_next(NetworkFault::CutBefore);
        proxy.fail_always(NetworkFault::Refuse(400, THROTTLED[0]));
        let error = delayed(&proxy, &clock, TTL, store.commit(checked)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        assert!(error.message().contains("expired"), "{error}");
        assert_eq!(store.get(&key("guarded")).await.unwrap(), None);

        // What it wrote tells that it was done, whatever has expired since.
        let checked = lease().await.put(key("guarded"), put("2"));
        proxy.fail_next(NetworkFault::CutAfter);
        proxy.fail_always(NetworkFault::Refuse(400, THROTTLED[0]));
        let outcome = delayed(&proxy, &clock, TTL, store.commit(checked)).await.unwrap();
        let entry = store.get(&key("guarded")).await.unwrap().unwrap();
        assert_eq!(outcome.versions().unwrap(), [Some(entry.version)]);

        // As long as nothing has expired, it is sent again.
        let checked = lease().await.put(key("guarded"), put("3"));
        proxy.fail_next(NetworkFault::CutBefore);
        proxy.fail_always(NetworkFault::Refuse(400, THROTTLED[0]));
        let outcome = delayed(&proxy, &clock, TTL / 2, store.commit(checked)).await.unwrap();
        assert!(outcome.is_applied());
    });
}

#[test]
fn throttled_to_the_end_is_unavailable_and_not_done() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let witness = fresh.store().await;
        let options = fresh.impatient(proxy.address());
        let store = Store::new(DynamoDb::open_with(options, TestClock::new()).await.unwrap());
        for refusal in [THROTTLED[0], THROTTLED[4]] {
            proxy.fail_always(NetworkFault::Refuse(400, refusal));
            let error = store.put(key("a"), put("1")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            let error = store.get_many(&[key("a"), key("b")]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            proxy.heal();
            assert_eq!(witness.get(&key("a")).await.unwrap(), None);
        }
    });
}

#[test]
fn a_transaction_still_in_progress_is_asked_for_until_it_is_known() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let options = fresh.impatient(proxy.address());
        let store = Store::new(DynamoDb::open_with(options, TestClock::new()).await.unwrap());
        proxy.fail_next(NetworkFault::CutAfter);
        proxy.fail_next(NetworkFault::Refuse(400, IN_PROGRESS));
        let version = store.put(key("a"), put("1")).await.unwrap();
        assert_eq!(store.get(&key("a")).await.unwrap().unwrap().version, version);

        proxy.fail_always(NetworkFault::Refuse(400, IN_PROGRESS));
        let error = store.put(key("b"), put("1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    });
}

#[test]
fn throttling_after_a_lost_answer_leaves_the_outcome_unknown() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let options = fresh.impatient(proxy.address());
        let store = Store::new(DynamoDb::open_with(options, TestClock::new()).await.unwrap());
        proxy.fail_next(NetworkFault::CutAfter);
        proxy.fail_always(NetworkFault::Refuse(400, THROTTLED[0]));
        let error = store.put(key("a"), put("1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        proxy.heal();
        assert!(store.get(&key("a")).await.unwrap().is_some(), "it was done");
    });
}

#[test]
fn refused_credentials_are_forbidden_and_not_tried_again() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::store_table().await);
        let store = fresh.store_through(&proxy).await;
        for refusal in [DENIED, EXPIRED] {
            proxy.fail_next(NetworkFault::Refuse(400, refusal));
            let (refused, count) = proxy.count(store.put(key("a"), put("1"))).await;
            let error = refused.unwrap_err();
            assert_eq!((error.kind(), count), (ErrorKind::Forbidden, 1), "{error}");
            assert!(error.advice().unwrap().contains("AWS credentials"), "{error}");
        }
    });
}

#[test]
fn a_throttled_document_is_written_once() {
    runtime().block_on(async {
        let (proxy, fresh) = (HttpProxy::start(address()).await, Fresh::documents_table().await);
        let documents =
            DynamoDbDocuments::open(fresh.options_through(proxy.address())).await.unwrap();
        let fields = json(r#"{"value":1}"#);
        proxy.fail_next(NetworkFault::Refuse(400, THROTTLED[0]));
        proxy.fail_next(NetworkFault::CutAfter);
        let swapped = documents.put("a", &fields, None).await.unwrap();
        assert!(
            matches!(swapped, keyward_engine::Swapped::Applied { .. }),
            "its own first attempt is no conflict"
        );
    });
}
