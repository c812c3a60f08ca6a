//! Finding what is not as it should be, and mending it.

use std::time::Duration;

use futures_util::future::BoxFuture;
use keyward_engine::{Expiry, Limits, Put, Store};
use keyward_migrate::{Doctor, Pause, Probed, Report, probe};
use keyward_records::{Draft, Query, Records};
use keyward_stores::{Kind, Place, on_engines, on_every_engine};

use crate::fixture::{
    Jumping, assert_well, examine, fill, json, key, open, operator, put_raw, records, rows,
};

on_every_engine!(every_kind_of_damage_is_found_and_mended, a_healthy_engine_swaps_soundly);
on_engines!(memory_of_ends: Memory, embedded_of_ends: Embedded; what_has_expired_is_counted_and_reclaimed);
on_engines!(
    recoverable: Recoverable;
    every_kind_of_damage_is_found_and_mended,
    a_healthy_engine_swaps_soundly,
);

const SCHEMA: &str = r#"
[stores.app]
[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
[spaces.notes.value]
type = "object"
[spaces.notes.value.properties]
title = { type = "string" }
slug = { type = "string" }
[spaces.notes.indexes.by_title]
field = "title"
[spaces.notes.indexes.slug]
field = "slug"
unique = true
scope = "shared"
[spaces.places]
key = "shared:places:{place}"
ownership = "shared"
value = { type = "object", properties = { lat = { type = "number" }, lon = { type = "number" } } }
[spaces.places.indexes.geo]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 7
"#;

async fn filled(place: &Place) -> Records {
    let records = open(place, SCHEMA).await;
    fill(&operator(&records, "notes"), 12).await;
    let here = Draft::new(json(r#"{"lat":1.5,"lon":2.5}"#));
    let places = operator(&records, "places");
    assert!(places.put(&key("shared:places:p1"), here).await.unwrap().is_accepted());
    records
}

async fn every_kind_of_damage_is_found_and_mended(place: Place) {
    let records = filled(&place).await;
    let store = records.store();
    assert_well(&records).await;
    let healthy = rows(store, "").await;
    let before = rows(store, "user").await;

    let geo = rows(store, "index:geo").await.remove(0).0;
    put_raw(store, &geo, "[0,0]").await;
    store.delete(key("index:by_title:u0:t0:user:u0:notes:n000")).await.unwrap();
    put_raw(store, "index:by_title:u0:zzz:user:u0:notes:n000", "null").await;
    put_raw(store, "index:by_title:u0:t0:user:u0:notes:gone", "null").await;
    put_raw(store, "index:slug:s4", r#""user:u2:notes:n005""#).await;
    put_raw(store, "index:slug:s77", "17").await;
    put_raw(store, "index:nobody:x:user:u0:notes:n000", "null").await;
    let ending = Put::new(json("null")).expiring(Expiry::After(Duration::from_secs(3_600)));
    store.put(key("index:by_title:u0:t0:user:u0:notes:ended"), ending).await.unwrap();
    let marker = Put::new(json("null")).with_metadata(json(r#"{"$keyward":{"marker":true}}"#));
    store.put(key("user:u0:notes:begun"), marker).await.unwrap();

    let report = examine(&records).await;
    let counts: Vec<(&str, u64)> = report.counts.iter().map(|(code, n)| (*code, *n)).collect();
    assert_eq!(
        counts,
        [
            ("broken-entry", 1),
            ("expired-entry", 1),
            ("left-marker", 1),
            ("missing-entry", 1),
            ("orphaned-entry", 3),
            ("taken-entry", 1),
            ("unknown-index", 1),
            ("wrong-entry", 1),
        ],
        "{:#?}",
        report.found
    );
    assert!(report.found.iter().all(|found| found.repairable && !found.repaired));

    let mended = Doctor::new(records.clone()).repair(true).run(|_| ()).await.unwrap();
    assert_eq!(mended.left(), 0, "{:#?}", mended.found);
    assert!(mended.repaired >= 9);
    assert_well(&records).await;
    assert_eq!(rows(store, "").await, healthy);
    assert_eq!(rows(store, "user").await, before);
}

#[tokio::test]
async fn what_a_person_has_to_decide_is_told_and_left_alone() {
    let place = Place::new(Kind::Memory);
    let records = filled(&place).await;
    let store = records.store();
    put_raw(store, "stray", "1").await;
    put_raw(store, "user:u0:notes:bad", r#"{"title":7}"#).await;
    // Two that have one value, of whom the one without the entry is told of.
    put_raw(store, "user:u0:notes:twin", r#"{"slug":"s1"}"#).await;
    let mended = Doctor::new(records.clone()).repair(true).run(|_| ()).await.unwrap();
    let told: Vec<(&str, &str)> = mended.found.iter().map(|f| (f.code, f.key.as_str())).collect();
    assert_eq!(
        told,
        [
            ("unknown-key", "stray"),
            ("bad-value", "user:u0:notes:bad"),
            ("unindexable", "user:u0:notes:bad"),
            ("duplicate-value", "index:slug:s1"),
        ]
    );
    assert_eq!((mended.repaired, mended.left()), (0, 4));
    let duplicate = &mended.found[3];
    assert!(!duplicate.repairable, "nobody is promised that it can be mended");
    for both in ["user:u0:notes:twin", "user:u1:notes:n001"] {
        assert!(duplicate.message.contains(both), "{}", duplicate.message);
    }
    let entry = store.get(&key("index:slug:s1")).await.unwrap().unwrap();
    assert_eq!(entry.value.as_str(), r#""user:u1:notes:n001""#);
    // Keys of a shape that somebody vouches for are none of its business.
    let known = Doctor::new(records.clone()).knowing(["{page}".parse().unwrap()]);
    assert!(!known.run(|_| ()).await.unwrap().counts.contains_key("unknown-key"));
}

#[tokio::test]
async fn what_is_over_a_limit_or_not_as_declared_is_told() {
    let place = Place::new(Kind::Memory);
    let records_before = filled(&place).await;
    let small =
        Limits { key_bytes_max: 40, value_bytes_max: 40, ..*records_before.store().limits() };
    let store = place.store().await.with_limits(small);
    put_raw(records_before.store(), &format!("system:{}", "x".repeat(60)), "1").await;
    // One that the store would not even read again.
    let long = format!("user:u0:notes:{}", "x".repeat(60));
    put_raw(records_before.store(), &long, r#"{"title":"t","slug":"long"}"#).await;
    put_raw(records_before.store(), "index:slug:long", &format!("{long:?}")).await;
    let without_title = SCHEMA.replace("[spaces.notes.indexes.by_title]\nfield = \"title\"\n", "");
    let schema = without_title.replace("precision = 7", "precision = 6");
    let schema = format!("{schema}[spaces.places.indexes.lat]\nfield = \"lat\"\n");
    let report = examine(&records(store, place.clock(), &schema)).await;
    for code in ["index-undeclared", "index-differs", "index-absent", "long-key", "large-value"] {
        assert!(report.counts.contains_key(code), "{code}: {:#?}", report.counts);
    }
}

async fn two_without_their_unique_entry(kind: Kind) {
    let place = Place::new(kind);
    let records = filled(&place).await;
    let store = records.store();
    for id in ["a", "b"] {
        put_raw(store, &format!("user:u0:notes:{id}"), r#"{"slug":"twin"}"#).await;
    }
    let told = |report: &Report| {
        let found = report.found.iter();
        found.map(|it| (it.code, it.repairable, it.repaired)).collect::<Vec<_>>()
    };
    let report = examine(&records).await;
    let expected = [("missing-entry", true, false), ("duplicate-value", false, false)];
    assert_eq!(told(&report), expected, "{kind:?} {:#?}", report.found);
    assert!(
        report.found[1].message.contains("user:u0:notes:b and user:u0:notes:a both"),
        "{report:?}"
    )
}

#[tokio::test]
async fn of_two_that_lack_one_unique_entry_the_second_is_told_as_a_duplicate() {
    two_without_their_unique_entry(Kind::Memory).await;
    two_without_their_unique_entry(Kind::Recoverable).await;
    let place = Place::new(Kind::Memory);
    let records = filled(&place).await;
    for id in ["a", "b"] {
        let at = format!("user:u0:notes:{id}");
        put_raw(records.store(), &at, r#"{"slug":"twin"}"#).await;
    }
    let mended = Doctor::new(records.clone()).repair(true).run(|_| ()).await.unwrap();
    assert_eq!((mended.repaired, mended.left()), (1, 1), "{:#?}", mended.found);
    assert_eq!(examine(&records).await.counts.get("duplicate-value"), Some(&1));
    // As soon as a person has decided, all is well.
    records.store().delete(key("user:u0:notes:b")).await.unwrap();
    assert_well(&records).await;
}

async fn what_has_expired_is_counted_and_reclaimed(place: Place) {
    let records = filled(&place).await;
    let store = records.store();
    for n in 0..200 {
        let ending = Put::new(json("{}")).expiring(Expiry::After(Duration::from_secs(60)));
        store.put(key(&format!("user:u0:notes:ending{n}")), ending).await.unwrap();
    }
    assert_eq!(examine(&records).await.expired, Some(0));
    place.clock().advance(Duration::from_secs(61));
    let report = examine(&records).await;
    // They are no finding: later commits reclaim them.
    assert_eq!((report.expired, report.reclaimed, report.left()), (Some(200), 0, 0));
    let mended = Doctor::new(records.clone()).repair(true).run(|_| ()).await.unwrap();
    assert_eq!((mended.expired, mended.reclaimed, mended.left()), (Some(200), 200, 0));
    assert_eq!(examine(&records).await.expired, Some(0));
}

#[tokio::test]
async fn an_entry_that_somebody_recognizes_is_no_unknown_key() {
    let place = Place::new(Kind::Memory);
    let records = filled(&place).await;
    put_raw(records.store(), "page7", r#"{"mine":true}"#).await;
    put_raw(records.store(), "page8", r#"{"mine":false}"#).await;
    let doctor = Doctor::new(records).recognizing(|_, entry| entry.value.as_str().contains("true"));
    let report = doctor.run(|_| ()).await.unwrap();
    let told: Vec<&str> = report.found.iter().map(|found| found.key.as_str()).collect();
    assert_eq!(told, ["page8"]);
}

#[tokio::test]
async fn without_a_schema_the_store_is_checked_by_what_it_says_itself() {
    let place = Place::new(Kind::Memory);
    let store = filled(&place).await.store().clone();
    let nobody = records(store.clone(), place.clock(), "[stores.app]\n");
    let examine = async |repair| {
        Doctor::new(nobody.clone()).without_schema().repair(repair).run(|_| ()).await.unwrap()
    };
    assert_eq!(examine(false).await.left(), 0);
    put_raw(&store, "index:nobody:x:user:u0:notes:n000", "null").await;
    assert_eq!(examine(false).await.counts.get("unknown-index"), Some(&1));
    assert_eq!(examine(true).await.left(), 0);
    assert_eq!(examine(false).await.left(), 0);
}

async fn a_healthy_engine_swaps_soundly(place: Place) {
    let store = place.store().await;
    let probed = probe(&store, place.clock()).await.unwrap();
    assert!(matches!(probed, Probed::Sound { .. }), "{probed:?}");
    assert!(rows(&store, "system").await.is_empty());
}

#[tokio::test]
async fn an_engine_that_cannot_swap_is_not_asked_to() {
    let place = Place::new(Kind::Advisory);
    let probed = probe(&place.store().await, place.clock()).await.unwrap();
    assert_eq!(probed, Probed::Unsupported);
}

/// Does what a writer still has to do while the doctor waits.
struct Meanwhile {
    store: Store,
    /// Keys with their values; nothing to be removed.
    writes: Vec<(&'static str, Option<&'static str>)>,
}

impl Pause for Meanwhile {
    fn pause(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for (at, value) in &self.writes {
                match value {
                    Some(value) => put_raw(&self.store, at, value).await,
                    None => {
                        self.store.delete(key(at)).await.unwrap();
                    }
                }
            }
        })
    }
}

/// What a writer has done who is about to put its record, where commits take one key.
async fn begin(store: &Store) {
    let marker = Put::new(json("null")).with_metadata(json(r#"{"$keyward":{"marker":true}}"#));
    store.put(key("user:u0:notes:new"), marker).await.unwrap();
    put_raw(store, "index:by_title:u0:new:user:u0:notes:new", "null").await;
}

async fn suspected(writes: Vec<(&'static str, Option<&'static str>)>, repair: bool) -> Vec<String> {
    let place = Place::new(Kind::Recoverable);
    let records = filled(&place).await;
    begin(records.store()).await;
    let meanwhile = Meanwhile { store: records.store().clone(), writes };
    let doctor = Doctor::new(records.clone()).repair(repair).pausing(meanwhile);
    let report = doctor.run(|_| ()).await.unwrap();
    let found = report.found.into_iter();
    let mut told: Vec<_> = found.map(|it| format!("{} {}", it.code, it.repaired)).collect();
    told.sort();
    told
}

#[tokio::test]
async fn the_traces_of_a_writer_under_way_are_not_told() {
    let entry = "index:by_title:u0:new:user:u0:notes:new";
    let record = ("user:u0:notes:new", Some(r#"{"title":"new"}"#));
    for repair in [false, true] {
        // It comes to its end.
        assert_eq!(suspected(vec![record], repair).await, [""; 0]);
        // It gives up, and cleans behind itself.
        let given_up = vec![(entry, None), ("user:u0:notes:new", None)];
        assert_eq!(suspected(given_up, repair).await, [""; 0]);
        // It is still at it: the entry was written again. The mark is as it was.
        let again = suspected(vec![(entry, Some("null"))], repair).await;
        assert_eq!(again, [format!("left-marker {repair}")]);
    }
}

#[tokio::test]
async fn what_a_writer_left_who_never_came_back_is_told() {
    for repair in [false, true] {
        let told = suspected(Vec::new(), repair).await;
        assert_eq!(told, [format!("left-marker {repair}"), format!("orphaned-entry {repair}")]);
    }
}

/// Entries of an earlier value go, and what another index of the record lacks comes, though one index
/// cannot take its value.
#[tokio::test(start_paused = true)]
async fn a_doctor_gets_past_a_record_that_one_index_cannot_take() {
    let schema = SCHEMA.replacen("slug = { type", "n = {}\nslug = { type", 1);
    let two = format!("{schema}[spaces.notes.indexes.by_n]\nfield = \"n\"\ntype = \"integer\"\n");
    for kind in [Kind::Memory, Kind::Recoverable] {
        let place = Place::new(kind);
        let records = open(&place, &two).await;
        let notes = operator(&records, "notes");
        let note = key("user:ada:notes:n1");
        let right = Draft::new(json(r#"{"title":"a","n":1}"#));
        assert!(notes.put(&note, right).await.unwrap().is_accepted());
        put_raw(records.store(), "user:ada:notes:n1", r#"{"title":"b","n":"x"}"#).await;
        let doctor = Doctor::new(records.clone()).repair(true);
        let report = doctor.pausing(Jumping(place.clock().clone())).run(|_| ()).await.unwrap();
        assert_eq!(report.counts.get("unindexable"), Some(&1), "{report:?}");
        let found = notes.query(&Query::index("by_title").owner("ada").equal("b")).await.unwrap();
        assert_eq!(found.records.len(), 1);
        let again = examine(&records).await;
        assert_eq!(again.counts.keys().copied().collect::<Vec<_>>(), ["unindexable"], "{again:?}");
    }
}
