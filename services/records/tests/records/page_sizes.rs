//! Pages that end after so many bytes, and go on from their cursors.

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Order, Outcome, Page, Put, Result, Scan,
    ScanOrder, Stats, Tier,
};
use keyward_key::{Bindings, Key};
use keyward_memory::Memory;
use keyward_records::geo::{BoundingBox, Circle, Point};
use keyward_records::{Caller, Draft, Filter, Near, Query, Record, Records, Space, Within};

use crate::fixture::{declare, draft, json, key, memory};

const PLACES: &str = r#"
[stores.app]
[spaces.places]
key = "shared:places:{place}"
ownership = "shared"
history = 60
[spaces.places.indexes.by_kind]
field = "kind"
type = "text"
[spaces.places.indexes.by_tag]
field = "tags"
type = "text"
multi = true
[spaces.places.indexes.geo]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 6
"#;

const MANY: usize = 60;
/// How large each value is, about, and how large a page may be: ten of them.
const VALUE_BYTES: usize = 1_000;
const PAGE_BYTES: usize = 9_500;

fn place(n: usize) -> Draft {
    let lat = 52.5 + n as f64 / 1e4;
    let text = "x".repeat(VALUE_BYTES - 100);
    let fifth = n % 5;
    draft(&format!(
        r#"{{"lat":{lat},"lon":13.4,"kind":"a","tags":["t","u"],"fifth":{fifth},"text":"{text}"}}"#
    ))
}

async fn places() -> Space {
    let (memory, clock) = memory(Tier::Atomic);
    places_of(declare(memory, &clock, PLACES)).await
}

async fn places_of(records: Records) -> Space {
    let places = records.space("places", &Caller::user("ada")).unwrap();
    for n in 0..MANY {
        let _ = places.put(&key(&format!("shared:places:p{n:03}")), place(n)).await.unwrap();
    }
    places
}

/// A page ends with the record that reaches the bound. The last one may be empty.
fn check(records: &[Record], is_last: bool, what: &str) {
    let bytes = |records: &[Record]| records.iter().map(|it| it.value.len()).sum::<usize>();
    let Some((_, before)) = records.split_last() else {
        return assert!(is_last, "{what}: an empty page");
    };
    assert!(bytes(before) < PAGE_BYTES, "{what}: {}", bytes(records));
    assert!(is_last || bytes(records) >= PAGE_BYTES, "{what}: {} are too few", bytes(records));
}

fn keys(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| record.key.to_string()).collect()
}

fn expected() -> Vec<String> {
    (0..MANY).map(|n| format!("shared:places:p{n:03}")).collect()
}

#[tokio::test]
async fn pages_of_queries_end_after_so_many_bytes() {
    let places = places().await;
    for (what, query) in [
        ("keys", Query::key(Bindings::new())),
        ("an index", Query::index("by_kind").equal("a")),
        ("a multi index", Query::index("by_tag").between("t", "u")),
    ] {
        for order in [Order::Ascending, Order::Descending] {
            let mut query = query.clone().limit(1_000).bytes_max(PAGE_BYTES);
            let mut expected = expected();
            if order == Order::Descending {
                query = query.descending();
                expected.reverse();
            }
            let mut found = Vec::new();
            loop {
                let page = places.query(&query).await.unwrap();
                check(&page.records, page.next.is_none(), what);
                found.extend(keys(&page.records));
                let Some(next) = page.next else { break };
                query = query.after(Some(next));
            }
            assert_eq!(found, expected, "{what} {order:?}");
        }
    }
    // Fields that are left out do not count.
    let query = Query::index("by_kind").limit(1_000).bytes_max(PAGE_BYTES);
    let narrow = places.query(&query.field("kind".parse().unwrap())).await.unwrap();
    assert_eq!((narrow.records.len(), narrow.next), (MANY, None));
}

