//! Files that hold secrets: API keys, private keys, signing secrets.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a file allows accounts that neither own it nor are in its group: to read it, to write it.
const OTHERS: u32 = 0o006;
/// The part of a file's mode that says who may do what.
const PERMISSIONS: u32 = 0o7777;

/// Reads a file that holds a secret: UTF-8 text of at most `bytes_max` bytes.
///
/// A file that every account on the machine may read or write is refused: its secret is none. The
/// group may have access, as Debian's `ssl-cert` has to TLS keys. No error shows what the file holds.
pub fn read_secret_file(path: &Path, bytes_max: usize) -> io::Result<String> {
    let file = File::open(path)?;
    // Of the open file: the path could name another one by now.
    let about = file.metadata()?;
    let mode = about.mode() & PERMISSIONS;
    // A pipe (`<(…)` of a shell) has no permissions that mean anything.
    if about.is_file() && mode & OTHERS != 0 {
        let reason = format!(
            "every account on this machine may access it (mode {mode:04o}); run chmod 600 {}",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut bytes = Vec::new();
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(invalid(format!("it has more than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8 text".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_that_every_account_may_access_is_refused_with_the_mode_and_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, "s3cret\n").unwrap();
        for mode in [0o644, 0o604, 0o602, 0o666] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let told = read_secret_file(&path, 100).unwrap_err().to_string();
            assert!(told.contains(&format!("mode {mode:04o}")), "{told}");
            assert!(told.contains(&format!("chmod 600 {}", path.display())), "{told}");
            assert!(!told.contains("s3cret"), "{told}");
        }
        for mode in [0o600, 0o640, 0o400, 0o660] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_secret_file(&path, 100).unwrap(), "s3cret\n", "{mode:o}");
        }
    }

    #[test]
    fn what_is_too_large_or_no_text_is_refused_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, b"s3cret\xff").unwrap();
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        for bytes_max in [6, 100] {
            let told = read_secret_file(&path, bytes_max).unwrap_err().to_string();
            assert!(!told.contains("s3cret"), "{told}");
        }
    }
}
