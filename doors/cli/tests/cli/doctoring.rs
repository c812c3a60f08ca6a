//! doctor.

use crate::migrating::{declare_index, notes};
use crate::sandbox::Sandbox;

#[test]
fn a_doctor_finds_and_mends() {
    let kw = notes();
    assert_eq!(kw.ok(&["doctor"]), "app: 5 keys, all well\n");
    declare_index(&kw);
    let told = kw.run(&["doctor"]).ended(10);
    assert!(told.starts_with("index-absent by_title: "), "{told}");
    kw.ok(&["migrate", "--yes"]);
    kw.ok(&["doctor"]);
    kw.ok(&["del", "index:by_title:t:notes:n2", "--raw"]);
    kw.ok(&["put", "index:by_title:t:notes:gone", "null", "--raw"]);
    let told = kw.run(&["doctor"]).ended(10);
    assert!(told.contains("missing-entry index:by_title:t:notes:n2: "), "{told}");
    assert!(told.contains("orphaned-entry index:by_title:t:notes:gone: "), "{told}");
    assert!(told.contains("(--repair mends it)"), "{told}");
    assert!(kw.ok(&["doctor", "--repair"]).ends_with("2 findings repaired, 0 left\n"));
    let well = kw.json(&["doctor", "--probe", "--json"]);
    assert_eq!((&well["left"], &well["probe"]), (&0.into(), &"sound".into()));
    kw.ok(&["put", "stray", "1"]);
    let told = kw.run(&["doctor", "--repair"]).ended(10);
    assert!(told.starts_with("unknown-key stray: "), "{told}");
}

#[test]
fn a_unique_value_of_two_records_is_for_a_person_to_decide() {
    let kw = notes();
    declare_index(&kw);
    let unique =
        kw.read("keyward.schema.toml").replace("\"title\"\n", "\"title\"\nunique = true\n");
    kw.write("keyward.schema.toml", &unique);
    for n in 1..5 {
        kw.ok(&["put", "--raw", &format!("notes:n{n}"), &format!(r#"{{"title":"t{n}"}}"#)]);
    }
    kw.ok(&["migrate", "--yes"]);
    kw.ok(&["doctor"]);
    kw.ok(&["put", "--raw", "notes:twin", r#"{"title":"t1"}"#]);
    for repair in [&["doctor"][..], &["doctor", "--repair"]] {
        let told = kw.run(repair).ended(10);
        assert!(told.starts_with("duplicate-value index:by_title:t1: "), "{told}");
        assert!(told.contains("notes:twin and notes:n1 both have this unique value"), "{told}");
        assert!(!told.contains("--repair mends it"), "{told}");
    }
    kw.ok(&["del", "--raw", "notes:twin"]);
    kw.ok(&["doctor"]);
}

#[test]
fn keywards_own_entries_are_no_unknown_keys() {
    let kw = notes();
    kw.ok(&["lock", "exec", "page:7", "--", "true"]);
    kw.ok(&["cache", "run", "p7:text", "--", "echo", "1"]);
    let told = kw.ok(&["doctor"]);
    assert!(told.ends_with("keys, all well\n"), "{told}");
}

#[test]
fn pages_that_were_uploaded_are_no_unknown_keys() {
    let kw = notes();
    let config = "[agreements.desk]\npages = { uploads = true }\n";
    kw.write("keyward.toml", config);
    kw.ok(&["page", "put", "p1", "--title", "Page"]);
    // By the config file, and by what the store says about itself.
    for config in [config, ""] {
        kw.write("keyward.toml", config);
        let told = kw.ok(&["doctor"]);
        assert!(told.ends_with("keys, all well\n"), "{told}");
        kw.fails(11, &["put", "upload:p1", "1"]);
    }
}

#[test]
fn a_store_without_a_schema_is_looked_at() {
    let kw = Sandbox::new();
    let told = kw.fails(1, &["doctor"]);
    assert!(told.contains("there is no store"), "{told}");
    kw.ok(&["put", "a:b", "1"]);
    assert_eq!(kw.ok(&["doctor"]), "main: 1 keys, all well (no schema to compare with)\n");
    kw.ok(&["put", "--raw", "index:nobody:x:a:b", "null"]);
    let told = kw.run(&["doctor", "--probe"]).ended(10);
    assert!(told.starts_with("unknown-index index:nobody:x:a:b: "), "{told}");
    let mended = kw.json(&["doctor", "--repair", "--json"]);
    assert_eq!((&mended["left"], &mended["schema"]), (&0.into(), &false.into()));
}

#[test]
fn what_has_expired_is_counted_and_reclaimed() {
    let kw = notes();
    kw.ok(&["put", "--raw", "notes:short", "{}", "--ttl", "1ms"]);
    while kw.json(&["doctor", "--json"])["expired"] != 1 {}
    let told = kw.ok(&["doctor"]);
    assert!(told.contains("1 expired entries still take space"), "{told}");
    assert!(kw.ok(&["doctor", "--repair"]).contains("1 of 1 expired entries reclaimed\n"));
    assert_eq!(kw.ok(&["doctor"]), "app: 5 keys, all well\n");
}
