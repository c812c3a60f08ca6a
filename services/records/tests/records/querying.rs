//! Asking indexes.

use keyward_records::{Bound, Filter, Query, Span};
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, all, put};

on_engines!(
    memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable;
    an_index_answers_in_order,
    paging_gives_every_record_once,
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
