//! The holder of a store's write lock: each committer records itself when it gets the lock, so that
//! a process that waits in vain can name the one it waits for.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Clock, Error, ErrorKind, SystemClock};

use crate::directory::holder_file;

/// The length of a record: small enough to be written and read in one piece.
const RECORD_BYTES: usize = 64;
/// The longest name of a command that is shown.
const COMMAND_BYTES_MAX: usize = 64;

/// The record of who holds the write lock. It is only read to explain a timeout, so nothing fails
/// when it cannot be written.
pub(crate) struct HolderRecord {
    directory: PathBuf,
    /// Absent if it cannot be created, for example on a full disk.
    file: Option<File>,
    ours: Process,
}

/// A process, told apart from later ones with the same PID by the time it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: u32,
    /// In clock ticks since boot; zero if `/proc` does not tell.
    started: u64,
}

/// A process that holds a lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pid: u32,
    command: Option<String>,
    /// The process was stopped by a signal or a debugger.
    stopped: bool,
}

impl HolderRecord {
    pub(crate) fn open(directory: &Path) -> Self {
        let pid = std::process::id();
        let started = Status::of(pid).map_or(0, |status| status.started);
        Self {
            directory: directory.to_owned(),
            file: holder_file(directory).ok(),
            ours: Process { pid, started },
        }
    }

    /// Records this process as the holder. Must be called with the lock held.
    pub(crate) fn record(&self) {
        let Some(file) = &self.file else { return };
        let since = SystemClock.now().as_millisecond();
        let mut record = [b' '; RECORD_BYTES];
        let Process { pid, started } = self.ours;
        let mut space = &mut record[..];
        // Three numbers always fit. What cannot be written is not needed to go on.
        let _ = io::Write::write_fmt(&mut space, format_args!("{pid} {started} {since}\n"));
        let _ = file.write_all_at(&record, 0);
    }

    /// Explains that the write lock could not be had for this long: nothing was done.
    pub(crate) fn timed_out(&self, waited: Duration) -> Error {
        let directory = self.directory.display();
        let message = match self.holder() {
            Some((holder, since)) => format!(
                "another process has held the write lock of {directory} since {since}: {holder}"
            ),
            None => format!(
                "another process has held the write lock of {directory} for at least {:.1} s",
                waited.as_secs_f64()
            ),
        };
        Error::new(ErrorKind::Unavailable, message)
    }

    /// The process that recorded itself last, and when, unless it is gone. This process does not
    /// hold what it waits for: then the holder is one that leaves no record.
    fn holder(&self) -> Option<(Holder, Timestamp)> {
        let mut record = [0; RECORD_BYTES];
        self.file.as_ref()?.read_exact_at(&mut record, 0).ok()?;
        let (process, since) = parse(&record)?;
        let status = Status::of(process.pid)?;
        let same = process.started == 0 || process.started == status.started;
        (same && process != self.ours).then(|| (Holder::new(process.pid, &status), since))
    }
}

impl Holder {
    /// The process with a PID, if there is one.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        Status::of(pid).map(|status| Self::new(pid, &status))
    }

    fn new(pid: u32, status: &Status) -> Self {
        Self { pid, command: command(pid), stopped: matches!(status.state, 'T' | 't') }
    }
}

/// Such as `pid 4711 (keyward serve), stopped; resume it with kill -CONT 4711, or end it`.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)?;
        if let Some(command) = &self.command {
            write!(f, " ({command})")?;
        }
        if self.stopped {
            write!(f, ", stopped; resume it with kill -CONT {}, or end it", self.pid)?;
        }
        Ok(())
    }
}

/// A record as it was written; one that is torn or from elsewhere has no meaning.
fn parse(record: &[u8]) -> Option<(Process, Timestamp)> {
    let (line, _) = std::str::from_utf8(record).ok()?.split_once('\n')?;
    let mut numbers = line.split(' ');
    let pid = numbers.next()?.parse().ok()?;
    let started = numbers.next()?.parse().ok()?;
    let since: i64 = numbers.next()?.parse().ok()?;
    let since = Timestamp::from_second(since / 1_000).ok()?;
    numbers.next().is_none().then_some((Process { pid, started }, since))
}

/// What `/proc` says about a living process.
struct Status {
    state: char,
    started: u64,
}

impl Status {
    fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the command may contain anything, and is the only field in parentheses.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let started = fields.nth(18)?.parse().ok()?;
        // A zombie holds nothing any more.
        (!matches!(state, 'Z' | 'X')).then_some(Self { state, started })
    }
}

/// The program of a process and its subcommand. Other arguments are left out: they may be secret.
fn command(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut arguments = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let program = arguments.next()?;
    let mut command = Path::new(&*program).file_name()?.to_string_lossy().into_owned();
    let subcommand = arguments.next().filter(|argument| {
        !argument.is_empty()
            && argument.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && !argument.starts_with('-')
    });
    if let Some(subcommand) = subcommand {
        command.push(' ');
        command.push_str(&subcommand);
    }
    let shown = |c: &char| !c.is_control();
    Some(command.chars().filter(shown).take(COMMAND_BYTES_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> [u8; RECORD_BYTES] {
        let mut record = [b' '; RECORD_BYTES];
        record[..text.len()].copy_from_slice(text.as_bytes());
        record
    }

    #[test]
    fn a_record_is_read_and_a_torn_one_is_not() {
        let (process, since) = parse(&record("4711 99 1794780000500\n")).unwrap();
        assert_eq!(process, Process { pid: 4711, started: 99 });
        assert_eq!(since, "2026-11-15T22:00:00Z".parse().unwrap());
        for torn in ["", "4711", "4711 99", "4711 99 1794780 7\n", "x 1 2\n", "1 2 3"] {
            assert!(parse(&record(torn)).is_none(), "{torn:?}");
        }
        assert!(parse(&[0; RECORD_BYTES]).is_none());
    }

    #[test]
    fn a_record_of_a_dead_process_or_of_another_with_its_pid_names_nobody() {
        let directory = std::env::temp_dir();
        let file = directory.join(format!("keyward-holder-{}", std::process::id()));
        let open =
            || File::options().read(true).write(true).create(true).truncate(false).open(&file);
        let other = Process { pid: std::process::id(), started: 1 };
        let records = HolderRecord { directory: directory.clone(), file: open().ok(), ours: other };
        // Longer ago than any process that runs now.
        fs::write(&file, record(&format!("{} 2 0\n", std::process::id()))).unwrap();
        assert!(records.holder().is_none());
        fs::write(&file, record("4194999 0 0\n")).unwrap();
        assert!(records.holder().is_none());
        let us = Status::of(std::process::id()).unwrap().started;
        fs::write(&file, record(&format!("{} {us} 0\n", std::process::id()))).unwrap();
        let (holder, _) = records.holder().unwrap();
        assert!(holder.to_string().starts_with(&format!("pid {} (", std::process::id())));
        fs::remove_file(&file).unwrap();
    }
}
