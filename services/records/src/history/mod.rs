//! Earlier versions of records: rows beside them, numbered, written in the same commit.

mod lifetime;
mod moving;
mod redact;

use std::fmt;

use jiff::Timestamp;
use keyward_engine::{Json, Order, PageBytes, Put, Scan, Want, Write, moment_text};
use keyward_key::{Key, KeyRange, Prefix};

use self::lifetime::{End, end_of_removal};
pub(crate) use lifetime::prolong;
pub(crate) use moving::{Ahead, Going, Moving, take_back};
pub use redact::Redaction;

use crate::access::{Act, Admitted};
use crate::bookkeeping::Bookkeeping;
use crate::change::{
    Change, ChangeKind, Current, NewState, Next, Precondition, Record, Ttl, Written,
};
use crate::field::{members, object, quoted};
use crate::query::LIMIT_MAX;
use crate::space::Space;
use crate::{Error, Result, write};

/// How the segment of a number starts: 20 digits last longer than a record can be changed. What goes
/// on below a record by other names is not looked at when its versions are.
const NUMBER_START: &str = "0000";
/// How many versions that are too many go with one change: after the schema asks for fewer, there may
/// be many.
const DROPPED_MAX: u64 = 16;
/// How often a restoration begins again because the row it goes by was written again.
const RESTORE_ATTEMPTS_MAX: usize = 8;

/// A version of a record, as it once was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Its number: later ones are higher.
    pub seq: u64,
    /// What was done.
    pub act: PastAct,
    /// When, by the clock of whoever did it.
    pub at: Timestamp,
    /// The user who did it.
    pub user: Option<String>,
    /// The agent that did it.
    pub agent: Option<String>,
    /// In which run of the agent.
    pub run: Option<String>,
    /// The value; `None` where the record was deleted, and where it was redacted.
    pub value: Option<Json>,
    /// What was said about the value.
    pub metadata: Option<Json>,
    /// Who took the value and what was said about it away, if anybody did.
    pub redacted: Option<Redaction>,
}

/// What made a version of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PastAct {
    /// The record was put.
    Put,
    /// A part was merged into it.
    Merge,
    /// It was set to what a function made of it.
    Update,
    /// It was given what it had in an earlier version.
    Restore,
    /// It was deleted.
    Delete,
}

impl PastAct {
    const ALL: [Self; 5] = [Self::Put, Self::Merge, Self::Update, Self::Restore, Self::Delete];

    /// Its name, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Merge => "merge",
            Self::Update => "update",
            Self::Restore => "restore",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for PastAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A page of earlier versions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryPage {
    /// The newest first.
    pub versions: Vec<Past>,
    /// The number before which to go on; `None` at the end.
    pub next: Option<u64>,
}

impl Space {
    /// Earlier versions of a record, the newest first: at most `limit`, those before number `before`
    /// if one is given. Also of a record that was deleted.
    pub async fn history(&self, key: &Key, before: Option<u64>, limit: usize) -> Result<Vec<Past>> {
        self.history_page(key, before, limit, usize::MAX).await.map(|page| page.versions)
    }

