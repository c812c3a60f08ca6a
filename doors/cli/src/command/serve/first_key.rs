//! The API key that a server takes as its first one.

use std::env;
use std::path::Path;

use keyward::{Code, read_secret_file};
use keyward_server::Secret;

use crate::failure::{Failure, Result};

/// The variable that holds the key, if no file does.
const VARIABLE: &str = "KEYWARD_FIRST_KEY";
/// The largest file that is taken for one with an API key.
const FILE_BYTES_MAX: usize = 4_096;

/// Reads the key, if there is one.
pub fn read(file: Option<&Path>) -> Result<Option<Secret>> {
    let (text, place) = match file {
        Some(file) => {
            let text = read_secret_file(file, FILE_BYTES_MAX).map_err(|error| {
                refused(format!("the first key cannot be read from {}: {error}", file.display()))
            })?;
            (text, file.display().to_string())
        }
        None => match env::var(VARIABLE) {
            Ok(text) if !text.trim().is_empty() => (text, VARIABLE.to_owned()),
            Err(env::VarError::NotUnicode(_)) => {
                return Err(refused(format!("{VARIABLE} is not UTF-8 text")));
            }
            _ => return Ok(None),
        },
    };
    match text.parse() {
        Ok(secret) => Ok(Some(secret)),
        Err(error) => Err(refused(format!("the first key, in {place}, is no API key: {error}"))),
    }
}

fn refused(message: String) -> Failure {
    Failure::new(Code::NotStarted, message).hint(
        "Give a key as keyward key create prints one, in a file that you alone may read (chmod 600) \
         or in KEYWARD_FIRST_KEY.",
    )
}
