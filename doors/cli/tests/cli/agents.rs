//! agent: many at once, from store to store, and through a server.

use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, is_absent};

const AT: &str = "2026-02-05T10:00:00Z";

/// The example documents of the format, with what a reader must keep of them.
fn documents() -> Vec<Value> {
    vec![
        json!({"_id": "user_123:default:Z3JlZXRpbmc=", "userId": "user_123", "namespace": "default",
               "key": "greeting", "value": "Hello, World!", "createdByAgent": "hello-agent",
               "accessCount": 1, "createdAt": AT, "updatedAt": AT}),
        json!({"_id": "user_123:files:my-repo:c3JjL21haW4ucHk=", "userId": "user_123",
               "namespace": "files:my-repo", "key": "src/main.py",
               "value": {"content": "def main():\n    print('Hello')\n", "lines": 2},
               "metadata": {"indexed_at": "2026-02-05T09:00:00Z", "file_size": 42},
               "createdByAgent": "repo-indexer", "lastAccessedByAgent": "code-searcher",
               "accessCount": 15, "createdAt": "2026-02-05T09:00:00Z",
               "updatedAt": "2026-02-05T09:00:00Z", "lastAccessedAt": "2026-02-05T14:30:00Z"}),
    ]
}

fn sorted(lines: &str) -> Vec<Value> {
    let mut all: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    all.sort_by_key(|document| document["_id"].to_string());
    all
}

