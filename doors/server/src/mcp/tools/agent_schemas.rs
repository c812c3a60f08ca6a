//! How the tools for what agents keep describe themselves.

use rmcp::model::Tool;
use serde_json::{Value, json};

use super::schema::{
    any, count, cursor, flag, gives, limit, object, optional_text, page, takes, text,
};
use super::{Effect, tool};
use crate::http::agents::life::SECONDS_MAX;

/// What all of these take: whose entries, if the credential leaves that open, and the namespace.
fn arguments(chooses: bool, mut more: Value, required: &[&str]) -> Value {
    if let Value::Object(more) = &mut more {
        let namespace = "The namespace, such as project:apollo; default, if left out.";
        more.entry("namespace").or_insert_with(|| text(namespace));
        if chooses {
            more.insert("user".to_owned(), text("Whose entries: a user's id."));
        }
    }
    let mut required = required.to_vec();
    if chooses {
        required.push("user");
    }
    takes(more, &required)
}

fn key() -> Value {
    text("The key of the entry: any text.")
}

fn if_version() -> Value {
    text("Only if the entry has this version: the _rev that agent_get gave.")
}

fn ttl() -> Value {
    json!({
        "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": SECONDS_MAX },
            { "type": "string", "enum": ["never"] },
        ],
        "description": "For how many seconds it lives, or never for no end. As the namespace says, if left out.",
    })
}

/// An entry, as answers have it.
fn entry() -> Value {
    gives(
        json!({
            "_id": text("Its id."),
            "_rev": text("Its version: give it as if_version to change just this one."),
            "userId": text("Whose it is."),
            "namespace": text("Its namespace."),
            "key": text("Its key."),
            "value": any("Its value: any JSON."),
            "metadata": object("What is said about the value."),
            "createdByAgent": text("Which agent made it."),
            "lastAccessedByAgent": text("Which agent accessed it last."),
            "accessCount": count("How often agents read it."),
            "createdAt": text("When it was made (RFC 3339)."),
            "updatedAt": text("When it was changed last."),
            "lastAccessedAt": text("When it was accessed last."),
        }),
        &["_id", "_rev", "userId", "namespace", "key", "value"],
    )
}

fn changed() -> Value {
    gives(
        json!({
            "namespace": text("Its namespace."),
            "key": text("Its key."),
            "version": text("Its new version."),
            "created": flag("Whether there was none before."),
        }),
        &["namespace", "key", "version", "created"],
    )
}

pub(super) fn get(chooses: bool) -> Tool {
    tool(
        "agent_get",
        "Read an entry",
        "Reads an entry of the agent data store: what agents keep for a user, in namespaces. found is \
         false where there is none."
            .to_owned(),
        Effect::Reads,
        (
            arguments(chooses, json!({ "key": key() }), &["key"]),
            gives(json!({ "found": flag("Whether there is one."), "entry": entry() }), &["found"]),
        ),
    )
}

pub(super) fn set(chooses: bool) -> Tool {
    tool(
        "agent_set",
        "Keep an entry",
        "Keeps an entry for the user: makes it, or gives it a new value. Metadata is merged into what \
         it has. Use it for what should be known later, by you or by another agent."
            .to_owned(),
        Effect::Sets,
        (
            arguments(
                chooses,
                json!({
                    "key": key(),
                    "value": any("The whole value: any JSON. Not a text of JSON."),
                    "metadata": object("What to say about it, such as source or status."),
                    "ttl_seconds": ttl(),
                    "sliding": flag("Whether its time starts again when it is read."),
                    "if_version": if_version(),
                    "if_absent": flag("Only if there is no such entry."),
                }),
                &["key", "value"],
            ),
            changed(),
        ),
    )
}

pub(super) fn patch(chooses: bool) -> Tool {
    tool(
        "agent_patch",
        "Change a part of an entry",
        "Merges parts into an entry that is there (RFC 7396): null removes a member, the rest stays."
            .to_owned(),
        Effect::Sets,
        (
            arguments(
                chooses,
                json!({
                    "key": key(),
                    "value": object("The part to merge into the value."),
                    "metadata": object("The part to merge into the metadata."),
                    "if_version": if_version(),
                }),
                &["key"],
            ),
            changed(),
        ),
    )
}

