//! Asking indexes.

use keyward_engine::{Code, Coded};
use keyward_key::Bindings;
use keyward_records::{Bound, Filter, Query, Span};
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, all, draft, put};

on_engines!(
    memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable;
    an_index_answers_in_order,
    paging_gives_every_record_once,
    a_filter_and_pages_give_what_a_filter_gives,
    a_folded_prefix_finds_what_starts_with_it_whatever_follows,
    values_of_fields_are_not_asked_of_keys,
);

async fn an_index_answers_in_order(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    put(&notes, "n1", r#"{"title":"banana","votes":-5,"tags":["red","blue"]}"#).await;
    put(&notes, "n2", r#"{"title":"apple","votes":70}"#).await;
    put(
        &notes,
        "n3",
        r#"{"title":"cherry","votes":7,"tags":["red"],"folder":"f","due":"2026-01-02T00:00:00Z"}"#,
    )
    .await;
    put(&notes, "n4", r#"{"title":"apples","folder":"f","due":"2026-01-01T00:00:00+14:00"}"#).await;
    let titles = Query::index("by_title");
    assert_eq!(all(&notes, titles.clone()).await, ["n2", "n4", "n1", "n3"]);
    assert_eq!(all(&notes, titles.clone().descending().limit(1)).await, ["n3", "n1", "n4", "n2"]);
    assert_eq!(all(&notes, titles.clone().prefix("app")).await, ["n2", "n4"]);
    assert_eq!(all(&notes, titles.clone().equal("apple")).await, ["n2"]);
    assert_eq!(all(&notes, titles.clone().between("apples", "banana")).await, ["n4", "n1"]);
    let between = |from: Option<(&str, bool)>, to: Option<(&str, bool)>| {
        let bound = |end: Option<(&str, bool)>| {
            end.map(|(value, inclusive)| Bound { value: value.into(), inclusive })
        };
        titles.clone().span(Span::Between { from: bound(from), to: bound(to) })
    };
    assert_eq!(all(&notes, between(Some(("apple", false)), None)).await, ["n4", "n1", "n3"]);
    assert_eq!(all(&notes, between(None, Some(("banana", false)))).await, ["n2", "n4"]);
    assert_eq!(all(&notes, Query::index("by_votes")).await, ["n1", "n3", "n2"]);
    assert_eq!(all(&notes, Query::index("by_votes").between(-10, 7)).await, ["n1", "n3"]);
    assert_eq!(all(&notes, Query::index("by_tag").equal("red")).await, ["n1", "n3"]);
    assert_eq!(all(&notes, Query::index("by_tag")).await, ["n1", "n3"]);
    assert_eq!(all(&notes, Query::index("by_folder_and_due").equal("f")).await, ["n4", "n3"]);
    let filtered = titles.filter(Filter::parse(r#"{"votes":{"gt":0}}"#).unwrap());
    assert_eq!(all(&notes, filtered).await, ["n2", "n3"]);
    assert!(all(&fixture.space("notes", "bob"), Query::index("by_title")).await.is_empty());
    // What changes moves, what is deleted goes.
    put(&notes, "n2", r#"{"title":"zebra"}"#).await;
    assert_eq!(all(&notes, Query::index("by_title")).await, ["n4", "n1", "n3", "n2"]);
    assert_eq!(all(&notes, Query::index("by_votes")).await, ["n1", "n3"]);
}

async fn paging_gives_every_record_once(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    for n in 0..50 {
        put(
            &notes,
            &format!("n{n:02}"),
            &format!(r#"{{"title":"t{}","tags":["a","b{n}"]}}"#, n % 7),
        )
        .await;
    }
    for limit in [1, 3, 50, 100] {
        for query in [
            Query::index("by_title"),
            Query::index("by_tag"),
            Query::index("by_title").descending(),
        ] {
            let mut found = all(&notes, query.limit(limit)).await;
            found.sort();
            let expected: Vec<String> = (0..50).map(|n| format!("n{n:02}")).collect();
            assert_eq!(found, expected);
        }
    }
}

/// More is read than a page has room for; the next page goes on after what was used.
async fn a_filter_and_pages_give_what_a_filter_gives(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    for n in 0..90 {
        let value = format!(r#"{{"title":"t","votes":{},"tags":["a","b{n}"]}}"#, n % 3);
        put(&notes, &format!("n{n:02}"), &value).await;
    }
    let expected: Vec<String> = (0..90).step_by(3).map(|n| format!("n{n:02}")).collect();
    for limit in [1, 2, 7, 30, 100] {
        for query in [
            Query::index("by_title"),
            Query::index("by_tag"),
            Query::index("by_tag").descending(),
            Query::key(Bindings::new()).allow_scan(),
            Query::key(Bindings::new()).allow_scan().descending(),
        ] {
            let filter = Filter::parse(r#"{"votes":0}"#).unwrap();
            let asked = format!("{query:?}");
            let mut found = all(&notes, query.filter(filter).limit(limit)).await;
            found.sort();
            assert_eq!(found, expected, "{asked} {limit}");
        }
    }
}

async fn a_folded_prefix_finds_what_starts_with_it_whatever_follows(place: Place) {
    let fixture = Fixture::new(place).await;
    let people = fixture.space("people", "ada");
    let me = people.key(Bindings::new()).unwrap();
    assert!(people.put(&me, draft(r#"{"email":"ΟΔΟΣΑ"}"#)).await.unwrap().is_accepted());
    let operator = keyward_records::Caller::operator();
    let everyone = fixture.records.space("people", &operator).unwrap();
    for prefix in ["ΟΔΟΣ", "οδος", "οδοσ", "ΟΔΟΣΑ", ""] {
        let found = all(&everyone, Query::index("email").prefix(prefix)).await;
        assert_eq!(found, ["ada"], "{prefix}");
    }
}

async fn values_of_fields_are_not_asked_of_keys(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    put(&notes, "n1", r#"{"title":"a"}"#).await;
    let keys = || Query::key(Bindings::new());
    assert_eq!(all(&notes, keys()).await, ["n1"]);
    for query in [keys().equal("a"), keys().between("a", "b"), keys().prefix("a")] {
        assert_eq!(notes.query(&query).await.unwrap_err().code(), Code::BadQuery);
        assert_eq!(notes.explain(&query).await.unwrap_err().code(), Code::BadQuery);
    }
}
