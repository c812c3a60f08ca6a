//! Running the program that makes a value, or knows of one.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// The most that a program may print.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// Runs a program to its end and takes what it prints; what it says on standard error is passed on.
/// The program is killed if this is dropped.
pub async fn run(
    program: &OsStr,
    arguments: &[OsString],
    (name, value): (&str, &str),
) -> Result<(ExitStatus, Vec<u8>), String> {
    let unable = |error| format!("cannot run {}: {error}", program.to_string_lossy());
    let mut child = Command::new(program)
        .args(arguments)
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(unable)?;
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = stdout.take(OUTPUT_BYTES_MAX + 1);
        stdout.read_to_end(&mut printed).await.map_err(unable)?;
    }
    if printed.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(format!("it printed more than {OUTPUT_BYTES_MAX} bytes"));
    }
    Ok((child.wait().await.map_err(unable)?, printed))
}

/// How a program ended, in words.
pub fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    }
}
