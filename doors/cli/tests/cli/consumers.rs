//! sync --deliver, and registry: telling consumers of changes.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::repository::Repository;
use crate::sandbox::Sandbox;

/// A registry of two policies, with these consumers.
fn registry(consumers: &str) -> (Sandbox, Repository) {
    let kw = Sandbox::new();
    let repository = Repository::new(kw.path("policies"));
    repository.write("dorm.md", "# Dormitory\n").write("leave.md", "# Leave\n").commit();
    kw.write(
        "keyward.toml",
        &format!("[registries.policies]\nrepository = \"policies\"\nretries = 1\n{consumers}"),
    );
    (kw, repository)
}

const SITE: &str = "[registries.policies.consumers.site]\nexport = \"public\"\n";

#[test]
fn what_was_synced_is_told_at_once_if_that_is_asked_for() {
    let (kw, repository) = registry(SITE);
    let told = kw.ok(&["sync", "policies", "--apply", "--deliver"]);
    assert!(told.ends_with("\ntold consumers of 2 changes\n"), "{told}");
    assert!(kw.read("public/policies/dorm/policy.md").ends_with("# Dormitory\n"));
    repository.remove("dorm.md").write("leave.md", "# Leave of absence\n").commit();
    let ended = kw.json(&["sync", "policies", "--apply", "--deliver", "--json"]);
    assert_eq!(ended["delivered"]["completed"], 2);
    assert!(!kw.path("public/policies/dorm").exists());
    assert_eq!(kw.ok(&["registry", "queue", "policies"]), "");

    // What somebody has spoiled is put right.
    kw.write("public/policies/leave/policy.md", "spoiled");
    let repaired = kw.json(&["registry", "repair", "policies", "site", "--json"]);
    assert_eq!(repaired["written"], 1);
    assert!(kw.read("public/policies/leave/policy.md").ends_with("# Leave of absence\n"));
    let told = kw.ok(&["registry", "repair", "policies", "site"]);
    assert_eq!(told, "site: compared 1 policy, wrote 0 files, removed 0 files\n");
    let told = kw.fails(2, &["registry", "repair", "policies", "nobody"]);
    assert!(told.contains("no consumer \"nobody\""), "{told}");
}

#[test]
fn without_consumers_changes_wait() {
    let (kw, _repository) = registry("");
    let told = kw.ok(&["sync", "policies", "--apply", "--deliver"]);
    assert!(told.ends_with("\npolicies has no consumers: 2 changes wait\n"), "{told}");
    let told = kw.fails(2, &["registry", "work", "policies"]);
    assert!(told.contains("[registries.policies.consumers.NAME]"), "{told}");
}

#[test]
fn what_a_consumer_fails_at_can_be_put_back_and_dropped() {
    let command = "[registries.policies.consumers.index]\ncommand = [\"./index\"]\n";
    let (kw, _repository) = registry(command);
    let program = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = kw.write("index", text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("#!/bin/sh\necho 'no room' >&2\nexit 3\n");
    let ran = kw.run(&["sync", "policies", "--apply", "--deliver"]);
    let told = ran.ended(10);
    assert!(told.contains("told consumers of 0 changes, 2 attempts failed"), "{told}");
    let dead = kw.ok(&["registry", "dead-letters", "policies", "--text"]);
    assert!(dead.contains("consumer index") && dead.contains("no room"), "{dead}");
    let dead = kw.ok(&["registry", "dead-letters", "policies", "--json"]);
    let first: Value = serde_json::from_str(dead.lines().next().unwrap()).unwrap();
    assert_eq!((&first["id"], &first["payload"]["operation"]), (&"dorm".into(), &"add".into()));

    assert_eq!(kw.ok(&["registry", "drop", "policies", "leave"]), "dropped 1 change\n");
    kw.fails(1, &["registry", "drop", "policies", "leave"]);
    kw.fails(1, &["registry", "requeue", "policies", "leave"]);
    kw.fails(2, &["registry", "requeue", "policies"]);
    program("#!/bin/sh\ncat > told\n");
    let requeued = kw.json(&["registry", "requeue", "policies", "--all", "--json"]);
    assert_eq!(requeued["requeued"], 1);
    let told = kw.ok(&["sync", "policies", "--apply", "--deliver"]);
    assert!(told.ends_with("told consumers of 1 change\n"), "{told}");
    assert!(kw.path("told").exists());
    assert_eq!(kw.ok(&["registry", "dead-letters", "policies"]), "");
}

#[test]
fn consumers_are_told_until_that_is_stopped() {
    let (kw, repository) = registry("");
    kw.ok(&["sync", "policies", "--apply"]);
    let fifo = kw.path("told");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let command = format!(
        "[registries.policies.consumers.index]\ncommand = [\"sh\", \"-c\", \"cat > {}\"]\n",
        fifo.display()
    );
    kw.write("keyward.toml", &format!("{}{command}", kw.read("keyward.toml")));
    let working = kw.start(&["registry", "work", "policies"]);
    assert_eq!(working.next_note(), "telling the consumers of policies (Ctrl-C stops)");
    // Open for both, so that it never ends; reading waits until a consumer writes.
    let open = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
    let mut lines = BufReader::new(open).lines();
    let mut told = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let mut names =
        [told(), told()].map(|change| change["policyName"].as_str().unwrap().to_owned());
    names.sort();
    assert_eq!(names, ["dorm", "leave"]);
    repository.remove("dorm.md").commit();
    kw.ok(&["sync", "policies", "--apply"]);
    assert_eq!(told()["operation"], "delete");
    working.terminate();
    assert_eq!(working.ended(), Some(0));
}
