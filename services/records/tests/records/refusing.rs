//! Bad input: a clear error with a code and a hint, and nothing changed.

use keyward_engine::{Code, Coded, Scan, Store};
use keyward_key::KeyRange;
use keyward_records::{Draft, Error, Filter, Query, Result};
use keyward_stores::{Place, on_databases, on_every_engine};

use crate::fixture::{Fixture, draft, json, key, own, put};

on_every_engine!(bad_input_is_refused_and_changes_nothing, a_cursor_is_for_its_own_question);
on_databases!(a_cursor_is_for_its_own_question);

async fn dump(store: &Store) -> String {
    let page = store.scan(&Scan::new(KeyRange::all()).limit(1_000)).await.unwrap();
    format!("{:?}", page.rows)
}

fn refused<T: std::fmt::Debug>(result: Result<T>, code: Code, says: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    assert!(!error.hint().is_empty());
}

async fn bad_input_is_refused_and_changes_nothing(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    let pages = fixture.space("pages", "ada");
    put(&notes, "n1", r#"{"title":"one"}"#).await;
    put(&pages, "p1", r#"{"slug":"one"}"#).await;
    let before = dump(fixture.store()).await;
    let note = own(&notes, "n1");

    refused(notes.put(&note, draft(r#"{"text":"no title"}"#)).await, Code::SchemaMismatch, "title");
    refused(notes.put(&note, draft(r#"{"title":7}"#)).await, Code::SchemaMismatch, "/title");
    let long = format!(r#"{{"title":["{}"]}}"#, "é".repeat(50_000));
    let error = notes.put(&note, draft(&long)).await.unwrap_err();
    assert_eq!(error.code(), Code::SchemaMismatch);
    assert!(error.to_string().contains("[\"é") && error.to_string().len() < 500, "{error}");
    refused(
        pages.put(&own(&pages, "p2"), draft(r#"{"slug":"one"}"#)).await,
        Code::UniqueClash,
        "slug",
    );
    let due = r#"{"title":"x","folder":"f","due":"2026-13-01T00:00:00Z"}"#;
    refused(notes.put(&note, draft(due)).await, Code::SchemaMismatch, "/due");
    let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(5_000));
    refused(notes.put(&note, draft(&long)).await, Code::Unindexable, "by_title");
    let reserved = draft(r#"{"title":"x"}"#).with_metadata(json(r#"{"$keyward":1}"#));
    refused(notes.put(&note, reserved).await, Code::BadChange, "$keyward");
    refused(notes.put(&key("user:ada:other:n1"), draft("{}")).await, Code::KeyMismatch, "notes");
    let editor = keyward_records::Caller::user("e").with_role("editor");
    let templates = fixture.records.space("templates", &editor).unwrap();
    let large = Draft::new(json(&format!("\"{}\"", "x".repeat(200))));
    refused(templates.put(&key("shared:templates:t"), large).await, Code::ValueTooLarge, "100");

    refused(notes.query(&Query::index("by_colour")).await, Code::UnknownIndex, "by_title");
    refused(notes.query(&Query::index("by_title").limit(0)).await, Code::BadQuery, "limit");
    refused(notes.query(&Query::index("by_title").limit(5_000)).await, Code::BadQuery, "1000");
    refused(notes.query(&Query::index("by_votes").equal("many")).await, Code::BadQuery, "votes");
    refused(
        notes.query(&Query::index("by_title").equal("a").equal("b")).await,
        Code::BadQuery,
        "field",
    );
    let filter = Filter::parse(r#"{"title":"one"}"#).unwrap();
    let scan = Query::key(keyward_key::Bindings::new()).filter(filter);
    refused(notes.query(&scan).await, Code::NeedsScan, "notes");
    assert_eq!(notes.query(&scan.allow_scan()).await.unwrap().records.len(), 1);
    refused(fixture.records.space("nots", notes.caller()), Code::UnknownSpace, "notes");
    assert_eq!(dump(fixture.store()).await, before);
}

async fn a_cursor_is_for_its_own_question(place: Place) {
    let fixture = Fixture::new(place).await;
    for user in ["ada", "bob"] {
        for n in 0..5 {
            put(&fixture.space("notes", user), &format!("n{n}"), r#"{"title":"t","votes":1}"#)
                .await;
        }
    }
    let notes = fixture.space("notes", "ada");
    let query = Query::index("by_title").limit(2);
    let next = notes.query(&query).await.unwrap().next;
    let is_bad = |result: Result<keyward_records::Answer>| {
        matches!(result.unwrap_err(), Error::BadCursor(_))
    };
    let bob = fixture.space("notes", "bob");
    assert!(is_bad(bob.query(&query.clone().after(next.clone())).await));
    let other = Query::index("by_votes").after(next.clone());
    assert!(is_bad(notes.query(&other).await));
    assert!(is_bad(notes.query(&query.clone().equal("t").after(next.clone())).await));
    assert!(is_bad(notes.query(&query.clone().descending().after(next.clone())).await));
    assert!(is_bad(notes.query(&query.clone().after(Some("AAAA".into()))).await));
    // The size of a page may change, and another process may go on.
    let again = fixture.again().await.space("notes", notes.caller()).unwrap();
    let rest = again.query(&query.limit(10).after(next)).await.unwrap();
    assert_eq!(rest.records.len(), 3);
    assert_eq!(rest.next, None);
}
