//! Files that are written whole, or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where an export is written before it is whole.
pub enum Destination<'f> {
    /// Beside the file, so that nobody takes half an export for a whole one.
    Beside { part: PathBuf, file: &'f Path },
    /// Right there: a pipe or a device.
    There(&'f Path),
}

impl<'f> Destination<'f> {
    /// For an export into this file.
    pub fn of(file: &'f Path) -> Self {
        if fs::metadata(file).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            return Self::There(file);
        }
        let mut part = OsString::from(file);
        part.push(".part");
        Self::Beside { part: part.into(), file }
    }

    /// What to write to.
    pub fn written(&self) -> &Path {
        match self {
            Self::Beside { part, .. } => part,
            Self::There(file) => file,
        }
    }

    /// That it cannot be written.
    pub fn failed(&self, error: &io::Error) -> Failure {
        let (Self::Beside { file, .. } | Self::There(file)) = self;
        Failure::file(format_args!("cannot write {}", file.display()), error)
    }

    /// Puts what was written in the file's place.
    pub fn finish(&self, written: &File) -> io::Result<()> {
        match self {
            Self::Beside { part, file } => {
                written.sync_all()?;
                fs::rename(part, file)
            }
            Self::There(_) => Ok(()),
        }
    }

    /// Removes what was written.
    pub fn discard(&self) {
        if let Self::Beside { part, .. } = self {
            // What cannot be removed has a name that says what it is.
            let _ = fs::remove_file(part);
        }
    }
}
