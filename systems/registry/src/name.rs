use std::fmt;

use unicode_normalization::UnicodeNormalization;

/// The name of a policy: the base name of its file without the extension, in Unicode's form NFC, so
/// that a name means the same from whichever system it was committed.
///
/// ```
/// use keyward_registry::PolicyName;
///
/// let name = PolicyName::from_path("policies/성균관대학교_학칙.md")?;
/// assert_eq!(name.as_str(), "성균관대학교_학칙");
/// # Ok::<(), keyward_registry::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyName(String);

/// What follows the percent sign of an escape.
const ESCAPED_COLON: &str = "3A";
const ESCAPED_PERCENT: &str = "25";

/// Why a file cannot be a policy by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing is left without the extension.
    #[error("the name is empty; name the file")]
    Empty,
    /// `.` and `..` are places, not names.
    #[error("the name is `.` or `..`; name the file")]
    Dots,
    /// A control character.
    #[error("the name has a control character; rename the file")]
    Control,
    /// A separator of paths, which no file's name can have.
    #[error("the name has a slash or a backslash; rename the file")]
    Separator,
    /// Too long for a key.
    #[error("the name has {0} bytes, more than {max}; shorten it", max = PolicyName::BYTES_MAX)]
    TooLong(usize),
    /// Not UTF-8.
    #[error("the name is not UTF-8; rename the file")]
    NotUnicode,
}

impl PolicyName {
    /// The most bytes of a name, in UTF-8.
    pub const BYTES_MAX: usize = 200;

    /// The name of the policy at a path: what follows the last slash, without `.md` in any case.
    pub fn from_path(path: &str) -> Result<Self, NameError> {
        let base = path.rsplit('/').next().unwrap_or(path);
        let stem = match base.len().checked_sub(3).map(|at| (base.get(..at), base.get(at..))) {
            Some((Some(stem), Some(extension))) if extension.eq_ignore_ascii_case(".md") => stem,
            _ => base,
        };
        Self::new(stem)
    }

    /// The same for a path as git has it.
    pub fn from_path_bytes(path: &[u8]) -> Result<Self, NameError> {
        Self::from_path(std::str::from_utf8(path).map_err(|_| NameError::NotUnicode)?)
    }

    /// A name as it is written, brought to NFC.
    pub fn new(name: &str) -> Result<Self, NameError> {
        // Normalising at most triples a text; what is far too long is not worth the work.
        if name.len() > 16 * Self::BYTES_MAX {
            return Err(NameError::TooLong(name.len()));
        }
        let name: String = name.nfc().collect();
        match name.as_str() {
            "" => Err(NameError::Empty),
            "." | ".." => Err(NameError::Dots),
            _ if name.chars().any(char::is_control) => Err(NameError::Control),
            _ if name.contains(['/', '\\']) => Err(NameError::Separator),
            _ if name.len() > Self::BYTES_MAX => Err(NameError::TooLong(name.len())),
            _ => Ok(Self(name)),
        }
    }

    /// Whether a namespace of Workers KV has the name as it is. Programs join the parts of a key with
    /// colons there, so a colon in a name, and what looks like an escaped one, are escaped in a way that
    /// only Keyward reads.
    pub(crate) fn is_plain_in_namespaces(&self) -> bool {
        let is_escape =
            |text: &str| text.trim_start_matches(ESCAPED_PERCENT).starts_with(ESCAPED_COLON);
        !self.0.contains(':') && !self.0.split('%').skip(1).any(is_escape)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for PolicyName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<PolicyName> for String {
    fn from(name: PolicyName) -> Self {
        name.0
    }
}
