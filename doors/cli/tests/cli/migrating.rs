//! migrate.

use serde_json::json;

use crate::sandbox::Sandbox;

const SCHEMA: &str = r#"
[stores.app]

[spaces.notes]
key = "notes:{id}"
ownership = "shared"

[spaces.notes.value]
type = "object"

[spaces.notes.value.properties]
title = { type = "string" }
"#;
const INDEX: &str = "\n[spaces.notes.indexes.by_title]\nfield = \"title\"\n";

/// Notes in a store, without an index.
pub fn notes() -> Sandbox {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", SCHEMA);
    let line =
        |n| format!("{{\"key\":\"notes:n{n}\",\"value\":{{\"user\":\"u{n}\",\"title\":\"t\"}}}}\n");
    kw.run_with(&["import", "--raw"], (0..5).map(line).collect::<String>()).ok();
    kw
}

/// The same, with one declared.
pub fn declare_index(kw: &Sandbox) {
    kw.write("keyward.schema.toml", &format!("{SCHEMA}{INDEX}"));
}

#[test]
fn an_index_is_planned_and_built_when_one_says_yes() {
    let kw = notes();
    assert_eq!(kw.ok(&["migrate"]), "the stores have the indexes that the schema declares\n");
    declare_index(&kw);
    for dry in [&["migrate"][..], &["migrate", "--dry-run"]] {
        assert_eq!(
            kw.ok(dry),
            "would add the index by_title to notes: 5 records\nnothing was done; --yes does it\n"
        );
    }
    assert_eq!(
        kw.ok(&["migrate", "--yes"]),
        "done: add the index by_title to notes, 5 records, 5 entries added\n"
    );
    let found = kw.ok(&["record", "query", "notes", "by_title", "--json"]);
    assert_eq!(found.lines().count(), 5, "{found}");
    assert_eq!(kw.ok(&["migrate"]), "the stores have the indexes that the schema declares\n");
    let listed = kw.json(&["migrate", "list", "--json"]);
    assert_eq!(listed["state"], "done");
    assert_eq!(listed["counts"]["entries"], 5);
    kw.fails(2, &["migrate", "--drop", "by_title", "--yes"]);
    kw.fails(1, &["migrate", "--drop", "by_name", "--yes"]);
}

#[test]
fn an_index_that_is_not_declared_stays_until_it_is_named() {
    let kw = notes();
    declare_index(&kw);
    kw.ok(&["migrate", "--yes"]);
    kw.write("keyward.schema.toml", SCHEMA);
    let left = "left: the index by_title of notes; the schema does not declare it, \
                --drop by_title removes it\n";
    for arguments in [&["migrate"][..], &["migrate", "--yes"]] {
        assert_eq!(kw.ok(arguments), left);
    }
    assert_eq!(kw.json(&["migrate", "--json"])["left"], "by_title");
    assert_eq!(kw.ok(&["ls", "index"]).lines().count(), 5);
    assert_eq!(
        kw.ok(&["migrate", "--drop", "by_title"]),
        "would drop the index by_title of notes: 5 entries\nnothing was done; --yes does it\n"
    );
    assert_eq!(kw.ok(&["ls", "index"]).lines().count(), 5);
    assert_eq!(
        kw.ok(&["migrate", "--drop", "by_title", "--yes"]),
        "done: drop the index by_title of notes, 5 entries removed\n"
    );
    assert_eq!(kw.ok(&["ls", "index"]), "");
    assert_eq!(kw.ok(&["migrate"]), "the stores have the indexes that the schema declares\n");
}

