//! How long versions are kept: at least as long as their record lives.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Commit, Entry, Expect, Expiry, Json, Put, Want};
use keyward_key::Key;

use super::{prefix, rows, seq_of};
use crate::bookkeeping::Bookkeeping;
use crate::space::Space;
use crate::{Error, Result};

/// How many versions get another end in one commit at most.
const TOGETHER_MAX: usize = 64;
/// How often this is begun again because others change the same versions.
const ATTEMPTS_MAX: usize = 8;

/// When the versions of a record end: as much later than the record as that has left. So they are
/// not to be written again each time that its life begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub expiry: Expiry,
    pub at: Timestamp,
}

impl End {
    /// Of versions whose record ends so.
    pub fn beyond(expiry: Expiry, now: Timestamp) -> Self {
        match expiry {
            Expiry::After(ttl) => {
                let twice = ttl.saturating_mul(2);
                Self { expiry: Expiry::After(twice), at: later(now, twice) }
            }
            Expiry::At(at) => {
                let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                let at = later(at, left);
                Self { expiry: Expiry::At(at), at }
            }
        }
    }
}

/// The version that says that a record was removed ends like one of a record which was written now,
/// and not before the others; where the record had no end, never.
pub(super) fn end_of_removal(space: &Space, expires: Option<Timestamp>) -> Option<End> {
    let now = space.shared.clock.now();
    let had = End::beyond(Expiry::At(expires?), now);
    let declared = space.access.space.lifetime.map(|lifetime| lifetime.ttl);
    let fresh = declared.map(|ttl| End::beyond(Expiry::After(ttl), now));
    Some(fresh.filter(|fresh| fresh.at > had.at).unwrap_or(had))
}

/// Makes the versions of a record that is to end so live at least as long, in commits of their own,
/// which may come before the record's: what lives longer than needed harms nobody. Gives until when
/// they are all kept.
pub(crate) async fn prolong(
    space: &Space,
    key: &Key,
    kept: &Bookkeeping,
    expiry: Option<Expiry>,
) -> Result<Option<i64>> {
    let (Some(until_ms), Some(_)) = (kept.past_until_ms, space.access.space.history) else {
        return Ok(kept.past_until_ms);
    };
    let now = space.shared.clock.now();
    let ends = expiry.map(|expiry| match expiry {
        Expiry::After(ttl) => later(now, ttl),
        Expiry::At(at) => at,
    });
    if ends.is_some_and(|ends| ends.as_millisecond() <= until_ms) {
        return Ok(kept.past_until_ms);
    }
    let end = expiry.map(|expiry| End::beyond(expiry, now));
    for _ in 0..ATTEMPTS_MAX {
        if rewrite(space, key, end).await? {
            return Ok(end.map(|end| end.at.as_millisecond()));
        }
    }
    Err(Error::Contended { key: key.clone(), attempts: ATTEMPTS_MAX })
}

/// Writes all versions again that end earlier. False if somebody changed one meanwhile.
async fn rewrite(space: &Space, key: &Key, end: Option<End>) -> Result<bool> {
    let store = &space.shared.store;
    let prefix = prefix(&space.access.space.name, key);
    let limits = *store.limits();
    let together = TOGETHER_MAX.min(limits.commit_keys_max);
    let mut before = None;
    loop {
        let page = rows(space, &prefix, before, together, Want::Entries).await?;
        let more = page.len() == together;
        let mut commit = Commit::new();
        let mut bytes = 0;
        for row in page {
            before = Some(seq_of(&row.key)?);
            let Some(Entry { value, metadata, version, expires, .. }) = row.entry else { continue };
            if expires.is_none_or(|expires| end.is_some_and(|end| end.at <= expires)) {
                continue;
            }
            let metadata_bytes = metadata.as_ref().map_or(0, Json::len);
            let row_bytes = 2 * row.key.as_bytes().len() + value.len() + metadata_bytes;
            if bytes > 0 && bytes + row_bytes > limits.commit_bytes_max {
                if !store.commit(std::mem::take(&mut commit)).await?.is_applied() {
                    return Ok(false);
                }
                bytes = 0;
            }
            bytes += row_bytes;
            let put = Put { value, metadata, expiry: end.map(|end| end.expiry) };
            commit = commit.check(row.key.clone(), Expect::Version(version)).put(row.key, put);
        }
        if bytes > 0 && !store.commit(commit).await?.is_applied() {
            return Ok(false);
        }
        if !more {
            return Ok(true);
        }
    }
}

fn later(at: Timestamp, time: Duration) -> Timestamp {
    at.saturating_add(time).unwrap_or(at)
}
