//! A file that is replaced as a whole, and kept as it was.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// What a configuration has at most.
const BYTES_MAX: u64 = 64 << 20;

/// A file, and what is in it: nothing, if there is none.
pub struct File {
    /// Where it is. Where a link was named, that is what the link names.
    path: PathBuf,
    pub text: String,
    exists: bool,
}

impl File {
    pub fn read(path: &Path) -> Result<Self> {
        let unread = |error| Failure::file(format_args!("cannot read {}", path.display()), &error);
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (path, text) = (path.to_owned(), String::new());
                return Ok(Self { path, text, exists: false });
            }
            Err(error) => return Err(unread(error)),
        };
        if fs::metadata(&path).map_err(unread)?.len() > BYTES_MAX {
            return Err(unread(io::Error::other("it is too large for a configuration")));
        }
        let text = fs::read_to_string(&path).map_err(unread)?;
        Ok(Self { path, text, exists: true })
    }

    /// Gives the file another text, whole or not at all; what it was is kept beside it, in the file that
    /// is returned. Who may read the file stays; a new one is its owner's only.
    pub fn replace(&self, text: &str) -> Result<Option<PathBuf>> {
        let path = &self.path;
        let failed = |error| Failure::file(format_args!("cannot write {}", path.display()), &error);
        let part = beside(path, ".part");
        self.replace_by(&part, text).map_err(|error| {
            // What cannot be removed has a name that says what it is.
            let _ = fs::remove_file(&part);
            failed(error)
        })
    }

    fn replace_by(&self, part: &Path, text: &str) -> io::Result<Option<PathBuf>> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        // A link that somebody put there is not followed.
        clear(part)?;
        let mut open = OpenOptions::new();
        let mut written = open.write(true).create_new(true).mode(0o600).open(part)?;
        written.write_all(text.as_bytes())?;
        let mut backup = None;
        if self.exists {
            written.set_permissions(fs::metadata(&self.path)?.permissions())?;
            let kept = beside(&self.path, ".bak");
            clear(&kept)?;
            fs::copy(&self.path, &kept)?;
            backup = Some(kept);
        }
        written.sync_all()?;
        fs::rename(part, &self.path)?;
        Ok(backup)
    }
}

/// Makes sure that nothing is there.
fn clear(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}
