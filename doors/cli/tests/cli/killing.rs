//! migrate, killed in the middle and run by two processes at once.

use serde_json::Value;

use crate::sandbox::Sandbox;

const RECORDS: usize = 120;
/// Records each second: so a page is 40 of them, and a second long.
const RATE: &str = "40";

/// How often is looked how far a migration is; it takes about six seconds, and a look at least 10 ms.
const LOOKS_MAX: usize = 3_000;

fn schema(pattern: &str, index: bool) -> String {
    let index = if index { "\n[spaces.notes.indexes.by_title]\nfield = \"title\"\n" } else { "" };
    format!(
        "[stores.app]\n[spaces.notes]\nkey = \"{pattern}\"\nownership = \"shared\"\n\
         [spaces.notes.value]\ntype = \"object\"\n[spaces.notes.value.properties]\n\
         title = {{ type = \"string\" }}\n{index}"
    )
}

/// Notes in a store, with an index or without.
fn notes(index: bool) -> Sandbox {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", &schema("notes:{id}", false));
    let line = |n| format!("{{\"key\":\"notes:n{n:03}\",\"value\":{{\"title\":\"t{n}\"}}}}\n");
    kw.run_with(&["import", "--raw"], (0..RECORDS).map(line).collect::<String>()).ok();
    if index {
        kw.write("keyward.schema.toml", &schema("notes:{id}", true));
        kw.ok(&["migrate", "--yes"]);
    }
    kw
}

/// The last migration of the store.
fn last(kw: &Sandbox) -> Option<Value> {
    let listed = kw.ok(&["migrate", "list", "--json"]);
    listed.lines().last().map(|line| serde_json::from_str(line).unwrap())
}

fn counted(migration: &Value, count: &str) -> u64 {
    migration["counts"][count].as_u64().unwrap()
}

/// Starts a migration slowly, and waits until it has come so far in a phase.
fn started(kw: &Sandbox, arguments: &[&str], phase: &str, count: &str) -> crate::sandbox::Running {
    let running = kw.start(&[arguments, &["--yes", "--rate", RATE]].concat());
    for _ in 0..LOOKS_MAX {
        let so_far = last(kw).filter(|it| it["state"] == "running");
        if so_far.is_some_and(|it| it["phase"] == phase && counted(&it, count) > 0) {
            return running;
        }
    }
    panic!("it never came to {phase}");
}

/// Kills a migration there, runs it again, and looks whether it went on.
fn kill_and_run_again(kw: &Sandbox, arguments: &[&str], phase: &str, count: &str) {
    let running = started(kw, arguments, phase, count);
    running.kill();
    drop(running);
    let killed = last(kw).unwrap();
    assert_eq!(killed["state"], "running", "{killed}");
    kw.ok(&[arguments, &["--yes"]].concat());
    let done = last(kw).unwrap();
    assert_eq!((&done["id"], &done["state"]), (&killed["id"], &"done".into()));
    assert_eq!(done["runs"], 2);
    kw.ok(&["doctor"]);
}

fn found(kw: &Sandbox) -> usize {
    kw.ok(&["record", "query", "notes", "by_title", "--all", "--json"]).lines().count()
}

#[test]
fn an_index_killed_while_it_is_filled_or_checked_is_whole_when_run_again() {
    for (phase, count) in
        [("walk", "records"), ("check-records", "checked"), ("check-entries", "checked")]
    {
        let kw = notes(false);
        kw.write("keyward.schema.toml", &schema("notes:{id}", true));
        kill_and_run_again(&kw, &["migrate"], phase, count);
        assert_eq!(found(&kw), RECORDS, "{phase}");
        assert_eq!(counted(&last(&kw).unwrap(), "checked"), 2 * RECORDS as u64, "{phase}");
    }
}

#[test]
fn an_index_killed_while_it_is_dropped_is_gone_when_run_again() {
    let kw = notes(true);
    kw.write("keyward.schema.toml", &schema("notes:{id}", false));
    kill_and_run_again(&kw, &["migrate", "--drop", "by_title"], "sweep", "swept");
    assert_eq!(kw.ok(&["ls", "index"]), "");
    assert_eq!(counted(&last(&kw).unwrap(), "swept"), RECORDS as u64);
}

#[test]
fn records_killed_while_they_move_have_their_new_keys_when_run_again() {
    let kw = notes(true);
    kw.write("keyward.schema.toml", &schema("papers:{id}", true));
    let rekey = ["migrate", "rekey", "notes", "--from", "notes:{id}"];
    kill_and_run_again(&kw, &rekey, "walk", "changed");
    let done = last(&kw).unwrap();
    let counts = ["records", "changed"].map(|count| counted(&done, count));
    assert_eq!(counts, [RECORDS as u64; 2], "every record is counted once: {done}");
    assert_eq!(kw.ok(&["ls", "notes"]), "");
    assert_eq!(kw.ok(&["ls", "papers"]).lines().count(), RECORDS);
    assert_eq!(found(&kw), RECORDS);
}

#[test]
fn values_killed_while_they_change_are_changed_when_run_again() {
    let kw = notes(true);
    let transform = ["migrate", "transform", "notes", "--set", "title=\"new\"", "--set", "n=1"];
    kill_and_run_again(&kw, &transform, "walk", "changed");
    let new = ["record", "query", "notes", "by_title", "--equal", "new", "--all", "--json"];
    let changed = kw.ok(&new);
    assert_eq!(changed.lines().filter(|line| line.contains("\"n\":1")).count(), RECORDS);
}

#[test]
fn a_second_process_is_refused_while_the_first_one_lives() {
    let kw = notes(false);
    kw.write("keyward.schema.toml", &schema("notes:{id}", true));
    let first = started(&kw, &["migrate"], "walk", "records");
    let told = kw.fails(3, &["migrate", "--yes"]);
    assert!(told.contains("is being run by ") && told.contains(" since "), "{told}");
    assert_eq!(first.ended(), Some(0));
    let done = last(&kw).unwrap();
    assert_eq!((&done["state"], &done["runs"]), (&"done".into(), &1.into()));
    assert_eq!(found(&kw), RECORDS);
    kw.ok(&["doctor"]);
}
