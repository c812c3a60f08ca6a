//! Whether a store can live where it was asked for.

use std::fs;
use std::path::Path;

use keyward_engine::{Error, ErrorKind, Result};

use crate::error::{at, misplaced};

/// File systems on which memory mapped files or their locks do not work between machines, by the
/// numbers that `statfs` gives.
const NETWORK_FILE_SYSTEMS: [(u64, &str); 11] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0BD0_0BD0, "Lustre"),
    (0x1980_0202, "GPFS"),
];

/// Refuses directories on network file systems.
pub(crate) fn refuse_network_file_systems(directory: &Path) -> Result<()> {
    let found = rustix::fs::statfs(directory)
        .map_err(|error| at("cannot look at", directory)(error.into()))?;
    // The field's type differs between machines; the numbers have 32 bits.
    #[allow(clippy::unnecessary_cast, reason = "the type differs between machines")]
    let number = found.f_type as u64 & 0xFFFF_FFFF;
    match network_file_system(number) {
        None => Ok(()),
        Some(name) => Err(misplaced(format!(
            "{} lies on a network file system ({name}), where memory mapped files and locks are \
             not reliable; put the store on a local disk, or use a database server",
            directory.display()
        ))),
    }
}

fn network_file_system(number: u64) -> Option<&'static str> {
    NETWORK_FILE_SYSTEMS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// The least room that a store needs to go on growing.
const ROOM_MIN: u64 = 4 << 20;

/// Refuses a file system that has hardly any room left. Small commits may still fit into free pages
/// of the data file.
pub(crate) fn refuse_full_disks(directory: &Path) -> Result<()> {
    if !is_nearly_full(directory) {
        return Ok(());
    }
    let message = format!(
        "the disk of {} is full: less than {} MiB are free",
        directory.display(),
        ROOM_MIN >> 20
    );
    Err(Error::new(ErrorKind::Full, message))
}

/// Whether the file system has hardly any room left.
pub(crate) fn is_nearly_full(directory: &Path) -> bool {
    disk(directory).is_some_and(|(free, _)| free < ROOM_MIN)
}

/// The free bytes and all bytes of the file system, if it tells.
pub(crate) fn disk(directory: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(directory).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some((bytes(found.f_bavail), bytes(found.f_blocks)))
}

/// The PID namespace of this process, where the system has such a thing.
pub(crate) fn pid_namespace() -> Option<String> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_string_lossy().into_owned())
}

pub(crate) fn other_pid_namespace(directory: &Path) -> Error {
    misplaced(format!(
        "{} is open in a process of another PID namespace (another container?); LMDB could not \
         tell which of its readers are alive, so only processes of one namespace may share a \
         store: share the namespace, or go through one server",
        directory.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_number_and_local_ones_are_not() {
        assert_eq!(network_file_system(0x6969), Some("NFS"));
        assert_eq!(network_file_system(0xFF53_4D42), Some("CIFS"));
        for local in [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E, 0x2FC1_2FC1, 0x794C_7630] {
            assert_eq!(network_file_system(local), None);
        }
    }

    #[test]
    fn a_local_directory_is_taken() {
        refuse_network_file_systems(Path::new(".")).unwrap();
    }
}
