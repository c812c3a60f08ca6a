//! `keyward serve` as a child process.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::sandbox::Sandbox;

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Starts a server on a free port, with its log in a file.
    pub fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let log = sandbox.path("server.log");
        let serve = [&["serve", "--listen", "127.0.0.1:0", "--json"], arguments].concat();
        let mut command = sandbox.command(&serve);
        command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told = || std::fs::read_to_string(&log).unwrap();
        let started: serde_json::Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("the server did not start: {}", told()));
        let address = started["address"].as_str().unwrap().parse().unwrap();
        Self { child, address, log }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The length of the log so far.
    pub fn log_bytes(&self) -> u64 {
        std::fs::metadata(&self.log).unwrap().len()
    }

    /// The log so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The memory of a process; zero once it has ended.
pub fn resident_bytes(pid: Pid) -> u64 {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

/// Sends a signal to a process that the caller started.
pub fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap();
}

/// Allows this process and its children as many open files as the system lets it have; each
/// connection is one on either side.
pub fn allow_open_files(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    assert!(
        allowed >= needed,
        "the attack needs {needed} open files, and the hard limit is {allowed}: raise it with ulimit -n"
    );
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
}
