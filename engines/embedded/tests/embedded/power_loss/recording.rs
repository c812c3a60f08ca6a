//! Recording what children do in a directory.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use keyward_embedded::{Embedded, Options};
use keyward_engine::Store;
use tempfile::TempDir;

use super::disk::{Disk, Loss};
use super::survey::STORE;
use super::trace::{self, ACKS, Step};
use crate::child::{self, block_on};
use crate::process;
use crate::shim::Shim;
use crate::workload::{self, Ack};

/// A directory in which children are watched.
pub struct Recording {
    shim: Shim,
    test: &'static str,
    root: TempDir,
    scratch: TempDir,
}

impl Recording {
    pub fn new(shim: Shim, test: &'static str) -> Self {
        let (root, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Self { shim, test, root, scratch }
    }

    /// The file with the trace: a new one, or that of an earlier failure.
    pub fn trace(&self) -> PathBuf {
        let earlier = std::env::var_os("KEYWARD_TRACE").map(PathBuf::from);
        earlier.unwrap_or_else(|| self.scratch.path().join("trace"))
    }

    /// Puts the trace where it stays, and says how to use it.
    pub fn keep(&self) -> String {
        let kept = std::env::temp_dir().join(format!("keyward-trace-{}", std::process::id()));
        fs::copy(self.trace(), &kept).unwrap();
        format!("another run has another trace; KEYWARD_TRACE={} takes this one", kept.display())
    }

    /// Lets a child play a part. Says whether it came to its end before it was to die.
    pub fn play(&self, role: &str, die: Option<usize>) -> bool {
        if std::env::var_os("KEYWARD_TRACE").is_some() {
            return true;
        }
        let mut command = child::command(process::name(self.test), role, self.root.path());
        self.shim.load(&mut command, self.root.path(), &self.trace(), die);
        let status = command.stdout(Stdio::null()).status().unwrap();
        assert!(status.success() || die.is_some(), "{role}: {status}");
        status.success()
    }

    /// What was recorded. The disk that it describes must be the one that is really there: this is
    /// how we know that nothing was missed.
    pub fn steps(&self) -> Vec<Step> {
        let steps = trace::read(&self.trace());
        if std::env::var_os("KEYWARD_TRACE").is_some() {
            return steps;
        }
        let image = tempfile::tempdir().unwrap();
        let mut disk = Disk::new();
        steps.iter().for_each(|step| disk.take(step));
        disk.write_image(image.path(), &mut Loss::Nothing);
        let (described, real) = (image.path().join(STORE), self.root.path().join(STORE));
        assert_eq!(names(&described), names(&real));
        let data = |place: &Path| fs::read(place.join("data.mdb")).ok();
        assert!(data(&described) == data(&real), "the trace does not tell everything");
        steps
    }
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(files) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What a child does in the directory that is watched.
pub struct Part {
    root: PathBuf,
    options: Options,
    acks: File,
}

impl Part {
    pub fn new(root: PathBuf, options: Options) -> Self {
        let acks = File::options().create(true).append(true).open(root.join(ACKS)).unwrap();
        Self { root, options, acks }
    }

    pub fn store(&self) -> PathBuf {
        self.root.join(STORE)
    }

    /// Opens the store, lets some writers at once make some commits each, then others, and closes
    /// it.
    pub fn write(&self, work: &[(Range<u32>, Range<u32>)]) {
        let store = Store::new(Embedded::open(&self.store(), self.options).unwrap());
        block_on(async {
            for (writers, commits) in work {
                let writers = writers.clone().map(|writer| {
                    workload::write(store.clone(), writer, commits.clone(), |ack| self.tell(ack))
                });
                futures_util::future::join_all(writers).await;
            }
        });
    }

    fn tell(&self, ack: Ack) {
        (&self.acks).write_all(format!("{ack}\n").as_bytes()).unwrap();
    }
}
