//! schema init, check, lint, docs and diff; and which schema file is meant.

use serde_json::Value;

use crate::sandbox::{Ran, Sandbox};

const GOOD: &str = r#"
[stores.app]
url = "embedded:./data"

[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
"#;

#[test]
fn init_writes_a_schema_that_is_good_and_never_overwrites_one() {
    let kw = Sandbox::new();
    let told = kw.ok(&["schema", "init"]);
    assert_eq!(
        told,
        "wrote keyward.schema.toml for the store embedded:./data; change it, then run keyward schema \
         check\n"
    );
    let told = kw.ok(&["schema", "check"]);
    assert!(told.starts_with("keyward.schema.toml is good: 1 store, 9 spaces, "), "{told}");

    kw.write("keyward.schema.toml", "mine");
    let told = kw.fails(7, &["schema", "init"]);
    assert!(told.starts_with("error: keyward.schema.toml is there already\nhint: "), "{told}");
    assert_eq!(kw.read("keyward.schema.toml"), "mine");
}

#[test]
fn check_tells_every_problem_with_its_line() {
    let kw = Sandbox::new();
    kw.write("s.toml", "[stores.app]\n[spaces.notes]\nky = \"user:{user}\"\nownership = \"usr\"\n");
    let told = kw.run(&["schema", "check", "s.toml"]).ended(2);
    assert!(told.contains("s.toml:3:1: error["), "{told}");
    assert!(told.contains("3 | ky = \"user:{user}\"\n  | ^^"), "{told}");
    assert!(told.contains("= help: did you mean \"user\"?"), "{told}");
    assert!(told.ends_with("\n3 errors\n"), "{told}");

    let told = kw.run(&["schema", "check", "s.toml", "--json"]).ended(2);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["usable"], false);
    assert_eq!(told["problems"].as_array().unwrap().len(), 3);
    assert_eq!(told["problems"][1]["line"], 3);

    // Other commands tell them too, as an error.
    let told = kw.fails(2, &["schema", "docs", "s.toml"]);
    assert!(told.starts_with("error: the schema cannot be used\n\ns.toml:"), "{told}");
    let told = kw.fails(2, &["record", "list", "notes", "--schema", "s.toml"]);
    assert!(told.contains("did you mean key?"), "{told}");
    kw.fails(2, &["schema", "check", "absent.toml", "--json", "extra"]);
    assert!(kw.run(&["schema", "check", "absent.toml"]).ended(2).contains("cannot be read"));
}

#[test]
fn a_schema_that_no_store_can_hold_is_not_good() {
    let kw = Sandbox::new();
    kw.write("s.toml", &format!("{GOOD}value_bytes_max = \"1 GiB\"\n"));
    let told = kw.run(&["schema", "check", "s.toml"]).ended(2);
    assert!(told.starts_with("s.toml:8:19: error[value-too-large]: "), "{told}");
    assert!(told.contains("8 | value_bytes_max = \"1 GiB\"\n"), "{told}");
    assert!(told.contains("= help: set value_bytes_max to 16777216 or less"), "{told}");
    let told = kw.run(&["schema", "check", "s.toml", "--json"]).ended(2);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["usable"], &told["problems"][0]["line"]), (&false.into(), &8.into()));
    // Whoever uses it is told the same, and nothing is made.
    let put = ["record", "put", "notes", "user=ada", "note=1", "{}", "--schema", "s.toml"];
    for command in [&["schema", "lint", "s.toml"][..], &put] {
        let told = kw.fails(2, command);
        assert!(told.starts_with("error: the schema cannot be used\n\ns.toml:8:19: "), "{told}");
    }
    assert!(!kw.path("data").exists());

    // A key of 1,975 bytes: one more than an embedded store takes, and fewer than one in memory.
    let key = |literal: usize| {
        GOOD.replace("user:{user}:notes:{note}", &format!("{}:{{user}}", "k".repeat(literal)))
    };
    kw.write("long.toml", &key(1_973));
    let told = kw.run(&["schema", "check", "long.toml"]).ended(2);
    assert!(told.contains("have at least 1975 bytes, and the store takes 1974"), "{told}");
    kw.ok(&["schema", "check", "long.toml", "-s", "memory:"]);
    // One that just fits leaves no room, which is a warning.
    kw.write("long.toml", &key(1_972));
    let told = kw.ok(&["schema", "check", "long.toml"]);
    assert!(told.starts_with("long.toml:6:7: warning[key-room]: "), "{told}");
    assert!(told.contains("long.toml is good"), "{told}");

    // Where nobody says where the store is, it is the default one, whose limits count.
    kw.write("open.toml", &key(1_973).replace("url = \"embedded:./data\"", ""));
    let mut nowhere = kw.command(&["schema", "check", "open.toml"]);
    Ran::of(nowhere.env_remove("KEYWARD_STORE")).ended(2);
    kw.run(&["schema", "check", "open.toml"]).ended(2);
    kw.ok(&["schema", "check", "open.toml", "-s", "memory:"]);

    kw.write("unknown.toml", &GOOD.replace("embedded:", "rocks:"));
    let mut unknown = kw.command(&["schema", "check", "unknown.toml"]);
    let told = Ran::of(unknown.env_remove("KEYWARD_STORE")).ended(2);
    assert!(told.starts_with("unknown.toml:3:7: error[store-url]: "), "{told}");
    assert!(told.contains("there is no engine called \"rocks\""), "{told}");
}

