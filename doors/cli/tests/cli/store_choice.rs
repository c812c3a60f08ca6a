//! The rule by which every command finds its store: docs/stores.md.

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox};

/// A schema with one store in a place of its own.
const ONE: &str = "[stores.app]\nurl = \"embedded:./schema-place\"\n[spaces.notes]\n\
                   key = \"user:{user}:notes:{note}\"\nownership = \"user\"\n";

/// A schema with two stores, neither of which is called main.
const TWO: &str = "[stores.app]\nurl = \"embedded:./app\"\n[stores.side]\nurl = \"embedded:./side\"\n\
                   [spaces.notes]\nstore = \"app\"\nkey = \"user:{user}:notes:{note}\"\n\
                   ownership = \"user\"\n[spaces.logs]\nstore = \"side\"\nkey = \"log:{line}\"\n\
                   ownership = \"shared\"\n";

impl Sandbox {
    /// A command for which the environment names no store.
    #[track_caller]
    fn unnamed(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).env_remove("KEYWARD_STORE"))
    }

    /// The stores that were made here.
    fn made(&self) -> Vec<String> {
        let mut found: Vec<String> = std::fs::read_dir(self.path("."))
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().join("data.mdb").exists())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        found.sort();
        found
    }
}

/// Writes something by every command that keeps something; all of it in one store.
fn write_by_every_command(ran: &dyn Fn(&[&str]) -> String) {
    ran(&["put", "k", "1"]);
    ran(&["record", "put", "notes", "user=ada", "note=n1", "{}"]);
    ran(&["queue", "push", "mails", "{}", "--id", "m1"]);
    ran(&["job", "submit", "reports", "{}", "--id", "j1"]);
    ran(&["lock", "exec", "r", "--", "true"]);
    ran(&["cache", "run", "c", "--source-version", "1", "--", "echo", "{}"]);
    ran(&["agent", "set", "a", "1"]);
    ran(&["issue", "create", "p", "--title", "t", "--severity", "low", "--folder", "pages"]);
    ran(&["sync", "docs", "--repository", "repo", "--apply"]);
}

#[test]
fn every_command_uses_the_one_store_of_the_schema() {
    for named in [None, Some("embedded:./elsewhere")] {
        let kw = Sandbox::new();
        kw.write("keyward.schema.toml", ONE);
        kw.write("pages/p/page.md", "# P\n");
        let repository = crate::repository::Repository::new(kw.path("repo"));
        repository.write("a.md", "# A\n").commit();
        let ran = |arguments: &[&str]| {
            let mut command = kw.command(arguments);
            command.env_remove("KEYWARD_STORE");
            Ran::of(command.envs(named.map(|named| ("KEYWARD_STORE", named)))).ok()
        };
        write_by_every_command(&ran);
        let place = named.map_or("schema-place", |_| "elsewhere");
        assert_eq!(kw.made(), [place], "{named:?}");
        // What one command wrote, the others see, and say where it is.
        assert_eq!(ran(&["get", "user:ada:notes:n1"]), "{}\n");
        assert!(ran(&["get", "policy:a"]).starts_with('{'));
        let stats: Value = serde_json::from_str(&ran(&["stats", "--json"])).unwrap();
        let shown = stats["store"].as_str().unwrap();
        assert!(shown.ends_with(place), "{shown}");
        let named_by = named.map_or("keyward.schema.toml", |_| "KEYWARD_STORE");
        assert_eq!(stats["named_by"], named_by);
        assert!(ran(&["stats", "--text"]).contains(&format!("(from {named_by})")));
    }
}

