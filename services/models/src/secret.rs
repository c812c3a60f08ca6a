use std::path::{Path, PathBuf};

use keyward_engine::read_secret_file;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Where a key is: `{ env = "NAME" }` or `{ file = "path" }`. The key itself is read when it is used,
/// and stands in no setting, so that nothing that shows settings shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Secret {
    /// In a variable of the environment.
    Env(String),
    /// In a file; line ends at its end do not belong to it.
    File(PathBuf),
}

impl Secret {
    /// The largest key.
    pub const BYTES_MAX: usize = 64 << 10;

    /// Reads it. What is not there, empty, too large or no printable text is refused, and the error
    /// never shows any of it.
    pub fn read(&self) -> Result<String> {
        let refused = |reason: &str| Error::unset("api_key", format!("{} {reason}", self.place()));
        let text = match self {
            Self::Env(name) => {
                std::env::var(name).map_err(|_| refused("is not set, or is no text"))?
            }
            Self::File(path) => {
                read_file(path).map_err(|reason| refused(&format!("cannot be read: {reason}")))?
            }
        };
        if text.is_empty() || text.len() > Self::BYTES_MAX {
            return Err(refused(&format!("has 1 to {} bytes, which it has not", Self::BYTES_MAX)));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused("has characters that no key has, such as spaces"));
        }
        Ok(text)
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        match self {
            Self::Env(name) => format!("the key in the variable {name}"),
            Self::File(path) => format!("the key in {}", path.display()),
        }
    }

    pub(crate) fn beside(&mut self, folder: &Path) {
        if let Self::File(path) = self {
            *path = folder.join(&*path);
        }
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let text = read_secret_file(path, Secret::BYTES_MAX).map_err(|error| error.to_string())?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use keyward_testkit::write_secret;

    use super::*;

    #[test]
    fn a_key_is_read_without_its_line_end_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let secret = Secret::File(path.clone());
        write_secret(&path, "k3y\r\n").unwrap();
        assert_eq!(secret.read().unwrap(), "k3y");
        assert!(!format!("{secret:?} {}", secret.place()).contains("k3y"));
        for bad in [&b"k3y\xff"[..], b"k3y two", b"k3y\nnext", b"", "k3y\u{e9}".as_bytes()] {
            std::fs::write(&path, bad).unwrap();
            let refused = secret.read().unwrap_err();
            assert!(!format!("{refused} {refused:?}").contains("k3y"), "{refused}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(secret.read().unwrap_err().to_string().starts_with("set [models] api_key: "));
        assert!(Secret::Env("KEYWARD_NO_SUCH_VARIABLE".to_owned()).read().is_err());
    }

    #[test]
    fn a_key_itself_is_no_setting() {
        assert!(serde_json::from_str::<Secret>(r#""k3y""#).is_err());
        assert!(serde_json::from_str::<Secret>(r#"{"text":"k3y"}"#).is_err());
        let env: Secret = serde_json::from_str(r#"{"env":"OPENAI_API_KEY"}"#).unwrap();
        assert_eq!(env, Secret::Env("OPENAI_API_KEY".to_owned()));
    }
}
