//! A directory of its own for each test, with a store in it.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// How long something that must come may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An empty directory to run in, in which `KEYWARD_STORE` names the store `./data`.
pub struct Sandbox(TempDir, Vec<(String, String)>);

impl Sandbox {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), Vec::new())
    }

    /// A sandbox whose store holds `count` entries `PREFIX:000000`, `PREFIX:000001`, ...
    pub fn filled(prefix: &str, count: usize) -> Self {
        let sandbox = Self::new();
        let line = |n| format!("{{\"key\":\"{prefix}:{n:06}\",\"value\":{n}}}\n");
        let lines: String = (0..count).map(line).collect();
        sandbox.run_with(&["import"], lines).ok();
        sandbox
    }

    /// The same with one more variable in the environment of every command.
    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.1.push((variable.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a file that holds a secret, with this mode.
    pub fn write_secret(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.write(name, text);
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The command with nothing of the outer environment that it would look at.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_keyward"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env("KEYWARD_STORE", "embedded:./data")
            .env("HOME", self.path("home"))
            .env_remove("KEYWARD_SCHEMA")
            .env_remove("KEYWARD_SERVER")
            .env_remove("KEYWARD_KEY")
            .env_remove("KEYWARD_KEY_FILE")
            .env_remove("KEYWARD_FIRST_KEY")
            .env_remove("KEYWARD_FIRST_KEY_FILE")
            .env_remove("KEYWARD_START_TOKEN_FILE")
            .env_remove("KEYWARD_CACHE")
            .env_remove("KEYWARD_CORS_ORIGINS")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .envs(self.1.iter().map(|(variable, value)| (variable, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.command(arguments).output().unwrap())
    }

    pub fn run_with(&self, arguments: &[&str], input: impl Into<Vec<u8>>) -> Ran {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.into();
        let writing = thread::spawn(move || {
            // A command may end before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writing.join().unwrap();
        Ran(output)
    }

    /// What a command that must succeed prints.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).ok()
    }

    /// What a command that must fail so says on standard error.
    #[track_caller]
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        self.run(arguments).fails(code)
    }

    /// The JSON that a command prints.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }

    /// The version that a key is at.
    #[track_caller]
    pub fn version(&self, key: &str) -> String {
        let entry = self.json(&["get", key, "--meta"]);
        entry["version"].as_str().unwrap().to_owned()
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::of(&mut self.command(arguments))
    }
}

impl Running {
    /// Starts a command.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        Self {
            stdout: lines(child.stdout.take().unwrap()),
            stderr: lines(child.stderr.take().unwrap()),
            child,
        }
    }
}

/// A command that has ended.
pub struct Ran(Output);

impl Ran {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        Self(command.output().unwrap())
    }

    /// Everything that it wrote.
    pub fn output(&self) -> &Output {
        &self.0
    }

    pub fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    /// What a command that ended with this code printed.
    #[track_caller]
    pub fn ended(self, code: i32) -> String {
        assert_eq!(self.0.status.code(), Some(code), "stderr: {}", text(&self.0.stderr));
        text(&self.0.stdout)
    }

    #[track_caller]
    pub fn ok(self) -> String {
        let code = self.0.status.code();
        assert_eq!(code, Some(0), "stderr: {}", text(&self.0.stderr));
        text(&self.0.stdout)
    }

    /// What a command that failed so said, after it had done a part and printed that.
    #[track_caller]
    pub fn fails_after(self, code: i32) -> String {
        assert_eq!(self.0.status.code(), Some(code), "stderr: {}", text(&self.0.stderr));
        text(&self.0.stderr)
    }

    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        let stderr = text(&self.0.stderr);
        let stdout = text(&self.0.stdout);
        assert_eq!(self.0.status.code(), Some(code), "{stderr}{stdout}");
        assert_eq!(stdout, "", "a failure prints no result");
        stderr
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A command that goes on until it is stopped.
pub struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Running {
    #[track_caller]
    pub fn next_line(&self) -> String {
        self.stdout.recv_timeout(PATIENCE).unwrap()
    }

    #[track_caller]
    pub fn next_note(&self) -> String {
        self.stderr.recv_timeout(PATIENCE).unwrap()
    }

    /// The next line on standard error, unless it ends without one.
    pub fn note(&self) -> Option<String> {
        self.stderr.recv_timeout(PATIENCE).ok()
    }

    /// How many bytes of memory it has at the moment.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kilobytes * 1_024
    }

    pub fn interrupt(&self) {
        // One that has ended meanwhile is not reaped yet, so its id is still its own.
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&self) {
        // One that has ended meanwhile is as dead.
        let _ = kill_process(Pid::from_child(&self.child), Signal::KILL);
    }

    /// Stops it where it is, until it is resumed.
    pub fn pause(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    /// Lets it go on after a pause.
    pub fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end.
    #[track_caller]
    pub fn ended(mut self) -> Option<i32> {
        // The streams close with the process, so the wait after them is short.
        while self.stdout.recv_timeout(PATIENCE).is_ok() {}
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Whether nothing stands there.
pub fn is_absent(path: &Path) -> bool {
    !path.exists()
}
