//! Earlier versions.

use keyward_records::{Caller, Precondition, Written};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, draft, own, put};

on_every_engine!(the_last_versions_are_kept, an_earlier_version_comes_back);

async fn the_last_versions_are_kept(place: Place) {
    let fixture = Fixture::new(place).await;
    let caller = Caller::user("ada").with_agent("editor");
    let pages = fixture.records.space("pages", &caller).unwrap();
    let key = own(&pages, "p");
    for n in 1..=4 {
        put(&pages, "p", &format!(r#"{{"slug":"s","n":{n}}}"#)).await;
    }
    assert_eq!(pages.delete(&key, Precondition::Any).await.unwrap(), Written::Removed);
    put(&pages, "p", "null").await;
    let history = pages.history(&key, None, 10).await.unwrap();
    let told: Vec<(u64, &str, Option<String>)> = history
        .iter()
        .map(|past| (past.seq, past.act.as_str(), past.value.as_ref().map(ToString::to_string)))
        .collect();
    // Three are kept; a value of null is a value.
    assert_eq!(
        told,
        [
            (6, "put", Some("null".to_owned())),
            (5, "delete", None),
            (4, "put", Some(r#"{"slug":"s","n":4}"#.to_owned())),
        ]
    );
    assert_eq!(history[0].user.as_deref(), Some("ada"));
    assert_eq!(history[0].agent.as_deref(), Some("editor"));
    assert_eq!(pages.history(&key, Some(5), 10).await.unwrap().len(), 1);
    let bob = fixture.space("pages", "bob");
    assert_eq!(bob.history(&key, None, 10).await.unwrap_err().code(), "forbidden");
}

async fn an_earlier_version_comes_back(place: Place) {
    let fixture = Fixture::new(place).await;
    let pages = fixture.space("pages", "ada");
    let key = own(&pages, "p");
    put(&pages, "p", r#"{"slug":"one"}"#).await;
    put(&pages, "p", r#"{"slug":"two"}"#).await;
    assert!(pages.restore(&key, 1, Precondition::Any).await.unwrap().is_accepted());
    let record = pages.get(&key).await.unwrap().unwrap();
    assert_eq!(record.value.as_str(), r#"{"slug":"one"}"#);
    // Its entries come back with it, and what another record took meanwhile stays taken.
    put(&pages, "q", r#"{"slug":"two"}"#).await;
    let clash = pages.restore(&key, 2, Precondition::Any).await.unwrap_err();
    assert_eq!(clash.code(), "unique-clash");
    assert_eq!(pages.restore(&key, 9, Precondition::Any).await.unwrap_err().code(), "bad-change");
    let other = own(&pages, "r");
    let put = pages.create(&other, draft(r#"{"slug":"three"}"#)).await.unwrap();
    assert!(put.is_accepted());
}
