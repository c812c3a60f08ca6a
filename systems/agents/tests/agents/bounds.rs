//! What is too large, too deep or too many.

use keyward_agents::{Actor, Agents, Error, Options, Patch, declare};
use keyward_engine::{Code, Coded, Limits, Store, Tier};
use keyward_memory::Memory;
use keyward_records::Records;
use keyward_schema::Schema;
use keyward_stores::{Kind, Place, on_engines};
use keyward_testkit::TestClock;

use crate::fixture::{Fixture, json, put, set};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded, postgres: Postgres;
    a_value_of_a_mebibyte_fits_and_no_more,
);

async fn a_value_of_a_mebibyte_fits_and_no_more(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("notes");
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    put(&notes, "k", &text(1 << 20)).await;
    let large = notes.set("k", set(&text((1 << 20) + 1))).await.unwrap_err();
    assert_eq!(large.code(), Code::ValueTooLarge);
    assert!(large.to_string().contains("1048577 bytes"), "{large}");
    let many = vec![("a".to_owned(), set("1")), ("b".to_owned(), set(&text((1 << 20) + 1)))];
    assert_eq!(notes.set_many(many).await.unwrap_err().code(), Code::ValueTooLarge);
    assert_eq!(notes.get("a").await.unwrap(), None);
    // What a patch would make of it counts too.
    put(&notes, "o", &format!(r#"{{"a":{}}}"#, text(1 << 19))).await;
    let more = Patch::new().value(json(&format!(r#"{{"b":{}}}"#, text(1 << 19))));
    assert_eq!(notes.patch("o", more).await.unwrap_err().code(), Code::ValueTooLarge);
    let metadata = json(&format!(r#"{{"m":{}}}"#, text(64 << 10)));
    assert_eq!(
        notes.set("m", set("1").metadata(metadata)).await.unwrap_err().code(),
        Code::BadChange
    );
}

#[tokio::test]
async fn ids_and_keys_that_could_not_be_kept_are_refused_at_once() {
    let fixture = Fixture::new(Place::new(Kind::Recoverable)).await;
    let notes = fixture.namespace("notes");
    let bytes_max = fixture.store().limits().key_bytes_max;
    let around = "system:access:agents:ada:notes:".len();
    put(&notes, &"x".repeat(bytes_max - around), "1").await;
    let long = notes.get(&"x".repeat(bytes_max - around + 1)).await.unwrap_err();
    assert!(long.to_string().contains("1 bytes too long"), "{long}");
    for actor in [Actor::agent("x".repeat(257)), Actor::agent("a").in_run("x".repeat(257))] {
        let refused = fixture.agents.user("ada", actor).use_namespace("notes").unwrap_err();
        assert_eq!(refused.code(), Code::Invalid);
    }
    // A log line with a key that does not fit is lost, and keeps nothing else from being written.
    let user = "u".repeat(bytes_max - 60);
    let user = fixture.agents.user(user, Actor::agent("a").in_run("r".repeat(256)));
    put(&user.use_namespace("n").unwrap(), "k", "1").await;
    assert_eq!(fixture.agents.gathered().lines_lost, 1);
    fixture.agents.close().await.unwrap();
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test]
async fn nesting_has_a_bound_that_documents_keep() {
    let fixture = Fixture::new(Place::new(Kind::Memory)).await;
    let notes = fixture.namespace("notes");
    put(&notes, "k", &nested(60)).await;
    let entry = notes.entry("k").await.unwrap().unwrap();
    // A page of documents is still what can be stored and passed on.
    let page = format!(r#"{{"entries":[{}]}}"#, entry.to_document());
    assert!(keyward_engine::Json::parse(page).is_ok());
    let deep = notes.set("k", set(&nested(61))).await.unwrap_err();
    assert!(deep.to_string().contains("nested 61 deep; at most 60"), "{deep}");
    let options = Options { depth_max: 61, ..Options::default() };
    let store = Store::new(Memory::new());
    assert_eq!(Agents::alone(store, options, TestClock::new()).unwrap_err().code(), Code::Invalid);
}

#[tokio::test]
async fn what_does_not_fit_one_commit_is_refused_and_nothing_is_set() {
    let clock = TestClock::new();
    let memory = Memory::with(keyward_memory::Options::tier(Tier::Atomic), clock.clone());
    let store = Store::new(memory);
    let limits = Limits { commit_keys_max: 50, ..*store.limits() };
    let agents = Agents::alone(store.with_limits(limits), Options::default(), clock).unwrap();
    let notes = agents.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
    let entries = |n: usize| (0..n).map(|n| (n.to_string(), set("1"))).collect::<Vec<_>>();
    assert_eq!(notes.set_many(entries(30)).await.unwrap_err().code(), Code::LimitExceeded);
    assert_eq!(notes.count("").await.unwrap(), 0);
    assert_eq!(notes.set_many(entries(20)).await.unwrap().len(), 20);
    // Clearing takes as many as fit.
    assert_eq!(notes.clear("").await.unwrap(), 20);
}

fn open(schema: &str, tier: Tier) -> Result<Agents, Error> {
    let schema =
        Schema::parse(schema, "schema.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let clock = TestClock::new();
    let store = Store::new(Memory::with(keyward_memory::Options::tier(tier), clock.clone()));
    let mut spaces = schema.spaces;
    declare(&mut spaces, "app", store.capabilities());
    let records = Records::open(store, spaces, clock.clone()).unwrap();
    Agents::open(records, Options::default(), clock)
}

#[test]
fn a_space_that_cannot_hold_entries_is_told() {
    assert!(open("[stores.app]\n", Tier::Atomic).is_ok());
    assert!(open("[stores.app]\n", Tier::Advisory).is_ok());
    for (space, ownership, key) in [
        ("agent_data_store", "user", "agents:{user}:{namespace}"),
        ("agent_data_store", "user", "agents:{user}:{key}:{namespace}"),
        ("agent_data_store", "shared", "agents:{user}:{namespace}:{key}"),
        ("agent_data_store", "user", "agents:{user}:{namespace}:{key}:x"),
        // Another space has keys of the same shape.
        ("other", "user", "agents:{user}:{a}:{b}"),
    ] {
        let schema =
            format!("[stores.app]\n[spaces.{space}]\nkey = '{key}'\nownership = '{ownership}'\n");
        let refused = open(&schema, Tier::Atomic).unwrap_err();
        assert_eq!(refused.code(), Code::UnknownSpace, "{key}");
    }
    let own = "[stores.app]\n[spaces.agent_data_store]\nownership = 'user'\n\
               key = 'data:{user}:in:{namespace}:{key}'\nttl = '1h'\n";
    assert!(open(own, Tier::Atomic).is_ok());
}

/// To look each name up in the other object would take minutes for so many.
#[tokio::test]
async fn very_many_members_of_metadata_are_merged_as_few_are() {
    const MEMBERS: usize = 200_000;
    let place = Place::new(keyward_stores::Kind::Memory);
    let options = Options { metadata_bytes_max: 14 << 20, ..Options::default() };
    let agents = Agents::alone(place.store().await, options, place.clock().clone()).unwrap();
    let notes = agents.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
    for (from, value) in [(0, 1), (MEMBERS / 2, 2)] {
        let members = (from..from + MEMBERS).map(|n| format!("\"m{n}\":{value}"));
        let metadata = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
        assert!(notes.set("k", set("1").metadata(json(&metadata))).await.unwrap().is_accepted());
    }
    let entry = notes.entry("k").await.unwrap().unwrap();
    let merged = (0..MEMBERS + MEMBERS / 2)
        .map(|n| format!("\"m{n}\":{}", if n < MEMBERS / 2 { 1 } else { 2 }));
    let merged = format!("{{{}}}", merged.collect::<Vec<_>>().join(","));
    assert!(entry.metadata.unwrap().as_str() == merged);
}