#[test]
fn two_schemas_of_one_store_leave_each_others_indexes_alone() {
    let kw = notes();
    declare_index(&kw);
    kw.ok(&["migrate", "--yes"]);
    let posts = SCHEMA.replace("spaces.notes", "spaces.posts").replace("notes:{id}", "posts:{id}");
    let by_state = "\n[spaces.posts.indexes.by_state]\nfield = \"state\"\ntype = \"text\"\n";
    let posts = posts.replace("title = {", "state = {}\ntitle = {");
    kw.write("posts.toml", &format!("{posts}{by_state}"));
    let with_posts = |arguments: &[&'static str]| [arguments, &["--schema", "posts.toml"]].concat();
    kw.ok(&with_posts(&["record", "put", "posts", "id=p1", r#"{"state":"open"}"#]));
    let told = kw.ok(&with_posts(&["migrate", "--yes"]));
    let left = "left: the index by_title of notes; the schema does not declare its space, \
                --drop by_title removes it\n";
    assert!(told.contains(left) && !told.contains("drop the index"), "{told}");
    let doctored = kw.run(&with_posts(&["doctor", "--repair"])).ended(10);
    assert!(!doctored.contains("index"), "{doctored}");
    for (schema, space, index, found) in
        [("keyward.schema.toml", "notes", "by_title", 5), ("posts.toml", "posts", "by_state", 1)]
    {
        let query = ["record", "query", space, index, "--json", "--schema", schema];
        assert_eq!(kw.ok(&query).lines().count(), found, "{schema}");
    }
    // A name that the other one has cannot be had, until somebody says so.
    kw.write("posts.toml", &format!("{posts}{}", INDEX.replace("notes", "posts")));
    let told = kw.run(&with_posts(&["migrate", "--yes"])).ended(10);
    assert!(told.contains("cannot add the index by_title to posts: notes, a space"), "{told}");
    assert_eq!(kw.ok(&["record", "query", "notes", "by_title", "--json"]).lines().count(), 5);
    let told = kw.run(&with_posts(&["doctor"])).ended(10);
    assert!(told.contains("index-taken by_title: "), "{told}");
    let told = kw.ok(&with_posts(&["migrate", "--drop", "by_title", "--yes"]));
    assert!(told.contains("done: drop the index by_title of notes, 5 entries removed\n"), "{told}");
    assert!(told.contains("done: add the index by_title to posts, 1 records\n"), "{told}");
}

#[test]
fn two_schemas_that_give_one_name_to_different_spaces_are_told() {
    let kw = notes();
    declare_index(&kw);
    kw.ok(&["migrate", "--yes"]);
    kw.write("teams.toml", &format!("{}{INDEX}", SCHEMA.replace("notes:{id}", "teams:{id}")));
    let with_teams = |arguments: &[&'static str]| [arguments, &["--schema", "teams.toml"]].concat();
    let told = kw.run(&with_teams(&["migrate", "--yes"])).ended(10);
    let differs = "the store's indexes of the space notes are of keys notes:{id}, and the schema says \
                   teams:{id}: ";
    assert!(told.starts_with(differs) && told.lines().count() == 1, "{told}");
    let told = kw.run(&with_teams(&["migrate", "--json"])).ended(10);
    assert_eq!(
        told,
        "{\"differs\":\"notes\",\"declared\":\"teams:{id}\",\"keys\":\"notes:{id}\"}\n"
    );
    let doctored = kw.run(&with_teams(&["doctor", "--repair"])).ended(10);
    assert!(doctored.contains("space-differs notes: "), "{doctored}");
    assert_eq!(kw.ok(&["record", "query", "notes", "by_title", "--json"]).lines().count(), 5);
}

#[test]
fn records_get_the_keys_of_a_new_pattern() {
    let kw = notes();
    kw.ok(&["put", "notes:homeless", "{}", "--raw"]);
    let schema = SCHEMA.replace("notes:{id}", "user:{user}:notes:{id}");
    kw.write("keyward.schema.toml", &schema);
    let rekey = ["migrate", "rekey", "notes", "--from", "notes:{id}", "--field", "user=user"];
    let would = kw.ok(&rekey);
    assert!(would.contains("6 records\n  notes:n0 → user:u0:notes:n0\n"), "{would}");
    assert!(would.contains("could not: 1\n  notes:homeless: "), "{would}");
    let ran = kw.run(&[&rekey[..], &["--yes"]].concat()).ended(10);
    assert!(ran.contains("6 records, 5 changed, 1 problems\n  notes:homeless: "), "{ran}");
    assert_eq!(kw.ok(&["ls", "notes"]), "notes:homeless\n");
    assert_eq!(kw.json(&["get", "user:u3:notes:n3"]), json!({"user": "u3", "title": "t"}));
    let told = kw.fails(2, &["migrate", "rekey", "notes", "--from", "notes:{id}"]);
    assert!(told.contains("Add --field user=FIELD"), "{told}");
    assert!(told.contains("--variable user=OLD"), "{told}");
}

#[test]
fn a_dry_run_tells_what_the_real_run_could_not_do() {
    let kw = notes();
    kw.ok(&["put", "notes:odd", r#"{"title":7}"#, "--raw"]);
    let transform = ["migrate", "transform", "notes", "--set", "title=7"];
    let would = kw.ok(&transform);
    assert!(would.contains("could not: 5\n  notes:n0: the value does not fit"), "{would}");
    assert!(!would.contains('→'), "{would}");
    declare_index(&kw);
    let would = kw.ok(&["migrate"]);
    assert!(would.contains("6 records\ncould not: 1\n  notes:odd: the field title"), "{would}");
    assert_eq!(kw.json(&["migrate", "--json"])["problem_count"], 1);
    let ran = kw.run(&["migrate", "--yes"]).ended(10);
    assert!(ran.contains("1 problems\n  notes:odd: the field title"), "{ran}");
}

#[test]
fn values_are_edited_or_given_to_a_command() {
    let kw = notes();
    let edits = ["migrate", "transform", "notes", "--rename", "user=by", "--set", "n=1.0"];
    assert!(kw.ok(&edits).contains(r#" → {"title":"t","by":"u0","n":1.0}"#));
    assert_eq!(kw.ok(&["get", "notes:n0"]), "{\"user\":\"u0\",\"title\":\"t\"}\n");
    assert!(kw.ok(&[&edits[..], &["--yes"]].concat()).contains("5 records, 5 changed\n"));
    assert_eq!(kw.ok(&["get", "notes:n0"]), "{\"title\":\"t\",\"by\":\"u0\",\"n\":1.0}\n");
    let exec = ["migrate", "transform", "notes", "--exec", "sed s/u3/bob/", "--yes"];
    assert!(kw.ok(&exec).contains("5 records, 1 changed\n"));
    assert_eq!(kw.json(&["get", "notes:n3"])["by"], "bob");
    kw.fails(2, &["migrate", "transform", "notes"]);
    kw.fails(2, &["migrate", "transform", "notes", "--set", "n=open"]);
}

#[test]
fn a_dry_run_says_how_many_of_its_problems_it_shows() {
    let kw = notes();
    let line = |n| format!("{{\"key\":\"notes:homeless{n}\",\"value\":{{}}}}\n");
    kw.run_with(&["import", "--raw"], (0..7).map(line).collect::<String>()).ok();
    kw.write("keyward.schema.toml", &SCHEMA.replace("notes:{id}", "user:{user}:notes:{id}"));
    let rekey = ["migrate", "rekey", "notes", "--from", "notes:{id}", "--field", "user=user"];
    let told = kw.ok(&rekey);
    assert!(told.contains("could not: 7, 5 of 7 shown; --problems 7 shows more\n"), "{told}");
    assert_eq!(told.matches("notes:homeless").count(), 5, "{told}");
    let told = kw.ok(&[&rekey[..], &["--problems", "7"]].concat());
    assert!(told.contains("could not: 7\n"), "{told}");
    assert_eq!(told.matches("notes:homeless").count(), 7, "{told}");
    let all = kw.json(&[&rekey[..], &["--json"]].concat());
    assert_eq!(all["problems"].as_array().unwrap().len(), 7);
}

#[test]
fn a_second_run_is_told_who_runs_the_migration() {
    let kw = notes();
    kw.write("keyward.schema.toml", &SCHEMA.replace("notes:{id}", "papers:{id}"));
    let rekey = ["migrate", "rekey", "notes", "--from", "notes:{id}", "--yes"];
    let slow = [&rekey[..], &["--rate", "1"]].concat();
    let mut first = kw.command(&slow);
    let mut first = first.env("USER", "ada").spawn().unwrap();
    let listed = || kw.ok(&["migrate", "list", "--json"]);
    let waiting = std::time::Instant::now();
    while !listed().contains("running") {
        assert!(waiting.elapsed().as_secs() < 60, "it did not begin");
    }
    let told = kw.fails(3, &rekey);
    assert!(told.contains("is being run by ada since "), "{told}");
    assert!(first.wait().unwrap().success());
    assert_eq!(kw.ok(&["ls", "papers"]).lines().count(), 5);
}
