//! queue, dead-letter and job.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn messages_are_pushed_listed_peeked_at_and_dropped() {
    let kw = Sandbox::new();
    assert_eq!(kw.ok(&["queue", "stats"]), "");
    let added = kw.json(&["queue", "push", "mails", r#"{"n":1.50}"#, "--json"]);
    assert_eq!(added["outcome"], "added");
    let first = added["id"].as_str().unwrap().to_owned();
    assert_eq!(kw.ok(&["queue", "push", "mails", "2", "--id", "a:2"]), "added a:2\n");
    kw.ok(&["queue", "push", "mails", "-3", "--id", "late", "--delay", "1h"]);
    kw.run_with(&["queue", "push", "mails", "-", "--id", "piped"], "[4]").ok();
    let peeked = lines(&kw.ok(&["queue", "peek", "mails"]));
    let ids: Vec<_> = peeked.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&first, "a:2", "piped"]);
    assert!(kw.ok(&["queue", "peek", "mails"]).contains(r#""payload":{"n":1.50}"#));
    let delayed = lines(&kw.ok(&["queue", "list", "mails", "--state", "delayed"]));
    assert_eq!((delayed.len(), &delayed[0]["id"]), (1, &json!("late")));
    assert!(delayed[0]["dueAt"].is_string());
    let page = lines(&kw.ok(&["queue", "list", "mails", "--limit", "2", "--after", "a:2"]));
    assert_eq!(page.len(), 2);
    assert_eq!(kw.ok(&["queue", "list", "mails", "--all"]).lines().count(), 4);
    assert_eq!(kw.ok(&["queue", "drop", "mails", "a:2", "piped"]), "dropped a:2\ndropped piped\n");
    let told = kw.fails(1, &["queue", "drop", "mails", "a:2"]);
    assert!(told.starts_with("error: there is no message a:2 in the queue mails"), "{told}");
    let stats = kw.json(&["queue", "stats", "mails", "--json"]);
    assert_eq!(
        (&stats["ready"], &stats["delayed"], &stats["dead"]),
        (&json!(1), &json!(1), &json!(0))
    );
    let told = kw.ok(&["queue", "stats", "--text"]);
    assert!(told.starts_with("mails  ready 1  delayed 1  claimed 0  dead 0  oldest "), "{told}");
}

#[test]
fn an_id_is_taken_once_and_a_newer_version_may_replace_an_older() {
    let kw = Sandbox::new();
    let push = |payload: &str, more: &[&str]| {
        let command = [&["queue", "push", "q", payload, "--id", "p"], more].concat();
        kw.run(&command)
    };
    assert_eq!(push("1", &[]).ok(), "added p\n");
    assert_eq!(push("1", &[]).ok(), "duplicate p\n");
    let told = push("2", &[]).fails(3);
    assert!(told.contains("already has a message \"p\" with other content"), "{told}");
    assert_eq!(push("2", &["--version", "b", "--replace"]).ok(), "replaced p\n");
    kw.fails(2, &["queue", "push", "q", "1", "--replace"]);
    kw.fails(2, &["queue", "push", "q", "not json"]);
    kw.fails(2, &["queue", "push", "q", "1", "--id", ""]);
}

#[test]
fn a_paused_queue_says_so() {
    let kw = Sandbox::new();
    kw.ok(&["queue", "push", "q", "1"]);
    assert_eq!(kw.ok(&["queue", "pause", "q", "--reason", "no paper"]), "paused q\n");
    assert_eq!(kw.json(&["queue", "stats", "q", "--json"])["paused"], "no paper");
    assert!(kw.ok(&["queue", "stats", "--text"]).ends_with("  paused: no paper\n"));
    assert_eq!(kw.ok(&["queue", "resume", "q"]), "resumed q\n");
    assert_eq!(kw.json(&["queue", "stats", "q", "--json"])["paused"], Value::Null);
}

#[test]
fn a_queue_needs_an_engine_that_can_keep_it() {
    let kw = Sandbox::new();
    let told = kw.fails(4, &["-s", "memory:?tier=recoverable", "queue", "push", "q", "1"]);
    assert!(told.starts_with("error: queues need commits of several keys"), "{told}");
    let told: Value = serde_json::from_str(
        &kw.fails(4, &["-s", "memory:?tier=advisory", "job", "submit", "q", "1", "--json"]),
    )
    .unwrap();
    assert_eq!(told["error"]["code"], "unsupported");
}

#[test]
fn jobs_are_submitted_looked_at_and_cancelled() {
    let kw = Sandbox::new();
    let submit = ["job", "submit", "reports", r#"{"month":1}"#, "--id", "j1"];
    assert_eq!(kw.ok(&submit), "added j1\n");
    assert_eq!(kw.ok(&submit), "duplicate j1\n");
    kw.fails(3, &["job", "submit", "reports", "2", "--id", "j1"]);
    let job = kw.json(&["job", "status", "j1", "--json"]);
    assert_eq!(job["queue"], "reports");
    assert_eq!(job["status"], json!({"activity": {"name": "scheduling", "attempt": 1}}));
    assert_eq!(kw.ok(&["job", "status", "j1"]), "scheduling\n");
    kw.ok(&["job", "submit", "other", "1", "--id", "j2"]);
    assert_eq!(kw.ok(&["job", "list"]).lines().count(), 2);
    assert_eq!(kw.ok(&["job", "list", "--queue", "other"]).lines().count(), 1);
    assert_eq!(kw.ok(&["job", "cancel", "j1"]), "cancelled j1\n");
    let told = kw.fails(3, &["job", "cancel", "j1"]);
    assert!(told.starts_with("error: the job j1 has ended: cancelled"), "{told}");
    assert_eq!(kw.run(&["job", "watch", "j1", "--json"]).code(), Some(10));
    let trace = kw.run(&["job", "watch", "j1", "--json"]).ended(10);
    assert_eq!(lines(&trace)[0]["trace"]["kind"], "cancelled");
    for command in ["status", "watch", "cancel"] {
        let told = kw.fails(1, &["job", command, "unheard-of"]);
        assert!(told.starts_with("error: there is no job unheard-of"), "{told}");
    }
    assert_eq!(kw.json(&["queue", "stats", "reports", "--json"])["ready"], 0);
}
