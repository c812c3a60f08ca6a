//! Parts of a test played by processes of their own: the test binary runs itself again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use keyward_engine::Store;
use keyward_postgres::{Options, Postgres};
use rustix::process::{Pid, Signal, kill_process};

use crate::server::Fresh;

const ROLE: &str = "KEYWARD_TEST_ROLE";
const ADDRESS: &str = "KEYWARD_TEST_ADDRESS";
const STORE: &str = "KEYWARD_TEST_STORE";
/// Far longer than anything takes: only for what would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(120);
const BEGIN: &str = "begin";

/// The part that this process plays, if it is a child.
pub struct Part {
    pub role: String,
    pub address: String,
    pub options: Options,
}

impl Part {
    /// Each test that has children asks for this first, and plays the part if there is one.
    pub fn given() -> Option<Self> {
        let role = std::env::var(ROLE).ok()?;
        let patience = Duration::from_secs(60);
        let options = Options {
            store: std::env::var(STORE).unwrap(),
            pool_max: 4,
            connect_timeout: patience,
            statement_timeout: patience,
            ..Options::default()
        };
        // The test harness has begun a line of its own.
        say("");
        say(BEGIN);
        Some(Self { role, address: std::env::var(ADDRESS).unwrap(), options })
    }

    pub async fn open(&self) -> Store {
        Store::new(Postgres::open(&self.address, self.options.clone()).await.unwrap())
    }
}

/// Says something to the parent, past all buffers. Without a parent there is nothing left to do.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// The next thing that the parent says, unless it has said everything.
pub fn hear() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.is_ok_and(|bytes| bytes > 0).then(|| line.trim_end().to_owned())
}

/// A process that plays a part. Killed when it is dropped.
pub struct Child {
    process: Process,
    lines: Receiver<String>,
}

impl Child {
    /// Starts a child that plays a role in a test (its path without the binary), on a store.
    pub fn start(test: &str, role: &str, fresh: &Fresh) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::start_by(&mut command, test, role, fresh.address(), &fresh.name)
    }

    /// The same by a command that was prepared, and on a store anywhere.
    pub fn start_by(
        command: &mut Command,
        test: &str,
        role: &str,
        address: &str,
        store: &str,
    ) -> Self {
        let mut process = command
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(ADDRESS, address)
            .env(STORE, store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (said, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.try_for_each(|line| said.send(line))
        });
        let child = Self { process, lines };
        while child.line().expect("the child's part begins") != BEGIN {}
        child
    }

    /// The next line that the child says, unless it has ended.
    pub fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("a child says nothing"),
        }
    }

    /// What the child says within a short time, so that it is met anywhere afterwards.
    pub fn overhear(&self, time: Duration) -> Vec<String> {
        let end = std::time::Instant::now() + time;
        let left = || end.saturating_duration_since(std::time::Instant::now());
        std::iter::from_fn(|| self.lines.recv_timeout(left()).ok()).collect()
    }

    /// Says something to the child.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Kills the child, and gives what it still said.
    pub fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Says that this was all, and gives what the child said before it ended.
    pub fn finish(mut self) -> (Vec<String>, ExitStatus) {
        drop(self.process.stdin.take());
        let said = std::iter::from_fn(|| self.line()).collect();
        (said, self.process.wait().unwrap())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
