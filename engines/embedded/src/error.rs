//! What LMDB and the file system say, as kinds that tell the caller what to do.

use std::io;
use std::path::Path;

use heed::MdbError;
use keyward_engine::{Error, ErrorKind};

/// An error of LMDB before a transaction was committed: nothing was done.
pub(crate) fn from_lmdb(doing: &str, error: heed::Error) -> Error {
    let (kind, explained) = match &error {
        heed::Error::Mdb(error) => match error {
            MdbError::MapFull => {
                (ErrorKind::Full, "the store has grown to its map_size; open it with a larger one")
            }
            MdbError::TxnFull => (ErrorKind::LimitExceeded, "the commit changes too many pages"),
            MdbError::ReadersFull => (ErrorKind::Unavailable, "too many readers at once"),
            MdbError::MapResized => (
                ErrorKind::Misplaced,
                "another process has grown the store beyond this one's map_size; reopen it with a \
                 larger one",
            ),
            // Trying again does not help, so this is not called unavailable.
            MdbError::Panic => (
                ErrorKind::Internal,
                "an earlier write to the disk failed; close every handle of the store and open it \
                 again",
            ),
            MdbError::PageNotFound
            | MdbError::Corrupted
            | MdbError::Invalid
            | MdbError::VersionMismatch
            // What only a tree can cause that is not as LMDB left it.
            | MdbError::CursorFull
            | MdbError::PageFull
            | MdbError::BadTxn
            | MdbError::Incompatible
            | MdbError::Problem => (ErrorKind::Corrupt, "the data file is damaged"),
            _ => (ErrorKind::Internal, "LMDB refused"),
        },
        heed::Error::Io(error) => return from_io(doing, error),
        _ => (ErrorKind::Internal, "LMDB refused"),
    };
    Error::new(kind, format!("{doing}: {explained}")).caused_by(error)
}

/// An error of the file system.
pub(crate) fn from_io(doing: &str, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ErrorKind::Full
        }
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::OutOfMemory => ErrorKind::Misplaced,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("{doing}: {error}"))
}

pub(crate) fn misplaced(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Misplaced, message)
}

pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

/// An error of the file system about a path, with its name.
pub(crate) fn at<'p>(doing: &'p str, path: &'p Path) -> impl FnOnce(io::Error) -> Error + 'p {
    move |error| from_io(&format!("{doing} {}", path.display()), &error)
}
