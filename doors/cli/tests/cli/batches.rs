//! record: batch, delete of several, get of several.

use serde_json::Value;

use crate::records::declared;
use crate::sandbox::{Ran, Sandbox};

fn lines(changes: &[&str]) -> String {
    changes.iter().map(|change| format!("{change}\n")).collect()
}

fn batch(kw: &Sandbox, more: &[&str], changes: &[&str]) -> Ran {
    kw.run_with(&[&["record", "batch", "notes", "--as", "ada"], more].concat(), lines(changes))
}

fn keys(kw: &Sandbox) -> String {
    kw.record(&["list", "notes"])
}

const TWO: [&str; 2] = [
    r#"{"op":"put","key":"user:ada:notes:n1","value":{"title":"Keys"},"metadata":{"by":"me"},"ttl":"7d"}"#,
    r#"{"op":"create","key":"user:ada:notes:n2","value":{"title":"Locks"}}"#,
];

#[test]
fn a_batch_changes_records_in_the_order_of_its_lines() {
    let kw = declared();
    let told = batch(&kw, &["--json"], &TWO).ok();
    let outcomes: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(outcomes[0]["outcome"], "created");
    assert_eq!(outcomes[1]["key"], "user:ada:notes:n2");
    let meta = kw.json(&["record", "get", "notes", "user=ada", "note=n1", "--json"]);
    assert_eq!(meta["metadata"]["by"], "me");
    assert!(meta["expires"].is_string());

    let told = batch(
        &kw,
        &[],
        &[
            r#"{"op":"merge","key":"user:ada:notes:n1","value":{"votes":1}}"#,
            "",
            r#"{"op":"merge","key":"user:ada:notes:n1","value":{"votes":2}}"#,
            r#"{"op":"delete","key":"user:ada:notes:n2"}"#,
        ],
    )
    .ok();
    assert!(told.ends_with("user:ada:notes:n2  deleted\n"), "{told}");
    let found = kw.record(&["query", "notes", "notes_by_votes", "--equal", "2", "--as", "ada"]);
    assert_eq!(found.lines().count(), 1, "entries follow");
    // A file does as well.
    kw.write("changes.jsonl", TWO[1]);
    kw.record(&["batch", "notes", "changes.jsonl"]);
    assert_eq!(keys(&kw), "user:ada:notes:n1\nuser:ada:notes:n2\n");
}

#[test]
fn a_batch_ends_at_the_first_change_that_is_refused() {
    let kw = declared();
    let third = r#"{"op":"delete","key":"user:ada:notes:n1"}"#;
    for (bad, exit) in [
        (r#"{"op":"put","key":"user:ada:notes:n9","value":{"title":7}}"#, 2),
        (r#"{"op":"put","key":"user:bob:notes:n9","value":{"title":"x"}}"#, 11),
        (r#"{"op":"create","key":"user:ada:notes:n1","value":{"title":"x"}}"#, 3),
        (r#"{"op":"delete","key":"user:ada:notes:n1","if_match":"1x"}"#, 3),
        (r#"{"op":"put","key":"elsewhere","value":{"title":"x"}}"#, 2),
        (r#"{"op":"put"}"#, 2),
    ] {
        let told = batch(&kw, &[], &[TWO[0], bad, third]).fails_after(exit);
        assert!(told.starts_with("error: line 2: "), "{told}");
        assert!(told.contains("The change before that was made."), "{told}");
        assert_eq!(keys(&kw), "user:ada:notes:n1\n", "{bad}");
    }
}

#[test]
fn a_batch_made_together_is_made_whole_or_not_at_all() {
    let kw = declared();
    let clash = r#"{"op":"delete","key":"user:ada:notes:n3","if_match":"9"}"#;
    let wrong = r#"{"op":"put","key":"user:ada:notes:n3","value":{}}"#;
    for (bad, exit) in [(clash, 3), (wrong, 2), (TWO[0], 2), ("{", 2)] {
        batch(&kw, &["--together"], &[TWO[0], TWO[1], bad]).fails(exit);
        assert!(!kw.path("data").exists(), "{bad}");
    }
    let told = batch(&kw, &["--together"], &[TWO[0], TWO[1], clash]).fails(3);
    assert!(told.starts_with("error: line 3: user:ada:notes:n3 is not there"), "{told}");
    assert_eq!(batch(&kw, &["--together"], &TWO).ok().lines().count(), 2);
    assert_eq!(keys(&kw), "user:ada:notes:n1\nuser:ada:notes:n2\n");
}

#[test]
fn more_changes_than_a_piece_has_are_all_made() {
    let kw = declared();
    let put =
        |n| format!(r#"{{"op":"put","key":"user:ada:notes:n{n:03}","value":{{"title":"t{n}"}}}}"#);
    let changes: Vec<String> = (0..250).map(put).collect();
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    assert_eq!(batch(&kw, &[], &changes).ok().lines().count(), 250);
    assert_eq!(kw.record(&["list", "notes", "--all"]).lines().count(), 250);

    // Several are read back in the order asked for, also from what list prints.
    let listed = kw.record(&["list", "notes", "--all", "--desc", "--as", "ada"]);
    let got = kw.run_with(&["record", "get", "notes", "--keys", "-", "--as", "ada"], listed).ok();
    let first: Value = serde_json::from_str(got.lines().next().unwrap()).unwrap();
    assert_eq!((got.lines().count(), &first["value"]["title"]), (250, &"t249".into()));

    // And deleted, once one has said yes.
    kw.refuses(2, "unconfirmed", &["delete", "notes", "--all", "--as", "ada"]);
    let told = kw.record(&["delete", "notes", "--all", "--yes", "--as", "bob"]);
    assert_eq!(told, "deleted 0 records of notes\n");
    let told = kw.record(&["delete", "notes", "user=ada", "--prefix", "--yes"]);
    assert_eq!(told, "deleted 250 records of notes\n");
    assert_eq!(kw.ok(&["ls", "index"]), "", "entries go too");
}

#[test]
fn several_records_are_got_by_their_keys() {
    let kw = declared();
    batch(&kw, &[], &TWO).ok();
    let get = ["get", "notes", "--key", "user:ada:notes:n2", "--key", "user:ada:notes:n1"];
    let told = kw.record(&[&get[..], &["--text", "--as", "ada"]].concat());
    assert_eq!(
        told,
        "user:ada:notes:n2\t{\"title\":\"Locks\"}\nuser:ada:notes:n1\t{\"title\":\"Keys\"}\n"
    );
    let missing = [&["record"], &get[..], &["--key", "user:ada:notes:n3"]].concat();
    let told = kw.run(&missing).ended(1);
    assert!(told.ends_with("{\"missing\":\"user:ada:notes:n3\"}\n"), "{told}");
    assert_eq!(told.lines().count(), 3);
    // In somebody's name, only what is theirs.
    kw.refuses(11, "forbidden", &[&get[..], &["--as", "bob"]].concat());
    kw.refuses(2, "key-mismatch", &["get", "notes", "--key", "elsewhere"]);
    let told = kw.run_with(&["record", "get", "notes", "--keys", "-"], "a\n%\n").fails(2);
    assert!(told.starts_with("error: line 2: the key is not valid"), "{told}");
}
