//! lock acquire, exec, list and break, between processes.

use serde_json::{Value, json};

use crate::sandbox::{Running, Sandbox};

/// A process that holds a lock, and its token.
fn holder(kw: &Sandbox, arguments: &[&str]) -> (Running, u64) {
    let running = kw.start(&[&["lock", "acquire"], arguments, &["--json"]].concat());
    let held: Value = serde_json::from_str(&running.next_line()).unwrap();
    let token = held["token"].as_u64().unwrap();
    (running, token)
}

fn listed(kw: &Sandbox) -> Vec<Value> {
    let lines = kw.ok(&["lock", "list", "--json"]);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until somebody stands in line.
fn wait_for_waiter(kw: &Sandbox) {
    while !listed(kw).iter().any(|row| row["role"] == "waiter") {
        std::thread::yield_now();
    }
}

#[test]
fn a_command_runs_under_a_lock_and_knows_its_token() {
    let kw = Sandbox::new();
    let script = "echo $KEYWARD_LOCK_TOKEN $KEYWARD_LOCK_ROOT $KEYWARD_LOCK_PATHS";
    let run = |path: &str| kw.ok(&["lock", "exec", "page:7", path, "--", "sh", "-c", script]);
    assert_eq!(run("issues:4"), "1 page:7 issues:4\n");
    assert_eq!(run("issues"), "2 page:7 issues\n", "it was released, and tokens rise");
    let all = kw.ok(&["lock", "exec", "page:7", "--", "sh", "-c", script]);
    assert_eq!(all, "3 page:7 page:7\n");
    assert_eq!(listed(&kw), [] as [Value; 0]);
}

#[test]
fn the_commands_own_code_is_passed_on() {
    let kw = Sandbox::new();
    for (script, code) in [("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137)] {
        let told = kw.fails(code, &["lock", "exec", "r", "--", "sh", "-c", script]);
        assert_eq!(told, "", "{script}");
    }
    let told = kw.fails(7, &["lock", "exec", "r", "--", "./no-such-program"]);
    assert!(told.starts_with("error: cannot run ./no-such-program: "), "{told}");
    assert_eq!(listed(&kw), [] as [Value; 0]);
}

#[test]
fn two_processes_hold_one_after_the_other() {
    let kw = Sandbox::new();
    let (first, token) = holder(&kw, &["page:7", "issues"]);
    let no_wait = ["lock", "exec", "page:7", "issues:4", "--no-wait", "--", "true"];
    let told = kw.fails(12, &no_wait);
    assert!(told.starts_with("error: issues is held by "), "{told}");
    assert!(told.contains(&format!("(token {token})")), "{told}");
    let soon = ["lock", "exec", "page:7", "issues:4", "--timeout", "50ms", "--", "true"];
    let told = kw.fails(12, &soon);
    assert!(told.starts_with("error: waited ") && told.contains("issues:4 of page:7"), "{told}");
    // Something else is free, and so is what both share.
    kw.ok(&["lock", "exec", "page:7", "policies", "--no-wait", "--", "true"]);

    let script = "echo $KEYWARD_LOCK_TOKEN";
    let second = kw.start(&["lock", "exec", "page:7", "--", "sh", "-c", script]);
    wait_for_waiter(&kw);
    let rows = listed(&kw);
    assert_eq!(
        (rows[0]["role"].as_str(), rows[1]["role"].as_str()),
        (Some("holder"), Some("waiter"))
    );
    assert_eq!((&rows[0]["paths"], &rows[0]["life"]), (&json!(["issues"]), &json!("alive")));
    let text = kw.ok(&["lock", "list", "page:7", "--text"]);
    assert!(text.starts_with("page:7  issues  held exclusive for "), "{text}");
    assert!(text.contains("\npage:7  page:7    wanted exclusive for "), "{text}");
    first.interrupt();
    assert_eq!(first.ended(), Some(0));
    let later: u64 = second.next_line().parse().unwrap();
    assert!(later > token);
    assert_eq!(second.ended(), Some(0));
}

#[test]
fn those_who_share_hold_together() {
    let kw = Sandbox::new();
    let (first, _) = holder(&kw, &["page:7", "--shared"]);
    kw.ok(&["lock", "exec", "page:7", "issues", "--shared", "--no-wait", "--", "true"]);
    kw.fails(12, &["lock", "exec", "page:7", "issues", "--no-wait", "--", "true"]);
    first.interrupt();
    assert_eq!(first.ended(), Some(0));
}

#[test]
fn a_holder_that_was_killed_is_replaced() {
    let kw = Sandbox::new();
    let (first, token) = holder(&kw, &["page:7", "--ttl", "2s"]);
    first.kill();
    assert_eq!(first.ended(), None);
    let script = "echo $KEYWARD_LOCK_TOKEN";
    let told = kw.ok(&["lock", "exec", "page:7", "--timeout", "60s", "--", "sh", "-c", script]);
    assert!(told.trim().parse::<u64>().unwrap() > token, "{told}");
}

#[test]
fn a_lock_ends_after_the_time_it_is_held_for() {
    let kw = Sandbox::new();
    let told = kw.ok(&["lock", "acquire", "r", "--for", "10ms", "--text"]);
    assert_eq!(told, "holding r, token 1 (Ctrl-C releases)\n");
    assert_eq!(listed(&kw), [] as [Value; 0]);
}

#[test]
fn a_command_whose_lock_is_broken_is_ended() {
    let kw = Sandbox::new();
    let script = "echo $KEYWARD_LOCK_TOKEN; trap 'echo asked to end; exit 0' TERM; \
                  while :; do sleep 0.05; done";
    let running = kw.start(&["lock", "exec", "page:7", "issues", "--", "sh", "-c", script]);
    let token = running.next_line();
    let told = kw.ok(&["lock", "break", "page:7", "--token", &token, "--reason", "it hangs"]);
    assert!(told.starts_with(&format!("broke issues, token {token}, held by ")), "{told}");
    assert_eq!(running.next_line(), "asked to end");
    let told = running.next_note();
    assert!(
        told.starts_with("error: lost issues of page:7, token ") && told.ends_with(": it hangs"),
        "{told}"
    );
    assert_eq!(running.ended(), Some(13));

    let told = kw.fails(1, &["lock", "break", "page:7", "issues", "--reason", "again"]);
    assert!(told.starts_with("error: nobody holds issues of page:7; held is nothing"), "{told}");
}

#[test]
fn a_command_that_does_not_end_by_itself_is_killed() {
    let kw = Sandbox::new();
    let script = "trap '' TERM; echo begun; while :; do sleep 0.05; done";
    let arguments = ["lock", "exec", "r", "--kill-after", "100ms", "--", "sh", "-c", script];
    let running = kw.start(&arguments);
    assert_eq!(running.next_line(), "begun");
    kw.ok(&["lock", "break", "r", "--reason", "stuck"]);
    assert_eq!(running.ended(), Some(13));
}

#[test]
fn signals_are_passed_on_to_the_command() {
    let kw = Sandbox::new();
    let script = "trap 'exit 9' INT; echo begun; while :; do sleep 0.05; done";
    let running = kw.start(&["lock", "exec", "r", "--", "sh", "-c", script]);
    assert_eq!(running.next_line(), "begun");
    running.interrupt();
    assert_eq!(running.ended(), Some(9));
    assert_eq!(listed(&kw), [] as [Value; 0]);
}

#[test]
fn one_who_is_interrupted_leaves_the_line() {
    let kw = Sandbox::new();
    let (first, _) = holder(&kw, &["r"]);
    let second = kw.start(&["lock", "acquire", "r"]);
    wait_for_waiter(&kw);
    second.interrupt();
    assert_eq!(second.next_note(), "error: interrupted while waiting for the lock");
    assert_eq!(second.ended(), Some(130));
    assert_eq!(listed(&kw).len(), 1, "only the holder is left");
    drop(first);
}

#[test]
fn locks_have_the_names_that_the_schema_gives_them() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.schema.toml",
        r#"
        [stores.app]
        url = "embedded:./pages"
        [locks.page]
        root = "{page}"
        paths = ["policies", "policies:{source}[:{language}]"]
        aliases = { policy = "policies" }
        "#,
    );
    let (first, _) = holder(&kw, &["p1", "policy:123:fr"]);
    let rows = kw.ok(&["lock", "list", "p1", "--json"]);
    let row: Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(row["paths"], json!(["policy:123:fr"]));
    kw.fails(12, &["lock", "exec", "p1", "policies:123", "--no-wait", "--", "true"]);
    kw.fails(12, &["lock", "exec", "p1", "p1", "--no-wait", "--", "true"]);
    let told = kw.fails(2, &["lock", "exec", "p1", "policis", "--", "true"]);
    assert!(told.contains("did you mean policies?"), "{told}");
    drop(first);
}