#[test]
fn a_schema_to_begin_with_is_for_the_store_that_is_in_force() {
    let kw = Sandbox::new();
    let ran = |arguments: &[&str]| kw.unnamed(arguments).ok();
    ran(&["put", "before", "1"]);
    ran(&["schema", "init"]);
    assert!(kw.read("keyward.schema.toml").contains("url = \"embedded:./keyward-data\""));
    ran(&[
        "record",
        "put",
        "notes",
        "user=ada",
        "note=1",
        r#"{"title":"t","text":"x","updatedAt":"2026-01-05T09:00:00Z"}"#,
    ]);
    ran(&["put", "after", "1"]);
    assert_eq!(kw.made(), ["keyward-data"]);
    assert_eq!(ran(&["ls"]), "after\nbefore\nuser:ada:notes:1\n");

    // By a flag, by the config file, and from another folder; a password is nobody's to write.
    ran(&["-s", "embedded:./flag", "schema", "init", "flag.toml"]);
    assert!(kw.read("flag.toml").contains("url = \"embedded:./flag\""));
    kw.write("keyward.toml", "store = \"embedded:./configured\"\n");
    std::fs::create_dir(kw.path("conf")).unwrap();
    ran(&["schema", "init", "conf/s.toml"]);
    let text = kw.read("conf/s.toml");
    assert!(text.contains("/./configured\"") && text.contains("url = \"embedded:/"), "{text}");
    ran(&["-s", "postgres://ada:hush-hush@db/app?store=s", "schema", "init", "secret.toml"]);
    let text = kw.read("secret.toml");
    assert!(!text.contains("hush-hush") && !text.contains("\nurl ="), "{text}");
    let told = kw.unnamed(&["-s", "main", "schema", "init", "named.toml"]).fails(2);
    assert!(told.contains("needs the URL of its store"), "{told}");
}

#[test]
fn with_several_stores_a_command_names_one_and_records_are_found_by_their_space() {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", TWO);
    kw.unnamed(&["record", "put", "notes", "user=ada", "note=1", "{}"]).ok();
    kw.unnamed(&["record", "put", "logs", "line=1", "{}"]).ok();
    for arguments in [
        &["put", "k", "1"][..],
        &["queue", "push", "q", "{}"],
        &["lock", "exec", "r", "--", "true"],
        &["worker", "--queue", "q", "--exec", "true"],
        &["ls"],
        &["agent", "keys"],
    ] {
        let told = kw.unnamed(arguments).fails(2);
        assert!(
            told.contains("several stores: app (embedded:./app), side (embedded:./side)"),
            "{told}"
        );
        assert!(told.contains("-s app"), "{told}");
    }
    kw.unnamed(&["-s", "side", "put", "k", "1"]).ok();
    assert_eq!(kw.unnamed(&["-s", "side", "ls"]).ok(), "k\nlog:1\n");
    assert_eq!(kw.unnamed(&["-s", "app", "ls"]).ok(), "user:ada:notes:1\n");
    let told = kw.unnamed(&["-s", "sied", "ls"]).fails(2);
    assert!(told.contains("\"sied\"; it declares app, side"), "{told}");
    // A name is one store, and what is declared in it.
    let told = kw.unnamed(&["-s", "side", "record", "list", "notes"]).fails(2);
    assert!(told.contains("notes") && told.contains("logs"), "{told}");
    assert_eq!(kw.unnamed(&["-s", "app", "record", "list", "notes"]).ok(), "user:ada:notes:1\n");
    assert_eq!(kw.made(), ["app", "side"]);

    // The variable may be a name, or the place of one of them; records stay in reach.
    for named in ["side", "embedded:./side", "embedded:side"] {
        let ran = |arguments: &[&str]| {
            let mut command = kw.command(arguments);
            Ran::of(command.env("KEYWARD_STORE", named)).ok()
        };
        assert_eq!(ran(&["get", "k"]), "1\n", "{named}");
        assert_eq!(ran(&["record", "list", "notes"]), "user:ada:notes:1\n", "{named}");
    }
}

#[test]
fn a_place_that_is_none_of_several_stores_is_refused_and_not_written_to() {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", TWO);
    // The sandbox's KEYWARD_STORE is embedded:./data.
    for arguments in
        [&["put", "k", "1"][..], &["queue", "push", "q", "{}"], &["agent", "set", "a", "1"]]
    {
        let told = kw.fails(2, arguments);
        assert!(
            told.contains("KEYWARD_STORE names embedded:./data, which is none of the stores"),
            "{told}"
        );
    }
    kw.ok(&["record", "put", "notes", "user=ada", "note=1", "{}"]);
    assert_eq!(kw.made(), ["app"]);
    // For one command it can be said; records are out of reach then.
    kw.ok(&["-s", "embedded:./other", "put", "k", "1"]);
    let told = kw.fails(2, &["-s", "embedded:./other", "record", "list", "notes"]);
    assert!(told.contains("-s names embedded:./other, which is none of the stores"), "{told}");
    kw.write("keyward.toml", "store = \"embedded:./other\"\n");
    let told = kw.unnamed(&["put", "k", "1"]).fails(2);
    assert!(told.contains("keyward.toml names embedded:./other"), "{told}");
}

