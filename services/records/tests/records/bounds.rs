//! What one call costs at most, and that it goes through all the same.

use std::sync::Arc;

use keyward_engine::{Code, Coded, Tier};
use keyward_key::Bindings;
use keyward_records::geo::{BoundingBox, Circle, Point};
use keyward_records::{Caller, Filter, Listing, Near, Query, Within};
use keyward_testkit::{Faults, FaultyEngine};

use crate::fixture::{declare, draft, key, memory};

const NOTES: &str = r#"
[stores.app]
[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
[spaces.notes.indexes.tag]
field = "tags"
type = "text"
multi = true
[spaces.tasks]
key = "user:{user}:tasks:{task}"
ownership = "user"
[spaces.places]
key = "user:{user}:places:{place}"
ownership = "user"
[spaces.places.indexes.geo]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 5
"#;

#[tokio::test(start_paused = true)]
async fn records_whose_entries_fill_a_commit_are_deleted_all_the_same() {
    let (memory, clock) = memory(Tier::Atomic);
    let records = declare(memory, &clock, NOTES);
    let notes = records.space("notes", &Caller::user("ada")).unwrap();
    let tags: Vec<String> = (0..200).map(|n| format!("\"t{n}\"")).collect();
    let value = format!("{{\"tags\":[{}]}}", tags.join(","));
    for n in 0..60 {
        let _ = notes.put(&key(&format!("user:ada:notes:n{n}")), draft(&value)).await.unwrap();
    }
    assert_eq!(notes.delete_prefix(Bindings::new()).await.unwrap(), 60);
    assert_eq!(notes.query(&Query::index("tag")).await.unwrap().records, []);
}

/// One match at the very end, a page of one: what lies before it is not read one by one.
#[tokio::test(start_paused = true)]
async fn what_few_records_fulfil_is_not_looked_for_row_by_row() {
    let (memory, clock) = memory(Tier::Atomic);
    let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
    let records = declare(engine.clone(), &clock, NOTES);
    let notes = records.space("notes", &Caller::user("ada")).unwrap();
    let places = records.space("places", &Caller::user("ada")).unwrap();
    for n in 0..400 {
        let value = draft(&format!(r#"{{"tags":["b"],"n":{n}}}"#));
        let _ = notes.put(&key(&format!("user:ada:notes:n{n:04}")), value).await.unwrap();
        let lat = 52.5 + f64::from(n) / 1e5;
        let value = draft(&format!(r#"{{"lat":{lat},"lon":13.4,"n":{n}}}"#));
        let _ = places.put(&key(&format!("user:ada:places:p{n:04}")), value).await.unwrap();
    }
    let last = || Filter::parse(r#"{"n":399}"#).unwrap();
    let mut begun = engine.calls();
    let mut check = |what: &str, found: usize| {
        let calls = engine.calls() - begun;
        begun = engine.calls();
        assert_eq!(found, 1, "{what}");
        assert!(calls < 60, "{calls} calls for one page of {what}");
    };
    let query = Query::index("tag").filter(last()).limit(1);
    check("an index", notes.query(&query).await.unwrap().records.len());
    let query = Query::key(Bindings::new()).filter(last()).allow_scan().limit(1);
    check("keys", notes.query(&query).await.unwrap().records.len());
    let circle = Circle::new(Point::new(52.5, 13.4).unwrap(), 1_000.0).unwrap();
    let near = Near::new("geo", circle).filter(last()).limit(1);
    check("near", places.near(&near).await.unwrap().found.len());
    let area = BoundingBox::new(52.4, 13.3, 52.6, 13.5).unwrap();
    let within = Within::new("geo", area).filter(last()).limit(1).owner("ada");
    check("within", places.within(&within).await.unwrap().records.len());
}

/// Few keys of the space among many of others.
#[tokio::test(start_paused = true)]
async fn a_page_of_a_listing_costs_no_more_than_its_budget() {
    let (memory, clock) = memory(Tier::Atomic);
    let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
    let records = declare(engine.clone(), &clock, NOTES);
    let notes = records.space("notes", &Caller::operator()).unwrap();
    for n in 0..1_000 {
        let _ = notes.put(&key(&format!("user:u{n:05}:notes:n")), draft("{}")).await.unwrap();
    }
    let tasks = records.space("tasks", &Caller::operator()).unwrap();
    for task in ["user:u00000:tasks:a", "user:u00999:tasks:z"] {
        let _ = tasks.put(&key(task), draft("{}")).await.unwrap();
    }
    for listing in [
        Listing::new(Bindings::new()),
        Listing::new(Bindings::new()).depth(1),
        Listing::new(Bindings::new()).descending(),
    ] {
        let mut listing = listing.limit(2).budget(100);
        let (mut found, mut pages) = (Vec::new(), 0);
        loop {
            let begun = engine.calls();
            let page = tasks.list(&listing).await.unwrap();
            let calls = engine.calls() - begun;
            assert!(calls < 10, "{calls} calls for one page");
            found.extend(page.items);
            pages += 1;
            match page.next {
                Some(next) => listing = listing.after(Some(next)),
                None => break,
            }
        }
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(pages > 5);
    }
    let none = tasks.list(&Listing::new(Bindings::new()).budget(0)).await;
    assert_eq!(none.unwrap_err().code(), Code::BadQuery);
}
