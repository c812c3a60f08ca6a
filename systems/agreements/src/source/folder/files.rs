//! Files and directories, opened without following links.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use jiff::Timestamp;
use keyward_engine::{Error as StoreError, ErrorKind};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::super::failed;
use crate::{Error, Result};

/// So often a file is read that is written meanwhile.
const TRIES: usize = 3;

/// Opens the folder itself. Where it is, is the operator's affair: links on the way are followed.
pub(super) fn open_root(root: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(root, flags, Mode::empty()).map_err(|error| unread(root, error))
}

/// Opens a directory in the folder. `None` if it is not there.
pub(super) fn enter(root: &OwnedFd, place: &Path, disk: &str) -> Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(root, disk, flags, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(unread(&place.join(disk), error)),
    }
}

/// Reads a regular file whole, as it was at one moment. `None` if it is not there, or something else.
pub(super) fn read(
    directory: &OwnedFd,
    place: &Path,
    disk: &str,
    bytes_max: u64,
) -> Result<Option<Vec<u8>>> {
    let place = place.join(disk);
    for _ in 0..TRIES {
        let Some((mut file, before)) = open(directory, &place, disk)? else { return Ok(None) };
        if size(&before) > bytes_max {
            return Err(too_large(&place, bytes_max));
        }
        let mut bytes = Vec::new();
        let read = (&mut file).take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| unread(&place, error))?;
        let after = rustix::fs::fstat(&file).map_err(|error| unread(&place, error))?;
        if mark(&before) == mark(&after) && size(&after) == bytes.len() as u64 {
            return Ok(Some(bytes));
        }
    }
    Err(failed(format!("{} is being written; it is read when that is done", place.display())))
}

/// The beginning of a regular file.
pub(super) fn beginning(
    directory: &OwnedFd,
    place: &Path,
    disk: &str,
    bytes_max: u64,
) -> Result<Option<Vec<u8>>> {
    let place = place.join(disk);
    let Some((file, _)) = open(directory, &place, disk)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).map_err(|error| unread(&place, error))?;
    Ok(Some(bytes))
}

fn open(directory: &OwnedFd, place: &Path, disk: &str) -> Result<Option<(File, Stat)>> {
    // Without waiting for somebody to write into a pipe; what was opened is looked at afterwards.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, disk, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(unread(place, error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(|error| unread(place, error))?;
    Ok(is_file(&stat).then(|| (File::from(file), stat)))
}

pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// When this state of a file came to be.
pub(super) fn created(stat: &Stat) -> Timestamp {
    let (second, nanosecond) = match stat.st_ctime {
        0 => (stat.st_mtime, i32::try_from(stat.st_mtime_nsec)),
        second => (second, i32::try_from(stat.st_ctime_nsec)),
    };
    Timestamp::new(second, nanosecond.unwrap_or_default()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// What changes whenever a file does.
pub(super) fn mark(stat: &Stat) -> (Timestamp, i64, u64, u64) {
    (created(stat), stat.st_mtime, size(stat), stat.st_ino)
}

pub(super) fn unread(place: &Path, error: impl std::fmt::Display) -> Error {
    failed(format!("{} cannot be read: {error}", place.display()))
}

pub(super) fn too_large(place: &Path, bytes_max: u64) -> Error {
    let message = format!("{} is larger than the {bytes_max} bytes that fit", place.display());
    StoreError::new(ErrorKind::LimitExceeded, message).into()
}
