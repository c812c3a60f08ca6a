//! Conditions that did not hold.

use keyward::{Code, Expect, Key, Store};

use crate::failure::{Failure, Result};

/// Says why a key was not as expected. It is read again to tell, and may have changed since.
pub async fn refusal(store: &Store, key: &Key, expected: &Expect) -> Result<Failure> {
    let current = store.get(key).await?.map(|entry| entry.version);
    let message = match (expected, current) {
        (Expect::Absent, Some(current)) => {
            format!("{key} is there already, at version {current}")
        }
        (Expect::Absent, None) => format!("{key} was there already, and is gone again"),
        (Expect::Version(version), Some(current)) => {
            format!("{key} is at version {current}, not {version}")
        }
        (Expect::Version(version), None) => {
            format!("{key} is not there, so it is not at version {version}")
        }
    };
    let failure = Failure::new(Code::PreconditionFailed, message);
    Ok(failure.hint("Nothing was written. Read the key again (get --meta), then decide."))
}
