//! export and import.

use std::io::Write;

use crate::records::declared;
use crate::sandbox::{Sandbox, is_absent};

const ODD: &str = r#"{"key":"a%3Ab:%25:","value":12345678901234567890.000}
{"key":"empty::segment","value":null}
{"key":"text","value":"\u00e9 é \" \\ 漢","metadata":{"n":1.0,"t":"x"}}
{"key":"timed","value":{"b":1,"a":[]},"metadata":{},"expires":"2999-01-01T00:00:00.123000Z"}
{"key":"漢字:\"quoted\"","value":[1,2.50]}
"#;

#[test]
fn an_export_and_its_import_are_the_same_byte_for_byte() {
    let kw = Sandbox::new();
    kw.run_with(&["import"], ODD).ok();
    let exported = kw.ok(&["export"]);
    assert_eq!(exported, ODD);
    let imported = kw.run_with(&["-s", "embedded:./copy", "import", "-"], exported).ok();
    assert_eq!(imported, "imported 5 entries\n");
    assert_eq!(kw.ok(&["-s", "embedded:./copy", "export"]), ODD);
}

#[test]
fn many_entries_go_from_store_to_store() {
    let kw = Sandbox::filled("item", 3_210);
    let exported = kw.ok(&["export"]);
    let imported = kw.run_with(&["-s", "embedded:./copy", "import"], &*exported).ok();
    assert_eq!(imported, "imported 3,210 entries\n");
    assert_eq!(kw.ok(&["-s", "embedded:./copy", "export"]), exported);
    // 1,000 at a time.
    assert_eq!(kw.json(&["-s", "embedded:./copy", "stats"])["revision"], 4);
}

#[test]
fn large_values_go_through_in_commits_of_their_own() {
    let kw = Sandbox::new();
    let line = |n| format!("{{\"key\":\"k:{n}\",\"value\":\"{}\"}}\n", "x".repeat(700_000));
    let lines: String = (0..5).map(line).collect();
    kw.run_with(&["import"], &*lines).ok();
    assert_eq!(kw.json(&["stats"])["revision"], 5);
    assert_eq!(kw.ok(&["export"]), lines);
}

#[test]
fn what_a_scan_prints_can_be_imported() {
    let kw = Sandbox::filled("item", 10);
    let scanned = kw.ok(&["scan", "item"]);
    kw.run_with(&["-s", "embedded:./copy", "import"], scanned).ok();
    assert_eq!(kw.ok(&["-s", "embedded:./copy", "export"]), kw.ok(&["export"]));
}

#[test]
fn one_prefix_is_exported_into_a_file_that_appears_whole() {
    let kw = Sandbox::filled("item", 3);
    kw.ok(&["put", "other", "1"]);
    kw.write("out.jsonl", "what stood there before\n");
    assert_eq!(kw.ok(&["export", "item", "-o", "out.jsonl"]), "exported 3 entries to out.jsonl\n");
    assert_eq!(kw.read("out.jsonl"), kw.ok(&["export", "item"]));
    assert!(is_absent(&kw.path("out.jsonl.part")));
    assert_eq!(
        kw.ok(&["export", "-o", "/dev/null", "--json"]),
        "{\"file\":\"/dev/null\",\"exported\":4}\n"
    );
    let told = kw.fails(7, &["export", "-o", "no/such/place.jsonl"]);
    assert!(told.starts_with("error: cannot write no/such/place.jsonl: "), "{told}");
}

#[test]
fn a_file_is_imported_and_the_later_line_wins() {
    let kw = Sandbox::new();
    kw.write("in.jsonl", "{\"key\":\"k\",\"value\":1}\n\n{\"key\":\"k\",\"value\":2}");
    assert_eq!(kw.ok(&["import", "in.jsonl"]), "imported 2 entries\n");
    assert_eq!(kw.ok(&["get", "k"]), "2\n");
    let told = kw.fails(7, &["import", "no.jsonl"]);
    assert!(told.starts_with("error: cannot read no.jsonl: "), "{told}");
}

#[test]
fn existing_keys_are_replaced_unless_asked_otherwise() {
    let kw = Sandbox::filled("item", 3);
    kw.ok(&["put", "item:000001", "\"mine\""]);
    let lines = "{\"key\":\"item:000001\",\"value\":1}\n{\"key\":\"new\",\"value\":1}\n";
    assert_eq!(
        kw.run_with(&["import", "--if-absent"], lines).ok(),
        "imported 1 entry, left 1 existing alone\n"
    );
    assert_eq!(kw.ok(&["get", "item:000001"]), "\"mine\"\n");
    assert_eq!(
        kw.run_with(&["import", "--json"], lines).ok(),
        "{\"imported\":2,\"expired\":0,\"kept\":0}\n"
    );
    assert_eq!(kw.ok(&["get", "item:000001"]), "1\n");
}

