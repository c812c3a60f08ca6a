//! Earlier versions of entries.

use keyward::agents::{Namespace, PastPage};

use super::super::queries::PAGE_BYTES_MAX;
use super::super::records::Changed;
use super::change::changed;
use super::{Reached, Terms};
use crate::identity::{Identity, Need};
use crate::problem::Result;

/// One page of earlier versions of an entry, the newest first; also of one that was deleted.
pub async fn history(
    who: &Identity,
    reached: &Reached<'_>,
    key: &str,
    before: Option<u64>,
    limit: usize,
) -> Result<PastPage> {
    reached.require(who, Need::Read)?;
    let key = key.to_owned();
    let read = |namespace: Namespace| async move {
        namespace.history_page(&key, before, limit, PAGE_BYTES_MAX).await
    };
    reached.beside(who, read).await
}

/// Gives an entry the value and metadata it had in an earlier version, as a new version.
pub async fn restore(
    who: &Identity,
    reached: &Reached<'_>,
    key: &str,
    number: u64,
    terms: &Terms,
) -> Result<Changed> {
    reached.admit(who, key)?;
    changed(reached, key, terms, |namespace, expect| async move {
        namespace.restore(key, number, expect).await
    })
    .await
}

/// Takes the value and metadata of an earlier version away, for good. False if they were gone.
pub async fn redact(who: &Identity, reached: &Reached<'_>, key: &str, number: u64) -> Result<bool> {
    reached.admit(who, key)?;
    Ok(reached.namespace.redact(key, number).await?)
}
