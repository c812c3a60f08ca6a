//! Each example prints what stands beside it in `output.txt`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::process::Command;

#[track_caller]
fn prints(program: &str, expected: &str) {
    let output = Command::new(program).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{stderr}");
    assert!(output.status.success(), "{stderr}");
}

#[test]
fn notes_belong_to_users() {
    prints(env!("CARGO_BIN_EXE_notes"), include_str!("../../notes/output.txt"));
}

#[test]
fn templates_are_written_by_editors() {
    prints(env!("CARGO_BIN_EXE_templates"), include_str!("../../templates/output.txt"));
}

#[test]
fn posts_are_found_by_others() {
    prints(env!("CARGO_BIN_EXE_posts"), include_str!("../../posts/output.txt"));
}

#[test]
fn users_have_unique_addresses() {
    prints(env!("CARGO_BIN_EXE_users"), include_str!("../../users/output.txt"));
}

#[test]
fn places_are_found_by_distance() {
    prints(env!("CARGO_BIN_EXE_places"), include_str!("../../places/output.txt"));
}

#[test]
fn agents_share_a_namespace() {
    prints(env!("CARGO_BIN_EXE_agents"), include_str!("../../agents/output.txt"));
}
