//! cache.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::sandbox::Sandbox;

/// A script in the sandbox.
fn script(kw: &Sandbox, name: &str, text: &str) -> String {
    let path = kw.write(name, &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_command_is_run_once_for_each_version_of_its_source() {
    let kw = Sandbox::new();
    let make = script(&kw, "make", r#"echo ran >> runs; echo '{"title": "Leave"}'"#);
    let run = |version: &str| {
        let asked = ["cache", "run", "p7:text", "--source-version", version, "--", &make];
        kw.ok(&asked)
    };
    assert_eq!(run("1"), "{\"title\":\"Leave\"}\n");
    assert_eq!(run("1"), "{\"title\":\"Leave\"}\n");
    assert_eq!(kw.read("runs"), "ran\n");
    run("2");
    assert_eq!(kw.read("runs"), "ran\nran\n");
    assert_eq!(kw.ok(&["cache", "get", "p7:text", "--source-version", "2"]), run("2"));
    let stale = kw.fails(1, &["cache", "get", "p7:text", "--source-version", "1"]);
    assert!(stale.contains("stale"), "{stale}");
    assert!(kw.fails(1, &["cache", "get", "p8:text"]).contains("nothing is cached"));
    let shown = kw.json(&["cache", "get", "p7:text", "--json"]);
    assert_eq!(shown["source"]["version"], "2");
    assert_eq!((&shown["origin"], &shown["value"]["title"]), (&"stored".into(), &"Leave".into()));
    // It is an entry like any other.
    assert_eq!(kw.ok(&["get", "p7:text"]), run("2"));
}

#[test]
fn text_is_cached_as_it_is() {
    let kw = Sandbox::new();
    let make = script(&kw, "make", "printf 'two\\nlines'");
    let raw = ["cache", "run", "text", "--raw", "--", &make];
    assert_eq!((kw.ok(&raw), kw.ok(&raw)), ("two\nlines".into(), "two\nlines".into()));
    assert_eq!(kw.ok(&["cache", "get", "text"]), "\"two\\nlines\"\n");
    let refused = kw.fails(14, &["cache", "run", "other", "--", &make]);
    assert!(refused.contains("--raw"), "{refused}");
}

#[test]
fn many_processes_run_the_command_once() {
    let kw = Sandbox::new();
    let make = script(&kw, "make", "echo ran >> runs; sleep 1; echo 7");
    let asked = ["cache", "run", "slow", "--", &make];
    let running: Vec<_> = (0..6).map(|_| kw.start(&asked)).collect();
    for process in running {
        assert_eq!(process.next_line(), "7");
        assert_eq!(process.ended(), Some(0));
    }
    assert_eq!(kw.read("runs"), "ran\n");
}

#[test]
fn a_killed_process_is_taken_over() {
    let kw = Sandbox::new();
    let hang = script(&kw, "hang", "echo $$ >> begun; exec sleep 600");
    let asked = ["cache", "run", "slow", "--lease", "1s", "--", &hang];
    let first = kw.start(&asked);
    while !kw.path("begun").exists() {
        std::thread::yield_now();
    }
    first.kill();
    let make = script(&kw, "make", "echo 7");
    assert_eq!(kw.ok(&["cache", "run", "slow", "--lease", "1s", "--", &make]), "7\n");
    // Its command outlived it.
    let begun = kw.read("begun");
    let _ = std::process::Command::new("kill").arg(begun.trim()).status();
}

#[test]
fn an_interrupted_process_caches_nothing_and_leaves_no_lock() {
    let kw = Sandbox::new();
    let hang = script(&kw, "hang", "echo begun; echo begun >&2; exec sleep 600");
    let process = kw.start(&["cache", "run", "slow", "--", &hang]);
    assert_eq!(process.next_note(), "begun");
    process.interrupt();
    assert_eq!(process.ended(), Some(130));
    let make = script(&kw, "make", "echo 7");
    // Long before the lease of the first one ends.
    assert_eq!(kw.ok(&["cache", "run", "slow", "--timeout", "20s", "--", &make]), "7\n");
}

#[test]
fn a_failure_is_told_and_not_tried_again_at_once() {
    let kw = Sandbox::new();
    let fail = script(&kw, "fail", "echo ran >> runs; echo 'no paper' >&2; exit 3");
    let asked = ["cache", "run", "a", "--source-version", "1", "--", &fail];
    let told = kw.fails(14, &asked);
    assert!(told.contains("no paper") && told.contains("it exited with 3"), "{told}");
    let told = kw.run(&[&asked[..3], &["--json"], &asked[3..]].concat()).fails(14);
    assert!(told.contains(r#""code":"computation-failed""#), "{told}");
    assert!(told.contains(r#""retryable":true"#), "{told}");
    let absent = kw.fails(14, &["cache", "run", "b", "--", "/nowhere/to/be/found"]);
    assert!(absent.contains("cannot run /nowhere/to/be/found"), "{absent}");
}

#[test]
fn what_was_made_from_a_value_is_dropped_with_it() {
    let kw = Sandbox::new();
    for asked in [
        vec!["cache", "run", "p7:text", "--", "echo", "1"],
        vec!["cache", "run", "p7:text:fr", "--", "echo", "2"],
        vec!["cache", "run", "p8:sum", "--depends-on", "p7:text", "--", "echo", "3"],
    ] {
        kw.ok(&asked);
    }
    assert_eq!(kw.ok(&["cache", "drop", "p7:text"]), "dropped p7:text: 3 values\n");
    assert_eq!(kw.ok(&["cache", "drop", "p7:text"]), "nothing was cached at p7:text\n");
    assert_eq!(kw.json(&["cache", "drop", "p8:sum", "--json"])["dropped"], 0);
    kw.ok(&["put", "mine", "1"]);
    assert!(kw.fails(3, &["cache", "drop", "mine"]).contains("was not cached"));
    assert!(kw.fails(3, &["cache", "run", "mine", "--", "echo", "1"]).contains("mine"));
    assert_eq!(kw.ok(&["get", "mine"]), "1\n");
}

#[test]
fn only_what_is_certainly_gone_is_purged() {
    let kw = Sandbox::new();
    for key in ["p7:text", "p7:text:fr", "p70:text", "p8:text", "job:1:trace"] {
        kw.ok(&["put", key, "1", "--raw"]);
    }
    let check =
        script(&kw, "check", "case $KEYWARD_ROOT in p7) exit 44;; p70) exit 1;; *) exit 0;; esac");
    let told = kw.run(&["cache", "purge", "--check", &check]);
    assert_eq!(told.ok(), "p7: gone, 2 entries removed\nlooked at 3 roots, removed 2 entries\n");
    assert_eq!(kw.ok(&["ls", "p70"]), "p70:text\n");
    assert_eq!(kw.ok(&["ls", "job"]), "job:1:trace\n");
    let again = kw.ok(&["cache", "purge", "--check", &check]);
    assert_eq!(again, "nothing to do: the last purge is less than 24 hours ago\n");
    let now = kw.json(&["cache", "purge", "--check", &check, "--now", "--json"]);
    assert_eq!((&now["roots"], &now["removed"]), (&2.into(), &0.into()));
    assert_eq!(now["left"][0]["outcome"], "unknown");
    assert_eq!(kw.ok(&["cache", "clear", "p8"]), "removed 1 entry below p8\n");
    assert!(kw.fails(2, &["cache", "clear", "job"]).contains("reserved"));
}

#[test]
fn a_corrected_command_can_be_tried_at_once() {
    let kw = Sandbox::new();
    let make = script(&kw, "make", "test -e good && echo 7");
    let failed = kw.fails(14, &["cache", "run", "k", "--", &make]);
    assert!(failed.contains("failed at 20") && failed.contains("--retry"), "{failed}");
    kw.write("good", "");
    assert_eq!(kw.ok(&["cache", "run", "k", "--retry", "--", &make]), "7\n");
}
