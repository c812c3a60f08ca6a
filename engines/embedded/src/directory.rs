//! The directory of a store: who has it open, and how it comes into being.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use keyward_engine::{Error, ErrorKind, Result};

use crate::error::{at, corrupt, misplaced};
use crate::holder::Holder;
use crate::place;

const DATA: &str = "data.mdb";
const LMDB_LOCK: &str = "lock.mdb";
const GATE: &str = "keyward.lock";
const USERS: &str = "keyward.users";
const HOLDER: &str = "keyward.writer";
const CREATING: &str = "creating";

/// Room for about two thousand readers at once.
const LMDB_LOCK_BYTES: u64 = 128 << 10;

/// The longest pause between two tries to lock the gate.
const GATE_PAUSE_MAX: Duration = Duration::from_millis(50);

/// A store's directory with its gate locked: nobody else opens, creates, restores or compacts the
/// store meanwhile. The gate opens when this is dropped.
pub(crate) struct Gate {
    path: PathBuf,
    _file: File,
}

/// Says that this process has the store open, as long as it lives.
pub(crate) struct User {
    _file: File,
}

impl Gate {
    /// Finds or makes the directory and locks its gate, if that can be done within this time.
    pub(crate) fn lock(directory: &Path, time_max: Duration) -> Result<Self> {
        make_directory(directory)?;
        let path = fs::canonicalize(directory).map_err(at("cannot open", directory))?;
        refuse_foreign_directories(&path)?;
        place::refuse_network_file_systems(&path)?;
        let file = private_file(&path.join(GATE))?;
        lock_in_time(&file, &path, time_max)?;
        Ok(Self { path, _file: file })
    }

    /// The directory, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a store.
    pub(crate) fn is_created(&self) -> Result<bool> {
        if holds_store(&self.path)? {
            return Ok(true);
        }
        if is_there(&self.path.join(USERS))? {
            // Only users of a store leave this file behind.
            return Err(corrupt(format!(
                "{} is missing, but there was a store; put it back, or remove the directory",
                data_file(&self.path).display()
            )));
        }
        Ok(false)
    }

    /// Makes the store's data file, or makes it anew: `fill` writes it in a directory of its own, and
    /// it takes its place whole or not at all, whenever the process is killed. When this returns,
    /// it is durable there.
    pub(crate) fn create(&self, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.settle()?;
        let creating = self.path.join(CREATING);
        private_directory(&creating).map_err(at("cannot create", &creating))?;
        let created = fill(&creating).and_then(|()| {
            let (file, data) = (creating.join(DATA), self.path.join(DATA));
            sync(&file)?;
            sync_parent(&self.path)?;
            fs::rename(&file, &data).map_err(at("cannot create", &data))
        });
        // Also what is left of a failed attempt is in the way.
        created.and(self.settle())
    }

    /// Finishes what a killed process began: with the gate locked, nobody is still at it.
    pub(crate) fn settle(&self) -> Result<()> {
        let creating = self.path.join(CREATING);
        if !creating.exists() {
            return Ok(());
        }
        // It may have put a new data file in place, and not come to making that durable. Whoever
        // commits to that file promises that it is.
        sync(&self.path)?;
        fs::remove_dir_all(&creating).map_err(at("cannot remove", &creating))
    }

    /// Registers this process as a user of the store, unless users of another PID namespace are
    /// there. Says whether it is the only one.
    pub(crate) fn enter(&self) -> Result<(User, bool)> {
        let path = self.path.join(USERS);
        let mut file = private_file(&path)?;
        let ours = place::pid_namespace().unwrap_or_default().into_bytes();
        // Anything, after a power loss.
        let mut theirs = Vec::new();
        file.read_to_end(&mut theirs).map_err(at("cannot read", &path))?;
        let alone = match file.try_lock() {
            Ok(()) => {
                // Nobody else: from now on our namespace counts.
                if ours != theirs {
                    note_namespace(&mut file, &ours).map_err(at("cannot write", &path))?;
                }
                // Dropping to a shared lock is safe, since the gate is locked.
                file.unlock().map_err(at("cannot lock", &path))?;
                true
            }
            Err(TryLockError::WouldBlock) => {
                if !ours.is_empty() && !theirs.is_empty() && ours != theirs {
                    return Err(place::other_pid_namespace(&self.path));
                }
                false
            }
            Err(TryLockError::Error(error)) => return Err(at("cannot lock", &path)(error)),
        };
        file.lock_shared().map_err(at("cannot lock", &path))?;
        Ok((User { _file: file }, alone))
    }

    /// Registers this process as the only user of the store.
    pub(crate) fn enter_alone(&self) -> Result<User> {
        let path = self.path.join(USERS);
        let file = private_file(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(User { _file: file }),
            Err(TryLockError::WouldBlock) => Err(open_elsewhere(&self.path)),
            Err(TryLockError::Error(error)) => Err(at("cannot lock", &path)(error)),
        }
    }

