//! The size of the log: the oldest sheets are removed when it grows too large.
//!
//! Beside the sheets there is a number for each hour, below `system:server:audit-bytes:{hour}`: the
//! bytes of the sheets of that hour. It is added to before or together with the sheets, and taken
//! from after or together with their removal, so that a process that is killed leaves it too high at
//! most; it goes with the last sheet of its hour. The sum of a few thousand numbers is the size of
//! the log, whoever wrote it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward::{
    Clock, Commit, Entry, Expect, Json, Key, KeyRange, Order, Prefix, Put, Result, Row, Scan,
    Store, Tier, Version,
};
use tokio::time::Instant;

use super::{AUDIT, sortable};
use crate::control::{place, range};

/// Under which kind of the server's own keys the numbers lie.
const BYTES: &str = "audit-bytes";
/// How much of a time, as text, names its hour.
const HOUR_CHARS: usize = "20260101T00".len();
/// The smallest bound: some sheets.
const BYTES_MIN: u64 = 1024 * 1024;
/// After how much of the bound was written the size is looked at again. Other servers may have
/// written as much meanwhile.
const LOOK_PART: u64 = 64;
/// How much of the bound is kept free for what is written between two looks.
const FREE_PART: u64 = 16;
/// How long the size is not looked at if little is written.
const LOOK_TIME: Duration = Duration::from_secs(60);
/// How many sheets are removed at a time, and numbers read.
const SHEETS_PER_REMOVAL: usize = 32;
const NUMBERS_PER_READ: usize = 1_000;
/// How often another server may remove the same sheets before they are left to it.
const CONFLICTS_MAX: usize = 8;

/// The bytes that a sheet counts as.
pub(super) fn size(key: &Key, sheet: &Json) -> u64 {
    u64::try_from(key.as_bytes().len() + sheet.len()).unwrap_or(u64::MAX)
}

/// The numbers that are added to with some sheets.
pub(super) fn numbers<'s>(sheets: impl IntoIterator<Item = &'s (Key, Json)>) -> Vec<(Key, i64)> {
    let mut by_hour = BTreeMap::<String, u64>::new();
    for (key, sheet) in sheets {
        *by_hour.entry(hour_of(key)).or_default() += size(key, sheet);
    }
    by_hour.into_iter().map(|(hour, bytes)| (place(BYTES, &hour), signed(bytes))).collect()
}

/// Keeps the log within its bounds of size and age.
#[derive(Debug)]
pub(super) struct Bound {
    store: Store,
    clock: Arc<dyn Clock>,
    kept: Duration,
    bytes_max: u64,
    /// How much was written since the size was looked at, and when that was.
    written: u64,
    looked: Instant,
}

impl Bound {
    pub fn new(store: Store, clock: Arc<dyn Clock>, kept: Duration, bytes_max: u64) -> Self {
        let bytes_max = bytes_max.max(BYTES_MIN);
        Self { store, clock, kept, bytes_max, written: 0, looked: Instant::now() }
    }

    /// Whether sizes can be counted in this store.
    pub fn counts(&self) -> bool {
        self.store.capabilities().add
    }

    /// Counts what lies there from a time when nothing was counted, and removes what is too much.
    pub async fn open(&mut self) {
        if !self.counts() {
            tracing::warn!("the store of the audit log cannot count: its size is not bounded");
            return;
        }
        let counted = async {
            if self.hours().await?.is_empty() {
                self.recount().await?;
            }
            self.enforce().await
        };
        if let Err(error) = counted.await {
            tracing::warn!(%error, "the size of the audit log could not be looked at");
        }
    }

    /// Notes that sheets were written, and removes the oldest ones if it is time to look.
    pub async fn wrote(&mut self, bytes: u64) {
        self.written += bytes;
        let is_due = self.written >= self.bytes_max / LOOK_PART
            || (self.written > 0 && self.looked.elapsed() >= LOOK_TIME);
        if !(is_due && self.counts()) {
            return;
        }
        (self.written, self.looked) = (0, Instant::now());
        if let Err(error) = self.enforce().await {
            tracing::warn!(%error, "the audit log could not be cut to its size");
        }
    }

    async fn enforce(&self) -> Result<()> {
        let mut hours = self.hours().await?;
        let now = self.clock.now();
        let oldest = now.checked_sub(self.kept).map_or_else(|_| String::new(), hour);
        while let Some(first) = hours.first_entry()
            && *first.key() < oldest
        {
            let (hour, _) = first.remove_entry();
            self.remove_from(&hour, u64::MAX).await?;
        }
        let mut total: u64 = hours.values().sum();
        let part = self.bytes_max / FREE_PART;
        if total <= self.bytes_max - part {
            return Ok(());
        }
        for (hour, bytes) in hours {
            let surplus = total.saturating_sub(self.bytes_max - 2 * part);
            if surplus == 0 {
                break;
            }
            self.remove_from(&hour, surplus).await?;
            total -= bytes.min(surplus);
        }
        Ok(())
    }

