//! What opening finds, creates and refuses.

use keyward_couchdb::{CouchDb, CouchDbDocuments, Options};
use keyward_engine::{Commit, Consistency, Documents, Engine, ErrorKind, Expect, Store, Tier};
use keyward_testkit::TestClock;

use crate::server::{Fresh, address, key, put};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_created_only_by_open() {
    let fresh = Fresh::new();
    assert!(CouchDb::open_existing(fresh.options()).await.unwrap().is_none());
    let documents = CouchDbDocuments::open(fresh.options()).await.unwrap();
    assert_eq!(documents.limits().engine, "couchdb");
    assert_eq!(fresh.request("GET", "", "").0, 404, "nothing was created");
    let missing = documents.get_many(&["a".to_owned()]).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Misplaced);

    let store = fresh.store().await;
    store.put(key("a"), put("1")).await.unwrap();
    let again = CouchDb::open_existing(fresh.options()).await.unwrap().unwrap();
    assert!(again.get(&key("a")).await.unwrap().is_some());
    fresh.request("DELETE", "", "");
    for error in
        [store.get(&key("a")).await.unwrap_err(), store.put(key("a"), put("1")).await.unwrap_err()]
    {
        assert_eq!(
            error.kind(),
            ErrorKind::Misplaced,
            "a database that is gone is no absence: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_told_without_showing_them() {
    let fresh = Fresh::new();
    for login in ["keyward:s3cret@", ""] {
        let url = format!("couchdb://{login}{}/{}", address(), fresh.name);
        let options = Options::from_url(url.parse().unwrap()).unwrap();
        let error = CouchDb::open(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden);
        assert!(error.advice().unwrap().contains("KEYWARD_COUCHDB_PASSWORD"));
        assert!(!format!("{error:?}").contains("s3cret"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_unavailable() {
    let fresh = Fresh::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = listener.local_addr().unwrap();
    drop(listener);
    let mut options = fresh.impatient(free);
    options.http.retry_budget = std::time::Duration::from_millis(100);
    let error = CouchDb::open(options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    fresh.request("PUT", "", "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_several_copies_has_no_compare_and_swap() {
    let (one, three) = (Fresh::new(), Fresh::named("-copies-3"));
    let store = one.store().await;
    assert_eq!(store.capabilities(), &one.options().capabilities());
    assert_eq!(store.capabilities().tier(), Tier::Recoverable);
    let store = CouchDb::open_with(three.options(), TestClock::new()).await.unwrap();
    assert_eq!(store.capabilities().tier(), Tier::Advisory);
    assert!(matches!(store.capabilities().consistency, Consistency::Eventual { .. }));
    let store = Store::new(store);
    let create = Commit::new().check(key("a"), Expect::Absent).put(key("a"), put("1"));
    assert_eq!(store.commit(create).await.unwrap_err().kind(), ErrorKind::Unsupported);
    store.put(key("a"), put("2")).await.unwrap();
    assert_eq!(store.get(&key("a")).await.unwrap().unwrap().value.as_str(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_database_is_refused() {
    let fresh = Fresh::named("-partitioned");
    let error = CouchDb::open(fresh.options()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misplaced);
    assert!(error.message().contains("partitioned"), "{error}");
}