    /// A page of earlier versions of a record, as [`history`](Space::history) gives them. It ends after `bytes_max`
    /// bytes, and has at least one version.
    pub async fn history_page(
        &self,
        key: &Key,
        mut before: Option<u64>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<HistoryPage> {
        let target = self.access.admit(key, Act::Read)?;
        self.keeps_history()?;
        if limit == 0 || limit > LIMIT_MAX {
            return Err(Error::BadQuery(format!("the limit is from 1 to {LIMIT_MAX}")));
        }
        let prefix = prefix(&self.access.space.name, &target.key);
        let (mut page, mut bytes) = (HistoryPage::default(), PageBytes::new(bytes_max));
        loop {
            let missing = (limit - page.versions.len()).min(bytes.rows_to_read());
            let some = rows(self, &prefix, before, missing, Want::Entries).await?;
            let is_last = some.len() < missing;
            let mut some = some.into_iter().peekable();
            while let Some(row) = some.next_if(|_| !bytes.is_full()) {
                let Some(entry) = row.entry else { continue };
                bytes.add(entry.value.len());
                page.versions.push(read(&row.key, &entry.value)?);
            }
            before = page.versions.last().map(|last| last.seq);
            if bytes.is_full() || page.versions.len() >= limit {
                page.next = before.filter(|_| !is_last || some.len() > 0);
                return Ok(page);
            }
            if is_last {
                return Ok(page);
            }
        }
    }

    /// Gives a record the value and metadata it had in an earlier version, as a new version. Refused
    /// for a version that was redacted, also while this is under way.
    pub async fn restore(&self, key: &Key, seq: u64, expect: Precondition) -> Result<Written> {
        let target = self.access.admit(key, Act::Write)?;
        let as_it_was = |_: Option<&Record>, value: &Json, metadata: Option<&Json>| {
            let next = Next::new(value.clone()).with_metadata(metadata.cloned());
            Ok(next.ttl(Ttl::Declared))
        };
        self.restore_admitted(target, seq, expect, as_it_was).await
    }

    /// Restores what `remake` makes of the record as it is, and of the value and metadata it had in an
    /// earlier version. As with [`Space::update`], `remake` may run several times, and the caller must
    /// be allowed to read the record too.
    pub async fn restore_with(
        &self,
        key: &Key,
        seq: u64,
        expect: Precondition,
        remake: impl FnMut(Option<&Record>, &Json, Option<&Json>) -> Result<Next> + Send + Sync,
    ) -> Result<Written> {
        self.access.admit(key, Act::Read)?;
        let target = self.access.admit(key, Act::Write)?;
        self.restore_admitted(target, seq, expect, remake).await
    }

    async fn restore_admitted(
        &self,
        target: Admitted,
        seq: u64,
        expect: Precondition,
        mut remake: impl FnMut(Option<&Record>, &Json, Option<&Json>) -> Result<Next> + Send + Sync,
    ) -> Result<Written> {
        self.keeps_history()?;
        let key = &target.key;
        let row = row_key(&prefix(&self.access.space.name, key), seq)?;
        let mut attempt = 1;
        loop {
            let Some(entry) = self.shared.store.get(&row).await? else {
                return Err(Error::BadChange(format!("version {seq} of {key} is not kept")));
            };
            let past = read(&row, &entry.value)?;
            if past.redacted.is_some() {
                return Err(Error::BadChange(format!("version {seq} of {key} was redacted")));
            }
            let Some(value) = past.value else {
                return Err(Error::BadChange(format!("{key} was deleted in version {seq}")));
            };
            let (metadata, remake) = (past.metadata, &mut remake);
            let restore = Box::new(move |record: Option<&Record>| {
                remake(record, &value, metadata.as_ref()).map(Some)
            });
            let kind = ChangeKind::Restore { restore, row: row.clone(), version: entry.version };
            let (target, expect) = (target.clone(), expect.clone());
            let change = Change { target, expect, ttl: Ttl::Keep, kind };
            match write::one(self, change).await {
                // The row got another end, or was redacted: it tells.
                Err(Error::Contended { key, .. })
                    if key == row && attempt < RESTORE_ATTEMPTS_MAX =>
                {
                    attempt += 1;
                }
                written => return written,
            }
        }
    }

    fn keeps_history(&self) -> Result<()> {
        if self.access.space.history.is_some() {
            return Ok(());
        }
        Err(Error::BadQuery(format!("the space {} keeps no history", self.access.space.name)))
    }
}

/// A row to be written.
pub(crate) struct Row {
    pub key: Key,
    seq: u64,
    value: Json,
    end: Option<End>,
    /// The rows that are too many then.
    dropped: Vec<Key>,
    /// The number of the oldest row that stays.
    oldest: u64,
}

impl Row {
    pub fn writes(&self) -> impl Iterator<Item = Write> {
        let expiry = self.end.map(|end| end.expiry);
        let put = Put { value: self.value.clone(), metadata: None, expiry };
        let dropped = self.dropped.iter().cloned().map(Write::Delete);
        [Write::Put(self.key.clone(), put)].into_iter().chain(dropped)
    }

