//! Stores that take no writes: another process was stopped in the middle of a commit, or the disk is
//! full. Commands and servers say so in time, and servers are unready meanwhile.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sandbox::{Running, Sandbox};
use crate::serving::{Served, send, serve, started};

/// The store, with a short wait for those who only try.
const IMPATIENT: &str = "embedded:./data?write_timeout=300ms";
/// How often a process is stopped until it is in the middle of a commit.
const TRIES_MAX: usize = 500;
/// Far longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a stop of a server may take, as documented, and a little for a busy machine.
const STOP_TIME_MAX: Duration = Duration::from_secs(25);
/// The exit code of what may be tried again.
const UNAVAILABLE: i32 = 5;

fn readiness(served: &Served) -> (u16, Value) {
    let (status, body) = send(&served.address, "GET /readyz HTTP/1.1\r\n", "").unwrap();
    (status, serde_json::from_str(&body).unwrap())
}

/// Asks for readiness until it has this status.
#[allow(clippy::disallowed_methods, reason = "readiness can only be asked for")]
fn becomes(served: &Served, status: u16) -> Value {
    let began = Instant::now();
    loop {
        let (found, body) = readiness(served);
        if found == status {
            return body;
        }
        assert!(began.elapsed() < PATIENCE, "{found} {body}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// Lets a writer and the server that it writes to go on and end, also when a test fails.
struct GoOn<'a>(&'a Running, &'a AtomicBool);

impl Drop for GoOn<'_> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
        self.0.resume();
    }
}

/// Does something while a server is stopped in the middle of a commit.
fn while_stopped_in_mid_commit(kw: &Sandbox, work: impl FnOnce(&Running)) {
    let holder = serve(kw, &[]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _go_on = GoOn(&holder.process, &over);
        scope.spawn(|| {
            let head = "PUT /v1/stores/main/entries/load HTTP/1.1\r\n";
            let body = format!("\"{}\"", "x".repeat(500_000));
            // While it is stopped, this waits for its answer.
            while !over.load(Ordering::Relaxed) {
                if send(&holder.address, head, &body).is_err() {
                    break;
                }
            }
        });
        let stopped = (0..TRIES_MAX).any(|_| {
            holder.process.pause();
            let tried = kw.run(&["put", "try", "1", "-s", IMPATIENT]);
            let held = tried.code() == Some(UNAVAILABLE);
            if !held {
                holder.process.resume();
            }
            held
        });
        assert!(stopped, "it was never stopped in the middle of a commit");
        work(&holder.process);
    });
    holder.process.terminate();
    assert_eq!(holder.process.ended(), Some(0));
}

#[test]
fn a_put_behind_a_stopped_process_ends_in_time_and_names_it() {
    let kw = Sandbox::new();
    while_stopped_in_mid_commit(&kw, |holder| {
        let began = Instant::now();
        let told = kw.fails(UNAVAILABLE, &["put", "withdrawn", "1"]);
        assert!(began.elapsed() < PATIENCE);
        let pid = holder.id();
        assert!(told.contains(&format!("pid {pid} (keyward serve), stopped")), "{told}");
        assert!(told.contains(&format!("kill -CONT {pid}")), "{told}");
    });
    assert_ne!(kw.run(&["get", "withdrawn"]).code(), Some(0));
    kw.ok(&["put", "after", "1"]);
}

#[test]
fn a_server_behind_a_stopped_process_is_unready_until_that_goes_on() {
    let kw = Sandbox::new();
    let served = serve(&kw, &[]);
    assert_eq!(readiness(&served).0, 200);
    while_stopped_in_mid_commit(&kw, |_| {
        let body = becomes(&served, 503);
        assert_eq!((&body["code"], &body["store"]), (&"unavailable".into(), &"main".into()));
        let put = "PUT /v1/stores/main/entries/withdrawn HTTP/1.1\r\n";
        let (status, told) = send(&served.address, put, "1").unwrap();
        assert_eq!(status, 503, "{told}");
        assert!(told.contains("(keyward serve), stopped"), "{told}");
    });
    becomes(&served, 200);
    assert_ne!(kw.run(&["get", "withdrawn"]).code(), Some(0));
    served.process.terminate();
    assert_eq!(served.process.ended(), Some(0));
}

/// The stores that only the server itself uses: where keys are, and the audit log.
#[test]
fn a_server_whose_own_stores_take_no_writes_is_unready() {
    let kw = Sandbox::new();
    let own = ["-s", "embedded:./own"];
    let control = serve(&kw, &[&own[..], &["--control", "embedded:./data"]].concat());
    let audit = serve(&kw, &[&own[..], &["--audit-store", "embedded:./data"]].concat());
    for served in [&control, &audit] {
        assert_eq!(readiness(served).0, 200);
    }
    while_stopped_in_mid_commit(&kw, |_| {
        for (served, store) in [(&control, "control"), (&audit, "audit")] {
            let body = becomes(served, 503);
            assert_eq!((&body["code"], &body["store"]), (&"unavailable".into(), &store.into()));
        }
    });
    for served in [control, audit] {
        becomes(&served, 200);
        served.process.terminate();
        assert_eq!(served.process.ended(), Some(0));
    }
}

#[test]
fn a_server_behind_a_stopped_process_stops_in_its_time() {
    let kw = Sandbox::new();
    let served = serve(&kw, &[]);
    while_stopped_in_mid_commit(&kw, |_| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let put = "PUT /v1/stores/main/entries/waiting HTTP/1.1\r\n";
                send(&served.address, put, "1")
            });
            let began = Instant::now();
            served.process.terminate();
            assert_eq!(served.process.ended(), Some(0));
            assert!(began.elapsed() < STOP_TIME_MAX, "{:?}", began.elapsed());
        });
    });
}

#[test]
fn a_server_on_a_full_disk_is_unready() {
    let kw = Sandbox::new();
    std::fs::create_dir(kw.path("disk")).unwrap();
    // A small disk of its own, seen by the server alone.
    let script = "mount -t tmpfs -o size=24m none disk && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(env!("CARGO_BIN_EXE_keyward"))
        .args(["serve", "--listen", "127.0.0.1:0", "--json", "-s", "embedded:./disk/data"])
        .current_dir(kw.path(""))
        .env("HOME", kw.path("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let served = started(Running::of(&mut command));
    assert_eq!(readiness(&served).0, 200);
    let body = format!("\"{}\"", "x".repeat(900_000));
    let status = (0..100).find_map(|n| {
        let head = format!("PUT /v1/stores/main/entries/fill:{n} HTTP/1.1\r\n");
        let (status, _) = send(&served.address, &head, &body).unwrap();
        (status != 200).then_some(status)
    });
    assert_eq!(status, Some(507));
    let told = becomes(&served, 503);
    assert_eq!((&told["store"], &told["cause"]), (&"main".into(), &"full".into()), "{told}");
    served.process.terminate();
    assert_eq!(served.process.ended(), Some(0));
}
