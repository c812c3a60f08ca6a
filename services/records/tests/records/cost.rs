//! Long reads: they yield to other tasks, and end at their budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyward_engine::{Code, Coded, Tier};
use keyward_key::Bindings;
use keyward_records::geo::{BoundingBox, Circle, Point};
use keyward_records::{Draft, Error, Filter, Near, Operation, Query, Space, Within, Written};
use keyward_stores::{Kind, Place, on_engines};

use crate::fixture::{Fixture, all, ids, json};

on_engines!(
    memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable;
    a_query_that_ends_at_its_budget_goes_on_to_every_record_once,
    a_search_for_the_nearest_that_needs_more_than_its_budget_is_refused,
);

/// How many records are put together.
const TOGETHER: usize = 100;

/// Places in a row, of which every tenth is a park.
async fn fill(places: &Space, count: usize) {
    let operation = |n: usize| {
        let (lat, kind) =
            (52.0 + n as f64 / 1e4, if n.is_multiple_of(10) { "park" } else { "shop" });
        let value = format!(r#"{{"lat":{lat},"lon":13.4,"name":"{kind}"}}"#);
        let key = places.key(Bindings::new().with("place", format!("p{n:05}"))).unwrap();
        Operation::Put(key, Draft::new(json(&value)))
    };
    let operations: Vec<Operation> = (0..count).map(operation).collect();
    for some in operations.chunks(TOGETHER) {
        let written = match places.guarantee() {
            Tier::Atomic => places.together(some.to_vec()).await,
            _ => places.each(some.to_vec()).await.into_iter().collect(),
        };
        assert!(written.unwrap().iter().all(Written::is_accepted));
    }
}

fn parks() -> Filter {
    Filter::parse(r#"{"name":"park"}"#).unwrap()
}

fn nothing() -> Filter {
    Filter::parse(r#"{"name":"none"}"#).unwrap()
}

fn around(radius_m: f64) -> Near {
    let centre = Point::new(52.0, 13.4).unwrap();
    Near::new("geo", Circle::new(centre, radius_m).unwrap())
}

async fn a_query_that_ends_at_its_budget_goes_on_to_every_record_once(place: Place) {
    let fixture = Fixture::new(place).await;
    let places = fixture.space("places", "ada");
    fill(&places, 200).await;
    let expected: Vec<String> = (0..200).step_by(10).map(|n| format!("p{n:05}")).collect();

    let by_key = Query::key(Bindings::new()).filter(parks()).allow_scan().budget(7);
    assert_eq!(all(&places, by_key).await, expected);

    let area = BoundingBox::new(51.0, 13.0, 53.0, 14.0).unwrap();
    let mut within = Within::new("geo", area).filter(parks()).budget(7);
    let (mut found, mut empty) = (Vec::new(), 0);
    loop {
        let page = places.within(&within).await.unwrap();
        assert!(page.read.entries <= 7, "{:?}", page.read);
        empty += usize::from(page.records.is_empty() && page.next.is_some());
        found.extend(ids(&page.records));
        match page.next {
            Some(next) => within = within.after(Some(next)),
            None => break,
        }
    }
    found.sort();
    assert_eq!(found, expected);
    assert!(empty > 0, "a page of 7 entries has a park at most each second time");
    let none = places.within(&Within::new("geo", area).budget(0)).await.unwrap_err();
    assert_eq!(none.code(), Code::BadQuery);
}

async fn a_search_for_the_nearest_that_needs_more_than_its_budget_is_refused(place: Place) {
    let fixture = Fixture::new(place).await;
    let places = fixture.space("places", "ada");
    fill(&places, 200).await;
    let refused = places.near(&around(10_000.0).filter(nothing()).budget(50)).await.unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::TooExpensive, false));
    assert!(refused.hint().contains("smaller radius"), "{}", refused.hint());
    assert!(
        matches!(refused, Error::TooExpensive { entries: 1..=50, found: 0, limit: 100 }),
        "{refused}"
    );
    // What is near enough is found for less, and all of it for more.
    let near = places.near(&around(10_000.0).limit(3).budget(50)).await.unwrap();
    assert_eq!(near.found.len(), 3);
    let all = places.near(&around(10_000.0).filter(parks()).budget(1_000)).await.unwrap();
    assert!(all.found.len() > 5 && all.next.is_none());
    let none = places.near(&around(1.0).budget(0)).await.unwrap_err();
    assert_eq!(none.code(), Code::BadQuery);
}

/// How often another task of the same thread runs while something is read.
async fn turns_of_others(read: impl Future<Output = ()>) -> usize {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    read.await;
    other.abort();
    turns.load(Ordering::Relaxed)
}

#[tokio::test]
async fn long_reads_let_other_tasks_of_the_same_thread_run() {
    for kind in [Kind::Memory, Kind::Embedded] {
        let fixture = Fixture::new(Place::new(kind)).await;
        let places = fixture.space("places", "ada");
        fill(&places, 6_000).await;
        let query = Query::key(Bindings::new()).filter(nothing()).allow_scan().budget(100_000);
        let turns = turns_of_others(async {
            assert_eq!(places.query(&query).await.unwrap().records, []);
        });
        let turns = turns.await;
        assert!(turns >= 10, "a query of 6,000 records on {kind:?} let others run {turns} times");
        let turns = turns_of_others(async {
            let near = around(100_000.0).filter(nothing());
            assert_eq!(places.near(&near).await.unwrap().found, []);
        });
        let turns = turns.await;
        assert!(turns >= 10, "a search of 6,000 places on {kind:?} let others run {turns} times");
    }
}
