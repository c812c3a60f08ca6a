//! ls and scan.

use crate::sandbox::Sandbox;

fn library() -> Sandbox {
    let kw = Sandbox::new();
    for key in [
        "user:7:name",
        "user:7:notes:n1",
        "user:7:notes:n2",
        "user:70:name",
        "user:7",
        "a-b",
        "a:z",
    ] {
        kw.ok(&["put", key, &format!("\"{key}\"")]);
    }
    kw
}

#[test]
fn keys_are_listed_in_the_order_of_their_segments() {
    assert_eq!(
        library().ok(&["ls"]),
        "a:z\na-b\nuser:7\nuser:7:name\nuser:7:notes:n1\nuser:7:notes:n2\nuser:70:name\n"
    );
}

#[test]
fn a_prefix_lists_what_is_below_it_and_nothing_else() {
    let kw = library();
    for prefix in ["user:7", "user:7:"] {
        assert_eq!(kw.ok(&["ls", prefix]), "user:7:name\nuser:7:notes:n1\nuser:7:notes:n2\n");
    }
    assert_eq!(kw.ok(&["ls", "nobody"]), "");
}

#[test]
fn a_depth_shows_prefixes_with_a_colon() {
    let kw = library();
    assert_eq!(kw.ok(&["ls", "--depth", "1"]), "a:\na-b\nuser:\n");
    assert_eq!(kw.ok(&["ls", "user", "--depth", "1"]), "user:7\nuser:7:\nuser:70:\n");
    assert_eq!(
        kw.ok(&["ls", "user", "--depth", "2", "--json"]),
        "{\"key\":\"user:7\"}\n{\"key\":\"user:7:name\"}\n{\"prefix\":\"user:7:notes:\"}\n{\"key\":\"user:70:name\"}\n"
    );
}

#[test]
fn a_listing_can_be_turned_around_and_cut() {
    let kw = library();
    assert_eq!(
        kw.ok(&["ls", "user:7", "--reverse", "--limit", "2"]),
        "user:7:notes:n2\nuser:7:notes:n1\n"
    );
    assert_eq!(kw.ok(&["ls", "--depth", "1", "--reverse", "--limit", "1"]), "user:\n");
    assert_eq!(
        kw.ok(&["scan", "user:7", "--reverse", "--limit", "1", "--text"]),
        "user:7:notes:n2\t\"user:7:notes:n2\"\n"
    );
}

#[test]
fn a_scan_gives_json_lines_to_programs() {
    let kw = Sandbox::new();
    kw.ok(&["put", "k:1", "1.0"]);
    kw.ok(&["put", "k:2", "[]", "--metadata", r#"{"n":1}"#, "--ttl", "2h"]);
    let (one, two) = (kw.version("k:1"), kw.version("k:2"));
    let piped = kw.ok(&["scan", "k"]);
    let lines: Vec<_> = piped.lines().collect();
    assert_eq!(lines[0], format!("{{\"key\":\"k:1\",\"value\":1.0,\"version\":\"{one}\"}}"));
    let start = format!(
        "{{\"key\":\"k:2\",\"value\":[],\"version\":\"{two}\",\"metadata\":{{\"n\":1}},\"expires\":\""
    );
    assert!(lines[1].starts_with(&start), "{}", lines[1]);
    assert_eq!(lines.len(), 2);
    assert_eq!(kw.ok(&["scan", "k", "--json"]), piped);
    assert_eq!(kw.ok(&["scan"]), piped);
    assert_eq!(kw.ok(&["scan", "k", "--text"]), "k:1\t1.0\nk:2\t[]\n");
}

#[test]
fn nothing_is_capped_in_silence() {
    let kw = Sandbox::filled("item", 10_050);
    for command in [
        &["ls"][..],
        &["ls", "item", "--json"],
        &["ls", "item", "--depth", "1"],
        &["ls", "--reverse"],
        &["scan", "item", "--json"],
        &["scan", "item", "--text", "--reverse"],
        &["export"],
    ] {
        let lines = kw.ok(command);
        assert_eq!(lines.lines().count(), 10_050, "{command:?}");
    }
    assert_eq!(kw.ok(&["ls", "--limit", "1050"]).lines().count(), 1_050);
    assert_eq!(kw.json(&["stats"])["entries"], 10_050);
}

/// A store with records, whose indexes and catalogs lie beside them.
fn indexed() -> Sandbox {
    let kw = Sandbox::new();
    kw.ok(&["schema", "init"]);
    let note = r#"{"title":"t","text":"x","updatedAt":"2026-01-05T09:00:00Z"}"#;
    kw.ok(&["record", "put", "notes", "user=ada", "note=n1", note]);
    kw.ok(&["put", "zoo", "1"]);
    kw
}

#[test]
fn keywards_own_keys_and_indexes_are_shown_when_they_are_asked_for() {
    let kw = indexed();
    let firsts = |arguments: &[&str]| {
        let told = kw.ok(&[arguments, &["--json"]].concat());
        let first = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let key = line.get("key").or(line.get("prefix")).unwrap().as_str().unwrap().to_owned();
            key.split(':').next().unwrap().to_owned()
        };
        let mut firsts: Vec<String> = told.lines().map(first).collect();
        firsts.dedup();
        firsts
    };
    for command in ["ls", "scan"] {
        assert_eq!(firsts(&[command]), ["user", "zoo"]);
        assert_eq!(firsts(&[command, "--reverse"]), ["zoo", "user"]);
        assert_eq!(firsts(&[command, "--limit", "1"]), ["user"]);
        assert_eq!(firsts(&[command, "--all"]), ["index", "system", "user", "zoo"]);
        for own in ["index", "system"] {
            assert_eq!(firsts(&[command, own]), [own]);
            assert_eq!(firsts(&[command, &format!("{own}:")]), [own]);
        }
        assert_eq!(firsts(&[command, "index:notes_by_title"]), ["index"]);
    }
    assert_eq!(kw.ok(&["ls", "--depth", "1"]), "user:\nzoo\n");
    assert_eq!(kw.ok(&["ls", "--depth", "1", "--all"]), "index:\nsystem:\nuser:\nzoo\n");

    // What moves or saves a store has all of it.
    let exported = kw.ok(&["export"]);
    assert!(exported.contains("\"index:") && exported.contains("\"system:"), "{exported}");
    kw.ok(&["copy", "embedded:./data", "embedded:./copy", "--verify"]);
    assert_eq!(kw.ok(&["-s", "embedded:./copy", "ls", "--all"]), kw.ok(&["ls", "--all"]));
}