    /// What is kept beside the record from now on.
    pub fn note(&self, kept: &mut Bookkeeping) {
        kept.seq = Some(self.seq);
        kept.oldest = Some(self.oldest);
        let ends = self.end.map(|end| end.at.as_millisecond());
        kept.past_until_ms = [kept.past_until_ms, ends].into_iter().flatten().min();
    }
}

/// Where the versions of a record are.
pub(crate) fn prefix(space: &str, key: &Key) -> Prefix {
    Prefix::from(&Prefix::from_segments(["system", "history", space]).join(key))
}

/// The key of the record that a row is a version of.
pub(crate) fn record_key(row: &Key) -> Option<Key> {
    let segments: Vec<_> = row.segments().past(3).collect();
    let (_number, key) = segments.split_last()?;
    Prefix::from_segments(key).to_key()
}

fn row_key(prefix: &Prefix, seq: u64) -> Result<Key> {
    let key = prefix.child(&format!("{seq:020}")).to_key();
    key.ok_or_else(|| Error::Damaged("a version without a record".into()))
}

/// The row for a change, in spaces that keep history.
pub(crate) async fn next(
    space: &Space,
    change: &Change<'_>,
    current: Option<&Current>,
    new: Option<&NewState>,
) -> Result<Option<Row>> {
    let Some(versions_max) = space.access.space.history else {
        return Ok(None);
    };
    if matches!(change.kind, ChangeKind::Touch) {
        return Ok(None);
    }
    let key = &change.target.key;
    let prefix = prefix(&space.access.space.name, key);
    let known = current.and_then(|current| Some((current.kept.oldest?, current.kept.seq?)));
    let numbers = match known {
        Some(known) => Some(known),
        // Also after a record was deleted, its numbers go on.
        None => numbers(space, &prefix).await?,
    };
    let seq = numbers.map_or(0, |(_, newest)| newest) + 1;
    let oldest = numbers.map_or(seq, |(oldest, _)| oldest);
    let act = match (&change.kind, new) {
        (_, None) => PastAct::Delete,
        (ChangeKind::Merge(_), _) => PastAct::Merge,
        (ChangeKind::Update(_), _) => PastAct::Update,
        (ChangeKind::Restore { .. }, _) => PastAct::Restore,
        _ => PastAct::Put,
    };
    let caller = &space.access.caller;
    let at = quoted(&moment_text(space.shared.clock.now()));
    let act = quoted(act.as_str());
    let [user, agent, run] =
        [caller.user_id(), caller.agent_id(), caller.run_id()].map(|id| id.map(quoted));
    let members = [
        ("act", Some(act.as_str())),
        ("at", Some(at.as_str())),
        ("user", user.as_deref()),
        ("agent", agent.as_deref()),
        ("run", run.as_deref()),
        ("value", new.map(|new| new.value.as_str())),
        ("metadata", new.and_then(|new| new.metadata.as_ref()).map(Json::as_str)),
    ];
    let value = object(members.into_iter().filter_map(|(name, text)| Some((name, text?))));
    let kept = u64::try_from(versions_max.get()).unwrap_or(u64::MAX);
    // Those that stay are the newest so many, this one included.
    let staying = (seq + 1).saturating_sub(kept).clamp(oldest, oldest + DROPPED_MAX);
    let dropped: Result<Vec<Key>> = (oldest..staying).map(|seq| row_key(&prefix, seq)).collect();
    let end = match new {
        Some(new) => new.expiry.map(|expiry| End::beyond(expiry, space.shared.clock.now())),
        None => end_of_removal(space, current.and_then(|current| current.record.expires)),
    };
    let (row, value) = (row_key(&prefix, seq)?, Json::from_stored(value));
    let (bytes, bytes_max) = (row.as_bytes().len(), space.shared.store.limits().key_bytes_max);
    if bytes > bytes_max {
        let more = bytes - bytes_max;
        let message = format!(
            "{key} is {more} bytes too long for a space that keeps history: the keys of its versions \
             would have {bytes}, and the store takes {bytes_max}"
        );
        return Err(Error::BadChange(message));
    }
    Ok(Some(Row { key: row, seq, value, end, dropped: dropped?, oldest: staying }))
}

/// The numbers of the oldest and the newest row of a record.
async fn numbers(space: &Space, prefix: &Prefix) -> Result<Option<(u64, u64)>> {
    let rows = rows(space, prefix, None, usize::MAX, Want::Keys).await?;
    match (rows.last(), rows.first()) {
        (Some(oldest), Some(newest)) => Ok(Some((seq_of(&oldest.key)?, seq_of(&newest.key)?))),
        _ => Ok(None),
    }
}

async fn newest(space: &Space, prefix: &Prefix) -> Result<u64> {
    match rows(space, prefix, None, 1, Want::Keys).await?.first() {
        Some(row) => seq_of(&row.key),
        None => Ok(0),
    }
}

/// The rows of one record, the newest first: at most `limit`, those before number `before` if one is
/// given. Among them may be those of records whose keys go on where this one's ends.
async fn rows(
    space: &Space,
    prefix: &Prefix,
    before: Option<u64>,
    limit: usize,
    want: Want,
) -> Result<Vec<keyward_engine::Row>> {
    let depth = prefix.depth() + 1;
    let mut range = KeyRange::segment_prefix(prefix, NUMBER_START);
    if let Some(before) = before {
        range = range.before(&row_key(prefix, before)?);
    }
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let limit_now = (limit - found.len()).min(LIMIT_MAX);
        let scan = Scan::new(range.clone()).order(Order::Descending).after(after).limit(limit_now);
        let page = space.shared.store.scan(&Scan { want, ..scan }).await?;
        after = page.next;
        let mut jumped = false;
        for row in page.rows {
            if let Some(other) = row.key.ancestor(depth) {
                range = range.before_prefix(&other);
                (jumped, after) = (true, None);
                break;
            }
            found.push(row);
        }
        if found.len() >= limit || (after.is_none() && !jumped) {
            return Ok(found);
        }
    }
}

fn seq_of(row: &Key) -> Result<u64> {
    let last = row.segments().last().unwrap_or_default();
    last.parse().map_err(|_| Error::Damaged(format!("{row} is no version of a record")))
}

/// Reads a row.
pub(crate) fn read(key: &Key, value: &Json) -> Result<Past> {
    let damaged = || Error::Damaged(format!("{key} is no version of a record"));
    let members = members(value.as_str()).ok_or_else(damaged)?;
    // A value of null is a value: only its absence means that the record was deleted.
    let member = |name: &str| members.iter().find(|(n, _)| n == name).map(|(_, text)| *text);
    let text = |name: &str| -> Result<Option<String>> {
        let text = member(name).map(serde_json::from_str).transpose();
        text.map_err(|_| damaged())
    };
    let json = |name: &str| member(name).map(|text| Json::from_stored(text.to_owned()));
    let act = text("act")?;
    let act = PastAct::ALL.into_iter().find(|known| Some(known.as_str()) == act.as_deref());
    Ok(Past {
        seq: seq_of(key)?,
        act: act.ok_or_else(damaged)?,
        at: text("at")?.and_then(|at| at.parse().ok()).ok_or_else(damaged)?,
        user: text("user")?,
        agent: text("agent")?,
        run: text("run")?,
        value: json("value"),
        metadata: json("metadata"),
        redacted: member("redacted").map(Redaction::read).transpose().map_err(|()| damaged())?,
    })
}
