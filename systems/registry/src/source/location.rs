//! Where a repository is.

use std::path::PathBuf;

use gix::url::Scheme;

use super::{Credentials, Error, Options, Result};

/// Where a repository is, and so how it is read.
#[derive(Debug, Clone)]
pub(super) enum Location {
    /// On this machine: opened in place, and never written to.
    Here(PathBuf),
    /// Elsewhere: fetched into a cache.
    There(Box<gix::Url>),
}

impl Location {
    pub(super) fn new(options: &Options) -> Result<Self> {
        let text = options.repository.as_str();
        let refused = |reason: String| Err(Error::Options(reason));
        if text.is_empty() || text.chars().any(char::is_control) {
            return refused(
                "the address of the repository is empty, or has control characters".to_owned(),
            );
        }
        let url = match gix::url::parse(text.as_bytes()) {
            Ok(url) => url,
            // The parser's own words repeat the address, and with it what may be a password.
            Err(_) => {
                return refused("the address of the repository is no path and no URL".to_owned());
            }
        };
        if url.password().is_some() {
            return refused(format!(
                "the address of the repository on {} has a password in it, which would be seen in logs; \
                 put it into `credentials`",
                url.host().unwrap_or_default()
            ));
        }
        let is_plain = matches!(url.scheme, Scheme::Http | Scheme::Git);
        match (&url.scheme, &options.credentials) {
            (Scheme::File, _) => Self::here(&url),
            (Scheme::Https | Scheme::Http, Credentials::SshKey(_)) => {
                refused("an ssh key is of no use over http; give a token or a password".to_owned())
            }
            (Scheme::Ssh, Credentials::Account(_)) => {
                refused("ssh takes a key, not a token or password; set `ssh_key`".to_owned())
            }
            (_, Credentials::Account(_)) if is_plain => refused(format!(
                "credentials would go over {}:// for everybody to read; use https://",
                url.scheme
            )),
            (Scheme::Https | Scheme::Http | Scheme::Git | Scheme::Ssh, _) => match url.host() {
                Some(host) if !host.is_empty() && !host.starts_with('-') => {
                    Ok(Self::There(Box::new(url)))
                }
                _ => refused(format!("{text:?} names no host")),
            },
            // `ext::` and the like run programs of the address's choosing.
            (scheme, _) => refused(format!(
                "{scheme}: is no way to a repository that is taken; use a path, file://, https://, \
                 ssh://, git:// or http://"
            )),
        }
    }

    fn here(url: &gix::Url) -> Result<Self> {
        if url.host().is_some() {
            return Err(Error::Options(
                "a file:// address names no host; write file:///path".to_owned(),
            ));
        }
        match gix::path::from_bstr(url.path.clone()) {
            Ok(path) => Ok(Self::Here(path.into_owned())),
            Err(_) => Err(Error::Options("the path of the repository is not UTF-8".to_owned())),
        }
    }
}
