//! The shapes of requests and responses.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Keys in one batch, and operations in one transaction.
pub(crate) const OPERATIONS_MAX: usize = 25;
/// Rows in one page of a query.
pub(crate) const QUERY_ROWS_MAX: usize = 100;

const CREATED_AT: &str = "CREATED_AT";
const UPDATED_AT: &str = "UPDATED_AT";
const EXPIRE_TIME: &str = "EXPIRE_TIME";

/// Which of Forge's own facts of a row to tell.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetOptions {
    metadata_fields: [&'static str; 3],
}

impl GetOptions {
    const ALL: Self = Self { metadata_fields: [CREATED_AT, UPDATED_AT, EXPIRE_TIME] };
}

/// One key of a batch to read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetItem<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity_name: Option<&'a str>,
    options: GetOptions,
}

impl<'a> GetItem<'a> {
    pub fn new(key: &'a str, entity_name: Option<&'a str>) -> Self {
        Self { key, entity_name, options: GetOptions::ALL }
    }
}

/// One key to read.
pub(crate) type Get<'a> = GetItem<'a>;

/// The rows of a batch that was read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchGet {
    pub successful_keys: Vec<Row>,
    pub failed_keys: Vec<Failure>,
}

/// A key with its value and what Forge itself knows of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub key: String,
    pub value: Box<RawValue>,
    #[serde(default)]
    pub created_at: Option<Box<RawValue>>,
    #[serde(default)]
    pub updated_at: Option<Box<RawValue>>,
    #[serde(default)]
    pub expire_time: Option<String>,
}

/// A key of a batch that could not be read.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure {
    pub key: String,
    pub error: crate::error::Refusal,
}

/// Operations that happen together or not at all.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Transaction<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Set<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<Delete<'a>>,
}

/// A row to write.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Set<'a> {
    pub key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_name: Option<&'a str>,
    pub value: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    #[serde(skip_serializing_if = "SetOptions::is_empty")]
    pub options: SetOptions,
}

/// How a row is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_policy: Option<&'static str>,
}

impl SetOptions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What an entity must be for a transaction to be carried out: all of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Conditions {
    pub and: Vec<Condition>,
}

/// What an attribute of an entity must be.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Condition {
    pub property: &'static str,
    pub condition: &'static str,
    pub values: [serde_json::Value; 1],
}

/// A time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Ttl {
    pub value: u64,
    pub unit: &'static str,
}

/// A row to delete.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delete<'a> {
    pub key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
}

/// One page of keys to list.
#[derive(Debug, Serialize)]
pub(crate) struct Query<'a> {
    pub limit: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<&'a str>,
    #[serde(rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<BeginsWith<'a>>,
}

/// The only condition that the key-value store knows.
#[derive(Debug, Serialize)]
pub(crate) struct BeginsWith<'a> {
    condition: &'static str,
    property: &'static str,
    values: [&'a str; 1],
}

impl<'a> Query<'a> {
    pub fn new(prefix: &'a str, limit: usize, after: Option<&'a str>) -> Self {
        let clause = BeginsWith { condition: "BEGINS_WITH", property: "key", values: [prefix] };
        let clauses = if prefix.is_empty() { Vec::new() } else { vec![clause] };
        Self { limit, after, clauses }
    }
}

/// One page of the keys of a custom entity.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntityQuery<'a> {
    entity_name: &'a str,
    index_name: &'static str,
    limit: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<EntityRange<'a>>,
}

/// A condition on what an index orders by.
#[derive(Debug, Serialize)]
pub(crate) struct EntityRange<'a> {
    condition: &'static str,
    values: [&'a str; 1],
}

impl<'a> EntityQuery<'a> {
    pub fn new(
        entity_name: &'a str,
        prefix: &'a str,
        limit: usize,
        cursor: Option<&'a str>,
    ) -> Self {
        let range = EntityRange { condition: "BEGINS_WITH", values: [prefix] };
        let range = (!prefix.is_empty()).then_some(range);
        Self { entity_name, index_name: "by-key", limit, cursor, range }
    }
}

/// One page of keys. Their values come along, and are not read.
#[derive(Debug, Deserialize)]
pub(crate) struct Listed {
    pub data: Vec<ListedRow>,
    #[serde(default)]
    pub cursor: Option<String>,
}

/// A key of a page.
#[derive(Debug, Deserialize)]
pub(crate) struct ListedRow {
    pub key: String,
}