pub(super) fn delete(chooses: bool) -> Tool {
    tool(
        "agent_delete",
        "Delete entries",
        "Deletes one entry by its key, or all whose keys start with a prefix (the whole namespace, if \
         it is empty). For a prefix, their number must be confirmed: the user is asked, or the answer \
         says how many there are and the call is made again with confirm."
            .to_owned(),
        Effect::Removes,
        (
            arguments(
                chooses,
                json!({
                    "key": key(),
                    "prefix": text("Instead of key: what keys start with."),
                    "if_version": if_version(),
                    "confirm": count("With prefix: how many entries there are to delete."),
                }),
                &[],
            ),
            gives(json!({ "deleted": count("How many entries were deleted.") }), &["deleted"]),
        ),
    )
}

pub(super) fn keys(chooses: bool) -> Tool {
    tool(
        "agent_keys",
        "List keys",
        "Lists the keys of a namespace in order, a page at a time.".to_owned(),
        Effect::Reads,
        (
            arguments(
                chooses,
                json!({
                    "prefix": text("What keys start with; all, if left out."),
                    "limit": limit(),
                    "cursor": cursor(),
                }),
                &[],
            ),
            page("keys", json!({ "type": "string" })),
        ),
    )
}

pub(super) fn namespaces(chooses: bool) -> Tool {
    let mut input = arguments(chooses, json!({ "limit": limit(), "cursor": cursor() }), &[]);
    if let Some(members) = input["properties"].as_object_mut() {
        members.remove("namespace");
    }
    tool(
        "agent_namespaces",
        "List namespaces",
        "Lists the namespaces that have entries. A good first call.".to_owned(),
        Effect::Reads,
        (input, page("namespaces", json!({ "type": "string" }))),
    )
}

pub(super) fn search(chooses: bool) -> Tool {
    tool(
        "agent_search",
        "Search entries",
        "Finds entries by how their keys start and by fields of value and metadata. Indexes that are \
         declared make it quick."
            .to_owned(),
        Effect::Reads,
        (
            arguments(
                chooses,
                json!({
                    "namespace": text("The namespace; all of them, if left out."),
                    "prefix": text("What keys start with, in one namespace."),
                    "filter": object("What must hold: fields such as value.status, metadata.source, createdByAgent, updatedAt, each with a value or with comparisons (eq, ne, lt, lte, gt, gte, in, exists, contains, prefix)."),
                    "limit": limit(),
                    "cursor": cursor(),
                }),
                &[],
            ),
            page("entries", entry()),
        ),
    )
}

pub(super) fn history(chooses: bool) -> Tool {
    let item = gives(
        json!({
            "number": count("Its number: agent_restore takes it as to."),
            "act": text("What was done: put, merge, update, restore or delete."),
            "at": text("When (RFC 3339)."),
            "agent": optional_text("Which agent did it."),
            "run": optional_text("In which run."),
            "value": any("The value it had."),
            "metadata": object("What was said about it."),
            "redacted": flag("Whether its value was taken away."),
        }),
        &["number", "act", "at"],
    );
    let mut output = page("items", item);
    output["properties"]["next"] = json!({ "type": ["integer", "null"], "description": "What before takes for the next page; null at the end." });
    tool(
        "agent_history",
        "Show earlier versions",
        "Shows earlier versions of an entry, the newest first, with who made them; also of one that was \
         deleted."
            .to_owned(),
        Effect::Reads,
        (
            arguments(
                chooses,
                json!({
                    "key": key(),
                    "before": count("Only those before this number."),
                    "limit": limit(),
                }),
                &["key"],
            ),
            output,
        ),
    )
}

pub(super) fn restore(chooses: bool) -> Tool {
    tool(
        "agent_restore",
        "Restore an earlier version",
        "Gives an entry what it had in an earlier version, as a new version.".to_owned(),
        Effect::Sets,
        (
            arguments(
                chooses,
                json!({
                    "key": key(),
                    "to": count("The number of the version, from agent_history."),
                    "if_version": if_version(),
                }),
                &["key", "to"],
            ),
            changed(),
        ),
    )
}
