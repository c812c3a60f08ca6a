//! Earlier versions that must not say any more what they said.

use keyward_engine::{Code, Coded};
use keyward_records::{Caller, Precondition};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, own, put};

on_every_engine!(
    a_redacted_version_tells_who_and_when_and_not_what,
    what_a_record_is_now_cannot_be_redacted,
    a_redacted_version_cannot_be_restored,
);

const SECRET: &str = r#"{"slug":"s","secret":"hunter2"}"#;

async fn a_redacted_version_tells_who_and_when_and_not_what(place: Place) {
    let fixture = Fixture::new(place).await;
    let writer = Caller::user("ada").with_agent("editor").in_run("r1");
    let pages = fixture.records.space("pages", &writer).unwrap();
    let key = own(&pages, "p");
    put(&pages, "p", SECRET).await;
    put(&pages, "p", r#"{"slug":"s"}"#).await;
    let redactor = Caller::user("ada").with_agent("cleaner").in_run("r2");
    let redactor = fixture.records.space("pages", &redactor).unwrap();
    assert!(redactor.redact(&key, 1).await.unwrap());
    assert!(!redactor.redact(&key, 1).await.unwrap());
    let history = pages.history(&key, None, 10).await.unwrap();
    let [now, redacted] = history.as_slice() else { panic!("{history:?}") };
    assert!(now.value.is_some() && now.redacted.is_none());
    assert_eq!(
        (redacted.seq, redacted.value.as_ref(), redacted.metadata.as_ref()),
        (1, None, None)
    );
    assert_eq!((redacted.agent.as_deref(), redacted.run.as_deref()), (Some("editor"), Some("r1")));
    let by = redacted.redacted.as_ref().unwrap();
    assert_eq!((by.user.as_deref(), by.agent.as_deref()), (Some("ada"), Some("cleaner")));
    assert_eq!(
        (by.run.as_deref(), by.at),
        (Some("r2"), keyward_engine::Clock::now(fixture.place.clock()))
    );
    // Nowhere in the store.
    let everything = keyward_engine::Scan::new(keyward_key::KeyRange::all()).limit(1_000);
    for row in fixture.store().scan(&everything).await.unwrap().rows {
        assert!(!row.entry.unwrap().value.as_str().contains("hunter2"), "{}", row.key);
    }
    let bob = fixture.space("pages", "bob");
    assert_eq!(bob.redact(&key, 2).await.unwrap_err().code(), Code::Forbidden);
}

async fn what_a_record_is_now_cannot_be_redacted(place: Place) {
    let fixture = Fixture::new(place).await;
    let pages = fixture.space("pages", "ada");
    let key = own(&pages, "p");
    put(&pages, "p", SECRET).await;
    assert_eq!(pages.redact(&key, 1).await.unwrap_err().code(), Code::BadChange);
    assert_eq!(pages.redact(&key, 2).await.unwrap_err().code(), Code::BadChange);
    let _ = pages.delete(&key, Precondition::Any).await.unwrap();
    // That it was deleted says nothing that could be taken.
    assert!(!pages.redact(&key, 2).await.unwrap());
    assert!(pages.redact(&key, 1).await.unwrap());
}

async fn a_redacted_version_cannot_be_restored(place: Place) {
    let fixture = Fixture::new(place).await;
    let pages = fixture.space("pages", "ada");
    let key = own(&pages, "p");
    put(&pages, "p", SECRET).await;
    put(&pages, "p", r#"{"slug":"t"}"#).await;
    // Redacted while it is being restored: between reading it and writing the record.
    let rival = fixture.space("pages", "ada");
    let mut redacted = false;
    let outcome = pages.restore_with(&key, 1, Precondition::Any, |_, value, _| {
        if !redacted {
            redacted = true;
            let (rival, key) = (rival.clone(), key.clone());
            let redact = async move { rival.redact(&key, 1).await };
            let handle = tokio::runtime::Handle::current();
            let done = tokio::task::block_in_place(|| handle.block_on(redact));
            assert!(done.unwrap());
        }
        Ok(keyward_records::Next::new(value.clone()))
    });
    assert_eq!(outcome.await.unwrap_err().code(), Code::BadChange);
    let record = pages.get(&key).await.unwrap().unwrap();
    assert_eq!(record.value.as_str(), r#"{"slug":"t"}"#);
    let again = pages.restore(&key, 1, Precondition::Any).await.unwrap_err();
    assert!(again.to_string().contains("was redacted"), "{again}");
}
