//! Answers that are lost while others write the same document.

use keyward_couchdb::{CouchDb, CouchDbDocuments};
use keyward_engine::{Commit, Documents, ErrorKind, Expect, Json, Store, Swapped, Version};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};

use crate::server::{Fresh, address, key, put};

/// A store by way of a proxy, and the same without.
async fn pair(fresh: &Fresh) -> (HttpProxy, Store, Store) {
    let proxy = HttpProxy::start(address()).await;
    let direct = fresh.store().await;
    let options = fresh.impatient(proxy.address());
    let store = Store::new(CouchDb::open_with(options, TestClock::new()).await.unwrap());
    (proxy, store, direct)
}

fn swap(version: &Version, to: &str) -> Commit {
    let slot = key("slot");
    Commit::new().check(slot.clone(), Expect::Version(version.clone())).put(slot, put(to))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_whose_answer_is_lost_is_known_by_its_mark() {
    let fresh = Fresh::new();
    let (proxy, store, direct) = pair(&fresh).await;
    let version = direct.put(key("slot"), put("1")).await.unwrap();
    proxy.fail_next(NetworkFault::CutAfter);
    let outcome = store.commit(swap(&version, "2")).await.unwrap();
    let version = outcome.versions().unwrap()[0].clone().unwrap();
    assert_eq!(direct.get(&key("slot")).await.unwrap().unwrap().version, version);
    // Deletes too: their mark is in what CouchDB keeps of the document.
    proxy.fail_next(NetworkFault::CutAfter);
    let remove = Commit::new().check(key("slot"), Expect::Version(version)).delete(key("slot"));
    assert!(store.commit(remove).await.unwrap().is_applied());
    assert_eq!(direct.get(&key("slot")).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_that_came_too_late_conflicts_though_its_first_answer_was_lost() {
    let fresh = Fresh::new();
    let (proxy, store, direct) = pair(&fresh).await;
    let version = direct.put(key("slot"), put("1")).await.unwrap();
    // The same value: only the mark tells whose it is.
    let theirs = direct.commit(swap(&version, "2")).await.unwrap();
    proxy.fail_next(NetworkFault::CutAfter);
    let ours = store.commit(swap(&version, "2")).await.unwrap();
    assert!(theirs.is_applied() && !ours.is_applied());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_that_others_have_written_over_is_unknown() {
    let fresh = Fresh::new();
    let (proxy, store, direct) = pair(&fresh).await;
    let version = direct.put(key("slot"), put("1")).await.unwrap();
    // Two more revisions: whose the first was cannot be seen any more.
    direct.put(key("slot"), put("2")).await.unwrap();
    direct.put(key("slot"), put("3")).await.unwrap();
    proxy.fail_next(NetworkFault::CutAfter);
    let error = store.commit(swap(&version, "4")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(direct.get(&key("slot")).await.unwrap().unwrap().value.as_str(), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_is_never_sent_twice() {
    let fresh = Fresh::new();
    let (proxy, store, direct) = pair(&fresh).await;
    let create = Commit::new().check(key("slot"), Expect::Absent).put(key("slot"), put("1"));
    // Sent again, it would create what somebody may have deleted in between.
    proxy.fail_next(NetworkFault::CutBefore);
    let error = store.commit(create.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(direct.get(&key("slot")).await.unwrap(), None);
    proxy.fail_next(NetworkFault::CutAfter);
    assert!(store.commit(create).await.unwrap().is_applied(), "known by its mark");
    let puts = proxy.log().into_iter().filter(|line| line.starts_with("PUT /"));
    assert_eq!(puts.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_whose_answer_is_lost_is_known_by_its_content() {
    let fresh = Fresh::new();
    let direct = fresh.documents().await;
    let proxy = HttpProxy::start(address()).await;
    let documents = CouchDbDocuments::open(fresh.impatient(proxy.address())).await.unwrap();
    let fields = |n: u32| Json::parse(format!(r#"{{"userId":"u","value":[{n}.50,"é"]}}"#)).unwrap();
    let ids = ["u:n:a".to_owned()];
    let read = async || direct.get_many(&ids).await.unwrap().remove(0);

    // Somebody else may have created an equal one.
    for fault in [NetworkFault::CutBefore, NetworkFault::CutAfter] {
        proxy.fail_next(fault);
        let unknown = documents.put(&ids[0], &fields(1), None).await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown, "{unknown}");
    }
    let first = read().await.unwrap();
    proxy.fail_next(NetworkFault::CutAfter);
    let swapped = documents.put(&ids[0], &fields(2), Some(&first)).await.unwrap();
    let second = read().await.unwrap();
    assert_eq!(swapped, Swapped::Applied { revision: second.revision.clone() });

    // Somebody else was first.
    proxy.fail_next(NetworkFault::CutAfter);
    let late = documents.put(&ids[0], &fields(3), Some(&first)).await.unwrap();
    assert_eq!(late, Swapped::Conflicted);
    // Others wrote over it: whether this one was among them cannot be seen.
    let _ = direct.put(&ids[0], &fields(4), Some(&second)).await.unwrap();
    let third = read().await.unwrap();
    proxy.fail_next(NetworkFault::CutAfter);
    let unknown = documents.put(&ids[0], &fields(3), Some(&first)).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown, "{unknown}");

    proxy.fail_next(NetworkFault::CutAfter);
    assert!(matches!(documents.delete(&third).await.unwrap(), Swapped::Applied { .. }));
    assert_eq!(read().await, None);
    proxy.fail_next(NetworkFault::CutBefore);
    let unknown = documents.put(&ids[0], &fields(5), None).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown, "{unknown}");
    assert_eq!(read().await, None);
}
