//! Records and agents' entries cannot be written as plain entries; others read only shared fields.

use serde_json::Value;

use crate::records::{SCHEMA, declared};
use crate::sandbox::Sandbox;

#[test]
fn a_record_is_not_written_past_its_indexes() {
    let kw = declared();
    let ada = r#"{"email":"ada@example.org"}"#;
    kw.record(&["put", "users", ada, "--as", "ada"]);
    kw.ok(&["put", "user:ada:note", "1"]);
    let before = kw.ok(&["export"]);
    let line = "{\"key\":\"user:ada:profile\",\"value\":5}\n";
    let refused = || {
        for command in [
            &["put", "user:ada:profile", "5"][..],
            &["put", "user:eve:profile", "{}", "--if-absent"],
            &["del", "user:ada:note", "user:ada:profile"],
            &["del", "--prefix", "user", "--yes"],
            &["put", "system:catalog", "{}"],
        ] {
            let told = kw.fails(11, &[command, &["--json"]].concat());
            let told: Value = serde_json::from_str(&told).unwrap();
            assert_eq!(told["error"]["code"], "reserved", "{told}");
            assert!(told["error"]["hint"].as_str().unwrap().contains("--raw"), "{told}");
        }
        for command in [
            &["lock", "exec", "user:eve:profile", "--", "true"][..],
            &["lock", "exec", "system:catalog", "--", "true"],
            &["cache", "run", "user:eve:profile", "--", "echo", "5"],
        ] {
            assert!(kw.fails(11, command).contains("--raw"), "{command:?}");
        }
        let told = kw.run_with(&["import"], line).fails(11);
        assert!(told.contains("line 1: user:ada:profile is a record of the space users"), "{told}");
        assert_eq!(kw.ok(&["export"]), before);
    };
    refused();
    // The store knows its records without the schema.
    std::fs::remove_file(kw.path("keyward.schema.toml")).unwrap();
    refused();
    // By hand, and loud.
    let told = kw.run(&["put", "user:ada:profile", "5", "--raw"]).fails_after(0);
    assert!(told.starts_with("warning: --raw writes past schemas"), "{told}");
    assert_eq!(kw.ok(&["get", "user:ada:profile"]), "5\n");
    kw.ok(&["del", "--prefix", "user:ada", "--yes", "--raw"]);
    kw.write("keyward.schema.toml", SCHEMA);
    let told = kw.run(&["doctor"]).ended(10);
    assert!(told.contains("orphaned-entry index:users_by_email"), "{told}");
}

#[test]
fn agents_entries_are_not_written_as_records() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.schema.toml",
        "[stores.app]\nurl = \"embedded:./data\"\n[spaces.agent_data_store]\n\
         key = \"agents:{user}:{namespace}:{key}\"\nownership = \"user\"\n",
    );
    kw.ok(&["agent", "set", "k", "1", "--user", "ada"]);
    let entry = ["agent_data_store", "user=ada", "namespace=default", "key=k"];
    for (command, more) in [
        ("put", &[r#"{"foo":1}"#][..]),
        ("create", &[r#"{"foo":1}"#]),
        ("merge", &[r#"{"foo":1}"#]),
        ("delete", &[]),
    ] {
        let told = kw.refuses(11, "reserved", &[&[command], &entry[..], more].concat());
        assert!(told.contains("keyward agent"), "{told}");
    }
    kw.refuses(11, "reserved", &["delete", "agent_data_store", "--all", "--yes"]);
    for more in [&[][..], &["--yes"]] {
        let transform = ["migrate", "transform", "agent_data_store", "--set", "foo=1", "--json"];
        let told = kw.fails(11, &[&transform, more].concat());
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["error"]["code"], "reserved", "{told}");
        assert!(told["error"]["hint"].as_str().unwrap().contains("keyward agent"), "{told}");
    }
    kw.fails(11, &["put", "agents:ada:default:k", "1"]);
    let exported = kw.ok(&["agent", "export", "--user", "ada"]);
    assert_eq!(exported.lines().count(), 1, "{exported}");
}

#[test]
fn a_prefix_with_a_lock_root_far_behind_is_left_as_it_is() {
    let kw = Sandbox::filled("item", 1_500);
    kw.ok(&["lock", "exec", "item:zzz", "--", "true"]);
    let before = kw.ok(&["export", "item"]);
    assert_eq!(before.lines().count(), 1_501);
    let told = kw.fails(11, &["del", "--prefix", "item", "--yes"]);
    assert!(told.contains("item:zzz is the root of locks"), "{told}");
    assert!(!told.contains("Deleted before that"), "{told}");
    assert_eq!(kw.ok(&["export", "item"]), before);
    // Nor by their names, however many are named before it.
    let listed = kw.ok(&["ls", "item", "--depth", "2"]);
    let keys: Vec<&str> = listed.lines().collect();
    assert_eq!(keys.len(), 1_501);
    kw.fails(11, &[&["del"], &keys[..]].concat());
    assert_eq!(kw.ok(&["export", "item"]), before);
}

#[test]
fn others_read_what_is_shared_of_a_record_and_nothing_of_a_draft() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.schema.toml",
        r#"
[stores.app]
url = "embedded:./data"
[spaces.posts]
key = "user:{user}:posts:{post}"
ownership = "hybrid"
share = ["text", "at"]
[spaces.posts.indexes.recent]
kind = "time"
field = "at"
scope = "shared"
"#,
    );
    let post = r#"{"text":"hi","at":"2026-01-01T00:00:00Z","draft":"secret"}"#;
    kw.record(&["put", "posts", "post=p1", post, "--as", "ada", "--metadata", r#"{"ip":"x"}"#]);
    kw.record(&["put", "posts", "post=p2", r#"{"text":"secret"}"#, "--as", "ada"]);
    let carol = ["user=ada", "post=p1", "--as", "carol"];
    let found = kw.record(&["query", "posts", "recent", "--as", "carol", "--json"]);
    let shared = "{\"text\":\"hi\",\"at\":\"2026-01-01T00:00:00Z\"}\n";
    assert!(found.contains(shared.trim_end()), "{found}");
    assert_eq!(kw.record(&[&["get", "posts"], &carol[..]].concat()), shared);
    let whole: Value =
        serde_json::from_str(&kw.record(&[&["get", "posts"], &carol[..], &["--meta"]].concat()))
            .unwrap();
    assert!(whole["metadata"].is_null(), "{whole}");
    for draft in ["p2", "none"] {
        let post = format!("post={draft}");
        kw.refuses(1, "not-found", &["get", "posts", "user=ada", &post, "--as", "carol"]);
    }
    let put = [&["put", "posts"], &carol[..2], &[post], &carol[2..]].concat();
    kw.refuses(11, "forbidden", &put);
    assert_eq!(kw.record(&["get", "posts", "post=p1", "--as", "ada"]), format!("{post}\n"));
}
