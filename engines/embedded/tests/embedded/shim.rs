//! Watching what a child process does to its files, and ending it before any one step: a library
//! in C (`shim.c`) that is built here and loaded into the child before all others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

/// The built library.
#[derive(Clone)]
pub struct Shim {
    _directory: Arc<TempDir>,
    library: PathBuf,
}

impl Shim {
    pub fn build() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("shim.c");
        let library = directory.path().join("shim.so");
        fs::write(&source, include_str!("shim.c")).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-pthread", "-o"]).args([&library, &source]);
        let output = compiler.output().expect("cc, with which Rust links, builds the shim");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { _directory: Arc::new(directory), library }
    }

    /// Loads the library into a child, to append what it does below `root` to the file `trace`, and
    /// to kill it before step `die`.
    pub fn load(&self, command: &mut Command, root: &Path, trace: &Path, die: Option<usize>) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("KEYWARD_SHIM_ROOT", fs::canonicalize(root).unwrap())
            .env("KEYWARD_SHIM_TRACE", trace);
        if let Some(die) = die {
            command.env("KEYWARD_SHIM_DIE", die.to_string());
        }
    }
}
