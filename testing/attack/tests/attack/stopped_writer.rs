//! A process that is stopped in the middle of a commit, on a store that others share.

use std::io::Write;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::http;
use crate::sandbox::{STORE, Sandbox};
use crate::scene::Scene;
use crate::server::signal;

/// How often a writer is stopped until one is stopped in a commit.
const TRIES_MAX: usize = 60;
/// A write that takes longer waits for somebody.
const STUCK: Duration = Duration::from_millis(1_500);
/// How long the refusal, and the return, may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that writes without end.
struct Writer(Child);

impl Writer {
    fn start(sandbox: &Sandbox) -> Self {
        let mut command = sandbox.command(&["-s", STORE, "import"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        thread::spawn(move || {
            let filler = "x".repeat(2_000);
            for n in 0_u64.. {
                let line = json!({"key": format!("shared:w:{}", n % 50_000), "value": filler});
                // The process has ended.
                if writeln!(input, "{line}").is_err() {
                    break;
                }
            }
        });
        Self(child)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Works on a stopped process too.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes an entry through the server.
fn put(scene: &Scene, patience: Duration) -> std::io::Result<http::Answer> {
    let head = http::head("PUT", "/v1/stores/main/entries/shared:probe", Some(&scene.admin));
    http::send(scene.server.address, &head, Some("1"), patience)
}

fn is_ready(scene: &Scene) -> bool {
    let head = http::head("GET", "/readyz", None);
    let answer = http::send(scene.server.address, &head, None, PATIENCE);
    answer.is_ok_and(|answer| answer.status == 200)
}

/// Asks until it is so, for as long as the patience lasts.
fn becomes(so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if so() {
            return true;
        }
        thread::yield_now();
    }
    false
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures are the result")]
fn a_writer_stopped_in_mid_commit_is_named_and_others_are_well_when_it_goes_on() {
    let scene = Scene::set(0, &[]);
    let writer = Writer::start(&scene.sandbox);
    let mut rng = fastrand::Rng::with_seed(7);
    let refused = (0..TRIES_MAX).find_map(|_| {
        signal(writer.pid(), Signal::CONT);
        // Somewhere in what it does.
        let until = Instant::now() + Duration::from_millis(rng.u64(20..120));
        while Instant::now() < until {
            thread::yield_now();
        }
        signal(writer.pid(), Signal::STOP);
        if put(&scene, STUCK).is_ok() {
            return None;
        }
        let began = Instant::now();
        let answer = put(&scene, PATIENCE).unwrap();
        // A write that succeeds was only slow.
        (answer.status != 200).then(|| (answer, began.elapsed()))
    });
    let (refused, waited) = refused.expect("the writer was never stopped in a commit");
    assert!(matches!(refused.status, 503 | 504), "{refused:?}");
    let pid = writer.pid().as_raw_nonzero().to_string();
    assert!(refused.body.contains(&pid), "the holder {pid} is not named: {}", refused.body);
    assert!(becomes(|| !is_ready(&scene)), "the server says it is ready, and cannot write");
    // Reads go on.
    let head = http::head("GET", "/v1/stores/main/entries/user:ada:notes:1", Some(&scene.admin));
    let read = http::send(scene.server.address, &head, None, Duration::from_secs(5)).unwrap();
    assert_eq!(read.status, 200, "{read:?}");
    signal(writer.pid(), Signal::CONT);
    let began = Instant::now();
    assert!(becomes(|| is_ready(&scene)), "the server is not ready again");
    assert!(becomes(|| put(&scene, PATIENCE).is_ok_and(|answer| answer.status == 200)));
    let well = began.elapsed();
    println!("attack stopped_writer: refused after {waited:.1?}; normal after {well:.1?}");
    assert!(well < keyward_attack::Scale::from_env().bounds().normal_after_max, "{well:?}");
}
