//! Schemas before and after a change, and short ways to say things.

use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use keyward_engine::{Json, Put, Scan, Store, Tier};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_memory::{Memory, Options};
use keyward_migrate::{Definition, Doctor, Migration, Migrator, Pause, Report, State};
use keyward_records::{Caller, Draft, Query, Records, Space};
use keyward_schema::Schema;
use keyward_stores::Place;
use keyward_testkit::TestClock;

/// Notes without indexes.
pub const PLAIN: &str = r#"
[stores.app]
[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
[spaces.notes.value]
type = "object"
[spaces.notes.value.properties]
title = { type = "string" }
tags = { type = "array", items = { type = "string" } }
"#;

/// Notes by title and by tag.
pub fn indexed() -> String {
    let indexes = r#"
[spaces.notes.indexes.by_title]
field = "title"
[spaces.notes.indexes.by_tag]
field = "tags"
multi = true
"#;
    format!("{PLAIN}{indexes}")
}

/// Notes whose slug is one of a kind.
pub fn slugged() -> String {
    let indexes = r#"
[spaces.notes.indexes.slug]
field = "slug"
type = "text"
unique = true
scope = "shared"
"#;
    let plain = PLAIN.replace("tags = ", "slug = {}\ntags = ");
    format!("{plain}{indexes}")
}

pub fn records(store: Store, clock: &TestClock, schema: &str) -> Records {
    let schema = Schema::parse(schema, "schema.toml").unwrap_or_else(|error| panic!("{error}"));
    Records::open(store, schema.spaces, clock.clone()).unwrap()
}

/// The same store, as a program with another schema opens it.
pub async fn open(place: &Place, schema: &str) -> Records {
    records(place.store().await, place.clock(), schema)
}

/// The same spaces in an empty store of the same tier, to try things in.
pub fn scratch(place: &Place, records: &Records) -> Records {
    let tier = match records.store().capabilities().tier() {
        Tier::Atomic => Tier::Atomic,
        Tier::Recoverable | Tier::Advisory => Tier::Recoverable,
    };
    let memory = Memory::with(Options::tier(tier), place.clock().clone());
    let store = Store::new(memory).with_limits(*records.store().limits());
    Records::open(store, records.declarations().cloned(), place.clock().clone()).unwrap()
}

pub fn operator(records: &Records, space: &str) -> Space {
    records.space(space, &Caller::operator()).unwrap()
}

/// Lets the clock jump instead of waiting.
pub struct Jumping(pub TestClock);

impl Pause for Jumping {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.0.advance(time);
        Box::pin(ready(()))
    }
}

/// Migrations in small pages, so that there are many of them.
pub fn migrator(records: &Records, clock: &TestClock) -> Migrator {
    Migrator::new(records.clone(), Jumping(clock.clone())).page(7).by("tests")
}

/// Runs everything that is planned.
pub async fn migrate(records: &Records, clock: &TestClock) -> Vec<Migration> {
    let migrator = migrator(records, clock);
    let mut done = Vec::new();
    let plan = migrator.plan().await.unwrap();
    for step in plan.undeclared.into_iter().chain(plan.build) {
        done.push(migrator.run(step, |_| ()).await.unwrap());
    }
    done
}

pub fn add(records: &Records, space: &str, index: &str) -> Definition {
    let declared = records.declarations().find(|declared| declared.name == space).unwrap();
    let index = declared.index(index).unwrap().clone();
    Definition::AddIndex { space: space.to_owned(), index }
}

pub fn assert_done(migration: &Migration) {
    assert_eq!(migration.state, State::Done, "{:?}", migration.problems);
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

pub fn note(n: usize) -> Key {
    key(&format!("user:u{}:notes:n{n:03}", n % 3))
}

/// Writes notes with titles that repeat.
pub async fn fill(space: &Space, notes: usize) {
    for n in 0..notes {
        let text = format!(r#"{{"title":"t{}","tags":["a","b{n}"],"slug":"s{n}"}}"#, n % 5);
        let written = space.put(&note(n), Draft::new(json(&text))).await.unwrap();
        assert!(written.is_accepted());
    }
}

/// Keys and values below a prefix.
pub async fn rows(store: &Store, prefix: &str) -> Vec<(String, String)> {
    let range = KeyRange::under(&Prefix::parse(prefix).unwrap());
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = store.scan(&Scan::new(range.clone()).after(after)).await.unwrap();
        let page_rows = page.rows.into_iter();
        rows.extend(
            page_rows.map(|row| (row.key.to_string(), row.entry.unwrap().value.to_string())),
        );
        match page.next {
            Some(next) => after = Some(next),
            None => return rows,
        }
    }
}

pub async fn put_raw(store: &Store, at: &str, value: &str) {
    store.put(key(at), Put::new(json(value))).await.unwrap();
}

/// What a doctor finds.
pub async fn examine(records: &Records) -> Report {
    Doctor::new(records.clone()).run(|_| ()).await.unwrap()
}

pub async fn assert_well(records: &Records) {
    let report = examine(records).await;
    assert_eq!(report.left(), 0, "{:#?}", report.found);
}

/// How many records an index leads one user to.
pub async fn found(records: &Records, user: &str, index: &str, value: &str) -> usize {
    let space = records.space("notes", &Caller::user(user)).unwrap();
    let mut query = Query::index(index).equal(value);
    let mut found = 0;
    loop {
        let answer = space.query(&query).await.unwrap();
        found += answer.records.len();
        match answer.next {
            Some(next) => query = query.after(Some(next)),
            None => return found,
        }
    }
}
