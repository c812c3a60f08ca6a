//! A folder that policies are exported to.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::export::{FILE, FOLDER};

/// A folder, in which no symbolic link is followed: whatever is put there by others, nothing outside is
/// read or written. Where the folder itself is, is the operator's affair.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    root: PathBuf,
}

/// What a file begins as: written whole under such a name, and then renamed.
const PART: &str = ".policy.md.";

impl Folder {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Writes a policy, whole or not at all. A file that has these bytes already is left as it is.
    pub fn write(&self, name: &str, bytes: &[u8], mark: &str) -> io::Result<()> {
        std::fs::create_dir_all(&self.root)?;
        let policies = enter_or_make(&self.open()?, FOLDER)?;
        let folder = enter_or_make(&policies, name)?;
        sweep(&folder)?;
        if has(&folder, bytes)? {
            return Ok(());
        }
        let part = format!("{PART}{mark}.part");
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        let file = rustix::fs::openat(&folder, &*part, flags | OFlags::CLOEXEC, mode)?;
        // Says that somebody is at it: what nobody holds is swept away by the next.
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut file = File::from(file);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let placed =
            written.and_then(|()| Ok(rustix::fs::renameat(&folder, &*part, &folder, FILE)?));
        if placed.is_err() {
            // What is left is swept away by the next, if this fails too.
            let _ = rustix::fs::unlinkat(&folder, &*part, AtFlags::empty());
        }
        placed
    }

    /// Removes a policy; one that is not there is removed already. Other files beside it stay, and their
    /// folder with them.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let Some(policies) = self.policies()? else { return Ok(()) };
        let Some(folder) = absent(enter(&policies, name))? else { return Ok(()) };
        absent(rustix::fs::unlinkat(&folder, FILE, AtFlags::empty()).map_err(io::Error::from))?;
        sweep(&folder)?;
        match rustix::fs::unlinkat(&policies, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The names of the policies that are there, each with the size of its file.
    pub fn list(&self, mut see: impl FnMut(String, u64)) -> io::Result<()> {
        let Some(policies) = self.policies()? else { return Ok(()) };
        for entry in Dir::read_from(&policies)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            // What is no folder of ours is nobody's business here.
            let Ok(folder) = enter(&policies, name) else { continue };
            let Ok(found) = rustix::fs::statat(&folder, FILE, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
                see(name.to_owned(), u64::try_from(found.st_size).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// The bytes of a policy's file, if there are at most so many.
    pub fn read(&self, name: &str, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(policies) = self.policies()? else { return Ok(None) };
        let Some(folder) = absent(enter(&policies, name))? else { return Ok(None) };
        read(&folder, bytes_max)
    }

    fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.root, flags, Mode::empty())?)
    }

    fn policies(&self) -> io::Result<Option<OwnedFd>> {
        match absent(self.open())? {
            Some(root) => absent(enter(&root, FOLDER)),
            None => Ok(None),
        }
    }
}

fn enter(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            let message =
                format!("{name:?} in the export is no folder, and links are not followed");
            io::Error::new(io::ErrorKind::NotADirectory, message)
        }
        error => error.into(),
    })
}

fn enter_or_make(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => enter(parent, name),
        Err(error) => Err(error.into()),
    }
}

fn read(folder: &OwnedFd, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    // Not waited for: a pipe that somebody put there has no other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(folder, FILE, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() > bytes_max {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn has(folder: &OwnedFd, bytes: &[u8]) -> io::Result<bool> {
    Ok(read(folder, bytes.len() as u64)?.is_some_and(|found| found == bytes))
}

/// Removes what writers that died have left.
fn sweep(folder: &OwnedFd) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_part = |name: &[u8]| name.starts_with(PART.as_bytes()) && name.ends_with(b".part");
        if !is_part(name.to_bytes()) {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            absent(rustix::fs::unlinkat(folder, name, AtFlags::empty()).map_err(io::Error::from))?;
        }
    }
    Ok(())
}

/// What is not there is no error.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