#[test]
fn of_several_stores_of_a_server_one_is_named_too() {
    let there = Sandbox::new();
    there.write("keyward.schema.toml", TWO);
    let mut command = there.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let server = crate::sandbox::Running::of(command.env_remove("KEYWARD_STORE"));
    let started: Value = serde_json::from_str(&server.next_line()).unwrap();
    let url = started["url"].as_str().unwrap();
    let here = Sandbox::new();
    let far = |arguments: &[&str]| here.run(&[&["--server", url], arguments].concat());
    for arguments in [&["put", "k", "1"][..], &["ls"], &["queue", "push", "q", "{}"]] {
        let told = far(arguments).fails(2);
        assert!(told.contains("several stores, and none is named: app, side"), "{told}");
    }
    far(&["-s", "side", "put", "k", "1"]).ok();
    assert_eq!(far(&["-s", "side", "ls"]).ok(), "k\n");
    far(&["record", "put", "notes", "user=ada", "note=1", "{}"]).ok();
    assert_eq!(there.unnamed(&["-s", "app", "ls"]).ok(), "user:ada:notes:1\n");
    drop(server);
}

#[test]
fn a_server_an_agent_and_a_worker_find_the_same_store() {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", ONE);
    kw.write("keyward.toml", "store = \"embedded:./configured\"\n");
    let shown = |env: &[(&str, &str)], arguments: &[&str]| -> Value {
        let mut command = kw.command(&[&["serve", "--check", "--json"], arguments].concat());
        let ran = Ran::of(command.env_remove("KEYWARD_STORE").envs(env.iter().copied()));
        serde_json::from_str::<Value>(&ran.ok()).unwrap()["stores"].clone()
    };
    assert_eq!(shown(&[], &[]), json!({"app": "embedded:./schema-place"}));
    assert_eq!(shown(&[("KEYWARD_STORE", "embedded:./e")], &[]), json!({"app": "embedded:./e"}));
    let flag = shown(&[("KEYWARD_STORE", "embedded:./e")], &["-s", "embedded:./f"]);
    assert_eq!(flag, json!({"app": "embedded:./f"}));

    // The command that `mcp install` writes for an agent's client uses the same store.
    let home =
        |name: &str| format!("{}/{name}", std::fs::canonicalize(kw.path(".")).unwrap().display());
    let entry = |env: &[(&str, &str)], arguments: &[&str]| -> Value {
        let mut command =
            kw.command(&[&["mcp", "install", "zed", "--print", "--json"], arguments].concat());
        let ran = Ran::of(command.env_remove("KEYWARD_STORE").envs(env.iter().copied()));
        let adds = serde_json::from_str::<Value>(&ran.ok()).unwrap()["adds"].clone();
        adds["context_servers"]["keyward"]["args"].clone()
    };
    let schema = home("keyward.schema.toml");
    assert_eq!(entry(&[], &[]), json!(["mcp", "--schema", schema]));
    let place = format!("embedded:{}", home("./e"));
    let by_variable = entry(&[("KEYWARD_STORE", "embedded:./e")], &[]);
    assert_eq!(by_variable, json!(["mcp", "--schema", schema, "--store", place]));
    kw.write("keyward.schema.toml", TWO);
    assert_eq!(entry(&[], &[]), json!(["mcp", "--schema", schema]));
    let by_name = entry(&[], &["-s", "side"]);
    assert_eq!(by_name, json!(["mcp", "--schema", schema, "--store", "side"]));
    assert_eq!(shown(&[], &["-s", "side"]), json!({"side": "embedded:./side"}));

    // A worker takes what queue push put there.
    kw.write("keyward.schema.toml", ONE);
    kw.unnamed(&["job", "submit", "q", "{}", "--id", "j"]).ok();
    let mut command = kw.command(&["worker", "--queue", "q", "--exec", "cat"]);
    let worker = crate::sandbox::Running::of(command.env_remove("KEYWARD_STORE"));
    kw.unnamed(&["job", "watch", "j"]).ok();
    drop(worker);
    assert_eq!(kw.made(), ["schema-place"]);
}

/// A schema whose lock tree and agents' entries are in another store than everything else.
const APART: &str = "[stores.main]\nurl = \"embedded:./main\"\n[stores.cold]\nurl = \"embedded:./cold\"\n\
                     [spaces.notes]\nstore = \"main\"\nkey = \"user:{user}:notes:{note}\"\n\
                     ownership = \"user\"\n[spaces.agent_data_store]\nstore = \"cold\"\n\
                     key = \"agents:{user}:{namespace}:{key}\"\nownership = \"user\"\n\
                     [locks.desk]\nstore = \"cold\"\nroot = \"desk:{id}\"\npaths = [\"drawer\"]\n";