#[tokio::test]
async fn pages_end_after_so_many_bytes_of_what_a_filter_leaves() {
    let places = places().await;
    let filter = Filter::parse(r#"{"fifth":3}"#).unwrap();
    let expected: Vec<String> = expected().into_iter().skip(3).step_by(5).collect();
    for query in [Query::key(Bindings::new()).allow_scan(), Query::index("by_kind").equal("a")] {
        // Three of them reach the bound, and more than these are read at once.
        let mut query = query.filter(filter.clone()).limit(1_000).bytes_max(2_500);
        let (mut found, mut dropped) = (Vec::new(), 0);
        loop {
            let page = places.query(&query).await.unwrap();
            assert!(page.records.len() <= 3, "{}", page.records.len());
            assert!(page.next.is_none() || page.records.len() == 3, "{}", page.records.len());
            dropped += page.read.dropped;
            found.extend(keys(&page.records));
            let Some(next) = page.next else { break };
            query = query.after(Some(next));
        }
        assert_eq!((found, dropped), (expected.clone(), MANY - MANY / 5), "{:?}", query.by);
    }
}

#[tokio::test]
async fn metadata_counts_towards_the_bytes_of_a_page() {
    let places = places().await;
    let metadata = json(&format!(r#"{{"note":"{}"}}"#, "y".repeat(4_000)));
    for n in 0..MANY {
        let draft = place(n).with_metadata(metadata.clone());
        let _ = places.put(&key(&format!("shared:places:p{n:03}")), draft).await.unwrap();
    }
    for query in [Query::key(Bindings::new()), Query::index("by_kind").equal("a")] {
        let page = places.query(&query.limit(1_000).bytes_max(PAGE_BYTES)).await.unwrap();
        assert_eq!(keys(&page.records), expected()[..2]);
        assert!(page.next.is_some());
    }
}

/// A memory engine whose rows come in another order than that of their keys.
struct Disordered {
    inner: Memory,
    capabilities: Capabilities,
}

impl Engine for Disordered {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.inner.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        let scan = Scan { order: Order::Descending, ..scan.clone() };
        Box::pin(async move { self.inner.scan(&scan).await })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        self.inner.commit(commit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

#[tokio::test]
async fn pages_have_every_record_once_where_rows_have_no_order() {
    let (inner, clock) = memory(Tier::Recoverable);
    let mut capabilities = inner.capabilities().clone();
    capabilities.scan_order = ScanOrder::Unordered;
    let schema = PLACES.replace("history = 60\n", "");
    let engine = Disordered { inner, capabilities };
    let places = places_of(declare(engine, &clock, &schema)).await;
    let area = BoundingBox::new(52.4, 13.3, 52.6, 13.5).unwrap();
    for (limit, bytes_max, budget) in
        [(1_000, PAGE_BYTES, 10_000), (7, usize::MAX, 10_000), (1_000, usize::MAX, MANY + 1)]
    {
        let within = Within::new("geo", area).limit(limit).bytes_max(bytes_max);
        let mut within = within.budget(budget);
        let mut found = Vec::new();
        loop {
            let page = places.within(&within).await.unwrap();
            found.extend(keys(&page.records));
            let Some(next) = page.next else { break };
            within = within.after(Some(next));
        }
        found.sort();
        assert_eq!(found, expected(), "within {limit} {bytes_max} {budget}");
    }
    for query in [Query::key(Bindings::new()), Query::index("by_kind").equal("a")] {
        let mut query = query.limit(1_000).bytes_max(PAGE_BYTES);
        let mut found = Vec::new();
        loop {
            let page = places.query(&query).await.unwrap();
            found.extend(keys(&page.records));
            let Some(next) = page.next else { break };
            query = query.after(Some(next));
        }
        found.sort();
        assert_eq!(found, expected(), "{:?}", query.by);
    }
}

#[tokio::test]
async fn a_page_of_one_large_record_has_that_record() {
    let places = places().await;
    let page = places.query(&Query::key(Bindings::new()).bytes_max(1)).await.unwrap();
    assert_eq!(keys(&page.records), expected()[..1]);
    assert!(page.next.is_some());
}

#[tokio::test]
async fn pages_of_places_near_a_point_end_after_so_many_bytes() {
    let places = places().await;
    let circle = Circle::new(Point::new(52.5, 13.4).unwrap(), 10_000.0).unwrap();
    let mut near = Near::new("geo", circle).limit(1_000).bytes_max(PAGE_BYTES);
    let (mut found, mut distance_m) = (Vec::new(), 0.0);
    loop {
        let page = places.near(&near).await.unwrap();
        for neighbour in &page.found {
            assert!(neighbour.distance_m >= distance_m, "in the order of distances");
            distance_m = neighbour.distance_m;
        }
        let records: Vec<Record> = page.found.into_iter().map(|it| it.record).collect();
        check(&records, page.next.is_none(), "near");
        found.extend(keys(&records));
        let Some(next) = page.next else { break };
        near = near.after(Some(next));
    }
    assert_eq!(found, expected());
}

#[tokio::test]
async fn pages_of_places_in_a_box_end_after_so_many_bytes() {
    let places = places().await;
    let area = BoundingBox::new(52.4, 13.3, 52.6, 13.5).unwrap();
    let mut within = Within::new("geo", area).limit(1_000).bytes_max(PAGE_BYTES);
    let mut found = Vec::new();
    loop {
        let page = places.within(&within).await.unwrap();
        check(&page.records, page.next.is_none(), "within");
        found.extend(keys(&page.records));
        let Some(next) = page.next else { break };
        within = within.after(Some(next));
    }
    found.sort();
    assert_eq!(found, expected());
}

#[tokio::test]
async fn pages_of_earlier_versions_end_after_so_many_bytes() {
    let places = places().await;
    let key = key("shared:places:p000");
    for n in 1..40 {
        let _ = places.put(&key, place(n)).await.unwrap();
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = places.history_page(&key, before, 1_000, PAGE_BYTES).await.unwrap();
        assert!(page.versions.len() <= PAGE_BYTES / (VALUE_BYTES - 100) + 1);
        assert!(page.next.is_none() || page.versions.len() > 5, "{}", page.versions.len());
        seen.extend(page.versions.iter().map(|past| past.seq));
        let Some(next) = page.next else { break };
        before = Some(next);
    }
    assert_eq!(seen, (1..=40).rev().collect::<Vec<u64>>());
    let one = places.history_page(&key, None, 1_000, 1).await.unwrap();
    assert_eq!((one.versions.len(), one.next), (1, Some(40)));
    assert_eq!(places.history(&key, None, 1_000).await.unwrap().len(), 40);
}

#[tokio::test]
async fn no_more_records_are_removed_than_were_confirmed() {
    let places = places().await;
    assert_eq!(places.delete_prefix_up_to(Bindings::new(), 45).await.unwrap(), 45);
    let left = places.query(&Query::index("by_kind")).await.unwrap().records;
    assert_eq!(keys(&left), expected()[45..]);
    assert_eq!(places.delete_prefix_up_to(Bindings::new(), 0).await.unwrap(), 0);
    assert_eq!(places.delete_prefix(Bindings::new()).await.unwrap(), MANY - 45);
}

#[tokio::test]
async fn as_many_records_are_removed_as_were_confirmed_whatever_lies_between_them() {
    let (memory, clock) = memory(Tier::Recoverable);
    let records = declare(memory, &clock, &PLACES.replace("history = 60\n", ""));
    let places = records.space("places", &Caller::user("ada")).unwrap();
    // What writers leave behind that died before they made their records.
    for n in 0..3 {
        let marker = json(r#"{"$keyward":{"marker":true}}"#);
        let put = Put { value: json("null"), metadata: Some(marker), expiry: None };
        records.store().put(key(&format!("shared:places:a{n}")), put).await.unwrap();
    }
    for n in 0..12 {
        let _ = places.put(&key(&format!("shared:places:p{n:03}")), place(n)).await.unwrap();
    }
    assert_eq!(places.delete_prefix_up_to(Bindings::new(), 10).await.unwrap(), 10);
    let left = places.query(&Query::index("by_kind")).await.unwrap().records;
    assert_eq!(keys(&left), expected()[10..12]);
}
