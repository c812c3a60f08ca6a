//! doctor.

use crate::migrating::{declare_index, notes};

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