#[test]
fn what_cannot_be_locked_is_refused() {
    let kw = Sandbox::new();
    kw.ok(&["put", "taken", "1"]);
    let told = kw.fails(3, &["lock", "exec", "taken", "--", "true"]);
    assert!(told.contains("not a catalog of locks"), "{told}");
    assert_eq!(kw.ok(&["get", "taken"]), "1\n");
    kw.fails(2, &["lock", "exec", "r", "a::b", "--", "true"]);
    kw.fails(2, &["lock", "exec", "r", "--ttl", "1ms", "--", "true"]);
    kw.fails(2, &["lock", "exec", "r"]);
    kw.fails(2, &["lock", "break", "r"]);
    let advisory = ["-s", "memory:?tier=advisory", "lock", "exec", "r", "--", "true"];
    let told = kw.fails(4, &advisory);
    assert!(told.contains("cannot keep locks"), "{told}");
}

#[test]
fn what_many_processes_do_under_a_lock_is_not_lost() {
    const PROCESSES: usize = 4;
    const ROUNDS: usize = 4;
    let kw = Sandbox::new();
    kw.write("count", "0\n");
    // Nothing but the lock keeps two of them from reading the same number.
    let script = "n=$(cat count); sleep 0.01; echo $((n + 1)) > count; \
                  echo $KEYWARD_LOCK_TOKEN >> tokens";
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    kw.ok(&["lock", "exec", "r", "--", "sh", "-c", script]);
                }
            });
        }
    });
    assert_eq!(kw.read("count"), format!("{}\n", PROCESSES * ROUNDS));
    let tokens: Vec<u64> = kw.read("tokens").lines().map(|line| line.parse().unwrap()).collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}
