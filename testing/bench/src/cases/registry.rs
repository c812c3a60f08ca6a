//! Syncs of a registry, against what git itself takes to find and to read the same files.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use fastrand::Rng;
use keyward::registry::{Registry, Repository, Run, Settings, SyncOptions, Synced, Trigger};
use keyward_engine::{Durability, Json, Put, Store, SystemClock};
use keyward_key::Key;
use tokio::runtime::Runtime;

use crate::Result;
use crate::bench::{Bench, open};
use crate::measure::{Side, alternate, per_second};
use crate::report::{Goal, Row, grouped};

const CHANGED_FILES_MAX: u64 = 100_000;
const FIRST_FILES_MAX: u64 = 10_000;

/// One changed file of many: a whole sync, from opening the repository to the last commit, against git's
/// own comparison of the two commits and one durable commit to the same store.
pub fn changed(bench: &mut Bench) -> Result<Vec<Row>> {
    let files = bench.settings.records.min(CHANGED_FILES_MAX);
    bench.say(&format!("  a repository of {} files", grouped(files as f64)))?;
    let mut git = Git::new(bench.scratch(), files)?;
    let directory = bench.scratch();
    let runtime = Runtime::new()?;
    bench.say("  its first sync")?;
    let relaxed = open(&directory, Durability::Relaxed)?;
    let registry = registry(&relaxed, &git)?;
    sync(&runtime, &registry)?;
    drop((registry, relaxed));
    let store = open(&directory, Durability::Synced)?;
    let registry = self::registry(&store, &git)?;
    let key = Key::parse("bench:commit")?;
    let comparison = alternate(bench.settings.commit_rounds, |side, round| {
        match side {
            Side::Measured => {
                git.change()?;
                let start = Instant::now();
                let run = sync(&runtime, &registry)?;
                let took = milliseconds(start);
                if run.whole || (run.updated, run.blobs_read) != (1, 1) {
                    return Err(format!("one file was changed, and this was done: {run:?}").into());
                }
                Ok(took)
            }
            Side::Reference => {
                git.change()?;
                let value = Json::parse(format!(r#"{{"round":{round}}}"#))?;
                let start = Instant::now();
                git.differences()?;
                runtime.block_on(store.put(key.clone(), Put::new(value)))?;
                let took = milliseconds(start);
                // What the next slice finds is one change, as this one did.
                sync(&runtime, &registry)?;
                Ok(took)
            }
        }
    })?;
    Ok(vec![Row {
        case: "registry_changed".to_owned(),
        compares: format!("sync / diff-tree and a commit, {} files", grouped(files as f64)),
        comparison,
        unit: "ms",
        goal: Some(Goal::AtMost(3.0)),
    }])
}

/// Everything for the first time: a whole sync into an empty store, against git handing out the same
/// contents.
pub fn first(bench: &mut Bench) -> Result<Vec<Row>> {
    let files = bench.settings.records.min(FIRST_FILES_MAX);
    let git = Git::new(bench.scratch(), files)?;
    let runtime = Runtime::new()?;
    let rounds = bench.settings.copy_rounds;
    let comparison = alternate(rounds, |side, _| match side {
        Side::Measured => {
            let directory = bench.scratch();
            let registry = registry(&open(&directory, Durability::Synced)?, &git)?;
            let start = Instant::now();
            let run = sync(&runtime, &registry)?;
            let rate = per_second(files as usize, start);
            if (run.added, run.blobs_read) != (files, files) {
                return Err(format!("{files} files are there, and this was done: {run:?}").into());
            }
            drop(registry);
            fs::remove_dir_all(directory)?;
            Ok(rate)
        }
        Side::Reference => {
            let start = Instant::now();
            git.contents(files)?;
            Ok(per_second(files as usize, start))
        }
    })?;
    Ok(vec![Row {
        case: "registry_first".to_owned(),
        compares: format!("first sync / cat-file --batch, {} files", grouped(files as f64)),
        comparison,
        unit: "files/s",
        goal: Some(Goal::AtLeast(0.5)),
    }])
}

fn registry(store: &Store, git: &Git) -> Result<Registry> {
    let path = git.path.to_str().ok_or("the place of the benchmark is not UTF-8")?;
    let settings = Settings::new(Repository::parse(path)?);
    Ok(Registry::open("bench", store.clone(), settings, &git.path.join("cache"), SystemClock)?)
}

fn sync(runtime: &Runtime, registry: &Registry) -> Result<Run> {
    let options = SyncOptions::default();
    match runtime.block_on(registry.sync(Trigger::Hand, &options, |_| ()))? {
        Synced::Done(run) => Ok(run),
        other => Err(format!("nothing was synced: {other:?}").into()),
    }
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1_000.0
}

/// A bare repository of policies, each a few kilobytes of words, in folders of a hundred.
struct Git {
    path: PathBuf,
    files: u64,
    changes: u64,
    ids: String,
}

impl Git {
    fn new(path: PathBuf, files: u64) -> Result<Self> {
        fs::create_dir_all(&path)?;
        let mut git = Self { path, files, changes: 0, ids: String::new() };
        git.run(&["init", "-q", "--bare", "-b", "main"], b"")?;
        let mut stream = Vec::new();
        commit(&mut stream, "first", None)?;
        for n in 0..files {
            file(&mut stream, n, 0)?;
        }
        git.run(&["fast-import", "--quiet"], &stream)?;
        // As a server or a clone would have it.
        git.run(&["repack", "-a", "-d", "-q"], b"")?;
        let listed = git.run(&["ls-tree", "-r", "--format=%(objectname)", "main"], b"")?;
        git.ids = String::from_utf8(listed)?;
        Ok(git)
    }

    /// Commits another version of one file.
    fn change(&mut self) -> Result<()> {
        self.changes += 1;
        let mut stream = Vec::new();
        commit(&mut stream, "next", Some("refs/heads/main^0"))?;
        file(&mut stream, Rng::with_seed(self.changes).u64(..self.files), self.changes)?;
        self.run(&["fast-import", "--quiet"], &stream)?;
        Ok(())
    }

    /// What git says the last change was.
    fn differences(&self) -> Result<()> {
        let found = self.run(&["diff-tree", "-r", "main~1", "main"], b"")?;
        match found.iter().filter(|byte| **byte == b'\n').count() {
            1 => Ok(()),
            lines => Err(format!("git found {lines} changes instead of one").into()),
        }
    }

    /// Has git hand out the contents of all files.
    fn contents(&self, files: u64) -> Result<()> {
        let mut child = self
            .command(&["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (mut stdin, stdout) = match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => (stdin, stdout),
            _ => return Err("git has no pipes".into()),
        };
        let read = std::thread::scope(|scope| {
            let writing = scope.spawn(move || stdin.write_all(self.ids.as_bytes()));
            let mut stdout = BufReader::with_capacity(1 << 16, stdout);
            let (mut read, mut head, mut content) = (0, String::new(), Vec::new());
            while stdout.read_line(&mut head)? > 0 {
                let bytes: usize = head.trim_end().rsplit(' ').next().unwrap_or("").parse()?;
                // And the line's end after it.
                content.resize(bytes + 1, 0);
                stdout.read_exact(&mut content)?;
                read += 1;
                head.clear();
            }
            writing.join().map_err(|_| "writing to git failed")??;
            Ok::<u64, crate::Failure>(read)
        })?;
        child.wait()?;
        if read == files { Ok(()) } else { Err(format!("git gave {read} of {files} files").into()) }
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>> {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("this needs the program git: {error}"))?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        })?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(format!("git {arguments:?} failed").into())
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(&self.path as &Path)
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }
}

/// The head of a commit, in the language of `git fast-import`.
fn commit(stream: &mut Vec<u8>, message: &str, from: Option<&str>) -> Result<()> {
    let length = message.len();
    write!(
        stream,
        "commit refs/heads/main\ncommitter Bench <bench@example.org> 1767323045 +0000\n"
    )?;
    write!(stream, "data {length}\n{message}\n")?;
    if let Some(from) = from {
        writeln!(stream, "from {from}")?;
    }
    Ok(())
}

/// A version of a policy.
fn file(stream: &mut Vec<u8>, n: u64, version: u64) -> Result<()> {
    const WORDS: [&str; 16] = [
        "학칙",
        "규정",
        "제정",
        "개정",
        "시행",
        "위원회",
        "학생",
        "교원",
        "목적",
        "범위",
        "따라",
        "정한다",
        "장학금",
        "등록",
        "총장",
        "승인",
    ];
    let mut random = Rng::with_seed(n.wrapping_mul(1_000_003).wrapping_add(version));
    let mut text = format!("# 정책 {n} 제{version}판\n\n");
    for paragraph in 1..=20 {
        write!(text, "제{paragraph}조 ")?;
        for _ in 0..40 {
            text.push_str(WORDS[random.usize(..WORDS.len())]);
            text.push(' ');
        }
        text.push_str("\n\n");
    }
    let (above, below) = (n / 10_000, n / 100 % 100);
    writeln!(stream, "M 100644 inline policies/{above:02}/{below:02}/정책-{n:06}.md")?;
    write!(stream, "data {}\n{text}\n", text.len())?;
    Ok(())
}
