//! Commands that are run for each change.

use serde_json::{Value, json};

use crate::fixture::{Fixture, drained, lines, read, until};

/// A command of the shell, which finds the test's folder in `$0`.
fn shell(fixture: &Fixture, script: &str) -> Value {
    json!(["sh", "-c", script, fixture.place("")])
}

#[tokio::test]
async fn a_command_has_the_change_on_its_input_and_in_its_environment() {
    let fixture = Fixture::new();
    let script = r#"cat > "$0/in"; env | grep ^KEYWARD_ | grep -v ^KEYWARD_TEST_ | sort > "$0/env"; printf '%s' "$1" > "$0/word""#;
    let command = json!(["sh", "-c", script, fixture.place(""), "$(touch x); *"]);
    let registry = fixture.registry(json!({ "index": { "command": command } }));
    fixture.repository.write("docs/학칙.md", "# 학칙 \"개정\"\n\n본문\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    let told: Value = serde_json::from_str(&read(fixture.path("in"))).unwrap();
    let sha = fixture.repository.id_of("docs/학칙.md");
    assert_eq!(told["registry"], "policies");
    assert_eq!(told["operation"], "add");
    assert_eq!(told["policyName"], "학칙");
    assert_eq!(told["title"], "학칙 \"개정\"");
    assert_eq!(told["status"], "active");
    assert_eq!(told["sha"], Value::from(&*sha));
    assert_eq!(told["path"], "docs/학칙.md");
    assert_eq!(told["content"], "# 학칙 \"개정\"\n\n본문\n");
    assert!(told["lastUpdated"].is_string() && told["run"].is_string(), "{told}");
    assert_eq!(
        lines(fixture.path("env")),
        [
            "KEYWARD_OPERATION=add",
            "KEYWARD_PATH=docs/학칙.md",
            "KEYWARD_POLICY=학칙",
            "KEYWARD_REGISTRY=policies",
            &format!("KEYWARD_SHA={sha}"),
        ]
    );
    // No shell of ours has looked at the words.
    assert_eq!(read(fixture.path("word")), "$(touch x); *");
}

#[tokio::test]
async fn a_command_that_fails_is_told_of_with_the_end_of_what_it_said() {
    let fixture = Fixture::new();
    let script = "cat >/dev/null; yes noise | head -c 3000000 >&2; yes | head -c 3000000; \
                  printf 'no such\\033[31m index\\n' >&2; exit 3";
    let registry = fixture.registry(json!({ "index": { "command": shell(&fixture, script) } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    let message = registry.queue().message("a").await.unwrap().unwrap();
    let error = message.error.unwrap();
    assert!(error.starts_with("consumer index: exit code 3: "), "{error}");
    assert!(error.ends_with("no such [31m index") && error.len() < 2_200, "{error}");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_told_of() {
    let fixture = Fixture::new();
    let command = json!([fixture.place("nothing-here")]);
    let registry = fixture.registry(json!({ "index": { "command": command } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    let message = registry.queue().message("a").await.unwrap().unwrap();
    let error = message.error.unwrap();
    assert!(error.starts_with("consumer index: the command cannot be started"), "{error}");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed_with_all_that_it_started() {
    let fixture = Fixture::new();
    let script =
        r#"sh -c 'trap "" TERM; sleep 600' & echo $! > "$0/child"; echo $$ > "$0/parent"; wait"#;
    let registry = fixture.registry(json!({
        "index": { "command": shell(&fixture, script), "timeout": "500ms" }
    }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    let message = registry.queue().message("a").await.unwrap().unwrap();
    assert_eq!(message.error.unwrap(), "consumer index: took longer than 500 ms, and was ended");
    for who in ["child", "parent"] {
        let id = read(fixture.path(who));
        until(async || is_dead(id.trim())).await;
    }
}

/// Whether a process is gone, or only waits to be noticed by its parent.
fn is_dead(id: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return true };
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_command_that_is_dropped_is_killed() {
    let fixture = Fixture::new();
    let script = r#"echo $$ > "$0/part"; mv "$0/part" "$0/id"; sleep 600"#;
    let registry = fixture.registry(json!({ "index": { "command": shell(&fixture, script) } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    tokio::select! {
        drained = registry.drain() => panic!("{drained:?}"),
        () = until(async || fixture.path("id").exists()) => {}
    }
    let id = read(fixture.path("id"));
    until(async || is_dead(id.trim())).await;
}

#[tokio::test]
async fn a_command_need_not_read_its_input() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "index": { "command": ["true"] } }));
    fixture.repository.write("a.md", format!("# A\n{}", "x".repeat(900_000)));
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
}