#[test]
fn entries_that_have_expired_are_left_out_and_counted() {
    let kw = Sandbox::new();
    let lines = r#"{"key":"past","value":1,"expires":"2001-01-01T00:00:00Z"}
{"key":"future","value":1,"expires":"2999-01-01T00:00:00Z"}
"#;
    assert_eq!(kw.run_with(&["import"], lines).ok(), "imported 1 entry, left out 1 expired\n");
    let future = kw.json(&["get", "future", "--meta"]);
    assert_eq!(future["expires"], "2999-01-01T00:00:00.000000Z");
}

#[test]
fn a_wrong_line_is_named_and_what_stands_before_it_is_stored() {
    let kw = Sandbox::new();
    for (line, reason) in [
        ("hello", "expected value, at column 1"),
        (r#"{"key":"x"}"#, "missing field `value`"),
        (r#"{"key":"x","value":1,"ttl":5}"#, "unknown field `ttl`"),
        (r#"{"key":"50%","value":1}"#, "character 3"),
        (r#"{"key":"x","value":{"a":1,"a":2}}"#, "stands twice"),
        (r#"{"key":"x","value":1,"expires":"soon"}"#, "\"soon\""),
        (r#"{"key":"x","value":1,"metadata":3}"#, "must be a JSON object"),
    ] {
        let lines = format!(
            "{{\"key\":\"a\",\"value\":1}}\n{{\"key\":\"b\",\"value\":1}}\n{line}\n{{\"key\":\"c\",\"value\":1}}\n"
        );
        let told = kw.run_with(&["import"], lines).fails(2);
        assert!(told.starts_with("error: line 3: "), "{told}");
        assert!(told.contains(reason), "{told}");
        assert!(told.contains("Imported before that: 2 entries."), "{told}");
        assert!(told.contains("Importing the same input again is safe"), "{told}");
        assert_eq!(kw.ok(&["ls"]), "a\nb\n");
    }
}

#[test]
fn an_entry_that_is_too_large_is_found_by_its_line() {
    let kw = Sandbox::new();
    let long = "k".repeat(3_000);
    let lines = format!("{{\"key\":\"a\",\"value\":1}}\n{{\"key\":\"{long}\",\"value\":1}}\n");
    let told = kw.run_with(&["import"], lines).fails(4);
    assert!(told.starts_with("error: line 2: the key kkk"), "{told}");
    assert!(told.contains("Imported before that: 1 entry."), "{told}");
    assert_eq!(kw.ok(&["ls"]), "a\n");
}

#[test]
fn an_interrupted_import_says_how_far_it_came() {
    let kw = Sandbox::new();
    let mut command = kw.command(&["import"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // One batch is full, and more is yet to come.
    for n in 0..1_001 {
        writeln!(stdin, "{{\"key\":\"k:{n}\",\"value\":1}}").unwrap();
    }
    while kw.ok(&["ls"]).lines().count() < 1_000 {}
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.starts_with("error: interrupted\nhint: Imported before that: 1,000 entries"),
        "{told}"
    );
    assert_eq!(kw.ok(&["ls"]).lines().count(), 1_000);
}

#[test]
fn a_line_that_belongs_to_keyward_is_refused_and_those_before_it_are_stored() {
    let kw = Sandbox::new();
    let lines = "{\"key\":\"a\",\"value\":1}\n{\"key\":\"system:catalog\",\"value\":{}}\n\
                 {\"key\":\"b\",\"value\":1}\n";
    let told = kw.run_with(&["import"], lines).fails(11);
    assert!(told.starts_with("error: line 2: system:catalog belongs to Keyward"), "{told}");
    assert!(told.contains("--raw") && told.contains("Imported before that: 1 entry."), "{told}");
    assert_eq!(kw.ok(&["ls"]), "a\n");
    kw.run_with(&["import", "--raw"], lines).fails_after(0);
    assert_eq!(kw.ok(&["get", "b"]), "1\n");
}

#[test]
fn the_export_of_a_store_with_records_says_how_it_is_imported() {
    let kw = declared();
    kw.record(&["put", "users", r#"{"email":"ada@example.org"}"#, "--as", "ada"]);
    let exported = kw.ok(&["export"]);
    let told = kw.run_with(&["-s", "embedded:./copy", "import"], &*exported).fails(11);
    assert!(told.contains("keyward copy SOURCE TARGET") && told.contains("--raw"), "{told}");
    assert!(!told.contains("Nothing was done"), "{told}");
    // As the examples of the help say.
    for command in ["export", "import"] {
        let help = kw.ok(&[command, "--help"]);
        let example = "keyward -s embedded:./data export | keyward -s embedded:./copy import --raw";
        assert!(help.contains(example), "{help}");
    }
    let raw = ["-s", "embedded:./raw", "import", "--raw"];
    kw.run_with(&raw, &*exported).fails_after(0);
    kw.ok(&["copy", "embedded:./data", "embedded:./copied"]);
    for copy in ["embedded:./raw", "embedded:./copied"] {
        assert_eq!(kw.ok(&["-s", copy, "export"]), exported);
        kw.ok(&["-s", copy, "doctor"]);
    }
}
