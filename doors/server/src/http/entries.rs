//! What handlers that are written by hand share with the operations on entries.

use std::time::Duration;

use keyward::{Expiry, Json, Put};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::problem::{Problem, Result};

/// The most items on a page.
pub(crate) const PAGE_MAX: usize = 1_000;
const PAGE_DEFAULT: usize = 100;

/// What is to be put, as a client gives it.
pub(crate) fn drafted(
    value: &RawValue,
    metadata: Option<&RawValue>,
    ttl: Option<u64>,
) -> Result<Put> {
    let mut put = Put::new(stored(value)?);
    put.metadata = metadata.map(stored).transpose()?;
    expiring(put, ttl)
}

/// JSON that is to be stored.
pub(crate) fn stored(raw: &RawValue) -> Result<Json> {
    Json::parse(raw.get().to_owned()).map_err(|error| Problem::invalid(error.to_string()))
}

fn expiring(put: Put, ttl: Option<u64>) -> Result<Put> {
    match ttl {
        None => Ok(put),
        Some(0) => Err(Problem::invalid("a ttl is at least one second")
            .hint("Leave out ttl for an entry that lives for ever; delete what shall end now.")),
        Some(seconds) => Ok(put.expiring(Expiry::After(Duration::from_secs(seconds)))),
    }
}

/// What is said about a change.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(crate) struct Stored {
    /// The key.
    key: String,
    /// The new version, which is also the `ETag`.
    version: String,
}

/// How many items a page has.
pub(crate) fn page_limit(asked: Option<usize>) -> Result<usize> {
    match asked.unwrap_or(PAGE_DEFAULT) {
        limit @ 1..=PAGE_MAX => Ok(limit),
        limit => Err(Problem::invalid(format!("a page has 1 to {PAGE_MAX} items, not {limit}"))),
    }
}
