//! A schema to test with, and short ways to say things.

use keyward_engine::{Engine, Json, Store, Tier, Version};
use keyward_key::{Bindings, Key};
use keyward_memory::{Memory, Options};
use keyward_records::{Caller, Draft, Query, Record, Records, Space, Written};
use keyward_schema::Schema;
use keyward_stores::Place;
use keyward_testkit::TestClock;

const SCHEMA: &str = include_str!("schema.toml");

pub fn schema() -> Schema {
    Schema::parse(SCHEMA, "schema.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

/// A place with records in it, and the people who use them.
pub struct Fixture {
    pub place: Place,
    pub records: Records,
}

impl Fixture {
    pub async fn new(place: Place) -> Self {
        let records = open(place.store().await, &place);
        Self { place, records }
    }

    /// The same records, as another process would open them.
    pub async fn again(&self) -> Records {
        open(self.place.store().await, &self.place)
    }

    pub fn space(&self, name: &str, user: &str) -> Space {
        self.records.space(name, &Caller::user(user)).unwrap()
    }

    pub fn store(&self) -> &Store {
        self.records.store()
    }
}

/// The spaces that the place's engine can keep.
pub fn open(store: Store, place: &Place) -> Records {
    let tier = store.capabilities().tier();
    let spaces = schema().spaces.into_iter().filter(|space| match tier {
        keyward_engine::Tier::Atomic => true,
        keyward_engine::Tier::Recoverable => space.history.is_none(),
        keyward_engine::Tier::Advisory => space.history.is_none() && space.name != "people",
    });
    Records::open(store, spaces, place.clock().clone()).unwrap()
}

/// A memory engine with what a tier can do, and its clock.
pub fn memory(tier: Tier) -> (Memory, TestClock) {
    let clock = TestClock::new();
    (Memory::with(Options::tier(tier), clock.clone()), clock)
}

/// Records of a schema that a test brings along, on any engine.
pub fn declare(engine: impl Engine, clock: &TestClock, schema: &str) -> Records {
    let schema = Schema::parse(schema, "schema.toml").unwrap_or_else(|p| panic!("{p}"));
    Records::open(Store::new(engine), schema.spaces, clock.clone()).unwrap()
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

pub fn draft(text: &str) -> Draft {
    Draft::new(json(text))
}

/// The key of the caller's record with this id.
pub fn own(space: &Space, id: &str) -> Key {
    let variable = space.declaration().key.variables().last().unwrap().name.clone();
    space.key(Bindings::new().with(variable, id)).unwrap()
}

/// Puts the caller's record with this id, and gives its version.
pub async fn put(space: &Space, id: &str, value: &str) -> Version {
    match space.put(&own(space, id), draft(value)).await.unwrap() {
        Written::Applied { version, .. } => version,
        other => panic!("{other:?}"),
    }
}

/// The last segments of the records' keys.
pub fn ids(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| record.key.segments().last().unwrap().into_owned()).collect()
}

/// The ids of everything a query finds, page by page.
pub async fn all(space: &Space, query: Query) -> Vec<String> {
    let mut query = query;
    let mut found = Vec::new();
    loop {
        let answer = space.query(&query).await.unwrap();
        found.extend(ids(&answer.records));
        match answer.next {
            Some(next) => query = query.after(Some(next)),
            None => return found,
        }
    }
}
