//! Whether the credentials of open watches are still valid: asked once for all watches of a credential.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use blake3::{Hash, Hasher};
use tokio::time::{Instant, sleep};

use super::Auth;

/// The checks of all credentials that have watches open.
#[derive(Debug, Default)]
pub(super) struct Rechecks(Mutex<HashMap<Hash, Weak<Check>>>);

impl Rechecks {
    /// The check of the credential in these headers.
    pub fn of(&self, headers: &HeaderMap) -> Recheck {
        let mut hasher = Hasher::new();
        for value in headers.get_all(header::AUTHORIZATION) {
            hasher.update(&value.len().to_be_bytes()).update(value.as_bytes());
        }
        let credential = hasher.finalize();
        let mut checks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = checks.get(&credential).and_then(Weak::upgrade) {
            return Recheck(check);
        }
        // As many stay as there are credentials with open watches.
        checks.retain(|_, check| check.strong_count() > 0);
        let check = Arc::new(Check::default());
        checks.insert(credential, Arc::downgrade(&check));
        Recheck(check)
    }
}

/// What was found last, and when. Locked while somebody looks, so that others wait for the result.
type Check = tokio::sync::Mutex<Option<(Instant, bool)>>;

/// The check of one credential, shared by its watches.
#[derive(Debug)]
pub(crate) struct Recheck(Arc<Check>);

impl Recheck {
    /// Waits until the credential is no longer valid: noticed within the interval.
    pub async fn invalid(&self, auth: &Auth, headers: &HeaderMap, interval: Duration) {
        // A result may be half the interval old when it is seen, and is looked for as often.
        let half = interval / 2;
        loop {
            sleep(half).await;
            let mut known = self.0.lock().await;
            let valid = match *known {
                Some((at, valid)) if at.elapsed() < half => valid,
                _ => {
                    // A store that does not answer ends no watch.
                    let valid = !matches!(auth.identify(headers).await, Ok(Err(_)));
                    *known = Some((Instant::now(), valid));
                    valid
                }
            };
            if !valid {
                return;
            }
        }
    }
}
