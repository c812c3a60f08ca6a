//! A store as an engine: the contract itself, for programs that put their own services on top.

use futures_util::{Stream, StreamExt};
use keyward::{
    Code, Commit, Cursor, Entry, Json, Key, KeyRange, Limits, Order, Page, Prefix, Revision, Row,
    Scan, ScanOrder, Stats, Store,
};

use super::commits::{Committed, apply};
use super::locks::Roots;
use super::several;
use crate::authorize::{admit_range, admit_raw, runs};
use crate::feed::{Quiet, Told};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::services::Services;
use crate::stores::Served;
use crate::visibility::Sight;

/// The most keys of a commit, keys of a read and rows of a page.
pub const ITEMS_MAX: usize = 1_000;
/// How many rows are read at a time for a page, which ends when it is large enough.
const STEP_ROWS: usize = 100;
/// How large a page grows before it ends; its last rows come on top.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What stands around a key in a body, at most: braces, names, a version, an end.
const AROUND_KEY_BYTES_MAX: usize = 256;

/// How large things may be for those who come through a server that takes bodies of so many bytes. A
/// commit of keys that grow by being escaped may be refused all the same, as a body that is too large.
pub fn limits(store: &Store, body_bytes_max: usize) -> Limits {
    let own = *store.limits();
    let commit_keys_max = (body_bytes_max / (4 * AROUND_KEY_BYTES_MAX)).clamp(1, ITEMS_MAX);
    let commit_bytes_max = body_bytes_max.saturating_sub(commit_keys_max * AROUND_KEY_BYTES_MAX);
    // The largest entry fits into a commit.
    let metadata_bytes_max = own.metadata_bytes_max.min(commit_bytes_max / 4);
    let beside_value = own.key_bytes_max.saturating_add(metadata_bytes_max);
    own.tightened(Limits {
        key_bytes_max: own.key_bytes_max,
        value_bytes_max: commit_bytes_max.saturating_sub(beside_value),
        metadata_bytes_max,
        commit_keys_max,
        commit_bytes_max,
        get_keys_max: (body_bytes_max / (own.key_bytes_max + 8)).min(ITEMS_MAX),
        scan_rows_max: ITEMS_MAX,
    })
}

/// What some keys hold at one moment, in the order of the keys.
pub async fn get_many(
    who: &Identity,
    services: &Services,
    served: &Served,
    keys: &[Key],
) -> Result<Vec<Option<Entry>>> {
    who.require(Need::Read, &Target::Store(&served.name))?;
    for key in keys {
        admit_raw(who, served, key, Need::Read)?;
    }
    let most = served.store().limits().get_keys_max;
    if keys.len() > most {
        let detail = format!("the store reads up to {most} keys at one moment, not {}", keys.len());
        return Err(
            Problem::new(Code::LimitExceeded, detail).hint("Ask for some of them at a time.")
        );
    }
    several::read(who, services, served.store(), keys).await
}

/// Applies all writes if all checks hold, else none.
pub async fn commit(
    who: &Identity,
    served: &Served,
    commit: Commit,
    mark: Option<&Mark>,
) -> Result<Committed> {
    if commit.writes.is_empty() {
        who.require(Need::Read, &Target::Store(&served.name))?;
    }
    // What is to be written comes first: it is what the audit log and the quota go by.
    for write in &commit.writes {
        admit_raw(who, served, write.key(), Need::Write)?;
    }
    for check in &commit.checks {
        admit_raw(who, served, &check.key, Need::Read)?;
    }
    let roots = if runs(who, served) { Roots::Reached } else { Roots::Spared };
    apply(who, served, commit, (None, roots), &[], mark).await
}

/// One page of a range. What the caller does not reach is not there; a page of large entries is
/// shorter than was asked for.
pub async fn scan(
    who: &Identity,
    services: &Services,
    served: &Served,
    asked: Scan,
) -> Result<Page> {
    let sight = admit_range(who, served, &asked.range)?;
    let store = served.store();
    services.reads().run(who, store, read_page(store.clone(), sight, asked)).await
}

async fn read_page(store: Store, sight: Sight, asked: Scan) -> Result<Page> {
    let ordered = store.capabilities().scan_order == ScanOrder::Ordered;
    let mut rest = asked.clone();
    let mut page = Page::default();
    let mut bytes = 0;
    loop {
        rest.limit = (asked.limit - page.rows.len()).min(STEP_ROWS);
        let step = store.scan(&rest).await?;
        let mut wall = None;
        for row in step.rows {
            match sight.closed_over(&row.key) {
                None if !sight.shows(&row.key) => {}
                None => {
                    bytes += size(&row);
                    page.rows.push(row);
                }
                Some(_) if !ordered => {}
                Some(root) => {
                    wall = Some(root);
                    break;
                }
            }
        }
        let more = wall.is_some() || step.next.is_some();
        match (wall, step.next) {
            (Some(root), _) => rest = beyond(rest, root),
            (None, next) => rest.after = next,
        }
        if !more {
            return Ok(page);
        }
        if page.rows.len() == asked.limit || bytes >= PAGE_BYTES_MAX {
            // In key order a page goes on after its last row; an engine's own cursor might name what
            // is not shown.
            page.next = match page.rows.last() {
                Some(last) if ordered => Some(Cursor::after_key(&last.key)),
                _ => rest.after,
            };
            return Ok(page);
        }
    }
}

/// The rest of a scan beyond what is not reached.
fn beyond(scan: Scan, root: &Key) -> Scan {
    let range = match scan.order {
        Order::Ascending => scan.range.after_prefix(&Prefix::from(root)),
        Order::Descending => scan.range.before(root),
    };
    Scan { range, after: None, ..scan }
}

fn size(row: &Row) -> usize {
    let entry = row.entry.as_ref();
    let entry = entry.map_or(0, |entry| {
        entry.value.len() + entry.metadata.as_ref().map_or(0, Json::len) + AROUND_KEY_BYTES_MAX
    });
    row.key.as_bytes().len() + entry
}

/// The changes in a range, after a revision or from now on, as a watch of the engine tells them. Of a
/// commit that changed only what the caller does not reach, the watch tells that it was passed.
pub fn watch(
    who: &Identity,
    served: &Served,
    range: KeyRange,
    since: Option<Revision>,
) -> Result<impl Stream<Item = Result<Told>> + Send + use<>> {
    let sight = admit_range(who, served, &range)?;
    let reached = move |key: &Key| sight.shows(key);
    let events = served.feed.watch(range, since, Quiet::AtOnce, reached);
    Ok(events.map(|event| event.map_err(Problem::from)))
}

/// What the engine knows about its size. Not for a user: it tells of what is others'.
pub async fn stats(who: &Identity, served: &Served) -> Result<Stats> {
    who.require(Need::Read, &Target::Store(&served.name))?;
    if who.bound_to().is_some() {
        return Err(Problem::forbidden("the size of a store tells of what is others'")
            .hint("Use a credential that is not bound to a user."));
    }
    Ok(served.store().stats().await?)
}
