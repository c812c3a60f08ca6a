//! How the tools for records describe themselves.

use std::fmt::Write;

use keyward::schema::{IndexKind, Space as Declaration};
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::records::ownership;
use super::schema::{
    any, count, cursor, flag, gives, limit, number, object, page, record, takes, text, texts, whole,
};
use super::{Effect, tool};

/// How many bytes of a description tell of spaces.
const SPACES_BYTES_MAX: usize = 4_000;

/// A description that ends with the spaces there are.
fn about(said: &str, spaces: &[&Declaration]) -> String {
    let mut text = format!("{said}\n\nSpaces:");
    for (at, space) in spaces.iter().enumerate() {
        if text.len() > SPACES_BYTES_MAX {
            let rest = spaces.len() - at;
            let _ =
                write!(text, "\n- and {rest} more: see the resources keyward://STORE/spaces/SPACE");
            break;
        }
        let _ = write!(text, "\n- {}: {} ({})", space.name, space.key, ownership(space));
        if let Some(description) = &space.description {
            let _ = write!(text, ". {}", description.trim_end_matches('.'));
        }
    }
    text
}

/// The same, with the indexes of each space.
fn about_indexes(said: &str, spaces: &[&Declaration]) -> String {
    let mut text = format!("{said}\n\nIndexes, with their fields:");
    for space in spaces {
        for index in &space.indexes {
            if text.len() > SPACES_BYTES_MAX {
                text.push_str("\n- and more: see the resources keyward://STORE/spaces/SPACE");
                return text;
            }
            let fields = match &index.kind {
                IndexKind::Values { parts, .. } => {
                    parts.iter().map(|part| part.field.to_string()).collect::<Vec<_>>().join(", ")
                }
                IndexKind::Geohash { .. } => continue,
            };
            let _ = write!(text, "\n- {}: {} ({fields})", space.name, index.name);
        }
    }
    text
}

fn space(spaces: &[&Declaration]) -> Value {
    let names: Vec<&str> = spaces.iter().map(|space| space.name.as_str()).collect();
    json!({ "type": "string", "enum": names, "description": "The space." })
}

fn key() -> Value {
    text("The whole key: segments with colons between them, as the space's pattern says.")
}

fn values() -> Value {
    object("Instead of key: the values of the pattern's variables. The owner may be left out.")
}

fn if_version() -> Value {
    text(
        "Only if the record has this version: what record_get gave. Nothing is overwritten by mistake.",
    )
}

pub(super) fn save(spaces: &[&Declaration]) -> Tool {
    let objects = spaces.iter().all(|space| {
        let schema = space.value.as_ref().map(|schema| schema.definition());
        schema.is_some_and(|schema| schema["type"] == "object")
    });
    let said = "The value, as the space wants it; with merge, the part that changes.";
    let value = if objects { object(said) } else { any(&format!("{said} Any JSON.")) };
    tool(
        "record_save",
        "Save a record",
        about(
            "Saves a record: makes it, or replaces it. With merge, changes a part of it.",
            spaces,
        ),
        Effect::Sets,
        (
            takes(
                json!({
                    "space": space(spaces),
                    "key": key(),
                    "values": values(),
                    "value": value,
                    "metadata": object("What to say about the value."),
                    "ttl": text("For how many seconds it shall live, as digits; or never, or keep. As the space says, if left out."),
                    "merge": flag("Whether the value is merged into what is there (RFC 7396): null removes a field."),
                    "if_version": if_version(),
                    "if_absent": flag("Only if there is no such record."),
                }),
                &["space", "value"],
            ),
            gives(
                json!({
                    "key": text("Its whole key."),
                    "version": text("Its new version."),
                    "created": flag("Whether there was none before."),
                }),
                &["key", "version", "created"],
            ),
        ),
    )
}

pub(super) fn get(spaces: &[&Declaration]) -> Tool {
    let mut output = record(json!({ "found": flag("Whether there is such a record.") }));
    output["required"] = json!(["key", "found"]);
    tool(
        "record_get",
        "Read a record",
        about("Reads a record by its key. found is false where there is none.", spaces),
        Effect::Reads,
        (
            takes(json!({ "space": space(spaces), "key": key(), "values": values() }), &["space"]),
            output,
        ),
    )
}

