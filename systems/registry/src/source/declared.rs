//! A source as the settings of a registry declare it.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Account, Credentials, Error, Limits, Options};
use crate::{Secret, Settings};

/// What hosts that ask for a token take as a name, if none is set.
const TOKEN_USERNAME: &str = "x-access-token";

impl From<&Settings> for Options {
    fn from(settings: &Settings) -> Self {
        Self {
            repository: settings.repository.as_str().to_owned(),
            branch: settings.branch.clone(),
            folder: settings.folder.clone(),
            include: settings.include.clone(),
            exclude: settings.exclude.clone(),
            credentials: settings.credentials.as_ref().map_or(Credentials::None, credentials),
            limits: Limits {
                blob_bytes_max: settings.limits.blob_bytes_max,
                files_max: settings.limits.files_max,
                fetch_time_max: settings.limits.fetch_time_max,
                ..Limits::default()
            },
            ..Self::new(String::new())
        }
    }
}

fn credentials(declared: &crate::Credentials) -> Credentials {
    let crate::Credentials { token, username, password, ssh_key } = declared;
    let account = |secret: &Secret, username: &str| {
        let (secret, username) = (secret.clone(), username.to_owned());
        Credentials::Account(Arc::new(move || {
            let password = secret.read().map_err(|error| error.to_string())?;
            Ok(Account { username: username.clone(), password })
        }))
    };
    match (token, password, ssh_key) {
        (Some(token), _, _) => account(token, username.as_deref().unwrap_or(TOKEN_USERNAME)),
        (None, Some(password), _) => account(password, username.as_deref().unwrap_or_default()),
        (None, None, Some(key)) => Credentials::SshKey(PathBuf::from(key)),
        (None, None, None) => Credentials::None,
    }
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        Self::Source { message: error.to_string(), retryable: error.is_transient() }
    }
}
