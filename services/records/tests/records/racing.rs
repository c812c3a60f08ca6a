//! What readers see while others write, or die while they write.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::Tier;
use keyward_key::Bindings;
use keyward_records::geo::{BoundingBox, Circle, Point};
use keyward_records::{Caller, ListedItem, Listing, Near, Query, Within};
use keyward_testkit::{Fault, Faults, FaultyEngine, When};

use crate::fixture::{all, declare, draft, ids, key, memory};

/// More calls than one operation makes.
const CALLS: u64 = 20;

const NOTES: &str = r#"
[stores.app]
[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
[spaces.notes.indexes.tag]
field = "tags"
type = "text"
multi = true
"#;

const PLACES: &str = r#"
[stores.app]
[spaces.places]
key = "shared:places:{place}"
ownership = "shared"
[spaces.places.indexes.geo]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 5
"#;

/// Between the look at the entries and the look at the record.
#[tokio::test(start_paused = true)]
async fn a_record_that_gets_an_earlier_element_within_a_page_is_not_missed() {
    let mut missed = Vec::new();
    for call in 0..8 {
        let (memory, clock) = memory(Tier::Atomic);
        let writer = declare(memory.clone(), &clock, NOTES);
        let writer = writer.space("notes", &Caller::user("ada")).unwrap();
        let note = key("user:ada:notes:n");
        let _ = writer.put(&note, draft(r#"{"tags":["m"]}"#)).await.unwrap();
        let late = Fault::Delay(When::Before, Duration::from_secs(2));
        let engine = FaultyEngine::new(Arc::new(memory.clone()), Faults::script([(call, late)]));
        let reader = declare(engine, &clock, NOTES);
        let reading = tokio::spawn(async move {
            let notes = reader.space("notes", &Caller::user("ada")).unwrap();
            notes.query(&Query::index("tag")).await.unwrap().records.len()
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let _ = writer.put(&note, draft(r#"{"tags":["a","m"]}"#)).await.unwrap();
        let found = reading.await.unwrap();
        if found != 1 {
            missed.push((call, found));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_gets_an_earlier_element_between_pages_is_not_missed() {
    for descending in [false, true] {
        let (memory, clock) = memory(Tier::Atomic);
        let records = declare(memory, &clock, NOTES);
        let notes = records.space("notes", &Caller::user("ada")).unwrap();
        let passed = if descending { "z" } else { "a" };
        for (note, tags) in [("n1", r#"["g"]"#), ("n2", r#"["g","h"]"#), ("n3", r#"["g"]"#)] {
            let value = format!(r#"{{"tags":{tags}}}"#);
            let _ =
                notes.put(&key(&format!("user:ada:notes:{note}")), draft(&value)).await.unwrap();
        }
        let mut query = Query::index("tag").limit(1);
        if descending {
            query = query.descending();
        }
        let first = notes.query(&query).await.unwrap();
        let late = if descending { "n1" } else { "n3" };
        let value = format!(r#"{{"tags":["g","{passed}"]}}"#);
        let _ = notes.put(&key(&format!("user:ada:notes:{late}")), draft(&value)).await.unwrap();
        let mut found = ids(&first.records);
        found.extend(all(&notes, query.after(first.next)).await);
        found.sort();
        assert_eq!(found, ["n1", "n2", "n3"], "descending: {descending}");
    }
}

/// A writer moves a place inside its cell, and dies before it has changed the record: the record is
/// found where it is.
#[tokio::test(start_paused = true)]
async fn a_place_is_found_where_its_record_is_wherever_a_writer_dies() {
    let mut missed = Vec::new();
    for call in 0..CALLS {
        let (memory, clock) = memory(Tier::Recoverable);
        let healthy = declare(memory.clone(), &clock, PLACES);
        let places = healthy.space("places", &Caller::operator()).unwrap();
        let place = key("shared:places:p");
        let _ = places.put(&place, draft(r#"{"lat":52.5200,"lon":13.4050}"#)).await.unwrap();
        let crash = Faults::crash_at(call, When::After);
        let dying = declare(FaultyEngine::new(Arc::new(memory), crash), &clock, PLACES);
        let dying = dying.space("places", &Caller::operator()).unwrap();
        let _ = dying.put(&place, draft(r#"{"lat":52.5300,"lon":13.4050}"#)).await;
        let now = places.get(&place).await.unwrap().unwrap().value.to_string();
        let lat = if now.contains("52.5200") { 52.52 } else { 52.53 };
        let circle = Circle::new(Point::new(lat, 13.405).unwrap(), 100.0).unwrap();
        let near = places.near(&Near::new("geo", circle)).await.unwrap();
        let area = BoundingBox::new(lat - 0.001, 13.40, lat + 0.001, 13.41).unwrap();
        let within = places.within(&Within::new("geo", area)).await.unwrap();
        if near.found.len() != 1 || within.records.len() != 1 {
            missed.push((call, near.found.len(), within.records.len()));
        }
    }
    assert!(missed.is_empty(), "missed {missed:?}");
}

/// A writer announced a record and died: there is none.
#[tokio::test(start_paused = true)]
async fn a_listing_shows_what_can_be_read_wherever_a_writer_dies() {
    let mut wrong = Vec::new();
    for call in 0..CALLS {
        let (memory, clock) = memory(Tier::Recoverable);
        let healthy = declare(memory.clone(), &clock, NOTES);
        let notes = healthy.space("notes", &Caller::user("ada")).unwrap();
        let _ = notes.put(&key("user:ada:notes:x"), draft(r#"{"tags":["b"]}"#)).await.unwrap();
        let crash = Faults::crash_at(call, When::After);
        let dying = declare(FaultyEngine::new(Arc::new(memory), crash), &clock, NOTES);
        let dying = dying.space("notes", &Caller::user("bob")).unwrap();
        let note = key("user:bob:notes:n");
        let _ = dying.create(&note, draft(r#"{"tags":["b"]}"#)).await;
        let everyones = healthy.space("notes", &Caller::operator()).unwrap();
        let there = everyones.get(&note).await.unwrap().is_some();
        let listing = Listing::new(Bindings::new());
        let keys = everyones.list(&listing).await.unwrap().items;
        let users = everyones.list(&listing.depth(1)).await.unwrap().items;
        if keys.contains(&ListedItem::Key(note)) != there || users.len() != 1 + usize::from(there) {
            wrong.push(call);
        }
    }
    assert!(wrong.is_empty(), "listed though absent, after a crash at calls {wrong:?}");
}
