//! How large pages become.

use std::time::Duration;

use keyward_engine::{Commit, DocumentList, Documents, ErrorKind, Json, Scan, Store, Swapped};
use keyward_firestore::{Firestore, FirestoreDocuments};
use keyward_key::{KeyRange, Prefix};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};

use crate::emulator::{json_of, key, put, with_fresh};

fn below(name: &str) -> Scan {
    Scan::new(KeyRange::under(&Prefix::parse(name).unwrap())).limit(300)
}

/// Reads a range to its end: how many rows each page has.
async fn pages(store: &Store, name: &str) -> Vec<usize> {
    let (mut scan, mut rows) = (below(name), Vec::new());
    loop {
        let page = store.scan(&scan).await.unwrap();
        rows.push(page.rows.len());
        scan.after = page.next;
        if scan.after.is_none() {
            return rows;
        }
    }
}

#[test]
fn pages_of_large_rows_are_short_from_the_first_and_become_short_when_rows_grow() {
    // Nothing but quotes, which take four bytes each in an answer. These are more than the client reads at once.
    const ROWS: usize = 80;
    with_fresh(async |fresh| {
        let proxy = HttpProxy::start(fresh.address).await;
        let store = fresh.store_through(proxy.address(), TestClock::new()).await;
        let large = json_of(&serde_json::to_string(&"\"".repeat(470 << 10)).unwrap());
        for n in 0..ROWS {
            let put = keyward_engine::Put::new(large.clone());
            store.put(key(&format!("large:{n:03}")), put).await.unwrap();
        }
        let small = (0..100)
            .fold(Commit::new(), |commit, n| commit.put(key(&format!("small:{n:03}")), put("1")));
        assert!(store.commit(small).await.unwrap().is_applied());

        let fresh_store = fresh.store_through(proxy.address(), TestClock::new()).await;
        let rows = pages(&fresh_store, "large").await;
        assert!(rows.iter().all(|rows| *rows <= 16), "{rows:?}");
        assert_eq!(rows.iter().sum::<usize>(), ROWS);
        // Small rows are read by many, once it is known that they are small.
        let few = rows[0];
        let rows = pages(&fresh_store, "small").await;
        assert!(rows.iter().zip([few, few * 5]).all(|(rows, most)| *rows <= most), "{rows:?}");
        assert_eq!(pages(&fresh_store, "small").await, [100]);

        // A page that is too large is asked for once, and then half of it.
        let (page, requests) = proxy.count(fresh_store.scan(&below("large").limit(ROWS))).await;
        let page = page.unwrap();
        assert_eq!(page.rows.len(), ROWS / 2);
        assert_eq!(requests, 2);
    });
}

#[test]
fn a_page_that_does_not_arrive_in_time_is_shorter_the_next_time() {
    with_fresh(async |fresh| {
        let proxy = HttpProxy::start(fresh.address).await;
        let mut options = fresh.options_through(proxy.address());
        options.http.answer_timeout = Duration::from_secs(2);
        options.http.retry_budget = Duration::from_secs(3);
        let store = Store::new(Firestore::open_with(options, TestClock::new()).await.unwrap());
        let small = (0..100)
            .fold(Commit::new(), |commit, n| commit.put(key(&format!("small:{n:03}")), put("1")));
        assert!(fresh.store(TestClock::new()).await.commit(small).await.unwrap().is_applied());
        assert_eq!(pages(&store, "small").await.iter().sum::<usize>(), 100);
        assert_eq!(pages(&store, "small").await, [100]);
        proxy.fail_always(NetworkFault::Delay(Duration::from_secs(20)));
        let hundred = below("small").limit(100);
        let error = store.scan(&hundred).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        proxy.heal();
        let page = store.scan(&hundred).await.unwrap();
        assert_eq!(page.rows.len(), 50);
        assert!(page.next.is_some());
    });
}

#[test]
fn reads_that_are_too_large_for_one_answer_take_several() {
    with_fresh(async |fresh| {
        let mut options = fresh.options();
        options.http.answer_bytes_max = 100_000;
        let large = format!("\"{}\"", "x".repeat(20_000));
        let keys: Vec<_> = (0..40).map(|n| key(&format!("large:{n:02}"))).collect();
        let store =
            Store::new(Firestore::open_with(options.clone(), TestClock::new()).await.unwrap());
        let puts =
            keys.iter().fold(Commit::new(), |commit, it| commit.put(it.clone(), put(&large)));
        assert!(store.commit(puts).await.unwrap().is_applied());
        let wanted: Vec<_> = keys.iter().cloned().chain([key("absent")]).collect();
        let found = store.get_many(&wanted).await.unwrap();
        assert_eq!(found.len(), 41);
        assert!(found[..40].iter().flatten().all(|entry| entry.value.as_str() == large));
        assert!(found[..40].iter().all(Option::is_some) && found[40].is_none());

        let documents = FirestoreDocuments::open(options).await.unwrap();
        let ids: Vec<String> = (0..40).map(|n| format!("u:n:{n:02}")).collect();
        let fields = format!(r#"{{"userId":"u","namespace":"n","value":{large}}}"#);
        let fields = Json::parse(fields).unwrap();
        for id in &ids {
            let swapped = documents.put(id, &fields, None).await.unwrap();
            assert!(matches!(swapped, Swapped::Applied { .. }));
        }
        let found = documents.get_many(&ids).await.unwrap();
        assert!(found.iter().all(|it| it.as_ref().is_some_and(|it| it.fields.len() > 20_000)));
        let (mut listed, mut after) = (0, None);
        loop {
            let list = DocumentList {
                owner: "u".to_owned(),
                group: Some("n".to_owned()),
                with_documents: true,
                after,
                limit: 40,
            };
            let page = documents.list(&list).await.unwrap();
            listed += page.rows.len();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, 40);
    });
}
