//! stats, backup, restore and compact.

use crate::sandbox::Sandbox;

#[test]
fn stats_say_what_a_store_is_and_holds() {
    let kw = Sandbox::filled("item", 1_234);
    let stats = kw.json(&["stats", "--json"]);
    assert_eq!(stats["engine"], "embedded");
    assert_eq!(stats["tier"], "atomic");
    assert_eq!(stats["entries"], 1_234);
    assert_eq!(stats["revision"], 2);
    assert!(stats["bytes"].as_u64().unwrap() > 0);
    assert_eq!(stats["capabilities"]["durability"], "synced");
    assert_eq!(stats["capabilities"]["sharing"], "machine");
    assert!(stats["limits"]["commit_keys_max"].as_u64().unwrap() >= 1_000);

    let text = kw.ok(&["stats", "--text"]);
    for row in ["engine      embedded\n", "tier        atomic\n", "entries     1,234\n"] {
        assert!(text.contains(row), "{text}");
    }
    let advisory = kw.json(&["-s", "memory:?tier=advisory", "stats"]);
    assert_eq!(advisory["tier"], "advisory");
    assert_eq!(advisory["capabilities"]["lag_ms"], 1_000);
}

#[test]
fn a_backup_becomes_a_store_again() {
    let kw = Sandbox::filled("item", 1_234);
    let told = kw.ok(&["backup", "monday.keyward"]);
    assert!(told.starts_with("backed up to monday.keyward, "), "{told}");
    kw.ok(&["put", "later", "1"]);

    let told = kw.ok(&["-s", "embedded:./copy", "restore", "monday.keyward"]);
    assert!(told.starts_with("restored 1,234 entries from monday.keyward"), "{told}");
    assert_eq!(kw.ok(&["-s", "embedded:./copy", "export"]), kw.ok(&["export", "item"]));

    // Neither a backup nor a store is overwritten.
    kw.fails(7, &["backup", "monday.keyward"]);
    kw.fails(7, &["-s", "embedded:./copy", "restore", "monday.keyward"]);
    kw.fails(7, &["-s", "embedded:./new", "restore", "no.keyward"]);
}

#[test]
fn results_of_upkeep_are_json_if_asked_for() {
    let kw = Sandbox::filled("item", 10);
    let backup = kw.json(&["backup", "b.keyward", "--json"]);
    assert_eq!(backup["file"], "b.keyward");
    assert!(backup["bytes"].as_u64().unwrap() > 0);
    let restored = kw.json(&["-s", "embedded:./copy", "restore", "b.keyward", "--json"]);
    assert_eq!(restored["entries"], 10);
    let compacted = kw.json(&["compact", "--json"]);
    assert!(compacted["bytes_before"].as_u64() >= compacted["bytes_after"].as_u64());
}

#[test]
fn compacting_gives_space_back_and_keeps_everything() {
    let kw = Sandbox::filled("item", 20_000);
    kw.ok(&["put", "kept", "1"]);
    kw.ok(&["del", "--prefix", "item", "--yes"]);
    let compacted = kw.json(&["compact", "--json"]);
    assert!(
        compacted["bytes_after"].as_u64().unwrap() < compacted["bytes_before"].as_u64().unwrap(),
        "{compacted}"
    );
    assert_eq!(kw.ok(&["export"]), "{\"key\":\"kept\",\"value\":1}\n");
    let told = kw.ok(&["compact"]);
    assert!(told.starts_with("compacted from "), "{told}");
}

#[test]
fn upkeep_of_a_store_without_files_is_refused() {
    let kw = Sandbox::new();
    for command in [&["backup", "b"][..], &["restore", "b"], &["compact"]] {
        let told = kw.run(&[&["-s", "memory:"], command].concat()).fails(4);
        assert!(told.contains("hint: "), "{told}");
    }
}
