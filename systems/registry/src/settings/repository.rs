use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a repository is: a path, or an address that begins with `https://`, `http://`, `ssh://`,
/// `git://` or `file://`, or the short form `user@host:path` of ssh.
///
/// Other transports are refused: git would run a program of the address's choice for some. An address
/// with a password in it is refused as well; that is what [credentials](crate::Credentials) are for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Repository {
    text: String,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Path,
    FileUrl,
    Url,
    Short,
}

impl Repository {
    /// The most bytes of an address.
    pub const BYTES_MAX: usize = 4_096;

    /// Reads an address.
    pub fn parse(text: impl Into<String>) -> Result<Self, String> {
        let text = text.into();
        let shown = without_secret(&text);
        if text.is_empty() || text.len() > Self::BYTES_MAX {
            return Err(format!("a repository's address has 1 to {} bytes", Self::BYTES_MAX));
        }
        if text.chars().any(char::is_control) {
            return Err("a repository's address has no control characters".to_owned());
        }
        if text.starts_with('-') {
            return Err(format!("{shown:?} could be taken for an option; write ./ before it"));
        }
        let form = form(&text).ok_or_else(|| {
            format!("{shown:?} is no address of a repository that is taken: {HINT}")
        })?;
        if form == Form::Url && shown != text {
            return Err(format!(
                "{shown:?} has a password in it, which would be shown in logs; put it in \
                 credentials"
            ));
        }
        Ok(Self { text, form })
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The directory, of a repository that is opened in place.
    pub fn path(&self) -> Option<&Path> {
        match self.form {
            Form::Path => Some(Path::new(&self.text)),
            Form::FileUrl => self.text.strip_prefix("file://").map(Path::new),
            Form::Url | Form::Short => None,
        }
    }

    /// The scheme, of one that is fetched from.
    pub fn scheme(&self) -> Option<&str> {
        match self.form {
            Form::Path | Form::FileUrl => None,
            Form::Url => self.text.split_once("://").map(|(scheme, _)| scheme),
            Form::Short => Some("ssh"),
        }
    }

    pub(super) fn beside(self, folder: &Path) -> Self {
        match self.form {
            Form::Path => {
                let path: PathBuf = folder.join(&self.text);
                Self { text: path.to_string_lossy().into_owned(), form: Form::Path }
            }
            _ => self,
        }
    }
}

const HINT: &str = "write a path, https://, ssh://, git://, file:// or user@host:path";

fn form(text: &str) -> Option<Form> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let is_absolute = rest.starts_with('/');
        return match scheme {
            "file" => is_absolute.then_some(Form::FileUrl),
            "https" | "http" | "ssh" | "git" => {
                let host = rest.split('/').next().unwrap_or_default();
                let host = host.rsplit('@').next().unwrap_or_default();
                (!host.is_empty() && !rest.starts_with('-') && !host.starts_with('-'))
                    .then_some(Form::Url)
            }
            _ => None,
        };
    }
    // `ext::sh -c …` and the like.
    if text.contains("::") && !text.starts_with(['/', '.']) {
        return None;
    }
    match text.split_once(':') {
        Some((host, path)) if !host.contains('/') && host.contains('@') => {
            let host = host.rsplit('@').next().unwrap_or_default();
            (!host.is_empty() && !host.starts_with('-') && !path.is_empty()).then_some(Form::Short)
        }
        Some((host, _)) if !host.contains('/') && host.len() != 1 => None,
        _ => Some(Form::Path),
    }
}

/// An address without the password that it may have.
fn without_secret(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@').map(|(user, host)| (user.split_once(':'), host)) {
        Some((Some((user, _)), host)) => format!("{scheme}://{user}:…@{host}{path}"),
        _ => text.to_owned(),
    }
}

impl TryFrom<String> for Repository {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl From<Repository> for String {
    fn from(repository: Repository) -> Self {
        repository.text
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Repository({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_addresses_are_told_apart() {
        for (text, path, scheme) in [
            ("./policies", Some("./policies"), None),
            ("/srv/git/p.git", Some("/srv/git/p.git"), None),
            ("정책", Some("정책"), None),
            ("file:///srv/p.git", Some("/srv/p.git"), None),
            ("https://example.org/p.git", None, Some("https")),
            ("ssh://git@example.org:22/p", None, Some("ssh")),
            ("git@example.org:p.git", None, Some("ssh")),
            ("git://127.0.0.1:9418/p", None, Some("git")),
        ] {
            let repository = Repository::parse(text).unwrap();
            assert_eq!((repository.path(), repository.scheme()), (path.map(Path::new), scheme));
        }
    }

    #[test]
    fn other_transports_and_options_are_refused() {
        for text in [
            "",
            "ext::sh -c touch% /tmp/x",
            "fd::17",
            "ftp://example.org/p",
            "-upload-pack=x",
            "ssh://-oProxyCommand=x/p",
            "https://",
            "a\nb",
            "host:path",
            "file://relative",
        ] {
            assert!(Repository::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_password_is_refused_and_not_shown() {
        let refused = Repository::parse("https://ada:s3cret@example.org/p").unwrap_err();
        assert!(refused.contains("ada:…@example.org") && !refused.contains("s3cret"), "{refused}");
        assert!(Repository::parse("ssh://git@example.org/p").is_ok());
    }
}
