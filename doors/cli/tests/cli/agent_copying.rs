//! agent copy: entries from store to store.

use serde_json::json;

use crate::sandbox::Sandbox;

/// A store with entries of two users.
fn filled() -> Sandbox {
    let kw = Sandbox::new();
    for (user, key, value) in [("local", "a", "1"), ("local", "b", "[1.50]"), ("ada", "k", "2")] {
        let metadata = r#"{"source":"test"}"#;
        kw.agent(&["set", key, value, "--user", user, "--metadata", metadata, "--agent", "x"]);
    }
    kw.agent(&["get", "a", "--agent", "reader"]);
    kw
}

fn exported(kw: &Sandbox, store: &str, user: &str) -> String {
    kw.ok(&["-s", store, "agent", "export", "--user", user])
}

#[test]
fn a_plan_is_shown_and_nothing_written() {
    let kw = filled();
    let told = kw.agent(&["copy", "--to", "embedded:./copy", "--plan"]);
    assert_eq!(told, "to copy: 2 entries\n");
    let planned = kw.agent_json(&["copy", "--to", "embedded:./copy", "--dry-run", "--all-users"]);
    let counts = json!({
        "outcome": "planned", "added": 3, "replaced": 0, "equal": 0, "kept": 0, "expiring": 0,
        "refused": 0,
    });
    assert_eq!(planned, counts);
    assert!(!kw.path("copy").exists());
    // Where nobody can be asked, it must be said.
    kw.agent_refuses(2, "invalid", &["copy", "--to", "embedded:./copy"]);
    assert!(!kw.path("copy").exists());
}

#[test]
fn entries_are_copied_with_everything_about_them() {
    let kw = filled();
    let to = "embedded:./copy";
    assert_eq!(kw.agent(&["copy", "--to", to, "--apply"]), "copied 2 entries\n");
    let here = kw.agent(&["export"]);
    assert!(here.contains(r#""lastAccessedByAgent":"reader""#), "{here}");
    assert_eq!(exported(&kw, to, "local"), here);
    assert_eq!(exported(&kw, to, "ada"), "");
    let told = kw.agent(&["copy", "--to", to, "--apply", "--all-users"]);
    assert_eq!(told, "copied 1 entry, 2 equal already\n");
    assert_eq!(exported(&kw, to, "ada"), kw.agent(&["export", "--user", "ada"]));
    let again = kw.agent_json(&["copy", "--to", to, "--apply", "--all-users"]);
    assert_eq!((&again["added"], &again["equal"]), (&json!(0), &json!(3)));
}

#[test]
fn what_differs_stops_the_copy_unless_it_is_said_what_counts() {
    let kw = filled();
    let to = "embedded:./copy";
    kw.ok(&["-s", to, "agent", "set", "b", "\"target\""]);
    let told = kw.agent_refuses(3, "precondition-failed", &["copy", "--to", to, "--apply"]);
    assert!(told.contains(r#"the target has another entry "b""#), "{told}");
    let kept = kw.agent_json(&["copy", "--to", to, "--apply", "--on-conflict", "keep"]);
    assert_eq!((&kept["kept"], &kept["differing"]), (&json!(1), &json!(["local:default:Yg=="])));
    assert_eq!(kw.ok(&["-s", to, "agent", "get", "b"]), "\"target\"\n");
    let newer = kw.agent_json(&["copy", "--to", to, "--apply", "--on-conflict", "newer"]);
    assert_eq!(newer["kept"], 1);
    kw.agent(&["copy", "--to", to, "--apply", "--on-conflict", "replace"]);
    assert_eq!(kw.ok(&["-s", to, "agent", "get", "b"]), "[1.50]\n");
}

#[test]
fn a_copy_onto_itself_or_from_nowhere_is_refused() {
    let kw = Sandbox::new();
    kw.agent_refuses(1, "not-found", &["copy", "--to", "embedded:./copy", "--apply"]);
    let kw = filled();
    let here = ["-s", "embedded:./data", "agent", "copy", "--to", "embedded:./data", "--apply"];
    kw.ok(&["-s", "embedded:./data", "agent", "set", "k", "1"]);
    let told = kw.fails(2, &here);
    assert!(told.contains("the same store"), "{told}");
}
