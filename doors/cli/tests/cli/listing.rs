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
