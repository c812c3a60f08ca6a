//! worker: commands that work off a queue.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::sandbox::{Running, Sandbox, is_absent};

fn worker<'a>(exec: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["worker", "--queue", "q", "--exec", exec, "--json"], more].concat()
}

fn next(running: &Running) -> Value {
    serde_json::from_str(&running.next_line()).unwrap()
}

/// Whether the process whose number a command wrote there ends, within the time such things take.
fn ends(pid_file: &str) -> bool {
    let process = format!("/proc/{}", pid_file.trim());
    let patience = Instant::now() + Duration::from_secs(30);
    while Instant::now() < patience {
        if is_absent(Path::new(&process)) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn a_command_gets_the_message_and_gives_the_result() {
    let kw = Sandbox::new();
    kw.ok(&["job", "submit", "q", r#"{"n":1.50}"#, "--id", "j:1"]);
    let exec = r#"cat > "in"; echo "$KEYWARD_QUEUE $KEYWARD_ID $KEYWARD_ATTEMPT" > env; echo 42"#;
    let running = kw.start(&worker(exec, &[]));
    let done = next(&running);
    assert_eq!((&done["id"], &done["error"]), (&json!("j:1"), &Value::Null));
    assert_eq!(kw.ok(&["job", "watch", "j:1", "--json"]).lines().last(), Some(r#"{"result":42}"#));
    assert_eq!(kw.read("in"), "{\"n\":1.50}\n");
    assert_eq!(kw.read("env"), "q j:1 1\n");
    assert_eq!(kw.ok(&["job", "status", "j:1"]), "result 42\n");
    // A worker that waits hears of what another process pushes.
    kw.ok(&["queue", "push", "q", "2", "--id", "m"]);
    assert_eq!(next(&running)["id"], "m");
    running.terminate();
    assert_eq!(next(&running)["completed"], 2);
    assert_eq!(running.ended(), Some(0));
}

/// What is left running has the command's standard output, and would keep it open for as long.
#[test]
fn a_command_that_leaves_something_running_is_done_when_it_exits() {
    let kw = Sandbox::new();
    kw.ok(&["job", "submit", "q", "1", "--id", "j"]);
    let running = kw.start(&worker("sleep 600 & echo $! > pid; echo 42", &[]));
    assert_eq!(next(&running)["error"], Value::Null);
    assert_eq!(kw.ok(&["job", "watch", "j", "--json"]).lines().last(), Some(r#"{"result":42}"#));
    let left: i32 = kw.read("pid").trim().parse().unwrap();
    // It runs on, and can be ended.
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
    running.terminate();
    assert_eq!(next(&running)["completed"], 1);
    assert_eq!(running.ended(), Some(0));
}

#[test]
fn a_command_that_fails_leaves_a_dead_letter_that_can_be_put_back() {
    let kw = Sandbox::new();
    kw.ok(&["queue", "push", "q", "1", "--id", "m"]);
    kw.ok(&["queue", "push", "q", "2", "--id", "n"]);
    let exec = "echo loud >&2; echo no paper in the printer >&2; exit 3";
    let running = kw.start(&worker(exec, &["--attempts", "2", "--backoff", "10ms"]));
    for _ in 0..4 {
        let failed = next(&running)["error"].as_str().unwrap().to_owned();
        assert_eq!(failed, "exit code 3: loud\nno paper in the printer");
    }
    running.terminate();
    assert_eq!(next(&running)["failed"], 4);
    assert_eq!(running.ended(), Some(0));
    let dead = kw.ok(&["dead-letter", "list", "q", "--text"]);
    assert_eq!(dead, "m  2  exit code 3: loud\nn  2  exit code 3: loud\n");
    let shown = kw.json(&["dead-letter", "show", "q", "m", "--json"]);
    assert_eq!((&shown["payload"], &shown["retryCount"]), (&json!(1), &json!(2)));
    assert_eq!(shown["history"].as_array().unwrap().len(), 2);
    assert!(kw.ok(&["dead-letter", "show", "q", "m"]).contains("\n  attempt 1 at "));
    assert_eq!(kw.json(&["queue", "stats", "q", "--json"])["dead"], 2);
    assert_eq!(kw.ok(&["dead-letter", "requeue", "q", "m"]), "requeued 1 message\n");
    kw.fails(1, &["dead-letter", "requeue", "q", "m"]);
    assert_eq!(kw.ok(&["dead-letter", "requeue", "q", "--error", "ink"]), "requeued 0 messages\n");
    kw.fails(2, &["dead-letter", "drop", "q", "--all"]);
    assert_eq!(
        kw.ok(&["dead-letter", "drop", "q", "--error", "paper", "--yes"]),
        "dropped 1 message\n"
    );
    let stats = kw.json(&["queue", "stats", "q", "--json"]);
    assert_eq!((&stats["ready"], &stats["dead"]), (&json!(1), &json!(0)));
}

#[test]
fn a_killed_worker_is_taken_over_from() {
    let kw = Sandbox::new();
    kw.ok(&["job", "submit", "q", "1", "--id", "j"]);
    let first = kw.start(&worker("echo up >&2; sleep 20", &["--lease", "1s"]));
    assert_eq!(first.next_note(), "up");
    assert_eq!(kw.ok(&["job", "status", "j"]), "running\n");
    first.kill();
    let second = kw.start(&worker("echo \\\"$KEYWARD_ATTEMPT\\\"", &["--lease", "1s"]));
    assert_eq!(next(&second)["attempt"], 2);
    assert_eq!(kw.ok(&["job", "watch", "j", "--json"]).lines().last(), Some(r#"{"result":"2"}"#));
    second.terminate();
    assert_eq!(next(&second)["completed"], 1);
}

#[test]
fn a_worker_that_is_stopped_finishes_what_it_has_begun_and_begins_nothing_more() {
    let kw = Sandbox::new();
    for id in ["a", "b"] {
        kw.ok(&["job", "submit", "q", "1", "--id", id]);
    }
    let exec = "echo up >&2; while [ ! -e go ]; do sleep 0.05; done; echo 7";
    let running = kw.start(&worker(exec, &[]));
    assert_eq!(running.next_note(), "up");
    running.terminate();
    kw.write("go", "");
    assert_eq!(next(&running)["id"], "a");
    assert_eq!(next(&running)["completed"], 1);
    assert_eq!(running.ended(), Some(0));
    assert_eq!(kw.ok(&["job", "status", "a"]), "result 7\n");
    assert_eq!(kw.ok(&["job", "status", "b"]), "scheduling\n");
}

#[test]
fn what_does_not_end_in_time_is_ended_and_given_back() {
    let kw = Sandbox::new();
    kw.ok(&["queue", "push", "q", "1", "--id", "m"]);
    let exec = "echo $$ > pid; echo up >&2; sleep 20; true";
    let running = kw.start(&worker(exec, &["--grace", "100ms"]));
    assert_eq!(running.next_note(), "up");
    running.terminate();
    assert_eq!(next(&running)["given_back"], 1);
    assert_eq!(running.ended(), Some(0));
    assert!(ends(&kw.read("pid")));
    let message = kw.json(&["queue", "list", "q", "--json"]);
    assert_eq!((&message["state"], &message["retryCount"]), (&json!("ready"), &json!(0)));
}

#[test]
fn the_command_of_a_cancelled_job_is_ended() {
    let kw = Sandbox::new();
    kw.ok(&["job", "submit", "q", "1", "--id", "j"]);
    let exec = "echo $$ > pid; echo up >&2; sleep 20; true";
    let running = kw.start(&worker(exec, &[]));
    assert_eq!(running.next_note(), "up");
    kw.ok(&["job", "cancel", "j"]);
    let line = next(&running);
    assert!(line["error"].as_str().unwrap().contains("no longer in hand"), "{line}");
    assert!(ends(&kw.read("pid")));
    running.terminate();
    assert_eq!(next(&running)["refused"], 1);
    assert_eq!(kw.json(&["job", "status", "j", "--json"])["status"]["trace"]["kind"], "cancelled");
}

/// Three workers of one queue, in processes of their own, of which one is killed in the middle.
#[test]
fn several_workers_share_a_queue_and_one_may_be_killed() {
    const JOBS: usize = 24;
    let kw = Sandbox::new();
    kw.ok(&["queue", "push", "q", "0", "--id", "first"]);
    kw.ok(&["queue", "drop", "q", "first"]);
    let exec = "echo $KEYWARD_ATTEMPT >> got-$KEYWARD_ID; echo $KEYWARD_ATTEMPT";
    let more = ["--lease", "1s", "--concurrency", "2", "--attempts", "9"];
    let workers: Vec<Running> = (0..3).map(|_| kw.start(&worker(exec, &more))).collect();
    for n in 0..JOBS {
        kw.ok(&["job", "submit", "q", "1", "--id", &format!("j{n}")]);
        if n == JOBS / 2 {
            workers[0].kill();
        }
    }
    for n in 0..JOBS {
        let id = format!("j{n}");
        let watched = kw.ok(&["job", "watch", &id, "--json"]);
        let last: Value = serde_json::from_str(watched.lines().last().unwrap()).unwrap();
        let attempt = last["result"].to_string();
        // The result is that of one attempt, and no attempt was made twice.
        let got = kw.read(&format!("got-{id}"));
        let mut made: Vec<&str> = got.lines().collect();
        assert!(made.contains(&attempt.as_str()), "{last} {got}");
        made.dedup();
        assert_eq!(made.len(), got.lines().count(), "{got}");
    }
    let stats = kw.json(&["queue", "stats", "q", "--json"]);
    assert_eq!(
        (&stats["ready"], &stats["claimed"], &stats["dead"]),
        (&json!(0), &json!(0), &json!(0))
    );
}
