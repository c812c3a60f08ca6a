//! What handlers that are written by hand share with the operations on entries.

use std::time::Duration;

use keyward::{Expiry, Json, Put};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::problem::{Problem, Result};

/// The most items on a page.
pub(crate) const PAGE_MAX: usize = 1_000;
const PAGE_DEFAULT: usize = 100;

/// How an entry is shown or given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum View {
    /// The value alone; what else there is to say is in headers.
    #[default]
    Value,
    /// An object with the value, its metadata, its version and its end.
    Entry,
}

/// What is to be put, as a client gives it.
pub(crate) fn drafted(
    value: &RawValue,
    metadata: Option<&RawValue>,
    ttl: Option<u64>,
) -> Result<Put> {
    let parse = |raw: &RawValue| {
        Json::parse(raw.get().to_owned()).map_err(|error| Problem::invalid(error.to_string()))
    };
    let mut put = Put::new(parse(value)?);
    put.metadata = metadata.map(parse).transpose()?;
    expiring(put, ttl)
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
