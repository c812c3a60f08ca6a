//! The entries of a store.

use keyward::locks::{Ticket, present};
use keyward::records::Merge;
use keyward::rules::hidden_below;
use keyward::{
    Code, Commit, Cursor, Entry, Expect, Expiry, Json, Key, List, Listed, Order, Outcome,
    PageBytes, Prefix, Put, Row, Scan, Store, Version, Want,
};

use super::locks::{Fenced, Roots};
use super::queries::PAGE_BYTES_MAX;
use crate::authorize::{admit, admit_prefix};
use crate::idempotency::{Mark, Replay};
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;
use crate::stores::Served;
use crate::visibility::Sight;

/// How often a patch is tried when others change the same entry.
const PATCH_TRIES: usize = 16;

/// What must be so for a change to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    #[default]
    None,
    /// There is no entry.
    Absent,
    /// There is an entry.
    Present,
    /// The entry has one of these versions.
    OneOf(Vec<Version>),
}

impl Precondition {
    /// What a commit must check, given what is there now.
    fn check(&self, now: Option<&Entry>) -> Result<Option<Expect>> {
        match (self, now) {
            (Self::None, _) => Ok(None),
            (Self::Absent, None) => Ok(Some(Expect::Absent)),
            (Self::Present, Some(entry)) => Ok(Some(Expect::Version(entry.version.clone()))),
            (Self::OneOf(versions), Some(entry)) if versions.contains(&entry.version) => {
                Ok(Some(Expect::Version(entry.version.clone())))
            }
            _ => Err(failed(now)),
        }
    }

    /// The check that it is without a look at what is there, if it is one.
    fn direct(&self) -> Option<Option<Expect>> {
        match self {
            Self::None => Some(None),
            Self::Absent => Some(Some(Expect::Absent)),
            Self::OneOf(versions) => match versions.as_slice() {
                [version] => Some(Some(Expect::Version(version.clone()))),
                _ => None,
            },
            Self::Present => None,
        }
    }
}

fn failed(now: Option<&Entry>) -> Problem {
    let detail = match now {
        Some(entry) => format!("the entry changed: it is at version {}", entry.version),
        None => "the entry does not exist".to_owned(),
    };
    Problem::new(Code::PreconditionFailed, detail)
        .hint("Nothing was written. Read the entry again and retry with its new version.")
}

/// What a change depends on, and by what it is known again.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub expected: Precondition,
    /// The lock that it is made under.
    pub lock: Option<Ticket>,
    pub mark: Option<Mark>,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The new version, unless it was deleted.
    pub version: Option<Version>,
    /// Whether it was made by an earlier request with the same idempotency key.
    pub replayed: bool,
}

/// What a key holds.
pub async fn get(who: &Identity, served: &Served, key: &Key) -> Result<Option<Entry>> {
    admit(who, served, key, Need::Read)?;
    Ok(present(served.store().get(key).await?))
}

/// Sets a key.
pub async fn put(
    who: &Identity,
    served: &Served,
    key: &Key,
    put: Put,
    terms: &Terms,
) -> Result<Written> {
    admit(who, served, key, Need::Write)?;
    let commit = Commit::new().put(key.clone(), put);
    change(who, served, key, commit, terms).await
}

/// Deletes a key; nothing, if it is not set and nothing else is expected.
pub async fn delete(
    who: &Identity,
    served: &Served,
    key: &Key,
    terms: &Terms,
) -> Result<Option<Written>> {
    admit(who, served, key, Need::Write)?;
    let store = served.store();
    if terms.expected == Precondition::None {
        if let Some(mark) = &terms.mark
            && let Some(replay) = mark.replay(store).await?
        {
            let found = Written { version: None, replayed: true };
            return Ok((!replay.was_nothing()).then_some(found));
        }
        if present(store.get(key).await?).is_none() {
            // Remembered, so that the same request deletes nothing that comes later.
            let Some(mark) = &terms.mark else { return Ok(None) };
            let nothing = Commit::new().check(key.clone(), Expect::Absent);
            let outcome = store.commit(mark.of_nothing(store, nothing)?).await?;
            if let Outcome::Applied { .. } = outcome {
                return Ok(None);
            }
        }
    }
    let commit = Commit::new().delete(key.clone());
    change(who, served, key, commit, terms).await.map(Some)
}

