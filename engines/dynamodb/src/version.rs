//! Marks that nobody has used before: the versions of commits, and the tokens of requests.

use data_encoding::HEXLOWER;
use keyward_engine::{Error, ErrorKind, Result};

/// 128 random bits as 32 hexadecimal digits. Never the same twice, whichever process makes it, and also after its
/// key was deleted and made again: nothing is counted that could be lost.
pub(crate) fn unused() -> Result<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("there is no randomness: {error}"))
    })?;
    Ok(HEXLOWER.encode(&bits))
}
