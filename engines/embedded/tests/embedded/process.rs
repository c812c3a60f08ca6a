//! A child that tells its parent what it has done, line by line, until it ends or is killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Far longer than anything takes: only for what would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// The signal that no process can handle.
pub const SIGKILL: i32 = 9;

pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a child, and waits until its part begins.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (told, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.try_for_each(|line| told.send(line))
        });
        let process = Self { child, lines };
        while process.line().expect("the child ended early") != BEGIN {}
        process
    }

    /// The next line, unless the process has ended.
    pub fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("a child does nothing"),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until a signal has stopped the process.
    #[allow(clippy::disallowed_methods, reason = "nothing tells when a process is stopped")]
    pub fn stopped(&self) {
        let end = Instant::now() + PATIENCE;
        let stat = format!("/proc/{}/stat", self.id());
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            assert!(Instant::now() < end, "a child is never stopped");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets the process go on for a short time, so that it is killed anywhere.
    pub fn run_on(&self, time: Duration, mut hear: impl FnMut(&str)) {
        let end = Instant::now() + time;
        let left = || end.saturating_duration_since(Instant::now());
        while let Ok(line) = self.lines.recv_timeout(left()) {
            hear(&line);
        }
    }

    /// Kills the process, and hears what it still told.
    pub fn kill(mut self, hear: impl FnMut(&str)) {
        self.child.kill().unwrap();
        self.finish(hear);
    }

    /// Hears the rest, and waits for the end.
    pub fn finish(mut self, mut hear: impl FnMut(&str)) -> ExitStatus {
        while let Some(line) = self.line() {
            hear(&line);
        }
        self.child.wait().unwrap()
    }
}

/// The name by which a child runs a test, which is its path without the name of the binary.
pub fn name(path: &str) -> &str {
    path.split_once("::").map_or(path, |(_, name)| name)
}

const BEGIN: &str = "begin";

/// Tells the parent that the child's part begins.
pub fn begin() {
    // The test harness has begun a line of its own.
    tell("");
    tell(BEGIN);
}

/// Tells the parent something, past all buffers. Without a parent there is nothing left to do.
pub fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    let told = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
    if told.is_err() {
        std::process::exit(1);
    }
}
