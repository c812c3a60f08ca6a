//! What the tools of agreements take and give, as JSON Schema.

use serde_json::{Value, json};

use super::jobs::job_schema;
use super::schema::{any, count, flag, gives, number, object, optional_text, takes, text, whole};

/// The workspace, by its name: which, if there are several.
fn workspace(names: &[&str]) -> Value {
    let description = match names {
        [only] => format!("The workspace. There is one, {only}, and it may be left out."),
        _ => "The workspace.".to_owned(),
    };
    json!({ "type": "string", "enum": names, "description": description })
}

fn page() -> Value {
    text("The id of the page.")
}

fn state(description: &str) -> Value {
    let states = ["pending", "active", "blocked", "resolved"];
    json!({ "type": "string", "enum": states, "description": description })
}

fn wait() -> Value {
    number("For how many seconds to wait for its end, up to 25; none, if left out.")
}

fn issue(more: Value) -> Value {
    let members = json!({
        "id": text("Its id."),
        "version": text("Its version: give it as if_version to change just this one."),
        "state": state("Where it stands."),
        "severity": whole("1 is low, 2 is medium, 3 is high.", 1, 3),
        "title": text("What it is about."),
        "description": {
            "type": "array",
            "items": any("A text, or a reference to a policy: source, title, excerpt, offset, length."),
        },
        "annotations": text("What people note about it, in Markdown."),
        "archived": flag("Whether it was put away."),
        "stale": flag("Whether a policy that it refers to has changed since, or is gone."),
        "created": text("When it was made (RFC 3339)."),
        "updated": text("When it was last changed."),
        "resolvedAt": text("When it was settled."),
    });
    gives(with(members, more), &["id", "version", "state", "severity", "title"])
}

fn history() -> Value {
    json!({
        "history": {
            "type": "array",
            "items": object("What happened: at, who, change, perhaps why."),
            "description": "What happened to it, oldest first. Lists leave it out.",
        },
    })
}

fn language() -> Value {
    text("A code of ISO 639-1, such as fr; the language it was written in, if left out.")
}

/// The members of a policy that was read.
fn document() -> Value {
    json!({
        "source": text("The id of the policy."),
        "title": text("What it is called."),
        "language": optional_text("Its language, if it could be told."),
        "original": flag("Whether it is in the language that it was written in."),
        "content": text("The text: Markdown, up to 256 KiB of it."),
        "truncated": flag("Whether there is more of the text than is told."),
    })
}

/// Some members, and more.
fn with(mut members: Value, more: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut members, more) {
        members.extend(more);
    }
    members
}

pub(super) fn read_policy(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "workspace": workspace(names),
        "page": text("The id of the page. Left out, the pages of the workspace are listed."),
        "source": text("The id of the policy. Left out, the policies of the page are listed."),
        "language": language(),
        "after": text("The next of an earlier list of pages, to go on after it."),
    });
    let lists = json!({
        "pages": object("The pages of the workspace: items, each with id and title, and next."),
        "policies": object("The policies of the page by their ids, each with title, name, created, language, extracted, translations."),
    });
    (takes(members, &[]), gives(with(lists, document()), &[]))
}

pub(super) fn make_policy(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "workspace": workspace(names),
        "page": page(),
        "source": text("The id of the policy."),
        "language": language(),
        "redo": flag("Whether it is extracted or translated again, also if that was done: for a document that turned out to be wrong. The other documents of the policy are kept."),
        "wait": wait(),
    });
    let output = gives(with(document(), json!({ "job": job_schema() })), &[]);
    (takes(members, &["page", "source"]), output)
}

pub(super) fn list_issues(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "workspace": workspace(names),
        "page": page(),
        "issue": text("The id of an issue: only this one, with its history."),
        "state": text("In one of these states, with commas between them: pending, active, blocked, resolved."),
        "severity": text("Of one of these severities, with commas between them: 1, 2, 3."),
        "text": text("With this text in it, whatever the case."),
        "source": text("That refer to this policy."),
        "archived": {
            "type": "string",
            "enum": ["hidden", "included", "only"],
            "description": "What is archived; hidden, if left out.",
        },
        "stale": flag("Whether a policy that they refer to has changed since."),
        "sort": {
            "type": "string",
            "enum": ["severity", "created", "updated", "title", "state"],
            "description": "In which order; by severity, if left out.",
        },
        "limit": whole("At most so many; 50, if left out.", 1, 200),
        "after": text("The next of an earlier answer, to go on after it."),
    });
    let output = gives(
        json!({
            "items": { "type": "array", "items": issue(history()) },
            "next": optional_text("What to give as after for the next ones; null at the end."),
            "total": count("How many there are in all."),
        }),
        &["items", "next", "total"],
    );
    (takes(members, &["page"]), output)
}

pub(super) fn move_issue(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "workspace": workspace(names),
        "page": page(),
        "issue": text("The id of the issue."),
        "state": state("Where it goes."),
        "severity": whole("How severe it is: 1 is low, 2 is medium, 3 is high.", 1, 3),
        "annotations": text("Notes, instead of those that are there: Markdown."),
        "note": text("A paragraph that is added to the notes: Markdown."),
        "archived": flag("Whether it is put away, or brought back."),
        "why": text("Why, for those who look at its history."),
        "if_version": text("The version that was read: if it has another, it is left alone."),
    });
    (takes(members, &["page", "issue"]), issue(history()))
}

pub(super) fn analyze(names: &[&str]) -> (Value, Value) {
    let members = json!({
        "workspace": workspace(names),
        "page": page(),
        "again": flag("Whether also if nothing has changed since the last time."),
        "wait": wait(),
    });
    let output = gives(
        json!({
            "analysis": any("What it came to, once it has ended: found, refreshed, policies, unread, unchanged and more; null before."),
            "job": job_schema(),
        }),
        &["analysis", "job"],
    );
    (takes(members, &["page"]), output)
}
