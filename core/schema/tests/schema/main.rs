//! Schemas: how they are read, what is told about those that are wrong, and what is made of them.

mod cases;
mod diff;
mod docs;
mod limits;
mod lint;
mod loading;
mod problems;
mod random;

use keyward_schema::Schema;

/// Reads a schema that is right.
fn schema(text: &str) -> Schema {
    Schema::parse(text, "schema.toml").unwrap_or_else(|problems| panic!("{problems}"))
}
