//! What tools take and give, as JSON Schema.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::{Identity, Need};

/// The schema of an object with these members, and no others.
pub(super) fn takes(members: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": members,
        "required": required,
        "additionalProperties": false,
    })
}

/// The schema of an object with at least these members.
pub(super) fn gives(members: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": members, "required": required })
}

pub(super) fn object_of(schema: Value) -> JsonObject {
    match schema {
        Value::Object(members) => members,
        // Every schema here is made by the two functions above.
        _ => JsonObject::new(),
    }
}

pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(super) fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

pub(super) fn number(description: &str) -> Value {
    json!({ "type": "number", "description": description })
}

pub(super) fn whole(description: &str, minimum: u64, maximum: u64) -> Value {
    json!({
        "type": "integer",
        "description": description,
        "minimum": minimum,
        "maximum": maximum,
    })
}

/// A number that is at least 0, of which no client is told how many bits it has.
pub(super) fn count(description: &str) -> Value {
    json!({ "type": "integer", "description": description, "minimum": 0 })
}

pub(super) fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

/// Any JSON. It says so in words: `true` as a schema is more than some clients understand.
pub(super) fn any(description: &str) -> Value {
    json!({ "description": description })
}

pub(super) fn object(description: &str) -> Value {
    json!({ "type": "object", "description": description, "additionalProperties": true })
}

pub(super) fn optional_text(description: &str) -> Value {
    json!({ "type": ["string", "null"], "description": description })
}

pub(super) fn limit() -> Value {
    whole("At most so many; 100, if left out.", 1, 1_000)
}

pub(super) fn cursor() -> Value {
    text("The next of an earlier answer to the same question, to go on after it.")
}

/// The store, by its name: which, if there are several.
pub(super) fn store(app: &App, who: &Identity, need: Need) -> Value {
    let names: Vec<&str> =
        super::stores(app, who, need).map(|served| served.name.as_str()).collect();
    let description = match names.as_slice() {
        [only] => format!("The store. There is one, {only}, and it may be left out."),
        _ => "The store.".to_owned(),
    };
    json!({ "type": "string", "enum": names, "description": description })
}

/// A record, as answers have it.
pub(super) fn record(more: Value) -> Value {
    let mut members = json!({
        "key": text("Its whole key."),
        "value": any("Its value, or the fields of it that were asked for."),
        "metadata": object("What is said about the value."),
        "version": text("Its version: give it as if_version to change just this one."),
        "expires": text("From when on it is absent (RFC 3339)."),
    });
    if let (Value::Object(members), Value::Object(more)) = (&mut members, more) {
        members.extend(more);
    }
    gives(members, &["key", "value", "version"])
}

/// The part of an answer that all pages have.
pub(super) fn page(name: &str, items: Value) -> Value {
    gives(
        json!({
            name: { "type": "array", "items": items },
            "next": optional_text("The cursor of the next page; null at the end."),
        }),
        &[name, "next"],
    )
}
