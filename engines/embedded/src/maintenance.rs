//! Whole-store work: backup, restore, compaction.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use heed::CompactionOption;
use keyward_engine::{Clock, Result, Row, SystemClock};
use keyward_key::KeyRange;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use crate::Options;
use crate::commit::{Failure, Transaction, latest_revision};
use crate::directory::{Gate, data_file, holds_store, sync};
use crate::environment::Environment;
use crate::error::{at, corrupt, from_lmdb, misplaced};
use crate::pages::{self, Salvaged};
use crate::registry::wait_if_closing;

/// What compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// The size of the data file before.
    pub bytes_before: u64,
    /// The size of the data file after.
    pub bytes_after: u64,
}

/// How many expired entries compaction reclaims in one transaction.
const RECLAIMED_AT_ONCE: usize = 10_000;

/// Writes a consistent copy of an open store into a new file, while others read and write. A damaged
/// store is refused: its copy would be as damaged, and take the place of a better one.
pub(crate) fn backup(environment: &Environment, file: &Path) -> Result<()> {
    let exists = || misplaced(format!("{} exists already", file.display()));
    if file.exists() {
        return Err(exists());
    }
    environment.verify(&KeyRange::all())?;
    let unfinished = unfinished(file);
    copy(environment, &unfinished)?;
    let moved = rustix::fs::renameat_with(CWD, &unfinished, CWD, file, RenameFlags::NOREPLACE);
    if let Err(error) = moved {
        // Whatever is in the way, the copy is of no use under its present name.
        let _ = fs::remove_file(&unfinished);
        return Err(match error {
            Errno::EXIST => exists(),
            error => at("cannot create", file)(error.into()),
        });
    }
    sync(directory_of(file))
}

/// Makes a new store of a backup. Nothing may stand where the store shall be.
pub fn restore(directory: &Path, backup: &Path, options: Options) -> Result<()> {
    // Looked at first, so that a mistaken name leaves no directory behind.
    let size = fs::metadata(backup).map_err(at("cannot read", backup))?.len();
    if size == 0 {
        return Err(corrupt(format!("{} is empty, and no backup", backup.display())));
    }
    let gate = Gate::lock(directory, options.write_timeout)?;
    if gate.is_created()? {
        return Err(misplaced(format!(
            "there is already a store in {}; restore into a new directory",
            directory.display()
        )));
    }
    gate.create(|place| {
        let data = data_file(place);
        fs::copy(backup, &data).map_err(at("cannot copy", backup))?;
        private(&data)?;
        let environment = Environment::open(place, &options, true)?;
        let checked =
            environment.verify(&KeyRange::all()).and_then(|()| skip_revisions(&environment));
        environment.close();
        checked
    })
}

/// Rewrites a store without free pages and expired entries. Nobody may have it open.
pub fn compact(directory: &Path, options: Options) -> Result<Compacted> {
    if !holds_store(directory)? {
        return Err(misplaced(format!("there is no store in {}", directory.display())));
    }
    let gate = Gate::lock(directory, options.write_timeout)?;
    wait_if_closing(gate.path(), options.write_timeout)?;
    let _alone = gate.enter_alone()?;
    gate.prepare()?;
    let size = || {
        let data = data_file(gate.path());
        fs::metadata(&data).map(|found| found.len()).map_err(at("cannot read", &data))
    };
    let bytes_before = size()?;
    gate.create(|place| {
        let environment = Environment::open(gate.path(), &options, true)?;
        let copied = environment
            .verify(&KeyRange::all())
            .and_then(|()| reclaim_all(&environment, &options))
            .and_then(|()| copy(&environment, &data_file(place)));
        environment.close();
        copied
    })?;
    Ok(Compacted { bytes_before, bytes_after: size()? })
}

/// Hands over every entry of a store that can still be read, in no promised order, until told to
/// stop: for a store that is damaged. The store is not changed. Nobody may have it open. Blocks.
pub fn salvage(directory: &Path, mut take: impl FnMut(Row) -> ControlFlow<()>) -> Result<Salvaged> {
    if !holds_store(directory)? {
        return Err(misplaced(format!("there is no store in {}", directory.display())));
    }
    let time_max = Options::default().write_timeout;
    let gate = Gate::lock(directory, time_max)?;
    wait_if_closing(gate.path(), time_max)?;
    let _alone = gate.enter_alone()?;
    pages::salvage(&data_file(gate.path()), &SystemClock, &mut take)
}

/// Copies a store into a new file, which nobody else may read.
fn copy(environment: &Environment, file: &Path) -> Result<()> {
    let mut options = File::options();
    let created = options.write(true).create(true).truncate(false).mode(0o600).open(file);
    let mut copied = created.map_err(at("cannot create", file))?;
    // A file that a killed process left behind is written over, but not one that is being written.
    copied.try_lock().map_err(|error| at("cannot write", file)(error.into()))?;
    copied.set_len(0).map_err(at("cannot write", file))?;
    private(file)?;
    let result = environment
        .env
        .copy_to_file(&mut copied, CompactionOption::Enabled)
        .map_err(|error| from_lmdb(&format!("cannot copy the store to {}", file.display()), error))
        .and_then(|()| copied.sync_all().map_err(at("cannot sync", file)));
    if result.is_err() {
        // Whatever is left of it is of no use.
        let _ = fs::remove_file(file);
    }
    result
}

/// Moves the revision on, past every version and revision that the store may have given out after
/// the backup was made, or after an earlier restore of it: those must never be given out again.
/// The time of the restore gives a number that is larger, unless the store has made more than a
/// million commits in every second of its life.
fn skip_revisions(environment: &Environment) -> Result<()> {
    let failed = |error| from_lmdb("cannot restore", error);
    let mut txn = environment.env.write_txn().map_err(failed)?;
    let milliseconds = u64::try_from(SystemClock.now().as_millisecond()).unwrap_or(0);
    let revision = (latest_revision(&environment.tables, &txn)? + 1).max(milliseconds << 10);
    let log = environment.tables.log;
    log.clear(&mut txn).map_err(failed)?;
    // A commit that changed nothing holds the place, so that no watch resumes across the gap.
    log.put(&mut txn, &revision.to_be_bytes(), &[]).map_err(failed)?;
    txn.commit().map_err(failed)
}

fn reclaim_all(environment: &Environment, options: &Options) -> Result<()> {
    let failed = |error| from_lmdb("cannot compact", error);
    loop {
        let txn = environment.env.write_txn().map_err(failed)?;
        let mut txn = Transaction::new(txn, environment.tables, &SystemClock)?;
        let reclaimed = match txn.tidy(options.history, RECLAIMED_AT_ONCE) {
            Ok(reclaimed) => reclaimed,
            Err(Failure::Refused(error) | Failure::Broken(error)) => return Err(error),
        };
        txn.commit().map_err(failed)?;
        if !reclaimed {
            return Ok(());
        }
    }
}

fn private(file: &Path) -> Result<()> {
    let permissions = fs::Permissions::from_mode(0o600);
    fs::set_permissions(file, permissions).map_err(at("cannot protect", file))
}

fn unfinished(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    file.with_file_name(name)
}

fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
