//! Records of a schema that one test declares, in memory.

use keyward_engine::{Store, Tier};
use keyward_memory::{Memory, Options};
use keyward_records::Records;
use keyward_schema::Schema;
use keyward_testkit::TestClock;

/// A memory with the powers of a tier, and the clock it goes by.
pub fn memory(tier: Tier) -> (Memory, TestClock) {
    let clock = TestClock::new();
    (Memory::with(Options::tier(tier), clock.clone()), clock)
}

/// The records of a schema in a memory, as a process of its own opens them.
pub fn open(memory: &Memory, clock: &TestClock, schema: &str) -> Records {
    open_store(Store::new(memory.clone()), clock, schema)
}

/// The records of a schema in any store.
pub fn open_store(store: Store, clock: &TestClock, schema: &str) -> Records {
    let schema =
        Schema::parse(schema, "schema.toml").unwrap_or_else(|problems| panic!("{problems}"));
    Records::open(store, schema.spaces, clock.clone()).unwrap()
}
