//! A PostgreSQL server of a test's own, which the test can stop, kill and start again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, Config};

use crate::server::connect;
use crate::small_disk::SmallDisk;

/// The user whom the server's package has made: as root, PostgreSQL refuses to run.
const USER: &str = "postgres";
/// How long a server may take to start or to stop: to recover, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(20);

/// Ends with the test, also if that panics or is killed.
pub struct OwnServer {
    scratch: TempDir,
    disk: Option<SmallDisk>,
    settings: Vec<String>,
    postmaster: Option<Child>,
    port: Arc<AtomicU16>,
}

impl OwnServer {
    /// A new server on the machine's disk, not started.
    pub fn new() -> Self {
        Self::create(|_| None)
    }

    /// A new server on a disk of its own, not started.
    pub fn on_small_disk(mebibytes: u32) -> Self {
        Self::create(|place| Some(SmallDisk::mount(place, mebibytes)))
    }

    fn create(disk: impl FnOnce(&Path) -> Option<SmallDisk>) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("disk");
        fs::create_dir(&place).unwrap();
        if geteuid().is_root() {
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
            give_to_server(&place);
        }
        let server = Self {
            disk: disk(&place),
            scratch,
            settings: Vec::new(),
            postmaster: None,
            port: Arc::default(),
        };
        // Small files, so that a small disk holds them.
        let arguments =
            ["-U", "keyward", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"];
        let initdb = server
            .command(&programs().join("initdb"))
            .arg("-D")
            .arg(server.data())
            .args(arguments)
            .arg("--wal-segsize=1")
            .output()
            .unwrap();
        assert!(initdb.status.success(), "initdb: {}", String::from_utf8_lossy(&initdb.stderr));
        server.set("max_wal_size=8MB").set("min_wal_size=2MB").set("shared_buffers=16MB")
    }

    /// The same with one more setting, `NAME=VALUE`.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// The server's directory. On a small disk, only the server can see it.
    pub fn data(&self) -> PathBuf {
        self.scratch.path().join("disk").join("data")
    }

    /// A file in the server's directory, readable by the server alone.
    pub fn write(&self, name: &str, contents: &str) {
        let path = self.data().join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if geteuid().is_root() {
            give_to_server(&path);
        }
    }

    pub fn disk(&self) -> &SmallDisk {
        self.disk.as_ref().expect("the server has a disk of its own")
    }

    /// Where the server listens, which changes when it is started again.
    pub fn port(&self) -> Arc<AtomicU16> {
        self.port.clone()
    }

    pub fn address(&self) -> String {
        format!("postgres://keyward@127.0.0.1:{}/postgres", self.port.load(Ordering::SeqCst))
    }

    /// A connection that goes around the engine.
    pub async fn administrator(&self) -> Client {
        connect(&self.address().parse().unwrap()).await
    }

    /// A program of the server, run by its user, where its disk can be seen. It is killed when the
    /// thread that starts it ends.
    fn command(&self, program: &Path) -> Command {
        let mut words = self.disk.as_ref().map(SmallDisk::enter).unwrap_or_default();
        words.push("setpriv".to_owned());
        if geteuid().is_root() {
            words.push(format!("--reuid={USER}"));
            words.push(format!("--regid={USER}"));
            words.push("--init-groups".to_owned());
        }
        words.push("--pdeathsig=KILL".to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(program).current_dir(self.scratch.path());
        command
    }

    /// Starts the server, and waits until it serves. Call this from the test's own thread, which
    /// lives as long as it.
    ///
    /// After a kill, PostgreSQL itself refuses to start as long as a process of the old server
    /// lives; then it is tried again.
    pub async fn start(&mut self) {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let port = free_port();
            self.port.store(port, Ordering::SeqCst);
            self.postmaster = Some(self.spawn(port));
            while Instant::now() < until && !self.has_ended() {
                if self.serves().await {
                    return;
                }
                sleep(POLL).await;
            }
            sleep(POLL).await;
        }
        panic!("the server does not start:\n{}", self.log_end());
    }

    fn spawn(&self, port: u16) -> Child {
        let log = self.scratch.path().join("server.log");
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = self.command(&programs().join("postgres"));
        command.arg("-D").arg(self.data()).args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        command.args(["-c", "unix_socket_directories="]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    async fn serves(&self) -> bool {
        let config: Config = self.address().parse().unwrap();
        let connected = timeout(POLL * 50, config.connect(tokio_postgres::NoTls)).await;
        matches!(connected, Ok(Ok(_)))
    }

    /// Waits until the server serves, and starts it if it has ended by itself.
    pub async fn revive(&mut self) {
        let until = Instant::now() + PATIENCE;
        while !self.serves().await {
            assert!(Instant::now() < until, "the server is gone:\n{}", self.log_end());
            if self.has_ended() {
                return self.start().await;
            }
            sleep(POLL).await;
        }
    }

    /// Stops the server in good order, without waiting for those who use it.
    pub async fn stop(&mut self) {
        self.signal(Signal::INT);
        let until = Instant::now() + PATIENCE;
        while !self.has_ended() {
            assert!(Instant::now() < until, "the server does not stop:\n{}", self.log_end());
            sleep(POLL).await;
        }
    }

    /// Kills the server's first process; the others notice that, and end.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.postmaster.take().unwrap().wait().unwrap();
    }

    /// Kills all processes of the server, in the middle of what they do, as when a machine dies.
    pub fn crash(&mut self) {
        // So that it starts no more of them.
        self.signal(Signal::STOP);
        for process in children(self.postmaster.as_ref().unwrap().id()) {
            // One that ends by itself at this moment is dead, too.
            let _ = kill_process(process, Signal::KILL);
        }
        self.kill();
    }

    fn signal(&self, signal: Signal) {
        let postmaster = self.postmaster.as_ref().expect("the server was started");
        kill_process(Pid::from_child(postmaster), signal).unwrap();
    }

    fn has_ended(&mut self) -> bool {
        self.postmaster.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// Whether the server has said something.
    pub fn said(&self, text: &str) -> bool {
        self.log().contains(text)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("server.log")).unwrap_or_default()
    }

    fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for OwnServer {
    #[allow(clippy::print_stderr, reason = "a failing test shows what the server said")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the server's last words:\n{}", self.log_end());
        }
        if !self.has_ended() {
            // At once; the server gives its own processes five seconds.
            self.signal(Signal::QUIT);
            self.postmaster.take().map(|mut postmaster| postmaster.wait());
        }
    }
}

/// The processes that another one has started.
fn children(parent: u32) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
        status.lines().any(|line| {
            line.strip_prefix("PPid:").is_some_and(|found| found.trim() == parent.to_string())
        })
    };
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}

/// Where the newest server's programs are.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .map(|version| version.path())
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(|path| path.file_name().and_then(OsStr::to_str)?.parse::<u32>().ok());
    newest.expect("this test needs Debian's package postgresql; install it").join("bin")
}

fn give_to_server(path: &Path) {
    let number = |option: &str| {
        let said = Command::new("id").args([option, USER]).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        said.trim().parse::<u32>().unwrap_or_else(|_| panic!("there is no user {USER}"))
    };
    chown(path, Some(number("-u")), Some(number("-g"))).unwrap();
}

/// A port that nobody listens on now, below those that the system gives to connections. By chance, so
/// that tests which begin at once do not all take the same one.
fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(20_000..32_000);
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