pub(super) fn list(spaces: &[&Declaration]) -> Tool {
    let item = json!({
        "type": "object",
        "properties": {
            "key": text("A record's key."),
            "prefix": text("A prefix with records below it."),
        },
    });
    let mut output = page("items", item);
    output["properties"]["guarantee"] =
        text("What the answer is worth: atomic, recoverable or advisory.");
    tool(
        "record_list",
        "List the keys of records",
        about("Lists the keys of a space in order, a page at a time.", spaces),
        Effect::Reads,
        (
            takes(
                json!({
                    "space": space(spaces),
                    "prefix": text("Below which prefix: segments with colons between and after them. Everything, if left out."),
                    "depth": whole("How many levels are shown; what lies deeper shows as a prefix.", 1, 64),
                    "budget": whole("How many keys may be read for one page.", 1, 100_000),
                    "descending": flag("Whether to begin at the end."),
                    "limit": limit(),
                    "cursor": cursor(),
                }),
                &["space"],
            ),
            output,
        ),
    )
}

fn answer(records: Value) -> Value {
    let mut output = page("records", records);
    output["properties"]["guarantee"] =
        text("What the answer is worth: atomic, recoverable or advisory.");
    output["properties"]["read"] = object("What it cost: entries, records, dropped.");
    output
}

pub(super) fn query(spaces: &[&Declaration]) -> Tool {
    let said = "Finds records through an index, or in the order of their keys. Without a fitting index \
                nothing is read from end to end unless allow_scan says so.";
    tool(
        "record_query",
        "Find records",
        about_indexes(said, spaces),
        Effect::Reads,
        (
            takes(
                json!({
                    "space": space(spaces),
                    "index": text("The index to ask. Without one, records are read in the order of their keys."),
                    "values": object("Without an index: the values of the key's leading variables."),
                    "equal": { "type": "array", "items": any("A value."), "description": "The values of the index's leading fields, in their order." },
                    "from": any("The field after them is at least this."),
                    "to": any("The field after them is at most this."),
                    "above": any("The field after them is more than this."),
                    "below": any("The field after them is less than this."),
                    "prefix": text("The field after them starts with this text."),
                    "filter": object("What must hold besides: fields, each with a value or with comparisons (eq, ne, lt, lte, gt, gte, in, exists, contains, prefix)."),
                    "fields": texts("The fields to give back; all of them, if none are named."),
                    "owner": text("Whose records, for those who may choose."),
                    "descending": flag("Whether to begin at the end."),
                    "limit": limit(),
                    "cursor": cursor(),
                    "allow_scan": flag("Whether everything may be read where no index helps."),
                    "budget": whole("How many entries may be read for one page.", 1, 100_000),
                }),
                &["space"],
            ),
            answer(record(json!({}))),
        ),
    )
}

pub(super) fn near(spaces: &[&Declaration]) -> Tool {
    let output = answer(record(json!({ "distance_m": number("How far away it is, in metres.") })));
    tool(
        "record_near",
        "Find records near a place",
        about("Finds the records with a place in a circle, the nearest first.", spaces),
        Effect::Reads,
        (
            takes(
                json!({
                    "space": space(spaces),
                    "index": text("The index of places; may be left out where there is one."),
                    "lat": { "type": "number", "minimum": -90, "maximum": 90, "description": "Degrees north." },
                    "lon": { "type": "number", "minimum": -180, "maximum": 180, "description": "Degrees east." },
                    "radius_m": number("How far away at most, in metres."),
                    "filter": object("What must hold besides, as in record_query."),
                    "fields": texts("The fields to give back; all of them, if none are named."),
                    "owner": text("Whose records, for those who may choose."),
                    "limit": limit(),
                    "cursor": cursor(),
                    "budget": whole("How many entries may be read; a search that needs more is refused.", 1, 100_000),
                }),
                &["space", "lat", "lon", "radius_m"],
            ),
            output,
        ),
    )
}

pub(super) fn delete(spaces: &[&Declaration]) -> Tool {
    tool(
        "record_delete",
        "Delete records",
        about(
            "Deletes one record by its key, or all below a prefix. For a prefix, their number must be \
             confirmed: the user is asked, or the answer says how many there are and the call is made \
             again with confirm. Deleting what is not there changes nothing.",
            spaces,
        ),
        Effect::Removes,
        (
            takes(
                json!({
                    "space": space(spaces),
                    "key": key(),
                    "values": values(),
                    "prefix": text("Instead of key: everything below it, segments with colons between and after them."),
                    "if_version": if_version(),
                    "confirm": count("With prefix: how many records there are to delete."),
                }),
                &["space"],
            ),
            gives(json!({ "deleted": count("How many records were deleted.") }), &["deleted"]),
        ),
    )
}
