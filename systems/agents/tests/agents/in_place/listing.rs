//! Keys and namespaces, page by page.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use keyward_agents::{Actor, EntryCopy};
use keyward_engine::{Code, Coded, Json};
use keyward_records::Error as RecordsError;

use super::place::{InPlace, entry};
use crate::fixture::{keys, namespaces, put};

on_documents!(
    ten_thousand_and_fifty_keys_list_as_so_many,
    keys_come_in_their_order_and_not_in_that_of_ids,
    pages_go_on_while_entries_come_and_go,
    what_a_process_does_it_lists_at_once,
    lists_of_all_users_are_refused,
    documents_that_lists_leave_out_are_told,
);

async fn ten_thousand_and_fifty_keys_list_as_so_many(place: InPlace) {
    const KEYS: usize = 10_050;
    let client = place.documents().await;
    let name = |n: usize| format!("src/{}/file-{n}.rs", n % 7);
    stream::iter(0..KEYS)
        .map(async |n| {
            let name = name(n);
            let fields = entry("ada", "files:repo", &name, &n.to_string());
            let id = format!("ada:files:repo:{}", data_encoding::BASE64URL.encode(name.as_bytes()));
            drop(client.put(&id, &Json::parse(fields).unwrap(), None).await.unwrap());
        })
        .buffer_unordered(32)
        .collect::<()>()
        .await;
    put(&place.namespace("other").await, "k", "1").await;
    place.settle().await;
    let files = place.namespace("files:repo").await;
    let expected: BTreeSet<String> = (0..KEYS).map(name).collect();
    let listed = keys(&files, "", 1_000).await;
    assert_eq!(listed.len(), KEYS);
    assert!(listed.iter().eq(&expected));
    // Another process goes on with a cursor of this one only if both know its secret.
    let part = keys(&files, "src/3/", 100).await;
    assert!(part.iter().eq(expected.iter().filter(|key| key.starts_with("src/3/"))));
    assert_eq!(
        files.count("src/3/file-1").await.unwrap(),
        part.iter().filter(|key| key.starts_with("src/3/file-1")).count()
    );
    let user = place.user("ada").await;
    assert_eq!(namespaces(&user, 1).await, ["files:repo", "other"]);
    let page = files.get_all("src/6/", None, 100).await.unwrap();
    assert_eq!(page.entries.len(), 100);
    assert!(page.next.is_some());
}

async fn keys_come_in_their_order_and_not_in_that_of_ids(place: InPlace) {
    let notes = place.namespace("default").await;
    // In base64, these stand in another order.
    let names = ["", "A", "Z", "a", "a/b", "a0", "aa", "z", "~", "é", "日本", "😀"];
    for name in names.iter().skip(1).rev() {
        put(&notes, name, "1").await;
    }
    place.settle().await;
    for limit in 1..5 {
        assert_eq!(keys(&notes, "", limit).await, names[1..]);
    }
    assert_eq!(keys(&notes, "a", 2).await, ["a", "a/b", "a0", "aa"]);
}

async fn pages_go_on_while_entries_come_and_go(place: InPlace) {
    let notes = place.namespace("default").await;
    let other = place.namespace("default").await;
    for n in 0..40 {
        put(&notes, &format!("k{n:02}"), "1").await;
    }
    place.settle().await;
    let (mut listed, mut after) = (Vec::new(), None);
    for round in 0.. {
        let page = notes.list_keys("", after, 7).await.unwrap();
        listed.extend(page.keys);
        after = page.next;
        if after.is_none() {
            break;
        }
        // What stays is listed once, whatever else happens: the last one that was listed goes, and one far behind.
        assert!(notes.delete(listed.last().unwrap()).await.unwrap());
        put(&other, &format!("k00-{round}"), "1").await;
        put(&notes, &format!("k99-{round}"), "1").await;
        place.clock().advance(std::time::Duration::from_secs(4));
    }
    let staying = (0..40).map(|n| format!("k{n:02}"));
    for key in staying {
        assert_eq!(listed.iter().filter(|it| **it == key).count(), 1, "{key}: {listed:?}");
    }
    assert!(listed.is_sorted(), "{listed:?}");
}

