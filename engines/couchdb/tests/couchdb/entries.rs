//! Documents of entries, as CouchDB and other programs see them.

use std::collections::HashSet;
use std::time::Duration;

use keyward_engine::{Commit, ErrorKind, Expect, Expiry, Json, Put, Scan, Version};
use keyward_key::KeyRange;
use keyward_testkit::TestClock;
use serde_json::json;

use crate::server::{Fresh, key, put};

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_one_document_that_keeps_its_text() {
    let fresh = Fresh::new();
    let store = fresh.store().await;
    let value = r#"{"n":1.00,"big":123456789012345678901234567890,"e":1e400,"s":"\u0041\/"}"#;
    let metadata = Json::parse(r#"{"size":1.50}"#).unwrap();
    let entry = put(value).with_metadata(metadata).expiring(Expiry::After(Duration::from_secs(60)));
    store.put(key("user:7:a"), entry).await.unwrap();
    let document = fresh.read("/keyward!user!7!a");
    assert_eq!(document["value"], value);
    assert_eq!(document["metadata"], r#"{"size":1.50}"#);
    assert_eq!(document["keyward"], 1);
    assert_eq!(document["expires"], 1_767_225_660_000_i64);
    let read = store.get(&key("user:7:a")).await.unwrap().unwrap();
    assert_eq!(read.value.as_str(), value);
    let rev = document["_rev"].as_str().unwrap();
    assert_eq!(read.version.to_string(), format!("{rev}.1767225660000"));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_like_couchdbs_own_names_work_beside_documents_of_others() {
    let fresh = Fresh::new();
    let store = fresh.store().await;
    let design = json!({"views": {"v": {"map": "function(doc) { emit(doc._id); }"}}});
    fresh.write("/_design/data_store", &design);
    for foreign in ["/a", "/keyward", "/keyward%20a", "/keyward~", "/zz", "/user:n:a2V5"] {
        fresh.write(foreign, &json!({"value": "1", "keyward": 1}));
    }
    assert_eq!(store.stats().await.unwrap().entries, 0);
    for own in ["_design:data_store", "_design", "_local:x", "_all_docs", "_id", "_", "keyward"] {
        store.put(key(own), put("1")).await.unwrap();
    }
    let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
    assert_eq!(page.rows.len(), 7, "{:?}", page.rows);
    assert_eq!(store.stats().await.unwrap().entries, 7);
    for row in page.rows {
        store.delete(row.key).await.unwrap();
    }
    assert_eq!(store.stats().await.unwrap().entries, 0);
    let views = &fresh.read("/_design/data_store")["views"];
    assert_eq!(views, &design["views"]);
    assert_eq!(fresh.read("/a")["value"], "1");
    store.verify(&KeyRange::all()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_no_entry_is_reported_and_never_passed_off_as_one() {
    let fresh = Fresh::new();
    let store = fresh.store().await;
    store.put(key("b"), put("1")).await.unwrap();
    // No key has this id: it cannot be read by one, and is in no scan.
    fresh.write("/keyward!b%20c", &json!({"keyward": 1, "value": "1"}));
    let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    let error = store.verify(&KeyRange::all()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("\"keyward!b c\""), "{error}");
    // This one has the id of a key.
    fresh.write("/keyward!a", &json!({"value": 1}));
    let corrupt = |error: keyward_engine::Error| {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("\"keyward!a\""), "{error}");
    };
    corrupt(store.get(&key("a")).await.unwrap_err());
    corrupt(store.get_many(&[key("a"), key("b")]).await.unwrap_err());
    corrupt(store.scan(&Scan::new(KeyRange::all())).await.unwrap_err());
    let create = Commit::new().check(key("a"), Expect::Absent).put(key("a"), put("1"));
    corrupt(store.commit(create).await.unwrap_err());
    store.get(&key("b")).await.unwrap().unwrap();
    // A put without a check puts it right.
    store.put(key("a"), put("2")).await.unwrap();
    assert_eq!(store.get(&key("a")).await.unwrap().unwrap().value.as_str(), "2");
}

/// CouchDB computes a revision from the document and the one before. Purged with its history, a document begins anew:
/// only what is random in each write keeps its revisions apart.
#[tokio::test(flavor = "multi_thread")]
async fn versions_do_not_come_back_where_couchdb_forgot_the_document() {
    let fresh = Fresh::new();
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let store = fresh.store().await;
        for _ in 0..2 {
            let version = store.put(key("slot"), put("1")).await.unwrap();
            assert!(seen.insert(version.clone()), "{version} came twice");
        }
        // A purge leaves nothing of a document; so does this of all of them.
        fresh.request("DELETE", "", "");
    }
    fresh.store().await;
    // The same by another program, without a mark, does come back: the test would see it.
    let document = json!({"keyward": 1, "value": "1"});
    let first = fresh.write("/keyward!slot", &document);
    fresh.request("DELETE", "", "");
    fresh.request("PUT", "", "");
    assert_eq!(fresh.write("/keyward!slot", &document), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_without_its_end_or_of_another_form_never_holds() {
    let fresh = Fresh::new();
    let clock = TestClock::new();
    let store = fresh.store_by(clock.clone()).await;
    let slot = key("slot");
    let ending = put("1").expiring(Expiry::After(Duration::from_secs(10)));
    let version = store.put(slot.clone(), ending).await.unwrap().to_string();
    let swap = |version: &str| {
        let expect = Expect::Version(Version::parse(version));
        store.commit(Commit::new().check(slot.clone(), expect).put(slot.clone(), put("2")))
    };
    let (rev, end) = version.split_once('.').unwrap();
    for wrong in
        [rev.to_uppercase(), format!("0{version}"), format!("{rev}.0{end}"), "1".to_owned()]
    {
        assert!(!swap(&wrong).await.unwrap().is_applied(), "{wrong}");
    }
    clock.advance(Duration::from_secs(10));
    assert!(!swap(&version).await.unwrap().is_applied(), "it has expired");
    let create = Commit::new().check(slot.clone(), Expect::Absent).put(slot.clone(), put("3"));
    assert!(store.commit(create).await.unwrap().is_applied());
    assert!(!swap(&version).await.unwrap().is_applied(), "another entry is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_entry_of_another_process_is_reclaimed_once_somebody_reads_it() {
    let fresh = Fresh::new();
    let clock = TestClock::new();
    {
        let other = fresh.store_by(clock.clone()).await;
        for n in 0..150 {
            let ending = put("1").expiring(Expiry::After(Duration::from_secs(10)));
            other.put(key(&format!("ends:{n:03}")), ending).await.unwrap();
        }
    }
    let store = fresh.store_by(clock.clone()).await;
    clock.advance(Duration::from_secs(10));
    store.put(key("stays"), put("1")).await.unwrap();
    assert_eq!(store.stats().await.unwrap().entries, 151, "nobody knows of them yet");
    let mut scan = Scan::new(KeyRange::all()).limit(1_000);
    loop {
        let page = store.scan(&scan).await.unwrap();
        scan.after = page.next;
        if scan.after.is_none() {
            break;
        }
    }
    // One was written again meanwhile.
    let again = fresh.store_by(clock).await;
    again.put(key("ends:000"), put("2")).await.unwrap();
    // Deleted beside commits, and not by them.
    let mut commits = 0;
    while store.stats().await.unwrap().entries > 2 {
        commits += 1;
        assert!(commits < 1_000, "expired entries stay");
        store.put(key("stays"), put("1")).await.unwrap();
    }
    assert_eq!(store.get(&key("ends:000")).await.unwrap().unwrap().value.as_str(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn puts_without_a_check_all_arrive_while_many_write_one_key() {
    let fresh = Fresh::new();
    let store = fresh.store().await;
    let writes = (0..16).map(|n| {
        let (store, slot) = (store.clone(), key("slot"));
        tokio::spawn(async move { store.put(slot, Put::new(Json::from_integer(n))).await.unwrap() })
    });
    let mut seen = HashSet::new();
    for write in writes.collect::<Vec<_>>() {
        assert!(seen.insert(write.await.unwrap()));
    }
    let last = store.get(&key("slot")).await.unwrap().unwrap();
    assert!(seen.contains(&last.version));
    assert!(last.version.to_string().starts_with("16-"), "{}", last.version);
}
