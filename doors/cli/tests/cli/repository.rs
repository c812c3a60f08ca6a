//! Git repositories, made by the `git` program without anybody's configuration.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository with a working tree, on the branch `main`.
pub struct Repository(PathBuf);

impl Repository {
    /// An empty one, in a directory that is made.
    pub fn new(path: PathBuf) -> Self {
        std::fs::create_dir_all(&path).unwrap();
        let repository = Self(path);
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub fn remove(&self, name: &str) -> &Self {
        std::fs::remove_file(self.0.join(name)).unwrap();
        self
    }

    /// Commits everything as it is; the id of the commit.
    pub fn commit(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// The first digits of a file's id.
    pub fn short(&self, name: &str) -> String {
        self.git(&["rev-parse", &format!("HEAD:{name}")])[..7].to_owned()
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        let output = git().arg("-C").arg(&self.0).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Hands it out on a port of this machine, for so many connections: its address.
    pub fn served(&self, connections: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("git://{}/.git", listener.local_addr().unwrap());
        let base = format!("--base-path={}", self.0.display());
        std::thread::spawn(move || {
            for stream in listener.incoming().take(connections) {
                let stream = stream.unwrap();
                let mut daemon = git();
                daemon.args(["daemon", "--inetd", "--export-all", &base]);
                daemon.stdin(OwnedFd::from(stream.try_clone().unwrap()));
                daemon.stdout(OwnedFd::from(stream)).stderr(Stdio::null());
                assert!(daemon.status().unwrap().success());
            }
        });
        address
    }
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.org")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.org");
    git
}