    /// Looks at the data file before LMDB maps it, and gives LMDB's lock file its space: written to
    /// through a map, it would kill the process on a full disk.
    pub(crate) fn prepare(&self) -> Result<()> {
        let data = self.path.join(DATA);
        let size = fs::metadata(&data).map_err(at("cannot read", &data))?.len();
        if size == 0 {
            // LMDB would quietly make a new store of it.
            return Err(corrupt(format!("{} is empty: it was damaged", data.display())));
        }
        reserve(&self.path.join(LMDB_LOCK))
    }
}

pub(crate) fn open_elsewhere(directory: &Path) -> Error {
    let message = format!("{} is open elsewhere; close it there first", directory.display());
    Error::new(ErrorKind::Unavailable, message)
}

pub(crate) fn data_file(directory: &Path) -> PathBuf {
    directory.join(DATA)
}

/// Whether there is a store in a directory.
pub(crate) fn holds_store(directory: &Path) -> Result<bool> {
    is_there(&data_file(directory))
}

/// Whether a file is there, also as a link that leads nowhere: what cannot be looked at is not
/// absent.
fn is_there(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at("cannot look at", path)(error)),
    }
}

fn make_directory(directory: &Path) -> Result<()> {
    match private_directory(directory) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(misplaced(format!(
            "cannot create {}: the directory it lies in does not exist",
            directory.display()
        ))),
        Err(error) => Err(at("cannot create", directory)(error)),
    }
}

/// Refuses a directory that is no store and holds something else: it was probably meant for
/// something else.
fn refuse_foreign_directories(path: &Path) -> Result<()> {
    let listing = fs::read_dir(path).map_err(at("cannot read", path))?;
    let mut foreign = None;
    for file in listing {
        let name = file.map_err(at("cannot read", path))?.file_name();
        if name == DATA {
            return Ok(());
        }
        let ours = [LMDB_LOCK, GATE, USERS, HOLDER, CREATING, "lost+found"];
        if !ours.iter().any(|known| name == *known) {
            foreign.get_or_insert(name);
        }
    }
    match foreign {
        None => Ok(()),
        Some(name) => Err(misplaced(format!(
            "{} is not a Keyward store, and not empty: it holds {name:?}; name a directory that is \
             new or empty",
            path.display()
        ))),
    }
}

/// Opens the record of who holds the write lock.
pub(crate) fn holder_file(directory: &Path) -> Result<File> {
    private_file(&directory.join(HOLDER))
}

/// Locks a gate. `flock` has no timed wait, so it is tried again and again; the gate is locked only
/// for moments, except by a compaction or a process that was stopped.
#[allow(
    clippy::disallowed_methods,
    reason = "nothing tells when a lock of another process is free"
)]
fn lock_in_time(file: &File, directory: &Path, time_max: Duration) -> Result<()> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(at("cannot lock", directory)(error)),
            Err(TryLockError::WouldBlock) if began.elapsed() >= time_max => break,
            Err(TryLockError::WouldBlock) => thread::sleep(pause),
        }
        pause = (pause * 2).min(GATE_PAUSE_MAX);
    }
    let holder = flock_holder(file).map_or_else(String::new, |holder| format!(": {holder}"));
    let message = format!(
        "another process has been opening or compacting {} for at least {:.1} s{holder}",
        directory.display(),
        began.elapsed().as_secs_f64()
    );
    Err(Error::new(ErrorKind::Unavailable, message))
}

/// The process that holds an exclusive lock of a file, if the system tells beyond doubt. Files are
/// told apart by their inodes alone: the numbers of devices there are not always those of `stat`.
fn flock_holder(file: &File) -> Option<Holder> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let mut holders = locks.lines().filter_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, place, ..] = fields[..] else { return None };
        let found = place.rsplit(':').next() == Some(inode.as_str());
        found.then(|| pid.parse().ok()).flatten()
    });
    let holder = holders.next().filter(|_| holders.next().is_none())?;
    Holder::find(holder)
}

fn reserve(lock: &Path) -> Result<()> {
    let file = private_file(lock)?;
    if file.metadata().map_err(at("cannot read", lock))?.len() >= LMDB_LOCK_BYTES {
        return Ok(());
    }
    let reserved =
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, LMDB_LOCK_BYTES);
    match reserved {
        // Where a file system cannot reserve, LMDB makes the file itself.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        Err(error) => Err(at("cannot reserve", lock)(error.into())),
    }
}

fn note_namespace(file: &mut File, namespace: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(namespace)
}

fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

fn private_file(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map_err(at("cannot open", path))
}

/// Makes a file or directory durable.
pub(crate) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(at("cannot sync", path))
}

/// Makes the name of a directory durable. Who may not list the directory that it lies in cannot do
/// this, and can use the store nevertheless.
fn sync_parent(directory: &Path) -> Result<()> {
    match directory.parent().map(|parent| (parent, File::open(parent))) {
        None => Ok(()),
        Some((_, Err(error))) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Some((parent, file)) => {
            file.and_then(|file| file.sync_all()).map_err(at("cannot sync", parent))
        }
    }
}
