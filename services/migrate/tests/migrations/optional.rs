//! Spaces whose pattern has nothing but literals before its optional part: `notes[:{id}]` has the key
//! `notes`, which stands above all others.

use keyward_engine::Tier;
use keyward_key::Bindings;
use keyward_records::{Draft, ListedItem, Listing, Query, Records};
use keyward_stores::{Place, on_engines, on_every_engine};

use crate::fixture::{
    assert_done, assert_well, examine, json, key, migrate, migrator, open, operator, put_raw, rows,
};
use crate::rekeying::rekey;

on_every_engine!(
    the_key_above_the_others_is_listed_and_walked,
    an_index_has_the_record_above_the_others,
    the_first_writer_finds_the_record_above_the_others,
    a_missing_entry_of_the_record_above_the_others_is_found,
    the_record_above_the_others_moves_with_them,
    versions_of_a_key_are_not_those_of_keys_below_it,
);
on_engines!(
    recoverable: Recoverable;
    the_key_above_the_others_is_listed_and_walked,
    an_index_has_the_record_above_the_others,
    the_first_writer_finds_the_record_above_the_others,
    a_missing_entry_of_the_record_above_the_others_is_found,
    the_record_above_the_others_moves_with_them,
);

fn schema(pattern: &str, index: bool) -> String {
    let index = if index { "[spaces.notes.indexes.by_title]\nfield = \"title\"\n" } else { "" };
    format!(
        r#"
[stores.app]
[spaces.notes]
key = "{pattern}"
ownership = "shared"
[spaces.notes.value]
type = "object"
[spaces.notes.value.properties]
title = {{ type = "string" }}
{index}"#
    )
}

const PATTERN: &str = "notes[:{id}]";
const KEYS: [&str; 3] = ["notes", "notes:n1", "notes:n2"];

async fn fill(records: &Records) {
    let notes = operator(records, "notes");
    for at in KEYS {
        let draft = Draft::new(json(r#"{"title":"t"}"#));
        assert!(notes.put(&key(at), draft).await.unwrap().is_accepted());
    }
}

async fn titled(records: &Records) -> Vec<String> {
    let query = Query::index("by_title").equal("t");
    let found = operator(records, "notes").query(&query).await.unwrap();
    found.records.into_iter().map(|record| record.key.to_string()).collect()
}

async fn the_key_above_the_others_is_listed_and_walked(place: Place) {
    let records = open(&place, &schema(PATTERN, false)).await;
    fill(&records).await;
    let notes = operator(&records, "notes");
    let listed = notes.list(&Listing::new(Bindings::new())).await.unwrap().items;
    assert_eq!(listed, KEYS.map(|at| ListedItem::Key(key(at))));
    let walked = notes.walk_on(None, 10).await.unwrap().records;
    let walked: Vec<String> = walked.into_iter().map(|record| record.key.to_string()).collect();
    assert_eq!(walked, KEYS);
}

async fn an_index_has_the_record_above_the_others(place: Place) {
    fill(&open(&place, &schema(PATTERN, false)).await).await;
    let after = open(&place, &schema(PATTERN, true)).await;
    let done = migrate(&after, place.clock()).await;
    assert_done(&done[0]);
    // Three records, and an entry for each.
    assert_eq!((done[0].counts.records, done[0].counts.checked), (3, 6));
    assert_eq!(titled(&after).await, KEYS);
    assert_well(&after).await;
}

/// Where no migration was run, the first write builds the index of what is there.
async fn the_first_writer_finds_the_record_above_the_others(place: Place) {
    let records = open(&place, &schema(PATTERN, true)).await;
    put_raw(records.store(), "notes", r#"{"title":"t"}"#).await;
    let draft = Draft::new(json(r#"{"title":"t"}"#));
    assert!(operator(&records, "notes").put(&key("notes:n1"), draft).await.unwrap().is_accepted());
    assert_eq!(titled(&records).await, ["notes", "notes:n1"]);
}

async fn a_missing_entry_of_the_record_above_the_others_is_found(place: Place) {
    let records = open(&place, &schema(PATTERN, true)).await;
    fill(&records).await;
    records.store().delete(key("index:by_title:t:notes")).await.unwrap();
    let report = examine(&records).await;
    assert_eq!(report.counts.get("missing-entry"), Some(&1), "{:#?}", report.found);
    // As the last step of a migration looks, too.
    let inspector = records.inspector().await.unwrap().only("by_title");
    let inspected = inspector.inspect_space("notes", None, 10).await.unwrap();
    assert_eq!((inspected.rows, inspected.findings.len()), (3, 1));
}

async fn the_record_above_the_others_moves_with_them(place: Place) {
    fill(&open(&place, &schema(PATTERN, true)).await).await;
    let papers = "papers[:{id}]";
    let after = open(&place, &schema(papers, true)).await;
    let step = rekey(PATTERN, papers, &[]);
    let done = migrator(&after, place.clock()).run(step, |_| ()).await.unwrap();
    assert_done(&done);
    assert_eq!(done.counts.changed, 3);
    assert!(after.store().get(&key("notes")).await.unwrap().is_none());
    assert!(rows(after.store(), "notes").await.is_empty());
    assert_eq!(titled(&after).await, ["papers", "papers:n1", "papers:n2"]);
    assert_well(&after).await;
}

async fn versions_of_a_key_are_not_those_of_keys_below_it(place: Place) {
    let with_history = schema(PATTERN, true).replace("ownership", "history = 3\nownership");
    let records = open(&place, &with_history).await;
    assert_eq!(operator(&records, "notes").guarantee(), Tier::Atomic);
    let notes = operator(&records, "notes");
    for n in 1..=5 {
        // Ids that look like numbers of versions, too.
        for at in ["notes", "notes:n1", "notes:00000000000000000002"] {
            let draft = Draft::new(json(&format!(r#"{{"title":"{at} {n}"}}"#)));
            assert!(notes.put(&key(at), draft).await.unwrap().is_accepted());
        }
    }
    for at in ["notes", "notes:n1", "notes:00000000000000000002"] {
        let history = notes.history(&key(at), None, 10).await.unwrap();
        let told: Vec<(u64, String)> =
            history.into_iter().map(|past| (past.seq, past.value.unwrap().to_string())).collect();
        let expected = [5, 4, 3].map(|n| (n, format!(r#"{{"title":"{at} {n}"}}"#)));
        assert_eq!(told, expected);
    }
    let second = notes.history(&key("notes"), Some(5), 1).await.unwrap();
    assert_eq!(second[0].seq, 4);
}
