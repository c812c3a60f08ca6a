//! put, get and del.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, is_absent};

#[test]
fn what_is_put_is_got_byte_for_byte() {
    let kw = Sandbox::new();
    for value in [
        r#""Ada""#,
        "null",
        "-5",
        "12345678901234567890123456789.10E+400",
        r#"{"b":1,"a":"\u00e9 é \/ 漢"}"#,
        "[]",
    ] {
        kw.ok(&["put", "user:7:name", value]);
        assert_eq!(kw.ok(&["get", "user:7:name"]), format!("{value}\n"));
    }
}

#[test]
fn a_flag_may_stand_before_and_after_the_command() {
    let kw = Sandbox::new();
    kw.ok(&["-s", "embedded:./other", "put", "k", "1"]);
    assert_eq!(kw.ok(&["get", "k", "--store", "embedded:./other"]), "1\n");
    kw.fails(1, &["get", "k"]);
}

#[test]
fn put_tells_the_new_version() {
    let kw = Sandbox::new();
    assert_eq!(kw.ok(&["put", "k", "1"]), "k  version 1\n");
    assert_eq!(
        kw.ok(&["put", "k", "2", "--json"]),
        "{\"key\":\"k\",\"version\":\"2\",\"revision\":2}\n"
    );
    assert_eq!(kw.version("k"), "2");
}

#[test]
fn a_missing_key_exits_with_1_and_says_so_beside_the_output() {
    let kw = Sandbox::new();
    kw.ok(&["put", "user:70", "1"]);
    assert_eq!(kw.fails(1, &["get", "user:7"]), "error: user:7 is not there\n");
    let told: Value = serde_json::from_str(&kw.fails(1, &["get", "user:7", "--json"])).unwrap();
    assert_eq!(
        told,
        json!({"error": {"code": "not-found", "message": "user:7 is not there", "hint": null, "retryable": false}})
    );
}

