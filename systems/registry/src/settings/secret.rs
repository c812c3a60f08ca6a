use std::io;
use std::path::{Path, PathBuf};

use keyward_engine::read_secret_file;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Where a secret is: `{ env = "NAME" }` or `{ file = "path" }`. The secret itself is read when it is
/// used, and stands in no setting, so that nothing that shows settings shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Secret {
    /// In a variable of the environment.
    Env(String),
    /// In a file; line ends at its end do not belong to it.
    File(PathBuf),
}

impl Secret {
    /// The largest secret.
    pub const BYTES_MAX: usize = 64 << 10;

    /// Reads it. What is not there, empty, too large or no text is refused, and the error never shows
    /// any of it.
    pub fn read(&self) -> Result<String> {
        let text = match self {
            Self::Env(name) => std::env::var(name).map_err(|_| {
                Error::Secret(format!("the variable {name} is not set, or is no text; set it"))
            })?,
            Self::File(path) => read_file(path)?,
        };
        if text.is_empty() || text.len() > Self::BYTES_MAX {
            let (what, most) = (self.place(), Self::BYTES_MAX);
            return Err(Error::Secret(format!("{what} has 1 to {most} bytes, which it has not")));
        }
        Ok(text)
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        match self {
            Self::Env(name) => format!("the secret in the variable {name}"),
            Self::File(path) => format!("the secret in {}", path.display()),
        }
    }

    pub(super) fn beside(&mut self, folder: &Path) {
        if let Self::File(path) = self {
            *path = folder.join(&*path);
        }
    }
}

fn read_file(path: &Path) -> Result<String> {
    let refused = |reason: io::Error| {
        Error::Secret(format!("the secret in {} cannot be read: {reason}", path.display()))
    };
    let text = read_secret_file(path, Secret::BYTES_MAX).map_err(refused)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use keyward_testkit::write_secret;

    use super::*;

    #[test]
    fn a_secret_is_read_without_its_line_end_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write_secret(&path, "s3cret\n").unwrap();
        let secret = Secret::File(path.clone());
        assert_eq!(secret.read().unwrap(), "s3cret");
        assert!(!format!("{secret:?}").contains("s3cret"));
        std::fs::write(&path, b"s3cret\xff").unwrap();
        let refused = secret.read().unwrap_err().to_string();
        assert!(!refused.contains("s3cret"), "{refused}");
        std::fs::write(&path, "").unwrap();
        assert!(secret.read().is_err());
        assert!(Secret::Env("KEYWARD_NO_SUCH_VARIABLE".to_owned()).read().is_err());
    }

    #[test]
    fn a_secret_that_every_account_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "s3cret\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = Secret::File(path).read().unwrap_err().to_string();
        assert!(refused.contains("0644") && refused.contains("chmod 600"), "{refused}");
    }

    #[test]
    fn a_secret_itself_is_no_setting() {
        assert!(serde_json::from_str::<Secret>(r#""s3cret""#).is_err());
        assert!(serde_json::from_str::<Secret>(r#"{"text":"s3cret"}"#).is_err());
        let env: Secret = serde_json::from_str(r#"{"env":"TOKEN"}"#).unwrap();
        assert_eq!(env, Secret::Env("TOKEN".to_owned()));
    }
}
