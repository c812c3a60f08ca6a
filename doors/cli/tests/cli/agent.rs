//! agent: every verb, on a store that this machine has.

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, is_absent};

impl Sandbox {
    /// What `keyward agent …` prints.
    #[track_caller]
    pub fn agent(&self, arguments: &[&str]) -> String {
        self.ok(&[&["agent"], arguments].concat())
    }

    /// The JSON that `keyward agent … --json` prints.
    #[track_caller]
    pub fn agent_json(&self, arguments: &[&str]) -> Value {
        self.json(&[&["agent"], arguments, &["--json"]].concat())
    }

    /// The JSON lines that `keyward agent … --json` prints.
    #[track_caller]
    pub fn agent_lines(&self, arguments: &[&str]) -> Vec<Value> {
        let lines = self.ok(&[&["agent"], arguments, &["--json"]].concat());
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What `keyward agent …` says when it is refused so: text and JSON say the same.
    #[track_caller]
    pub fn agent_refuses(&self, exit: i32, code: &str, arguments: &[&str]) -> String {
        let arguments = [&["agent"], arguments].concat();
        let told = self.fails(exit, &arguments);
        let body = self.fails(exit, &[&arguments[..], &["--json"]].concat());
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"]["code"], code, "{told}");
        let (first, hint) = told.split_once("\nhint: ").unwrap_or((told.trim_end(), ""));
        assert_eq!(first.strip_prefix("error: "), body["error"]["message"].as_str());
        assert_eq!(hint.trim_end(), body["error"]["hint"].as_str().unwrap_or_default());
        told
    }
}

#[test]
fn an_entry_is_set_got_and_deleted() {
    let kw = Sandbox::new();
    let told = kw.agent(&["set", "src/main.py", r#"{ "n": 1.00, "b": 12345678901234567890 }"#]);
    let version = told.strip_prefix("src/main.py  version ").unwrap().trim_end().to_owned();
    let value = "{\"n\":1.00,\"b\":12345678901234567890}\n";
    assert_eq!(kw.agent(&["get", "src/main.py"]), value);
    let pretty = kw.agent(&["get", "src/main.py", "--pretty"]);
    assert_eq!(pretty, "{\n  \"n\": 1.00,\n  \"b\": 12345678901234567890\n}\n");
    for whole in [&["get", "src/main.py", "--meta"][..], &["get", "src/main.py", "--json"]] {
        let text = kw.agent(whole);
        assert!(text.contains(r#""value":{"n":1.00,"b":12345678901234567890}"#), "{text}");
        let entry: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(entry["_id"], "local:default:c3JjL21haW4ucHk=");
        assert_eq!(entry["_rev"], version.as_str());
        assert_eq!(entry["userId"], "local");
        assert_eq!(entry["accessCount"], 0);
        assert_eq!(entry.get("createdByAgent"), None);
    }
    let replaced = kw.agent_json(&["set", "src/main.py", "2"]);
    assert_eq!(replaced["outcome"], "replaced");
    assert_ne!(replaced["version"], version.as_str());

    assert_eq!(
        kw.agent(&["delete", "src/main.py", "b"]),
        "src/main.py  deleted\nb  was not there\n"
    );
    assert_eq!(kw.agent_json(&["delete", "b"])["outcome"], "absent");
    let told = kw.agent_refuses(1, "not-found", &["get", "src/main.py"]);
    assert_eq!(told, "error: src/main.py is not there in default\n");
    assert_eq!(kw.agent(&["get", "src/main.py", "--default", "-1.50"]), "-1.50\n");
}

#[test]
fn users_and_namespaces_are_apart() {
    let kw = Sandbox::new();
    for (user, namespace, value) in [
        ("a:b", "default", "1"),
        ("a", "b:default", "2"),
        ("a", "files:apache/repo", "3"),
        ("a", "files", "4"),
    ] {
        kw.agent(&["set", "k", value, "--user", user, "-n", namespace]);
        assert_eq!(kw.agent(&["get", "k", "--user", user, "-n", namespace]), format!("{value}\n"));
    }
    assert_eq!(kw.agent(&["get", "k", "--user", "a:b"]), "1\n");
    let names = kw.agent(&["namespaces", "--user", "a"]);
    assert_eq!(names, "b:default\nfiles\nfiles:apache/repo\n");
    assert_eq!(kw.agent_lines(&["namespaces", "--user", "a:b"]), [json!({"namespace": "default"})]);
    assert_eq!(kw.agent(&["namespaces"]), "");
    kw.agent_refuses(1, "not-found", &["get", "k", "--user", "b"]);
    kw.agent_refuses(2, "invalid", &["set", "k", "1", "-n", ""]);
    kw.agent_refuses(2, "invalid", &["set", "", "1"]);
    kw.agent_refuses(2, "invalid", &["keys", "--user", ""]);
}

#[test]
fn nothing_is_made_for_what_is_refused_or_only_read() {
    let kw = Sandbox::new();
    for (exit, code, arguments) in [
        (2, "invalid", &["set", "k", "hello"][..]),
        (7, "file", &["set", "k", "@absent.json"]),
        (2, "invalid", &["set", "k", "1", "--metadata", "{"]),
        (1, "not-found", &["get", "k"]),
        (1, "not-found", &["get", "k", "l"]),
        (1, "not-found", &["patch", "k", "{}"]),
        (1, "not-found", &["restore", "k", "--to", "1"]),
        (1, "not-found", &["redact", "k", "1"]),
        (1, "not-found", &["export"]),
    ] {
        kw.agent_refuses(exit, code, arguments);
        assert!(is_absent(&kw.path("data")), "{arguments:?}");
    }
    let told = kw.fails(3, &["agent", "set", "k", "1", "--if-version", "7"]);
    assert!(told.contains("error: k is not there, so it is not at version 7"), "{told}");
    assert!(is_absent(&kw.path("data")));
    for reading in [
        &["keys"][..],
        &["namespaces"],
        &["entries"],
        &["search"],
        &["history", "k"],
        &["log", "r"],
        &["stats"],
        &["settings"],
        &["clear", "--yes"],
        &["delete", "k"],
        &["get", "k", "--default", "1"],
    ] {
        let ran = kw.run(&[&["agent"], reading].concat());
        let note = ran.fails_after(0);
        assert!(note.contains("there is no store at embedded:./data"), "{reading:?}: {note}");
        assert!(is_absent(&kw.path("data")), "{reading:?}");
    }
}

#[test]
fn values_come_from_arguments_files_and_standard_input() {
    let kw = Sandbox::new();
    kw.write("v.json", "{ \"from\": \"file\" }\n");
    kw.agent(&["set", "a", "@v.json"]);
    assert_eq!(kw.agent(&["get", "a"]), "{\"from\":\"file\"}\n");
    kw.run_with(&["agent", "set", "b", "-"], "\"pipe\"").ok();
    kw.run_with(&["agent", "patch", "a", "-"], r#"{"more":-1}"#).ok();
    assert_eq!(kw.agent(&["get", "a"]), "{\"from\":\"file\",\"more\":-1}\n");
    assert_eq!(
        kw.agent(&["get", "a", "b", "--json"]),
        "{\"key\":\"a\",\"value\":{\"from\":\"file\",\"more\":-1}}\n{\"key\":\"b\",\"value\":\"pipe\"}\n"
    );
    kw.agent(&["set", "n", "-5"]);
    let several = Ran::of(&mut kw.command(&["agent", "get", "n", "none", "b"])).ended(1);
    assert_eq!(
        several,
        "{\"key\":\"n\",\"value\":-5}\n{\"missing\":\"none\"}\n{\"key\":\"b\",\"value\":\"pipe\"}\n"
    );
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    kw.write("large.json", &large);
    let told = kw.agent_refuses(4, "value-too-large", &["set", "large", "@large.json"]);
    assert!(told.contains("1048576"), "{told}");
    let deep = format!("{}{}", "[".repeat(62), "]".repeat(62));
    let told = kw.agent_refuses(2, "bad-change", &["set", "deep", &deep]);
    assert!(told.contains("nested 62 deep"), "{told}");
}

#[test]
fn metadata_is_merged_by_set_and_removed_by_patch() {
    let kw = Sandbox::new();
    let metadata = |kw: &Sandbox| kw.agent_json(&["get", "doc"])["metadata"].clone();
    kw.agent(&["set", "doc", "1", "--metadata", r#"{"version":"1.0","author":"alice"}"#]);
    kw.agent(&["set", "doc", "2", "--metadata", r#"{"version":"2.0","reviewer":"bob"}"#]);
    let merged = json!({"version": "2.0", "author": "alice", "reviewer": "bob"});
    assert_eq!(metadata(&kw), merged);
    kw.agent(&["set", "doc", "3"]);
    assert_eq!(metadata(&kw), merged);
    kw.agent(&["set", "doc", "3", "--metadata", r#"{"reviewer":null}"#]);
    assert_eq!(metadata(&kw)["reviewer"], Value::Null);
    kw.agent(&["patch", "doc", "--metadata", r#"{"reviewer":null,"author":null}"#]);
    assert_eq!(metadata(&kw), json!({"version": "2.0"}));
    kw.agent_refuses(2, "bad-change", &["set", "doc", "3", "--metadata", "[1]"]);
    kw.agent(&["set", "o", r#"{"a":{"b":1,"c":2}}"#]);
    kw.agent(&["patch", "o", r#"{"a":{"b":null},"d":3}"#]);
    assert_eq!(kw.agent(&["get", "o"]), "{\"a\":{\"c\":2},\"d\":3}\n");
    let told = kw.agent_refuses(1, "not-found", &["patch", "none", "{}"]);
    assert!(told.contains("agent set makes it"), "{told}");
    kw.fails(2, &["agent", "patch", "o"]);
}

#[test]
fn conditions_hold_or_nothing_is_written() {
    let kw = Sandbox::new();
    let first = kw.agent_json(&["set", "k", "1", "--if-absent"]);
    let version = first["version"].as_str().unwrap();
    assert_eq!(first["outcome"], "created");
    let told = kw.agent_refuses(3, "precondition-failed", &["set", "k", "2", "--if-absent"]);
    assert!(
        told.starts_with(&format!("error: k is there already, at version {version}")),
        "{told}"
    );
    kw.agent(&["set", "k", "2", "--if-version", version]);
    for stale in [
        &["set", "k", "3", "--if-version", version][..],
        &["patch", "k", "3", "--if-version", version],
        &["delete", "k", "--if-version", version],
        &["restore", "k", "--to", "1", "--if-version", version],
    ] {
        kw.agent_refuses(3, "precondition-failed", stale);
        assert_eq!(kw.agent(&["get", "k"]), "2\n");
    }
    kw.agent_refuses(2, "invalid", &["delete", "k", "l", "--if-version", version]);
}

#[test]
fn everything_is_listed_and_pages_go_on_by_cursor() {
    const COUNT: usize = 2_345;
    let kw = Sandbox::new();
    let at = r#""createdAt":"2026-02-05T10:00:00Z","updatedAt":"2026-02-05T10:00:00Z""#;
    let line = |n: usize| {
        format!(
            "{{\"userId\":\"local\",\"namespace\":\"many\",\"key\":\"k{n:05}\",\"value\":{n},{at}}}\n"
        )
    };
    let lines: String = (0..COUNT).map(line).collect();
    let told = kw.run_with(&["agent", "import", "--json"], lines).ok();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told, json!({"imported": COUNT, "created": COUNT, "replaced": 0, "skipped": 0}));
    let keys = kw.agent(&["keys", "-n", "many"]);
    assert_eq!(keys.lines().count(), COUNT);
    assert!(keys.lines().is_sorted());
    assert_eq!(kw.agent(&["keys", "k0001", "-n", "many"]).lines().count(), 10);
    assert_eq!(kw.agent_lines(&["entries", "-n", "many"]).len(), COUNT);
    let filter = r#"{"value":{"lt":1200}}"#;
    assert_eq!(kw.agent_lines(&["search", "-n", "many", "--filter", filter]).len(), 1_200);

    // By hand: each part tells where the next one begins.
    for question in [&["keys"][..], &["entries"], &["search", "--filter", filter]] {
        let mut cursor: Option<String> = None;
        let mut found = 0;
        loop {
            let mut line = [question, &["-n", "many", "--limit", "1100"]].concat();
            if let Some(cursor) = &cursor {
                line.extend(["--cursor", cursor]);
            }
            let mut lines = kw.agent_lines(&line);
            let next = lines.pop_if(|line| line.get("next").is_some());
            found += lines.len();
            match next {
                Some(next) => {
                    assert_eq!(lines.len(), 1_100);
                    cursor = Some(next["next"].as_str().unwrap().to_owned());
                }
                None => break,
            }
        }
        let all = if question[0] == "search" { 1_200 } else { COUNT };
        assert_eq!(found, all, "{question:?}");
        // A cursor of another question is refused.
        let cursor = cursor.unwrap();
        kw.agent_refuses(2, "bad-cursor", &["keys", "x", "-n", "many", "--cursor", &cursor]);
    }
    let note = kw.run(&["agent", "keys", "-n", "many", "--limit", "5", "--text"]).fails_after(0);
    assert!(note.starts_with("there is more: leave out --limit"), "{note}");
    assert_eq!(kw.agent_json(&["stats", "-n", "many"])["recordCount"], COUNT);
}

#[test]
fn keys_that_would_break_a_line_are_shown_as_json() {
    let kw = Sandbox::new();
    kw.agent(&["set", "a\nb", "1"]);
    kw.agent(&["set", "plain \"text\"", "2"]);
    assert_eq!(kw.agent(&["keys"]), "\"a\\nb\"\nplain \"text\"\n");
    assert_eq!(kw.agent_lines(&["keys"])[0], json!({"key": "a\nb"}));
    assert_eq!(kw.agent(&["entries", "--text"]), "\"a\\nb\"\t1\nplain \"text\"\t2\n");
}

#[test]
fn entries_are_found_by_what_they_say() {
    let kw = Sandbox::new();
    for (key, value, metadata, agent) in [
        ("task/1", r#"{"status":"open"}"#, r#"{"source":"crawler","priority":1}"#, "planner"),
        ("task/2", r#"{"status":"done"}"#, r#"{"source":"crawler","priority":5}"#, "planner"),
        ("note/1", r#"{"status":"open"}"#, r#"{"source":"ada"}"#, "writer"),
    ] {
        kw.agent(&["set", key, value, "--metadata", metadata, "--agent", agent]);
    }
    kw.agent(&["set", "else", r#"{"status":"open"}"#, "-n", "other", "--agent", "planner"]);
    let found = |arguments: &[&str]| {
        let lines = kw.agent_lines(&[&["search"], arguments].concat());
        lines.iter().map(|entry| entry["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let open = r#"{"value.status":"open"}"#;
    assert_eq!(found(&["--filter", open]), ["note/1", "task/1"]);
    assert_eq!(found(&["task/", "--filter", open]), ["task/1"]);
    assert_eq!(found(&["--filter", r#"{"metadata.priority":{"gte":3}}"#]), ["task/2"]);
    assert_eq!(found(&["--filter", r#"{"createdByAgent":"writer"}"#]), ["note/1"]);
    assert_eq!(found(&["--everywhere", "--filter", open]), ["note/1", "task/1", "else"]);
    assert_eq!(found(&[]), ["note/1", "task/1", "task/2"]);
    let text = kw.agent(&["search", "task/", "--filter", open, "--text"]);
    assert_eq!(text, "task/1\t{\"status\":\"open\"}\n");
    kw.agent_refuses(2, "invalid", &["search", "--filter", r#"{"status":"open"}"#]);
    kw.agent_refuses(2, "bad-query", &["search", "--filter", "[]"]);
    kw.fails(2, &["agent", "search", "task/", "--everywhere"]);
    kw.fails(2, &["agent", "search", "-n", "other", "--everywhere"]);
}

#[test]
fn an_index_that_the_schema_declares_is_asked() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.schema.toml",
        "[stores.main]\nurl = 'embedded:./data'\n[stores.other]\nurl = 'embedded:./other'\n\
         [spaces.agent_data_store]\nstore = 'other'\nkey = 'agents:{user}:{namespace}:{key}'\n\
         ownership = 'user'\nhistory = 3\nvalue_bytes_max = '200 B'\n\
         [spaces.agent_data_store.indexes.by_status]\nfield = 'value.status'\ntype = 'text'\n",
    );
    for n in 0..5 {
        let value = format!(r#"{{"status":"s{}"}}"#, n % 2);
        kw.agent(&["set", &format!("k{n}"), &value]);
    }
    assert!(is_absent(&kw.path("data")), "the store that declares the space has the entries");
    let found = kw.agent_lines(&["search", "--filter", r#"{"value.status":"s1"}"#]);
    assert_eq!(found.len(), 2);
    let told = kw.ok(&[
        "record",
        "query",
        "agent_data_store",
        "by_status",
        "--equal",
        "s1",
        "--text",
        "--as",
        "local",
    ]);
    assert_eq!(told.lines().count(), 2);
    for _ in 0..5 {
        kw.agent(&["set", "k0", r#"{"status":"s0"}"#]);
    }
    assert_eq!(kw.agent_lines(&["history", "k0"]).len(), 3);
    let large = format!("\"{}\"", "x".repeat(300));
    // How large it is depends on the moment, whose digits are part of it.
    let told = kw.fails(4, &["agent", "set", "k", &large, "--json"]);
    assert!(told.contains("value-too-large") && told.contains("takes at most 200"), "{told}");
    kw.ok(&["doctor"]);
}

#[test]
fn entries_are_in_the_store_of_other_commands_unless_the_schema_declares_their_space() {
    let kw = Sandbox::new();
    let two = |name: &str| {
        let text =
            format!("[stores.a]\nurl = 'embedded:./a'\n[stores.{name}]\nurl = 'embedded:./b'\n");
        kw.write("keyward.schema.toml", &text);
    };
    two("b");
    // KEYWARD_STORE is a third place, where records would not be found again.
    let told = kw.fails(2, &["agent", "set", "k", "1"]);
    assert!(told.contains("a (embedded:./a), b (embedded:./b)"), "{told}");
    let unnamed = |arguments: &[&str]| {
        let mut command = kw.command(arguments);
        Ran::of(command.env_remove("KEYWARD_STORE"))
    };
    let told = unnamed(&["agent", "get", "k"]).fails(2);
    assert!(told.contains("declares several stores: a ") && told.contains("-s a"), "{told}");
    kw.ok(&["-s", "b", "agent", "set", "k", "1"]);
    assert!(kw.path("b").exists() && is_absent(&kw.path("a")) && is_absent(&kw.path("data")));
    two("main");
    assert_eq!(unnamed(&["agent", "get", "k"]).ok(), "1\n");
    kw.write("keyward.schema.toml", "[stores.a]\nurl = 'embedded:./a'\n");
    unnamed(&["agent", "set", "k", "3"]).ok();
    assert_eq!(kw.ok(&["-s", "embedded:./a", "agent", "get", "k"]), "3\n");
}

#[test]
fn history_tells_who_did_what_and_can_be_gone_back_to() {
    let kw = Sandbox::new();
    kw.agent(&[
        "set",
        "plan",
        r#"{"step":1}"#,
        "--metadata",
        r#"{"a":1}"#,
        "--agent",
        "planner",
        "--run",
        "r1",
    ]);
    kw.agent(&["set", "plan", r#"{"step":2}"#, "--agent", "writer"]);
    kw.agent(&["delete", "plan"]);
    let lines = kw.agent_lines(&["history", "plan"]);
    let told: Vec<_> = lines
        .iter()
        .map(|it| (it["number"].as_u64().unwrap(), it["act"].as_str().unwrap(), &it["agent"]))
        .collect();
    assert_eq!(
        told,
        [
            (3, "delete", &Value::Null),
            (2, "update", &json!("writer")),
            (1, "update", &json!("planner"))
        ]
    );
    assert_eq!((&lines[2]["run"], &lines[2]["metadata"]), (&json!("r1"), &json!({"a": 1})));
    assert_eq!(lines[1]["value"], json!({"step": 2}));
    assert_eq!(lines[0].get("value"), None);
    let text = kw.agent(&["history", "plan", "--text", "--limit", "2", "--before", "3"]);
    assert!(text.contains("local through writer\t{\"step\":2}\n"), "{text}");
    assert!(text.contains("local through planner in r1\t{\"step\":1}\n"), "{text}");
    assert_eq!(text.lines().count(), 2);

    let restored = kw.agent_json(&["restore", "plan", "--to", "1", "--agent", "planner"]);
    assert_eq!(restored["outcome"], "created");
    let entry = kw.agent_json(&["get", "plan"]);
    assert_eq!((&entry["value"], &entry["metadata"]), (&json!({"step": 1}), &json!({"a": 1})));
    kw.agent_refuses(2, "bad-change", &["restore", "plan", "--to", "77"]);

    assert_eq!(kw.agent(&["redact", "plan", "2"]), "plan  version 2 redacted\n");
    assert_eq!(kw.agent_json(&["redact", "plan", "2"])["redacted"], false);
    let past = kw.agent_lines(&["history", "plan", "--before", "3", "--limit", "1"]);
    assert_eq!(past[0].get("value"), None);
    assert_eq!(past[0]["redacted"]["user"], "local");
    assert!(kw.agent(&["history", "plan", "--text"]).contains("\tredacted 20"));
    kw.agent_refuses(2, "bad-change", &["restore", "plan", "--to", "2"]);
    kw.agent_refuses(2, "bad-change", &["redact", "plan", "4"]);
    kw.agent_refuses(2, "bad-change", &["redact", "plan", "77"]);
}

#[test]
fn a_run_has_a_log_of_what_was_done() {
    let kw = Sandbox::new();
    let run = ["--agent", "planner", "--run", "r1"];
    kw.agent(&[&["set", "k", r#"{"text":"hello"}"#], &run[..]].concat());
    kw.agent(&[&["get", "k"], &run[..]].concat());
    kw.run(&[&["agent", "get", "none"], &run[..]].concat()).fails(1);
    kw.agent(&[&["keys"], &run[..]].concat());
    kw.agent(&["get", "k", "--agent", "planner", "--run", "r2"]);
    kw.agent(&["get", "k", "--agent", "planner"]);
    let lines = kw.agent_lines(&["log", "r1"]);
    let told: Vec<_> = lines.iter().map(|line| (&line["op"], &line["found"])).collect();
    assert_eq!(
        told,
        [
            (&json!("set"), &json!(false)),
            (&json!("get"), &json!(true)),
            (&json!("get"), &json!(false)),
            (&json!("list_keys"), &Value::Null)
        ]
    );
    assert_eq!(lines[1]["preview"], r#"{"text":"hello"}"#);
    assert_eq!(
        (&lines[1]["agent"], &lines[1]["namespace"]),
        (&json!("planner"), &json!("default"))
    );
    let text = kw.agent(&["log", "r1", "--text"]);
    assert_eq!(text.lines().count(), 4);
    assert!(text.contains("  planner  get  default  none  not there\t\n"), "{text}");
    assert!(text.contains("  planner  set  default  k  new\t{\"text\":\"hello\"}\n"), "{text}");
    assert_eq!(kw.agent_lines(&["log", "r2"]).len(), 1);
    assert_eq!(kw.agent_lines(&["log", "r1", "--user", "ada"]), [] as [Value; 0]);
    assert_eq!(kw.agent(&["log"]), "r1\nr2\n");
    assert_eq!(kw.agent_lines(&["log"])[1], json!({"run": "r2"}));
    let first = kw.agent_lines(&["log", "r1", "--limit", "3"]);
    let cursor = first[3]["next"].as_str().unwrap();
    assert_eq!(kw.agent_lines(&["log", "r1", "--cursor", cursor]), lines[3..]);
}

#[test]
fn a_namespace_says_how_much_it_holds() {
    let kw = Sandbox::new();
    kw.agent(&["set", "a", "\"12\"", "--agent", "planner", "-n", "x"]);
    kw.agent(&["set", "b", "1", "--metadata", "{}", "--agent", "writer", "-n", "x"]);
    kw.agent(&["get", "b", "--agent", "reader", "-n", "x"]);
    kw.agent(&["set", "c", "1", "-n", "y"]);
    let stats = kw.agent_json(&["stats", "-n", "x"]);
    let updated = stats["updatedAt"].clone();
    assert_eq!(
        stats,
        json!({"namespace": "x", "recordCount": 2, "sizeBytes": 7,
               "agents": ["planner", "reader", "writer"], "updatedAt": updated})
    );
    assert!(updated.is_string());
    let text = kw.agent(&["stats", "-n", "x", "--text"]);
    assert!(text.starts_with("namespace  x\nentries    2\nsize       7 B\n"), "{text}");
    assert!(text.contains("\nagents     planner, reader, writer\n"), "{text}");
    let all = kw.agent_lines(&["stats", "--everywhere"]);
    assert_eq!(all.iter().map(|it| &it["namespace"]).collect::<Vec<_>>(), ["x", "y"]);
    let none = kw.agent(&["stats", "--text"]);
    assert!(none.ends_with("agents     none\nupdated    never\n"), "{none}");
}

#[test]
fn settings_say_how_long_entries_live() {
    let kw = Sandbox::new();
    let shown = kw.agent(&["settings", "-n", "s", "--ttl", "1h30m", "--sliding"]);
    assert_eq!(
        shown,
        "entries live        1h 30m\nreading prolongs    yes\nhonour ttl_seconds  no\n"
    );
    kw.agent(&["settings", "-n", "s", "--honour-ttl-seconds"]);
    assert_eq!(
        kw.agent_json(&["settings", "-n", "s"]),
        json!({"namespace": "s", "ttl_ms": 5_400_000, "sliding": true, "honour_ttl_seconds": true})
    );
    kw.agent_refuses(2, "invalid", &["settings", "-n", "t", "--sliding"]);
    let none =
        json!({"namespace": "s", "ttl_ms": null, "sliding": false, "honour_ttl_seconds": false});
    let all_off = ["settings", "-n", "s", "--no-ttl", "--no-sliding", "--no-honour-ttl-seconds"];
    assert_eq!(kw.agent_json(&all_off), none);

    // When an entry ends is the record's: --ttl, --no-ttl, the namespace, the metadata.
    kw.agent(&["settings", "-n", "s", "--ttl", "1h", "--honour-ttl-seconds"]);
    kw.agent(&["set", "own", "1", "-n", "s", "--ttl", "2d"]);
    kw.agent(&["set", "for-ever", "1", "-n", "s", "--no-ttl"]);
    kw.agent(&["set", "namespace", "1", "-n", "s"]);
    kw.agent(&["set", "metadata", "1", "-n", "s", "--metadata", r#"{"ttl_seconds":60}"#]);
    let ends = |key: &str| {
        let entry = kw.json(&["get", &format!("agents:local:s:{key}"), "--meta"]);
        entry["expires"].as_str().map(|end| end.parse::<jiff::Timestamp>().unwrap())
    };
    assert_eq!(ends("for-ever"), None);
    let (own, namespace, metadata) = (ends("own"), ends("namespace"), ends("metadata"));
    assert!(metadata.is_some() && metadata < namespace && namespace < own);
    kw.fails(2, &["agent", "set", "k", "1", "--sliding"]);
    kw.fails(2, &["agent", "set", "k", "1", "--ttl", "1h", "--no-ttl"]);
}

#[test]
fn a_namespace_is_cleared_after_a_count_and_a_yes() {
    let kw = Sandbox::new();
    for key in ["src/a", "src/b", "doc/a"] {
        kw.agent(&["set", key, "1", "-n", "x"]);
    }
    kw.agent(&["set", "a", "1", "-n", "xy"]);
    let told = kw.agent_refuses(2, "unconfirmed", &["clear", "-n", "x"]);
    assert!(told.starts_with("error: this would delete 3 entries of x\n"), "{told}");
    assert_eq!(
        kw.agent(&["clear", "src/", "-n", "x", "--dry-run"]),
        "would delete 2 entries of x with keys that start with src/\n"
    );
    assert_eq!(
        kw.agent_json(&["clear", "-n", "x", "--dry-run"]),
        json!({"namespace": "x", "deleted": 0, "would_delete": 3})
    );
    assert_eq!(kw.agent(&["keys", "-n", "x"]).lines().count(), 3);
    let cleared = kw.agent_json(&["clear", "src/", "-n", "x", "--yes"]);
    assert_eq!(cleared, json!({"namespace": "x", "prefix": "src/", "deleted": 2}));
    assert_eq!(kw.agent(&["keys", "-n", "x"]), "doc/a\n");
    assert_eq!(kw.agent(&["clear", "-n", "x", "--yes"]), "deleted 1 entry of x\n");
    assert_eq!(kw.agent(&["clear", "-n", "x"]), "deleted 0 entries of x\n");
    assert_eq!(kw.agent(&["namespaces"]), "xy\n");
    assert_eq!(kw.agent_lines(&["history", "src/a", "-n", "x"]).len(), 2);
    kw.fails(2, &["agent", "clear", "--yes", "--dry-run"]);
}

#[test]
fn a_limit_that_the_config_file_raises_holds_for_the_command_too() {
    let kw = Sandbox::new();
    let value = format!("\"{}\"", "x".repeat(2_000_000));
    kw.write("value.json", &value);
    let refused = kw.fails(4, &["agent", "set", "large", "@value.json"]);
    assert!(refused.contains("1048576"), "{refused}");
    kw.write("keyward.toml", "[server.agents]\nvalue_bytes_max = 3000000\n");
    kw.agent(&["set", "large", "@value.json"]);
    kw.agent(&["patch", "large", "@value.json"]);
    for n in 0..3 {
        kw.agent(&["set", &format!("more{n}"), "@value.json"]);
    }
    let exported = kw.agent(&["export"]);
    assert!(exported.len() > 8_000_000);
    kw.run_with(&["-s", "embedded:./copy", "agent", "import"], exported).ok();
    let got = kw.ok(&["-s", "embedded:./copy", "agent", "get", "large"]);
    assert_eq!(got.trim_end(), value);
    // The whole store, as entries.
    let entries = kw.ok(&["export"]);
    kw.run_with(&["-s", "embedded:./third", "import", "--raw"], entries).ok();
    assert_eq!(kw.ok(&["-s", "embedded:./third", "agent", "get", "large"]).trim_end(), value);
}