#[test]
fn everything_about_an_entry_can_be_asked_for() {
    let kw = Sandbox::new();
    kw.ok(&["put", "k", "1.00", "--metadata", r#"{"by": "me", "n": 1.0}"#]);
    let version = kw.version("k");
    let line = format!(
        "{{\"key\":\"k\",\"value\":1.00,\"version\":\"{version}\",\"metadata\":{{\"by\":\"me\",\"n\":1.0}},\"expires\":null}}\n"
    );
    assert_eq!(kw.ok(&["get", "k", "--meta"]), line);
    assert_eq!(kw.ok(&["get", "k", "--json"]), line);
}

#[test]
fn only_pretty_lays_json_out() {
    let kw = Sandbox::new();
    kw.ok(&["put", "k", r#"{ "a": [1.0, {}] }"#]);
    assert_eq!(kw.ok(&["get", "k"]), "{\"a\":[1.0,{}]}\n");
    assert_eq!(kw.ok(&["get", "k", "--pretty"]), "{\n  \"a\": [\n    1.0,\n    {}\n  ]\n}\n");
}

#[test]
fn a_value_is_read_from_standard_input() {
    let kw = Sandbox::new();
    kw.run_with(&["put", "k", "-"], "{\n  \"a\": 1\n}\n").ok();
    assert_eq!(kw.ok(&["get", "k"]), "{\"a\":1}\n");
    let told = kw.run_with(&["put", "k", "-"], "[1,").fails(2);
    assert!(told.starts_with("error: standard input is not JSON: "), "{told}");
    assert_eq!(kw.ok(&["get", "k"]), "{\"a\":1}\n");
}

#[test]
fn a_text_without_quotes_is_told_how_to_write_it() {
    let kw = Sandbox::new();
    let told = kw.fails(2, &["put", "user:7:name", "Ada"]);
    assert!(told.contains("the value Ada is not JSON"), "{told}");
    assert!(told.ends_with("hint: A text needs quotes of its own: '\"Ada\"'\n"), "{told}");
    // Nothing was touched, not even to create the store.
    assert!(is_absent(&kw.path("data")));
}

#[test]
fn json_that_cannot_be_stored_is_refused() {
    let kw = Sandbox::new();
    let twice = kw.fails(2, &["put", "k", r#"{"a":1,"a":2}"#]);
    assert!(twice.contains("the name \"a\" stands twice"), "{twice}");
    let metadata = kw.fails(2, &["put", "k", "1", "--metadata", "[]"]);
    assert!(metadata.contains("must be a JSON object"), "{metadata}");
    let large = format!("\"{}\"", "x".repeat(17 << 20));
    let large = kw.run_with(&["put", "k", "-"], large).fails(4);
    assert!(large.contains("bytes; at most"), "{large}");
    kw.fails(1, &["get", "k"]);
}

#[test]
fn a_wrong_key_is_drawn_with_a_caret() {
    let kw = Sandbox::new();
    for command in [&["get", "user:50%"][..], &["del", "user:50%"], &["put", "user:50%", "1"]] {
        let told = kw.fails(2, command);
        assert!(told.starts_with("error: the key is not valid at character 8: "), "{told}");
        assert!(told.ends_with("\n  user:50%\n         ^\n"), "{told}");
    }
    let told = kw.fails(2, &["ls", "user:50%"]);
    assert!(told.starts_with("error: the prefix is not valid"), "{told}");
}

#[test]
fn a_condition_that_does_not_hold_exits_with_3_and_names_the_current_version() {
    let kw = Sandbox::new();
    kw.ok(&["put", "k", "1", "--if-absent"]);
    let current = kw.version("k");

    let told = kw.fails(3, &["put", "k", "2", "--if-absent"]);
    assert!(
        told.starts_with(&format!("error: k is there already, at version {current}\n")),
        "{told}"
    );
    let told = kw.fails(3, &["put", "k", "2", "--if-version", "999"]);
    assert!(told.starts_with(&format!("error: k is at version {current}, not 999\n")), "{told}");
    let told = kw.fails(3, &["put", "new", "2", "--if-version", "999"]);
    assert!(told.starts_with("error: new is not there"), "{told}");
    let told: Value =
        serde_json::from_str(&kw.fails(3, &["put", "k", "2", "--if-absent", "--json"])).unwrap();
    assert_eq!(told["error"]["code"], "precondition-failed");
    assert_eq!(kw.ok(&["get", "k"]), "1\n");

    kw.ok(&["put", "k", "2", "--if-version", &current]);
    assert_eq!(kw.ok(&["get", "k"]), "2\n");
}

#[test]
fn an_entry_ends_with_its_time_to_live() {
    let kw = Sandbox::new();
    kw.ok(&["put", "long", "1", "--ttl", "7d"]);
    let expires = kw.json(&["get", "long", "--meta"])["expires"].clone();
    assert!(expires.as_str().unwrap().ends_with('Z'), "{expires}");

    kw.ok(&["put", "short", "1", "--ttl", "1ms"]);
    while kw.run(&["get", "short"]).code() == Some(0) {}
    kw.fails(1, &["get", "short"]);
    assert_eq!(kw.ok(&["ls"]), "long\n");

    // Putting again without a time to live keeps it for ever.
    kw.ok(&["put", "long", "2"]);
    assert_eq!(kw.json(&["get", "long", "--meta"])["expires"], Value::Null);
}

#[test]
fn a_time_to_live_of_nothing_is_refused() {
    let kw = Sandbox::new();
    for ttl in ["0s", "90", "soon"] {
        let told = kw.fails(2, &["put", "k", "1", "--ttl", ttl]);
        assert!(told.contains("90s, 15m, 2h or 7d"), "{told}");
    }
}

#[test]
fn del_says_whether_the_key_was_there() {
    let kw = Sandbox::new();
    kw.ok(&["put", "a", "1"]);
    kw.ok(&["put", "b", "1"]);
    assert_eq!(kw.ok(&["del", "a", "x", "a"]), "a  deleted\nx  was not there\n");
    assert_eq!(
        kw.ok(&["del", "b", "a", "--json"]),
        "{\"key\":\"b\",\"deleted\":true}\n{\"key\":\"a\",\"deleted\":false}\n"
    );
    assert_eq!(kw.ok(&["ls"]), "");
}

#[test]
fn del_can_depend_on_the_version() {
    let kw = Sandbox::new();
    kw.ok(&["put", "k", "1"]);
    let told = kw.fails(3, &["del", "k", "--if-version", "999"]);
    assert!(told.contains("k is at version"), "{told}");
    let told = kw.fails(2, &["del", "k", "l", "--if-version", "999"]);
    assert!(told.contains("one key only"), "{told}");
    let version = kw.version("k");
    assert_eq!(kw.ok(&["del", "k", "--if-version", &version]), "k  deleted\n");
    let told = kw.fails(3, &["del", "k", "--if-version", &version]);
    assert!(told.contains("k is not there"), "{told}");
}

#[test]
fn a_prefix_is_deleted_only_after_a_yes_and_then_past_one_page() {
    let kw = Sandbox::filled("item", 2_345);
    kw.ok(&["put", "item", "1"]);
    kw.ok(&["put", "items:1", "1"]);

    let told = kw.fails(2, &["del", "--prefix", "item"]);
    assert!(told.starts_with("error: this would delete 2,345 keys below item:\n"), "{told}");
    assert!(told.contains("--yes"), "{told}");
    let told: Value =
        serde_json::from_str(&kw.fails(2, &["del", "--prefix", "item", "--json"])).unwrap();
    assert_eq!(told["error"]["code"], "unconfirmed");
    assert_eq!(kw.ok(&["ls", "item"]).lines().count(), 2_345);

    assert_eq!(kw.ok(&["del", "--prefix", "item", "--yes"]), "deleted 2,345 keys below item:\n");
    assert_eq!(kw.ok(&["ls"]), "item\nitems:1\n");
    assert_eq!(
        kw.ok(&["del", "--prefix", "", "--yes", "--json"]),
        "{\"prefix\":\"\",\"deleted\":2}\n"
    );
    // With nothing to delete there is nothing to ask.
    assert_eq!(kw.ok(&["del", "--prefix", "item"]), "deleted 0 keys below item:\n");
}

/// In a terminal, which util-linux's `script` makes.
#[cfg(target_os = "linux")]
#[test]
fn deleting_a_prefix_after_a_yes_takes_no_more_keys_than_were_counted() {
    let kw = Sandbox::filled("item", 10);
    let command = format!("{} del --prefix item", env!("CARGO_BIN_EXE_keyward"));
    let direct = kw.command(&[]);
    let environment: Vec<_> = direct
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]).current_dir(kw.path("."));
    for (name, value) in environment {
        match value {
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut terminal = terminal.expect("script (of util-linux) is installed");
    let (mut input, mut output) = (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
    let mut told = Vec::new();
    while !String::from_utf8_lossy(&told).contains("[y/N] ") {
        let mut bytes = [0; 1024];
        let read = output.read(&mut bytes).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&told));
        told.extend_from_slice(&bytes[..read]);
    }
    assert!(String::from_utf8_lossy(&told).contains("Delete 10 keys below item:?"));
    for n in 10..15 {
        kw.ok(&["put", &format!("item:{n:06}"), "1"]);
    }
    input.write_all(b"y\n").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(terminal.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("deleted 10 keys below item:"), "{rest}");
    assert_eq!(kw.ok(&["ls", "item"]).lines().count(), 5);
}

#[test]
fn two_processes_write_one_store() {
    let kw = Sandbox::new();
    thread::scope(|scope| {
        for writer in ["a", "b"] {
            let kw = &kw;
            scope.spawn(move || {
                for n in 0..15 {
                    kw.ok(&["put", &format!("{writer}:{n:02}"), "1"]);
                }
            });
        }
    });
    assert_eq!(kw.ok(&["ls"]).lines().count(), 30);
    assert_eq!(kw.json(&["stats"])["revision"], 30);
}

#[test]
fn of_several_processes_that_create_a_key_one_wins() {
    let kw = Sandbox::new();
    let codes: Vec<_> = thread::scope(|scope| {
        let racers: Vec<_> = (0..6)
            .map(|n| {
                let kw = &kw;
                scope.spawn(move || kw.run(&["put", "k", &n.to_string(), "--if-absent"]).code())
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == Some(3)).count(), 5, "{codes:?}");
}

#[test]
fn looking_for_something_makes_no_store() {
    let kw = Sandbox::new();
    let told = kw.fails(1, &["get", "user:7"]);
    assert!(told.contains("there is no store at embedded:./data"), "{told}");
    for command in ["stats", "export"] {
        kw.fails(1, &[command]);
    }
    assert_eq!(kw.ok(&["ls"]), "");
    assert_eq!(kw.ok(&["scan", "--json"]), "");
    kw.ok(&["del", "user:7"]);
    assert!(!kw.path("data").exists());
}

#[test]
fn plain_writes_leave_keywards_own_keys_alone() {
    let kw = Sandbox::new();
    let own = ["system:catalog", "index:a:b", "queue:q:m", "job:7", "agents:ada:default:k"];
    for key in own {
        let told = kw.fails(11, &["put", key, "{}"]);
        assert!(told.starts_with(&format!("error: {key} ")), "{told}");
        assert!(told.contains("hint: ") && told.contains("--raw"), "{told}");
    }
    assert!(!kw.path("data").exists(), "what is refused makes no store");
    kw.ok(&["put", "agents:ada", "1"]);
    // What locks keep is at keys like any other.
    kw.ok(&["lock", "exec", "page", "--", "true"]);
    for command in [&["put", "page", "1"][..], &["del", "page"]] {
        let told = kw.fails(11, command);
        assert!(told.contains("page is the root of locks"), "{told}");
    }
    kw.ok(&["put", "page:text", "1"]);
    for key in own {
        kw.fails(11, &["del", key]);
    }
    kw.fails(11, &["del", "--prefix", "", "--yes"]);
    assert_eq!(kw.ok(&["get", "page:text"]), "1\n");
    kw.ok(&["put", "index:a:b", "null", "--raw"]);
    assert_eq!(kw.ok(&["del", "index:a:b", "--raw"]), "index:a:b  deleted\n");
}