/// Merges a part into what a key holds, which need not be there. Metadata and end stay.
pub async fn patch(
    who: &Identity,
    served: &Served,
    key: &Key,
    part: Json,
    terms: &Terms,
) -> Result<Written> {
    admit(who, served, key, Need::Write)?;
    admit(who, served, key, Need::Read)?;
    if let Some(replay) = replayed(served, terms).await? {
        return Ok(replay);
    }
    let merge = Merge::new(part);
    for _ in 0..PATCH_TRIES {
        let now = present(served.store().get(key).await?);
        terms.expected.check(now.as_ref())?;
        let merged = merge.apply(now.as_ref().map(|entry| &entry.value))?;
        let mut put = Put::new(merged);
        put.metadata = now.as_ref().and_then(|entry| entry.metadata.clone());
        put.expiry = now.as_ref().and_then(|entry| entry.expires).map(Expiry::At);
        let expect = now.map_or(Expect::Absent, |entry| Expect::Version(entry.version));
        let commit = Commit::new().check(key.clone(), expect).put(key.clone(), put);
        match committed(who, served, commit, terms).await? {
            Committed::Done(written) => return Ok(written),
            Committed::Conflicted => {}
        }
    }
    Err(Problem::new(Code::Contended, format!("others kept changing {key} at the same time"))
        .hint("Try again; nothing was done.")
        .retryable())
}

async fn change(
    who: &Identity,
    served: &Served,
    key: &Key,
    commit: Commit,
    terms: &Terms,
) -> Result<Written> {
    if let Some(replay) = replayed(served, terms).await? {
        return Ok(replay);
    }
    // What is there need not be looked at, if the store itself can check what is expected.
    let check = match terms.expected.direct() {
        Some(check) => check,
        None => terms.expected.check(present(served.store().get(key).await?).as_ref())?,
    };
    let commit = match check {
        Some(expect) => commit.check(key.clone(), expect),
        None => commit,
    };
    match committed(who, served, commit, terms).await? {
        Committed::Done(written) => Ok(written),
        Committed::Conflicted => Err(failed(present(served.store().get(key).await?).as_ref())),
    }
}

enum Committed {
    Done(Written),
    Conflicted,
}

async fn replayed(served: &Served, terms: &Terms) -> Result<Option<Written>> {
    let Some(mark) = &terms.mark else { return Ok(None) };
    let replay = mark.replay(served.store()).await?;
    Ok(replay.map(|Replay { version, .. }| Written { version, replayed: true }))
}

async fn committed(
    who: &Identity,
    served: &Served,
    commit: Commit,
    terms: &Terms,
) -> Result<Committed> {
    let deletes = matches!(commit.writes.first(), Some(keyward::Write::Delete(_)));
    let (commit, fenced) =
        Fenced::add(who, served, commit, (terms.lock.as_ref(), Roots::Spared)).await?;
    let commit = match &terms.mark {
        Some(mark) => mark.added_to(served.store(), commit, !deletes)?,
        None => commit,
    };
    match served.store().commit(commit).await? {
        Outcome::Applied { mut versions, .. } => {
            let version = if versions.is_empty() { None } else { versions.swap_remove(0) };
            Ok(Committed::Done(Written { version, replayed: false }))
        }
        // The same request may have come twice at once.
        Outcome::Conflicted { failed } => match replayed(served, terms).await? {
            Some(written) => Ok(Committed::Done(written)),
            None => {
                fenced.check(served, &failed).await?;
                Ok(Committed::Conflicted)
            }
        },
    }
}

/// A page of a listing, as it is asked for.
#[derive(Debug, Clone)]
pub struct Listing {
    pub prefix: Prefix,
    pub depth: Option<usize>,
    pub limit: usize,
    pub order: Order,
    /// Whether entries are shown, not only keys.
    pub entries: bool,
    /// Whether the entries of indexes are shown, too.
    pub all: bool,
    pub cursor: Option<String>,
}

