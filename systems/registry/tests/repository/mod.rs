//! Real git repositories for tests, made with the `git` program, and servers that hand them out.
//!
//! Each test binary takes what it needs of it:
//!
//! ```ignore
//! #[path = "../repository/mod.rs"]
//! mod repository;
//! ```

#![allow(dead_code, reason = "each test binary takes what it needs")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod daemon;
mod http;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub use daemon::Daemon;
pub use http::{Account, HttpServer};

/// A repository with a working tree, on the branch `main`, in a directory of its own that is removed
/// in the end. Its commits have fixed authors and dates, so equal content has equal ids.
pub struct Repository {
    held: TempDir,
}

impl Repository {
    /// An empty repository; object ids are SHA-1.
    pub fn new() -> Self {
        Self::with_format("sha1")
    }

    /// An empty repository whose object ids are SHA-256.
    pub fn sha256() -> Self {
        Self::with_format("sha256")
    }

    fn with_format(format: &str) -> Self {
        let held = TempDir::with_prefix("keyward-git-").expect("a temporary directory");
        let repository = Self { held };
        fs::create_dir(repository.path()).expect("the repository's folder");
        repository.git(&["init", "-q", "-b", "main", "--object-format", format]);
        // Servers are asked for commits that no branch names any more.
        repository.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        repository
    }

    /// Where its working tree is; what is in it can be named as a source.
    pub fn path(&self) -> PathBuf {
        self.held.path().join("policies.git")
    }

    /// A folder beside the repository, for a cache or an export; not made yet.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.held.path().join(name)
    }

    /// Its path as text.
    pub fn location(&self) -> String {
        self.path().to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// Writes a file of the working tree.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let file = self.path().join(path);
        fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("its folder");
        fs::write(file, content).expect("the file is written");
        self
    }

    /// Removes a file or folder of the working tree.
    pub fn remove(&self, path: &str) -> &Self {
        let file = self.path().join(path);
        if file.is_dir() {
            fs::remove_dir_all(file).expect("the folder is removed");
        } else {
            fs::remove_file(file).expect("the file is removed");
        }
        self
    }

    /// Moves a file or folder of the working tree.
    pub fn rename(&self, from: &str, to: &str) -> &Self {
        let target = self.path().join(to);
        fs::create_dir_all(target.parent().expect("a file is in a folder")).expect("its folder");
        fs::rename(self.path().join(from), target).expect("the file is moved");
        self
    }

    /// Makes a symbolic link in the working tree.
    pub fn link(&self, path: &str, target: &str) -> &Self {
        let link = self.path().join(path);
        fs::create_dir_all(link.parent().expect("a link is in a folder")).expect("its folder");
        std::os::unix::fs::symlink(target, link).expect("the link is made");
        self
    }

    /// Commits the whole working tree, also if nothing has changed, and gives the commit's id.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    /// Replaces the last commit by the whole working tree: what a force-push does to its readers.
    pub fn amend(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "-q", "--allow-empty", "--amend", "-m", message]);
        self.head()
    }

    /// Moves the branch and the working tree to a commit, wherever that is.
    pub fn reset(&self, commit: &str) -> &Self {
        self.git(&["reset", "-q", "--hard", commit]);
        self
    }

    /// Goes to a branch, which is made here if there is none.
    pub fn switch(&self, branch: &str) -> &Self {
        if self.git_succeeds(&["rev-parse", "-q", "--verify", &format!("refs/heads/{branch}")]) {
            self.git(&["switch", "-q", branch]);
        } else {
            self.git(&["switch", "-q", "-c", branch]);
        }
        self
    }

    /// Goes to a new branch without any history, with an empty working tree.
    pub fn switch_orphan(&self, branch: &str) -> &Self {
        self.git(&["switch", "-q", "--orphan", branch]);
        self
    }

    /// Commits a tree object as it is, past the working tree, and moves the branch there.
    pub fn commit_tree(&self, tree: &str) -> String {
        let commit = self.git(&["commit-tree", "-m", "a tree as it is", tree]);
        self.git(&["update-ref", "refs/heads/main", &commit]);
        commit
    }

    /// Writes a tree object from its entries (mode, name, id as hex), however odd they are.
    pub fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut object = Vec::new();
        for (mode, name, id) in entries {
            object.extend_from_slice(mode.as_bytes());
            object.push(b' ');
            object.extend_from_slice(name);
            object.push(0);
            object.extend(hex_bytes(id));
        }
        self.git_with_input(&["hash-object", "-t", "tree", "--literally", "-w", "--stdin"], &object)
    }

    /// Writes a blob, and gives its id.
    pub fn blob(&self, content: impl AsRef<[u8]>) -> String {
        self.git_with_input(&["hash-object", "-w", "--stdin"], content.as_ref())
    }

    /// The commit that is checked out.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// The id of the blob at a path of the last commit.
    pub fn id_of(&self, path: &str) -> String {
        self.git(&["rev-parse", &format!("HEAD:{path}")])
    }

    /// Runs git in the repository, and gives what it says; panics if it fails.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_with_input(arguments, b"")
    }

    /// Runs git in the repository with something to read.
    pub fn git_with_input(&self, arguments: &[&str], input: &[u8]) -> String {
        let (succeeded, said, failed) = self.run(arguments, input);
        assert!(succeeded, "git {arguments:?}: {failed}");
        said
    }

    fn git_succeeds(&self, arguments: &[&str]) -> bool {
        self.run(arguments, b"").0
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> (bool, String, String) {
        let mut child = git()
            .current_dir(self.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("git is installed");
        let mut stdin = child.stdin.take().expect("its input is a pipe");
        let output = std::thread::scope(|scope| {
            scope.spawn(move || drop(stdin.write_all(input)));
            child.wait_with_output().expect("git ends")
        });
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).trim_end().to_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// A `git daemon` that hands the repository out, until it is dropped.
    pub fn daemon(&self) -> Daemon {
        Daemon::start(self.held.path())
    }

    /// A smart HTTP server around `git http-backend` that hands the repository out to everybody.
    pub fn http(&self) -> HttpServer {
        HttpServer::start(self.held.path(), None)
    }

    /// The same over TLS, only for one account; its authority is at [`HttpServer::authority`].
    pub fn https(&self, account: Account) -> HttpServer {
        HttpServer::start(self.held.path(), Some(account))
    }
}

/// The `git` program, kept from the machine's configuration and from the hour.
pub fn git() -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "홍길동")
        .env("GIT_AUTHOR_EMAIL", "author@example.org")
        .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
        .env("GIT_COMMITTER_NAME", "홍길동")
        .env("GIT_COMMITTER_EMAIL", "author@example.org")
        .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z");
    command
}

/// What a server does with everything below a folder, for each repository of it.
fn exporting(command: &mut Command, root: &Path) {
    // The repositories' owner may be another than the one who runs the tests.
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1");
}

fn hex_bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("an id is hex"))
        .collect()
}
