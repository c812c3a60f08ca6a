//! copy.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, is_absent};

const DATA: &str = "embedded:./data";
const COPY: &str = "embedded:./copy";

/// Waits until the copy has grown. Looks only at sizes: a copy is quicker than another command.
fn wait_for_first_commits(kw: &Sandbox) {
    const GROWN: u64 = 1 << 20;
    let size = || -> u64 {
        let files = std::fs::read_dir(kw.path("copy")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    };
    while size() < GROWN {}
}

#[test]
fn a_copy_is_the_same_byte_for_byte() {
    let kw = Sandbox::new();
    let lines = r#"{"key":"a%3Ab:%25:","value":12345678901234567890.000}
{"key":"text","value":"\u00e9 é \" \\ 漢","metadata":{"n":1.0,"t":"x"}}
{"key":"timed","value":{"b":1,"a":[]},"metadata":{},"expires":"2999-01-01T00:00:00.123Z"}
"#;
    kw.run_with(&["import"], lines).ok();
    assert_eq!(
        kw.ok(&["copy", DATA, COPY, "--verify"]),
        "copied 3 entries\nverified: 3 entries equal\n"
    );
    assert_eq!(kw.ok(&["-s", COPY, "export"]), lines);
}

#[test]
fn a_second_copy_brings_only_what_has_changed() {
    let kw = Sandbox::filled("item", 2_500);
    assert_eq!(kw.ok(&["copy", DATA, COPY]), "copied 2,500 entries\n");
    let revision = || kw.json(&["-s", COPY, "stats"])["revision"].clone();
    let before = revision();
    assert_eq!(kw.ok(&["copy", DATA, COPY]), "copied 0 entries, 2,500 equal already\n");
    assert_eq!(revision(), before);
    kw.ok(&["put", "item:000007", "\"new\""]);
    kw.ok(&["put", "more", "1"]);
    assert_eq!(
        kw.json(&["copy", DATA, COPY, "--verify", "--json"]),
        json!({"added": 1, "replaced": 1, "equal": 2499, "extra": 0, "pruned": 0, "verified": 2501})
    );
    assert_eq!(kw.ok(&["-s", COPY, "export"]), kw.ok(&["export"]));
}

#[test]
fn what_only_the_target_holds_is_told_and_removed_only_if_so_asked() {
    let kw = Sandbox::filled("item", 3);
    kw.ok(&["-s", COPY, "put", "own", "1"]);
    assert_eq!(kw.ok(&["copy", DATA, COPY]), "copied 3 entries, 1 only in the target\n");
    assert_eq!(kw.ok(&["-s", COPY, "get", "own"]), "1\n");

    let told = kw.fails(10, &["copy", DATA, COPY, "--verify"]);
    let expected = "error: the stores are not equal: 3 entries equal, 1 only in the target\n\
                    hint: The first of them: own (only in the target). \
                    --prune removes what only the target holds.\n";
    assert_eq!(told, expected);
    let told: Value =
        serde_json::from_str(&kw.fails(10, &["copy", DATA, COPY, "--verify", "--json"])).unwrap();
    assert_eq!(told["error"]["code"], "differs");

    assert_eq!(
        kw.ok(&["copy", DATA, COPY, "--verify", "--prune"]),
        "copied 0 entries, 3 equal already, 1 removed from the target\n\
         verified: 3 entries equal\n"
    );
    assert_eq!(kw.ok(&["-s", COPY, "ls"]).lines().count(), 3);
}

#[test]
fn a_copy_that_is_killed_goes_on_when_it_is_run_again() {
    const ENTRIES: u64 = 30_000;
    let kw = Sandbox::filled("item", 30_000);
    // On a busy machine a kill may come before the first commit or after the last.
    let there = (0..50).find_map(|_| {
        let _ = std::fs::remove_dir_all(kw.path("copy"));
        let copy = kw.start(&["copy", DATA, COPY]);
        wait_for_first_commits(&kw);
        copy.kill();
        drop(copy);
        let there = kw.json(&["-s", COPY, "stats"])["entries"].as_u64().unwrap();
        (0 < there && there < ENTRIES).then_some(there)
    });
    let there = there.expect("a copy was killed in the middle");
    assert_eq!(
        kw.json(&["copy", DATA, COPY, "--verify", "--json"]),
        json!({
            "added": ENTRIES - there, "replaced": 0, "equal": there,
            "extra": 0, "pruned": 0, "verified": ENTRIES,
        })
    );
    assert_eq!(kw.ok(&["-s", COPY, "export"]), kw.ok(&["export"]));
}

#[test]
fn an_interrupted_copy_says_how_far_it_came() {
    let kw = Sandbox::filled("item", 30_000);
    let copy = kw.start(&["copy", DATA, COPY]);
    wait_for_first_commits(&kw);
    copy.interrupt();
    // A quick copy may be done before the signal arrives.
    if let Some(told) = copy.note() {
        assert_eq!(told, "error: interrupted");
        let hint = copy.next_note();
        assert!(hint.starts_with("hint: Copied before that: "), "{hint}");
        assert!(hint.ends_with("Running it again goes on from there."), "{hint}");
        assert_eq!(copy.ended(), Some(130));
    }
    let copied = kw.ok(&["copy", DATA, COPY, "--verify"]);
    assert!(copied.ends_with("verified: 30,000 entries equal\n"), "{copied}");
}

#[test]
fn a_store_that_takes_one_key_at_a_time_and_one_that_shows_writes_late_are_targets_too() {
    let kw = Sandbox::filled("item", 1_200);
    for target in ["memory:", "memory:?tier=recoverable", "memory:?tier=advisory"] {
        assert_eq!(
            kw.ok(&["copy", DATA, target, "--verify"]),
            "copied 1,200 entries\nverified: 1,200 entries equal\n",
            "{target}"
        );
    }
}

#[test]
fn an_empty_source_is_copied_too() {
    let kw = Sandbox::new();
    assert_eq!(
        kw.ok(&["copy", "memory:", COPY, "--verify"]),
        "copied 0 entries\nverified: 0 entries equal\n"
    );
}

#[test]
fn the_source_must_be_there_and_be_another_store() {
    let kw = Sandbox::new();
    let told = kw.fails(1, &["copy", DATA, COPY]);
    assert!(told.starts_with("error: the source: there is no store at embedded:./data"), "{told}");
    assert!(is_absent(&kw.path("data")) && is_absent(&kw.path("copy")));
    kw.ok(&["put", "k", "1"]);
    let told = kw.fails(2, &["copy", DATA, DATA]);
    assert!(told.starts_with("error: the source and the target are the same store"), "{told}");
    kw.fails(2, &["copy", DATA, "nonsense:"]);
    kw.fails(2, &["copy", DATA]);
}
