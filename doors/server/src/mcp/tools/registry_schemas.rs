//! What the tools of registries take and give, as JSON Schema.

use serde_json::{Value, json};

use super::schema::{
    any, count, flag, gives, limit, number, object, optional_text, takes, text, whole,
};

/// The registry, by its name: which, if there are several.
fn registry(names: &[&str]) -> Value {
    let description = match names {
        [only] => format!("The registry. There is one, {only}, and it may be left out."),
        _ => "The registry.".to_owned(),
    };
    json!({ "type": "string", "enum": names, "description": description })
}

fn after() -> Value {
    text("The next of an earlier answer, to go on after it.")
}

fn full() -> Value {
    flag("Whether the whole tree is compared, also where only what changed would do.")
}

/// A page of entries.
fn page() -> Value {
    let entry = object(
        "An entry: policyName, title, status, lastUpdated, sha, path, and what else it has.",
    );
    gives(
        json!({
            "items": { "type": "array", "items": entry },
            "next": optional_text("What to give as after for the next page; null at the end."),
        }),
        &["items", "next"],
    )
}

pub(super) fn status(names: &[&str]) -> (Value, Value) {
    let output = gives(
        json!({
            "name": text("Its name."),
            "store": text("The store it is in."),
            "repository": text("Where its documents are kept."),
            "branch": optional_text("The branch; null, if it is the one that the repository says."),
            "prefix": optional_text("The first segment of its keys."),
            "nextRun": optional_text("When a run is due (RFC 3339); null without a schedule."),
            "webhook": flag("Whether it is told of pushes."),
            "consumers": { "type": "array", "items": { "type": "string" } },
            "lastRun": any("How the last run ended; null before the first."),
            "lastCommit": optional_text("The commit that it is at."),
            "entries": any("How many policies there are, as far as is known."),
            "running": any("The run that is under way: holder, since, run; null if there is none."),
            "queue": object("What waits for consumers: ready, delayed, claimed, dead, oldest_ms, paused."),
        }),
        &["name", "store", "lastRun", "lastCommit", "running", "queue"],
    );
    (takes(json!({ "registry": registry(names) }), &[]), output)
}

pub(super) fn list(names: &[&str]) -> (Value, Value) {
    let members = json!({ "registry": registry(names), "limit": limit(), "after": after() });
    (takes(members, &[]), page())
}

pub(super) fn search(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "registry": registry(names),
        "text": text("What the name or the title has in it, up to 200 bytes."),
        "limit": limit(),
        "after": after(),
    });
    (takes(members, &["text"]), page())
}

pub(super) fn get(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "registry": registry(names),
        "policy": text("The name of the policy."),
        "content": flag("Whether its content is told as well; true, if left out."),
    });
    let output = gives(
        json!({
            "entry": object("The entry as it is stored."),
            "content": text("The content: Markdown, up to 256 KiB of it."),
            "truncated": flag("Whether there is more of the content than is told."),
        }),
        &["entry"],
    );
    (takes(members, &["policy"]), output)
}

pub(super) fn plan(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "registry": registry(names),
        "full": full(),
        "limit": whole("At most so many steps and problems; 100, if left out.", 1, 1_000),
    });
    let output = gives(
        json!({
            "registry": text("The registry."),
            "commit": text("The commit that was looked at."),
            "previousCommit": optional_text("The commit that the registry is at."),
            "counts": object("How many steps there are: add, update, delete."),
            "steps": {
                "type": "array",
                "items": object("What is to be done: operation, policyName, title, sha, path."),
                "description": "The first of them.",
            },
            "problemCount": count("How many files are left alone."),
            "problems": {
                "type": "array",
                "items": object("A file that is left alone: path, reason."),
                "description": "The first of them.",
            },
            "scanned": count("How many files were looked at."),
            "entries": count("How many policies the registry has."),
            "whole": flag("Whether the whole tree was compared, or only what changed."),
            "blobsRead": count("How many files were read."),
        }),
        &["commit", "counts", "steps", "problemCount", "problems"],
    );
    (takes(members, &[]), output)
}

pub(super) fn run(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "registry": registry(names),
        "full": full(),
        "allow_mass_delete": flag("Whether more may be deleted than the settings say. Needs admin."),
        "wait": number("For how many seconds to wait for its end, up to 25; none, if left out."),
        "confirm": count("How many policies are deleted, to confirm it."),
    });
    let output = gives(
        json!({
            "outcome": {
                "type": "string",
                "enum": ["running", "ended", "unchanged"],
                "description": "What became of it.",
            },
            "id": optional_text("The run's id; null if there was none, or if it is not known yet."),
            "commit": optional_text("The commit that was looked at, or that the registry is at."),
            "run": any("The run, of one that has ended: status, added, updated, deleted, errors, and more."),
        }),
        &["outcome", "id", "commit", "run"],
    );
    (takes(members, &[]), output)
}
