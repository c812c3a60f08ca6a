//! Running a part of a test in a process of its own: the test binary calls itself again.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use keyward_embedded::{Embedded, Options};
use keyward_engine::{Json, Put, Store};
use keyward_key::Key;

/// Which part to play, and in which directory.
pub const ROLE: &str = "KEYWARD_TEST_ROLE";
pub const DIRECTORY: &str = "KEYWARD_TEST_DIRECTORY";

/// A command that runs this test binary as a child, playing `role` in `directory`. The child runs
/// only the test called `test`, which must hand over to [`role`] first.
pub fn command(test: &str, role: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    play(&mut command, test, role, directory);
    command
}

/// The same, but started by another program (`unshare …`) that ends in running a command.
pub fn command_by(program: &[&str], test: &str, role: &str, directory: &Path) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).arg(std::env::current_exe().unwrap());
    play(&mut command, test, role, directory);
    command
}

fn play(command: &mut Command, test: &str, role: &str, directory: &Path) {
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(DIRECTORY, directory);
}

/// The role and directory, if this process is a child.
pub fn role() -> Option<(String, std::path::PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(DIRECTORY)?.into()))
}

/// Everything a child printed.
pub fn printed(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A current-thread runtime for one piece of work.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

pub fn open(directory: impl AsRef<Path>) -> Store {
    Store::new(Embedded::open(directory.as_ref(), Options::default()).unwrap())
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn put(text: &str) -> Put {
    Put::new(Json::parse(text.to_owned()).unwrap())
}

/// Whether a program is on this machine; tests that need one say so instead of passing quietly.
pub fn needs(program: impl AsRef<OsStr>) {
    let program = program.as_ref();
    let found = Command::new(program).arg("--version").output();
    assert!(found.is_ok(), "this test needs the program {program:?}; install it");
}