/// Also where the database's index is late.
async fn what_a_process_does_it_lists_at_once(place: InPlace) {
    let notes = place.namespace("default").await;
    for n in 0..30 {
        put(&notes, &format!("k{n:02}"), "1").await;
    }
    assert_eq!(keys(&notes, "", 7).await.len(), 30);
    for n in (0..30).step_by(2) {
        assert!(notes.delete(&format!("k{n:02}")).await.unwrap());
    }
    let odd: Vec<String> = (0..30).filter(|n| n % 2 == 1).map(|n| format!("k{n:02}")).collect();
    assert_eq!(keys(&notes, "", 7).await, odd);
    assert_eq!(notes.count("").await.unwrap(), 15);
    put(&notes, "k00", "2").await;
    assert_eq!(keys(&notes, "k0", 2).await, ["k00", "k01", "k03", "k05", "k07", "k09"]);
    assert_eq!(notes.get_all("k0", None, 100).await.unwrap().entries.len(), 6);
    place.settle().await;
    assert_eq!(keys(&notes, "", 7).await.len(), 16);
}

async fn lists_of_all_users_are_refused(place: InPlace) {
    let agents = place.agents().await;
    put(&place.namespace("default").await, "k", "1").await;
    let store = agents.records().store();
    for range in ["agents", "system:access:agents"] {
        let range = keyward_key::KeyRange::under(&keyward_key::Prefix::parse(range).unwrap());
        let refused = store.scan(&keyward_engine::Scan::new(range)).await.unwrap_err();
        assert_eq!(refused.kind(), keyward_engine::ErrorKind::Unsupported);
    }
    let refused = RecordsError::from(store.stats().await.unwrap_err());
    assert_eq!(refused.code(), Code::Unsupported);
}

async fn documents_that_lists_leave_out_are_told(place: InPlace) {
    let (at, other) = ("ada:default:", "ada:other:");
    let wrong = [
        ("just-an-id".to_owned(), entry("ada", "default", "y", "1")),
        (format!("{at}not base64"), entry("ada", "default", "x", "1")),
        // Its id names another key, which shows when it is read.
        (format!("{at}bA=="), entry("ada", "default", "m", "1")),
        (format!("{other}b"), entry("ada", "other", "b", "1")),
        (format!("{at}aw=="), entry("ada", "default", "k", "1")),
    ];
    let wrong: Vec<(&str, &str)> =
        wrong.iter().map(|(id, it)| (id.as_str(), it.as_str())).collect();
    place.load(&wrong).await;
    let user = place.user("ada").await;
    assert_eq!(user.skipped(None).await.unwrap().documents, 0, "nothing was listed yet");
    let notes = user.use_namespace("default").unwrap();
    assert_eq!(notes.list_keys("", None, 10).await.unwrap().keys, ["k"]);
    assert_eq!(user.skipped(Some("default")).await.unwrap().documents, 3);
    for _ in 0..2 {
        let stats = notes.stats().await.unwrap();
        assert_eq!((stats.record_count, stats.skipped.documents), (1, 3));
        let told = stats.to_json().to_string();
        assert!(told.contains(r#""skipped":3,"lastSkipped":""#), "{told}");
    }
    assert_eq!(user.skipped(Some("other")).await.unwrap().documents, 0);
    let target = place.agents().await;
    let copy = EntryCopy::new(user.agents().clone(), target).user("ada");
    let planned = copy.plan(|_| ()).await.unwrap();
    assert_eq!((planned.equal, planned.skipped.documents), (1, 4));
    assert!(planned.skipped.last_id.is_some());
    let eve = user.agents().user("eve", Actor::nobody());
    assert_eq!(eve.skipped(None).await.unwrap().documents, 0);
}