#[test]
fn a_store_is_the_same_by_its_name_and_by_its_place() {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", APART);
    for (main, cold) in [("main", "cold"), ("embedded:./main", "embedded:cold")] {
        // What the schema has in another store is refused, not made a second time.
        for elsewhere in
            [&["lock", "exec", "desk:1", "--", "true"][..], &["agent", "set", "k", "1"]]
        {
            let said = kw.unnamed(&[&["-s", main], elsewhere].concat()).fails(2);
            assert!(said.contains("in the store cold, which -s leaves out"), "{said}");
        }
        kw.unnamed(&["-s", cold, "lock", "exec", "desk:1", "--", "true"]).ok();
        kw.unnamed(&["-s", cold, "agent", "set", "k", "1"]).ok();
        kw.unnamed(&["-s", main, "record", "put", "notes", "user=ada", "note=n1", "{}"]).ok();
        // Records of another store are not reached, and so not deleted.
        let said = kw.unnamed(&["-s", cold, "record", "delete", "notes", "--all", "--yes"]);
        assert!(said.fails(2).contains("notes"));
        assert_eq!(kw.unnamed(&["record", "list", "notes"]).ok().lines().count(), 1);
    }
    assert_eq!(kw.made(), ["cold", "main"]);
}

#[test]
fn two_stores_are_never_at_one_place() {
    let kw = Sandbox::new();
    let open = "[stores.main]\nurl = \"embedded:./main\"\n[stores.scratch]\n[spaces.notes]\n\
                store = \"main\"\nkey = \"note:{id}\"\nvalue = { type = \"object\" }\n\
                ownership = \"shared\"\n[spaces.tmp]\nstore = \"scratch\"\nkey = \"note:{id}\"\n\
                ownership = \"shared\"\n";
    kw.write("keyward.schema.toml", open);
    kw.unnamed(&["record", "put", "notes", "id=1", "{}"]).ok();
    // The place of main is main, not that of the store without one.
    let said = kw.unnamed(&["-s", "embedded:main", "put", "note:2", "5"]).fails(11);
    assert!(said.contains("notes"), "{said}");
    let there = ("KEYWARD_STORE", "embedded:./main");
    let put = &["record", "put", "tmp", "id=1", "\"x\""];
    Ran::of(kw.command(put).envs([there])).ok();
    assert_eq!(kw.unnamed(&["record", "get", "notes", "id=1"]).ok(), "{}\n");
    let twice = open.replace("[stores.scratch]", "[stores.scratch]\nurl = \"embedded:main\"");
    kw.write("keyward.schema.toml", &twice);
    let said = kw.unnamed(&["get", "note:1"]).fails(2);
    assert!(said.contains("main and scratch are at the same place"), "{said}");
}

#[test]
fn a_server_and_its_clients_have_the_same_default_store() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.schema.toml",
        &TWO.replace("stores.app", "stores.main").replace("\"app\"", "\"main\""),
    );
    kw.write("keyward.toml", "store = \"side\"\n");
    let mut command = kw.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let server = crate::sandbox::Running::of(command.env_remove("KEYWARD_STORE"));
    let started: Value = serde_json::from_str(&server.next_line()).unwrap();
    let url = started["url"].as_str().unwrap();
    let through = |arguments: &[&str]| kw.unnamed(&[&["--server", url], arguments].concat()).ok();
    through(&["put", "k", "1"]);
    through(&["agent", "set", "a", "1"]);
    assert_eq!(kw.unnamed(&["-s", "side", "get", "k"]).ok(), "1\n");
    assert_eq!(kw.unnamed(&["-s", "side", "agent", "get", "a"]).ok(), "1\n");
    assert_eq!(kw.unnamed(&["agent", "get", "a"]).ok(), "1\n");
    drop(server);
}

#[test]
fn a_server_does_not_start_at_a_place_that_is_none_of_several_stores() {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", TWO);
    let mut command = kw.command(&["serve", "--listen", "127.0.0.1:0"]);
    let said = Ran::of(command.env("KEYWARD_STORE", "embedded:./nowhere")).fails(2);
    assert!(said.contains("none of the stores"), "{said}");
}