/// What a listing shows.
#[derive(Debug, Clone)]
pub enum Item {
    Row(Row),
    Prefix(Prefix),
}

/// A page of what lies below a prefix, and the cursor of the next one.
pub async fn list(
    who: &Identity,
    services: &Services,
    served: &Served,
    listing: &Listing,
) -> Result<(Vec<Item>, Option<String>)> {
    let sight = admit_prefix(who, served, &listing.prefix)?;
    if listing.entries && listing.depth.is_some() {
        return Err(Problem::invalid("entries are listed without a depth")
            .hint("Leave out depth, or values."));
    }
    let mut question = served.records.question(who.caller()).await?;
    question.part(b"entries");
    question.part(who.tenant().name().as_bytes());
    question.part(listing.prefix.to_string().as_bytes());
    question.part(&listing.depth.unwrap_or(0).to_be_bytes());
    let choices = [listing.order == Order::Descending, listing.entries, listing.all];
    question.part(&choices.map(u8::from));
    let now = served.records.clock().now();
    let after = match &listing.cursor {
        Some(cursor) => Some(Cursor::new(question.position(cursor, now)?)),
        None => None,
    };
    let read = read_page(served.store().clone(), sight, listing.clone(), after);
    let (items, next) = services.reads().run(who, served.store(), read).await?;
    let next = next.map(|cursor| question.cursor(cursor.as_bytes(), now));
    Ok((items, next))
}

/// The items of a page that may be shown, and where the next one begins.
async fn read_page(
    store: Store,
    sight: Sight,
    listing: Listing,
    after: Option<Cursor>,
) -> Result<(Vec<Item>, Option<Cursor>)> {
    let without = match listing.all {
        // Keyward's own keys are never shown here; they need not be read to know it.
        true => sight.closed().to_vec(),
        false => hidden_below(&listing.prefix),
    };
    let (items, next) = if listing.entries {
        let range = keyward::KeyRange::under(&listing.prefix);
        let mut scan =
            Scan { range, after, limit: listing.limit, order: listing.order, want: Want::Entries };
        let mut rows = Vec::new();
        let mut bytes = PageBytes::new(PAGE_BYTES_MAX);
        // Some at a time, so that a page of large entries ends when it is large.
        loop {
            scan.limit = (listing.limit - rows.len()).min(bytes.rows_to_read());
            let page = store.scan_without(&scan, &without).await?;
            scan.after = page.next;
            let mut read = page.rows.into_iter();
            while let Some(row) = read.next() {
                let Some(entry) = present(row.entry) else { continue };
                bytes.add_entry(&entry);
                let cut = match bytes.is_full() && read.len() > 0 {
                    true => store.cursor_after(&row.key, &scan, &without),
                    false => None,
                };
                rows.push(Item::Row(Row { key: row.key, entry: Some(entry) }));
                if cut.is_some() {
                    scan.after = cut;
                    break;
                }
            }
            let is_full = rows.len() >= listing.limit || bytes.is_full();
            if is_full || scan.after.is_none() {
                break (rows, scan.after);
            }
        }
    } else {
        let list = List {
            prefix: listing.prefix,
            depth: listing.depth,
            after,
            limit: listing.limit,
            order: listing.order,
            without,
        };
        let page = store.list(&list).await?;
        let items = page.items.into_iter().map(|item| match item {
            Listed::Key(key) => Item::Row(Row { key, entry: None }),
            Listed::Prefix(prefix) => Item::Prefix(prefix),
        });
        (items.collect(), page.next)
    };
    let mut shown = Vec::with_capacity(items.len());
    for item in items {
        let is_shown = match &item {
            Item::Row(row) => sight.shows(&row.key),
            Item::Prefix(prefix) => sight.shows_below(&store, prefix).await?,
        };
        if is_shown {
            shown.push(item);
        }
    }
    Ok((shown, next))
}
