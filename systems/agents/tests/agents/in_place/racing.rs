//! Several processes at the same time.

use keyward_agents::Actor;
use keyward_records::Written;
use keyward_testkit::Meaning;

use super::place::InPlace;
use crate::fixture::{json, set};

on_documents!(
    two_racing_sets_both_succeed_and_no_metadata_is_lost,
    sets_and_counted_accesses_do_not_undo_each_other,
);

const ROUNDS: usize = 1_000;

async fn two_racing_sets_both_succeed_and_no_metadata_is_lost(place: InPlace) {
    let notes = place.namespace("default").await;
    let rival = place.agents().await.user("ada", Actor::agent("rival"));
    let others = rival.use_namespace("default").unwrap();
    for round in 0..ROUNDS {
        // New entries, and entries that are there.
        let key = format!("k{}", round / 2);
        let one = set(&round.to_string()).metadata(json(&format!(r#"{{"a{round}":1}}"#)));
        let two = set(&round.to_string()).metadata(json(&format!(r#"{{"b{round}":1}}"#)));
        let task = tokio::spawn({
            let (others, key) = (others.clone(), key.clone());
            async move { others.set(&key, two).await }
        });
        let one = notes.set(&key, one).await.unwrap();
        let two = task.await.unwrap().unwrap();
        let made = |written: &Written| matches!(written, Written::Applied { created: true, .. });
        assert_eq!(usize::from(made(&one)) + usize::from(made(&two)), usize::from(round % 2 == 0));
        let id = format!("ada:default:{}", data_encoding::BASE64URL.encode(key.as_bytes()));
        let document = place.meaning(&id).await;
        let metadata = document.member("metadata").unwrap();
        for name in [format!("a{round}"), format!("b{round}")] {
            assert!(metadata.member(&name).is_some(), "{name} is missing in {metadata:?}");
        }
    }
}

async fn sets_and_counted_accesses_do_not_undo_each_other(place: InPlace) {
    const WRITES: usize = 100;
    let notes = place.namespace("default").await;
    assert!(notes.set("k", set("0")).await.unwrap().is_accepted());
    let readers = place.agents().await;
    let reader = readers.user("ada", Actor::agent("reader")).use_namespace("default").unwrap();
    let writing = tokio::spawn(async move {
        for n in 0..WRITES {
            let metadata = json(&format!(r#"{{"m{n}":{n}}}"#));
            let written = notes.set("k", set(&n.to_string()).metadata(metadata)).await.unwrap();
            assert!(written.is_accepted());
        }
    });
    for _ in 0..WRITES {
        assert!(reader.get("k").await.unwrap().is_some());
        readers.flush().await.unwrap();
    }
    writing.await.unwrap();
    readers.close().await.unwrap();
    let document = place.meaning("ada:default:aw==").await;
    assert_eq!(document.member("accessCount"), Some(&Meaning::of(&WRITES.to_string())));
    let metadata = document.member("metadata").unwrap();
    assert!((0..WRITES).all(|n| metadata.member(&format!("m{n}")).is_some()), "{metadata:?}");
}
