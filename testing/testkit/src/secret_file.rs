use std::fs::{OpenOptions, Permissions, set_permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file as one with a secret in it has to be: for its owner alone.
pub fn write_secret(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> io::Result<()> {
    let path = path.as_ref();
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // One that was there keeps its mode otherwise.
    set_permissions(path, Permissions::from_mode(0o600))?;
    file.write_all(text.as_ref())
}