    /// The bytes of each hour, oldest first.
    async fn hours(&self) -> Result<BTreeMap<String, u64>> {
        let mut hours = BTreeMap::new();
        let mut scan = Scan::new(range(BYTES)).limit(NUMBERS_PER_READ);
        loop {
            let page = self.store.scan(&scan).await?;
            for Row { key, entry } in page.rows {
                let bytes = entry.and_then(|entry| entry.value.as_integer()).unwrap_or(0);
                if let Some(hour) = key.segments().last() {
                    hours.insert(hour.to_string(), u64::try_from(bytes).unwrap_or(0));
                }
            }
            if page.next.is_none() {
                return Ok(hours);
            }
            scan.after = page.next;
        }
    }

    /// Removes the oldest sheets of an hour, so many bytes of them, and its number with the last.
    async fn remove_from(&self, hour: &str, surplus: u64) -> Result<()> {
        let sheets = KeyRange::segment_prefix(&all_sheets(), hour);
        let number = place(BYTES, hour);
        let (mut removed, mut conflicts) = (0_u64, 0);
        while removed < surplus && conflicts < CONFLICTS_MAX {
            let counted = self.store.get(&number).await?;
            let scan = Scan::new(sheets.clone()).limit(SHEETS_PER_REMOVAL).order(Order::Ascending);
            let page = self.store.scan(&scan).await?;
            let mut gone = Vec::new();
            let mut bytes = 0;
            for Row { key, entry } in page.rows {
                let Some(entry) = entry else { continue };
                if removed.saturating_add(bytes) >= surplus {
                    break;
                }
                let sheet = size(&key, &entry.value);
                bytes += sheet;
                gone.push((key, entry.version, sheet));
            }
            if gone.is_empty() {
                return self.forget(hour, number, counted).await;
            }
            match self.remove(&number, gone, bytes).await? {
                true => removed = removed.saturating_add(bytes),
                false => conflicts += 1,
            }
        }
        Ok(())
    }

    /// Removes the number of an hour without sheets, unless sheets may be on their way.
    async fn forget(&self, of: &str, number: Key, counted: Option<Entry>) -> Result<()> {
        let Some(entry) = counted.filter(|_| of != hour(self.clock.now())) else { return Ok(()) };
        let commit = match self.checks() {
            true => Commit::new().check(number.clone(), Expect::Version(entry.version)),
            false => Commit::new(),
        };
        self.store.commit(commit.delete(number)).await.map(drop)
    }

    /// Removes sheets and takes them off their number. `false` if another server was faster.
    async fn remove(
        &self,
        number: &Key,
        sheets: Vec<(Key, Version, u64)>,
        bytes: u64,
    ) -> Result<bool> {
        let removal = |commit: Commit, key: Key, version: Version| match self.checks() {
            true => commit.check(key.clone(), Expect::Version(version)).delete(key),
            false => commit.delete(key),
        };
        if self.store.capabilities().tier() == Tier::Atomic
            && sheets.len() < self.store.limits().commit_keys_max
        {
            let commit = sheets
                .into_iter()
                .fold(Commit::new(), |commit, (key, version, _)| removal(commit, key, version));
            let commit = commit.add(number.clone(), -signed(bytes));
            return Ok(self.store.commit(commit).await?.is_applied());
        }
        for (key, version, bytes) in sheets {
            if self.store.commit(removal(Commit::new(), key, version)).await?.is_applied() {
                let less = Commit::new().add(number.clone(), -signed(bytes));
                let _ = self.store.commit(less).await?;
            }
        }
        Ok(true)
    }

    fn checks(&self) -> bool {
        self.store.capabilities().compare
    }

    /// Counts the sheets of a log that was written before there were numbers.
    async fn recount(&self) -> Result<()> {
        let mut by_hour = BTreeMap::<String, u64>::new();
        let sheets = KeyRange::under(&all_sheets());
        let mut scan = Scan::new(sheets).limit(SHEETS_PER_REMOVAL);
        loop {
            let page = self.store.scan(&scan).await?;
            for Row { key, entry } in &page.rows {
                let Some(entry) = entry else { continue };
                *by_hour.entry(hour_of(key)).or_default() += size(key, &entry.value);
            }
            if page.next.is_none() {
                break;
            }
            scan.after = page.next;
        }
        for (hour, bytes) in by_hour {
            let (number, put) = (place(BYTES, &hour), Put::new(Json::from_integer(signed(bytes))));
            let commit = match self.checks() {
                // Another server may have counted, too.
                true => Commit::new().check(number.clone(), Expect::Absent),
                false => Commit::new(),
            };
            let _ = self.store.commit(commit.put(number, put)).await?;
        }
        Ok(())
    }
}

fn all_sheets() -> Prefix {
    Prefix::from_segments(["system", "server", AUDIT])
}

fn hour(time: Timestamp) -> String {
    let mut text = sortable(time);
    text.truncate(HOUR_CHARS);
    text
}

/// The hour of a sheet, from its key.
fn hour_of(sheet: &Key) -> String {
    let time = sheet.segments().past(3).next().unwrap_or_default();
    time.chars().take(HOUR_CHARS).collect()
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