#[test]
fn what_is_exported_is_imported_into_another_store_and_equal() {
    let kw = Sandbox::new();
    for (key, value, namespace) in [
        ("a", r#"{"n":1.10,"big":12345678901234567890123,"z":1,"y":[null]}"#, "default"),
        ("b/c:d%é", "\"text\"", "files:apache/repo"),
        ("c", "null", "files"),
    ] {
        let line = ["set", key, value, "-n", namespace, "--agent", "planner", "--user", "a:b"];
        kw.agent(&[&line[..], &["--metadata", r#"{"v":1.0}"#]].concat());
    }
    kw.agent(&["get", "a", "--agent", "reader", "--user", "a:b"]);
    kw.agent(&["set", "mine", "1"]);
    let mut from = kw.command(&["agent", "export", "--user", "a:b"]);
    let mut child = from.spawn().unwrap();
    let piped: Stdio = child.stdout.take().unwrap().into();
    let into = ["-s", "embedded:./copy", "agent", "import", "--user", "a:b"];
    let told = Ran::of(kw.command(&into).stdin(piped)).ok();
    assert!(child.wait().unwrap().success());
    assert_eq!(told, "imported 3 entries, of which 0 were there\n");
    let there = kw.agent(&["export", "--user", "a:b"]);
    let copied = kw.ok(&["-s", "embedded:./copy", "agent", "export", "--user", "a:b"]);
    assert_eq!(copied, there);
    assert!(there.contains(r#""value":{"n":1.10,"big":12345678901234567890123,"z":1,"y":[null]}"#));
    assert!(there.contains(r#""_id":"a%3Ab:default:YQ==""#), "{there}");
    assert!(there.contains(r#""accessCount":1"#), "{there}");
    assert_eq!(kw.agent(&["export"]).lines().count(), 1);
    let one = kw.agent(&["export", "--user", "a:b", "-n", "files"]);
    assert_eq!(one.lines().count(), 1);

    let told = kw.agent(&["export", "--user", "a:b", "-o", "out.jsonl"]);
    assert_eq!(told, "exported 3 entries to out.jsonl\n");
    assert_eq!(kw.read("out.jsonl"), there);
    let again = kw.agent_json(&["import", "out.jsonl", "--user", "a:b"]);
    assert_eq!(again, json!({"imported": 3, "created": 0, "replaced": 3, "skipped": 0}));
    assert_eq!(kw.agent(&["export", "--user", "a:b"]), there);
}

#[test]
fn documents_of_other_programs_go_round() {
    for laid_out in [true, false] {
        let kw = Sandbox::new();
        let documents = documents();
        let text = match laid_out {
            true => serde_json::to_string_pretty(&documents).unwrap(),
            false => documents.iter().map(|it| serde_json::to_string_pretty(it).unwrap()).collect(),
        };
        let file = kw.write("in.json", &text);
        kw.agent(&["import", file.to_str().unwrap(), "--user", "user_123"]);
        assert_eq!(sorted(&kw.agent(&["export", "--user", "user_123"])), documents);
    }
}

#[test]
fn an_import_that_fails_says_where_and_what_was_taken() {
    let kw = Sandbox::new();
    let good = format!(
        r#"{{"userId":"local","namespace":"n","key":"k","value":1,"createdAt":"{AT}","updatedAt":"{AT}"}}"#
    );
    for (wrong, says) in [
        ("hello".to_owned(), "document 2 (line 2) cannot be imported: expected a JSON object"),
        (good.replace("local", "ada"), "it belongs to user \"ada\", not \"local\""),
        (
            good.replace("\"key\"", "\"keys\""),
            "document 2 (line 2) cannot be imported: it has a field \"keys\"",
        ),
        (
            good.replace(AT, "today"),
            "document 2 (line 2) cannot be imported: its createdAt \"today\"",
        ),
    ] {
        let told = kw.run_with(&["agent", "import"], format!("{good}\n{wrong}\n{good}")).fails(2);
        assert!(told.contains(says), "{told}");
        assert!(told.contains("Imported before that: 1 entry."), "{told}");
        assert_eq!(kw.agent(&["keys", "-n", "n"]), "k\n");
    }
    kw.agent_refuses(7, "file", &["import", "absent.jsonl"]);
    assert_eq!(
        kw.run_with(&["agent", "import"], "").ok(),
        "imported 0 entries, of which 0 were there\n"
    );
}

#[test]
fn what_couchdb_and_dynamodb_write_is_imported_for_all_users() {
    let kw = Sandbox::new();
    let document = |user: &str, key: &str| {
        json!({"_id": format!("{user}:n:{key}"), "_rev": "1-a", "value": {"by": user},
               "createdAt": AT, "updatedAt": AT})
    };
    let rows = [document("ada", "YQ=="), document("bob", "YQ=="), json!({"_id": "_design/x"})];
    let rows = rows.map(|doc| json!({"id": doc["_id"], "value": {"rev": "1-a"}, "doc": doc}));
    let couch = json!({"total_rows": 3, "offset": 0, "rows": rows});
    let file = kw.write("couch.json", &serde_json::to_string_pretty(&couch).unwrap());
    let file = file.to_str().unwrap();

    let refused = kw.run(&["agent", "import", file, "--user", "ada"]).fails(2);
    assert!(refused.contains("document 2 (line "), "{refused}");
    assert!(refused.contains("--user bob") && refused.contains("--all-users"), "{refused}");
    assert!(refused.contains("Imported before that: 1 entry"), "{refused}");
    for expected in [(1, 1), (0, 2)] {
        let told = kw.agent_json(&["import", file, "--all-users"]);
        let (created, replaced) = expected;
        let expected =
            json!({"imported": 2, "created": created, "replaced": replaced, "skipped": 1});
        assert_eq!(told, expected);
    }
    let told = kw.agent(&["import", file, "--all-users"]);
    let said = "imported 2 entries, of which 2 were there; skipped 1 design or deleted document\n";
    assert_eq!(told, said);
    assert_eq!(kw.agent(&["get", "a", "-n", "n", "--user", "bob"]), "{\"by\":\"bob\"}\n");

    let at = format!(r#"{{"S":"{AT}"}}"#);
    let item = |key: &str| {
        format!(
            r#"{{"_id":{{"S":"eve:n:{key}"}},"value":{{"L":[{{"N":"1.50"}},{{"BOOL":true}}]}},"createdAt":{at},"updatedAt":{at}}}"#
        )
    };
    let scan =
        format!("{{\n  \"Items\": [{}],\n  \"Count\": 1\n}}\n{}", item("YQ=="), item("Yg=="));
    kw.run_with(&["agent", "import", "--all-users"], scan).ok();
    assert_eq!(kw.agent(&["get", "b", "-n", "n", "--user", "eve"]), "[1.50,true]\n");
}

#[test]
fn of_two_processes_that_set_at_once_neither_loses_metadata() {
    const ROUNDS: usize = 15;
    let kw = Sandbox::new();
    kw.agent(&["set", "start", "1"]);
    for round in 0..ROUNDS {
        let key = format!("k{round}");
        let children: Vec<_> = (0..4)
            .map(|who| {
                let metadata = format!(r#"{{"of{who}":{who}}}"#);
                let line = ["agent", "set", &key, &who.to_string(), "--metadata", &metadata];
                kw.command(&line).spawn().unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let entry = kw.agent_json(&["get", &key]);
        assert_eq!(entry["metadata"], json!({"of0": 0, "of1": 1, "of2": 2, "of3": 3}), "{key}");
    }
}

#[test]
fn each_read_by_an_agent_is_counted_once_over_many_processes() {
    const PROCESSES: usize = 24;
    let kw = Sandbox::new();
    kw.agent(&["set", "k", "1", "--agent", "maker"]);
    thread::scope(|scope| {
        for worker in 0..4 {
            let kw = &kw;
            scope.spawn(move || {
                for _ in 0..PROCESSES / 4 {
                    kw.agent(&["get", "k", "--agent", &format!("a{worker}")]);
                }
            });
        }
    });
    let version = kw.agent_json(&["get", "k"])["_rev"].clone();
    // Nobody in particular is not counted, nor is looking through many.
    kw.agent(&["get", "k"]);
    kw.agent(&["entries", "--agent", "a0"]);
    kw.agent(&["search", "--agent", "a0"]);
    let entry = kw.agent_json(&["get", "k"]);
    assert_eq!(entry["accessCount"], PROCESSES);
    assert_eq!((&entry["_rev"], &entry["createdByAgent"]), (&version, &json!("maker")));
    assert!(entry["lastAccessedByAgent"].as_str().unwrap().starts_with('a'));
    assert!(entry["lastAccessedAt"].is_string());
    // The access that shows it is counted in what it shows.
    assert_eq!(kw.agent_json(&["get", "k", "--agent", "a"])["accessCount"], PROCESSES + 1);
    let twice = ["get", "k", "k", "--agent", "a", "--json"];
    kw.agent(&twice);
    assert_eq!(kw.agent_json(&["get", "k"])["accessCount"], PROCESSES + 3);
    // A key that is made again begins at nought.
    kw.agent(&["delete", "k"]);
    kw.agent(&["set", "k", "1"]);
    assert_eq!(kw.agent_json(&["get", "k"])["accessCount"], 0);
}

#[test]
fn a_reader_that_goes_away_still_counts() {
    let kw = Sandbox::new();
    let value = format!("\"{}\"", "x".repeat(300_000));
    kw.write("large.json", &value);
    kw.agent(&["set", "k", "@large.json"]);
    let mut reading = kw.command(&["agent", "get", "k", "k", "--agent", "a"]);
    let mut child = reading.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(kw.agent_json(&["get", "k"])["accessCount"], 2);
}

#[test]
fn a_server_has_the_same_entries() {
    let (there, here) = (Sandbox::new(), Sandbox::new());
    let server = there.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let started: Value = serde_json::from_str(&server.next_line()).unwrap();
    let url = started["url"].as_str().unwrap();
    let far = |arguments: &[&str]| here.ok(&[&["--server", url, "agent"], arguments].concat());
    far(&["set", "k", r#"{"n":1.10}"#, "--metadata", r#"{"a":1}"#, "--agent", "planner"]);
    assert_eq!(far(&["get", "k", "--agent", "reader", "--run", "r1"]), "{\"n\":1.10}\n");
    there.agent(&["set", "k", "2", "--metadata", r#"{"b":2}"#]);
    let entry: Value = serde_json::from_str(&far(&["get", "k", "--json"])).unwrap();
    assert_eq!(entry["metadata"], json!({"a": 1, "b": 2}));
    assert_eq!((&entry["accessCount"], &entry["createdByAgent"]), (&json!(1), &json!("planner")));
    assert_eq!(far(&["history", "k"]).lines().count(), 2);
    assert_eq!(far(&["log", "r1"]).lines().count(), 1);
    assert_eq!(far(&["search", "--filter", r#"{"metadata.b":2}"#]).lines().count(), 1);
    assert_eq!(far(&["export"]), there.agent(&["export"]));
    assert_eq!(far(&["keys", "-s", "main"]), "k\n");
    let wrong = here.fails(2, &["--server", url, "-s", "none", "agent", "keys"]);
    assert!(wrong.contains("none"), "{wrong}");
    assert_eq!(far(&["clear", "--yes"]), "deleted 1 entry of default\n");
    assert_eq!(there.agent(&["keys"]), "");
    server.terminate();
    assert_eq!(server.ended(), Some(0));
    assert!(is_absent(&here.path("data")), "nothing is made here");
}

#[test]
fn agents_have_a_place_in_the_schema_to_begin_with() {
    let kw = Sandbox::new();
    kw.ok(&["schema", "init"]);
    let run = |arguments: &[&str]| {
        let mut command = kw.command(arguments);
        Ran::of(command.env_remove("KEYWARD_STORE")).ok()
    };
    run(&["agent", "set", "k", r#"{"n":1}"#, "--agent", "a"]);
    assert_eq!(run(&["agent", "get", "k"]), "{\"n\":1}\n");
    assert_eq!(run(&["agent", "history", "k", "--json"]).lines().count(), 1);
}