#[test]
fn lint_tells_mistakes_with_reason_and_remedy() {
    let kw = Sandbox::new();
    kw.write("good.toml", GOOD);
    let told = kw.ok(&["schema", "lint", "good.toml"]);
    assert_eq!(told, "good.toml has none of the common mistakes\n");

    let asked = "[[spaces.notes.queries]]\nname = \"by title\"\nby = [\"title\"]\n";
    kw.write("asked.toml", &format!("{GOOD}{asked}"));
    let told = kw.run(&["schema", "lint", "asked.toml"]).ended(2);
    assert!(told.starts_with("mistake[missing-index] in notes: "), "{told}");
    assert!(told.contains("\n  = why: ") && told.contains("\n  = fix: "), "{told}");
    assert!(told.ends_with("asked.toml: 1 mistake, 0 hints\n"), "{told}");
    let told = kw.run(&["schema", "lint", "asked.toml", "--json"]).ended(2);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["code"], "missing-index");
}

#[test]
fn docs_writes_the_page_to_the_output_or_a_file() {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", GOOD);
    let page = kw.ok(&["schema", "docs"]);
    assert!(page.starts_with("# Key schema\n"), "{page}");
    assert!(page.contains("`user:{user}:notes:{note}`"), "{page}");
    assert_eq!(kw.ok(&["schema", "docs", "-o", "KEYS.md"]), "wrote KEYS.md\n");
    assert_eq!(kw.read("KEYS.md"), page);
    kw.fails(7, &["schema", "docs", "-o", "absent/KEYS.md"]);
}

#[test]
fn diff_tells_what_a_change_means_and_exits_with_10() {
    let kw = Sandbox::new();
    kw.write("old.toml", GOOD);
    kw.write(
        "new.toml",
        &format!("{GOOD}[spaces.notes.indexes.by_title]\nfield = \"title\"\ntype = \"text\"\n"),
    );
    assert_eq!(kw.ok(&["schema", "diff", "old.toml", "old.toml"]), "no changes\n");
    let told = kw.run(&["schema", "diff", "old.toml", "new.toml"]).ended(10);
    assert!(told.contains("needs a migration: add the index by_title of notes"), "{told}");
    let told = kw.run(&["schema", "diff", "old.toml", "new.toml", "--json"]).ended(10);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["verdict"], "needs-migration");
    assert_eq!(told["migration"]["kind"], "add-index");
}

#[test]
fn the_schema_is_named_by_flag_environment_config_or_place() {
    let kw = Sandbox::new();
    let told = kw.fails(2, &["schema", "check"]);
    assert!(told.starts_with("error: no schema was named, "), "{told}");
    for way in ["keyward schema init", "--schema FILE", "KEYWARD_SCHEMA=", "keyward.toml"] {
        assert!(told.contains(way), "{told}");
    }

    for name in ["flag.toml", "env.toml", "keyward.schema.toml", "conf/app.toml"] {
        kw.write(name, GOOD);
    }
    let checked = |arguments: &[&str], env: Option<&str>| {
        let mut command = kw.command(&[&["schema", "check"], arguments].concat());
        let output = command.envs(env.map(|env| ("KEYWARD_SCHEMA", env))).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        told.split_once(" is good").map(|(file, _)| file.to_owned())
    };
    assert_eq!(checked(&[], None).as_deref(), Some("keyward.schema.toml"));
    kw.write("keyward.toml", "schema = \"conf/app.toml\"\n");
    assert_eq!(checked(&[], None).as_deref(), Some("conf/app.toml"));
    kw.write("conf/keyward.toml", "schema = \"app.toml\"\n");
    assert_eq!(checked(&["--config", "conf/keyward.toml"], None).as_deref(), Some("conf/app.toml"));
    assert_eq!(checked(&[], Some("env.toml")).as_deref(), Some("env.toml"));
    assert_eq!(checked(&["--schema", "flag.toml"], Some("env.toml")).as_deref(), Some("flag.toml"));
    assert_eq!(checked(&["flag.toml"], Some("env.toml")).as_deref(), Some("flag.toml"));
}

#[test]
fn stores_are_where_the_schema_says_relative_to_it() {
    let kw = Sandbox::new();
    kw.write("conf/s.toml", GOOD);
    let put = ["--schema", "conf/s.toml", "record", "put", "notes", "user=ada", "note=1", "{}"];
    Ran::of(kw.command(&put).env_remove("KEYWARD_STORE")).ok();
    assert!(kw.path("conf/data").exists() && !kw.path("data").exists());

    // Where the schema has one store, -s names another place for one command.
    let elsewhere = ["-s", "embedded:./elsewhere", "--schema", "conf/s.toml"];
    kw.ok(&[&elsewhere[..], &["record", "put", "notes", "user=bob", "note=1", "{}"]].concat());
    let listed = kw.ok(&[&elsewhere[..], &["record", "list", "notes"]].concat());
    assert_eq!(listed, "user:bob:notes:1\n");

    // Where the schema names no place, it is that of the other commands.
    kw.write("open.toml", &GOOD.replace("url = \"embedded:./data\"", ""));
    kw.ok(&["--schema", "open.toml", "record", "put", "notes", "user=eve", "note=1", "{}"]);
    assert_eq!(kw.ok(&["get", "user:eve:notes:1"]), "{}\n");

    let two = format!(
        "{GOOD}store = \"app\"\n[stores.other]\n[spaces.x]\nstore = \"other\"\nkey = \"x:{{x}}\"\nownership = \"shared\"\n"
    );
    kw.write("two.toml", &two);
    // The store without a place is where -s says, and the others stay where they are.
    kw.ok(&["--schema", "two.toml", "-s", "embedded:./x", "record", "put", "x", "x=1", "{}"]);
    assert_eq!(kw.ok(&["-s", "embedded:./x", "get", "x:1"]), "{}\n");
}
