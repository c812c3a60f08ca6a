//! Adding what was gathered to the rows.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Clock, Commit, Entry, ErrorKind, Expect, Expiry, ExpirySupport};
use keyward_engine::{Outcome, Put, Store, Tier};
use keyward_key::Key;

use super::tally::Part;
use super::{Tracker, is_born};
use crate::access::AccessRow;
use crate::{Error, Result, places};

/// How many entries' rows are written in one commit.
const TOGETHER_MAX: usize = 100;
/// How many records are read at a time, to see whether they are still the entries that were accessed.
const RECORDS_AT_ONCE: usize = 8;
/// How often some are tried again, because others write the same rows or an outcome is unknown.
const ATTEMPTS_MAX: usize = 32;
/// How much longer than its entry a row is kept: the entry's life may be prolonged unseen.
const ROW_LIFE_MORE: Duration = Duration::from_secs(24 * 60 * 60);

/// What is to be added to one row.
struct Sent {
    entry: Key,
    row: Key,
    number: u64,
    part: Part,
}

/// What is known of an entry that was accessed.
struct Found {
    /// Whether it is still there.
    is_born: bool,
    /// When it ends.
    ends: Option<Timestamp>,
}

/// What becomes of a row.
enum Fate {
    /// It has what was sent, or that counts no more.
    Settled,
    Write {
        expect: Option<Expect>,
        put: Put,
    },
}

impl Tracker {
    pub(super) async fn flush_tallies(&self, store: &Store, clock: &dyn Clock) -> Result<()> {
        let mut failed = None;
        // What was under way, or is of an entry before, goes first; what waited behind it, after that.
        for _ in 0..2 {
            let (entries, again) = {
                let held = self.held();
                let again = held.tallies.values().any(super::tally::Tally::is_of_several);
                let entries = held.tallies.keys().map(|key| Key::from_stored(key.to_vec()));
                (entries.collect::<Vec<Key>>(), again)
            };
            for entries in entries.chunks(TOGETHER_MAX) {
                match self.flush_some(store, clock, entries).await {
                    Ok(()) => {}
                    Err(error) if is_away(&error) => return Err(error),
                    // Some rows that cannot be written keep no others from it.
                    Err(error) => failed = Some(error),
                }
            }
            if !again {
                break;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn flush_some(&self, store: &Store, clock: &dyn Clock, entries: &[Key]) -> Result<()> {
        let mut sent = self.send(entries);
        if store.capabilities().tier() == Tier::Atomic {
            match self.settle(store, clock, &mut sent).await {
                // One of them cannot be written, and keeps no others from it.
                Err(error) if !is_away(&error) && sent.len() > 1 => {}
                settled => return settled,
            }
        }
        let mut failed = None;
        for one in sent {
            match self.settle(store, clock, &mut vec![one]).await {
                Ok(()) => {}
                Err(error) if is_away(&error) => return Err(error),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Takes what is held of some entries under way.
    fn send(&self, entries: &[Key]) -> Vec<Sent> {
        let mut held = self.held();
        let mut sent = Vec::with_capacity(entries.len());
        for entry in entries {
            let number = held.last + 1;
            let Some(tally) = held.tallies.get_mut(entry.as_bytes()) else { continue };
            let mut taken = false;
            let under_way = tally.send(|| {
                taken = true;
                number
            });
            if tally.is_empty() {
                held.tallies.remove(entry.as_bytes());
            }
            held.last += u64::from(taken);
            if let Some((number, part)) = under_way {
                let row = places::access(entry);
                sent.push(Sent { entry: entry.clone(), row, number, part });
            }
        }
        sent
    }

    /// Brings what was sent to its rows, in one commit. What has not arrived is left.
    async fn settle(&self, store: &Store, clock: &dyn Clock, sent: &mut Vec<Sent>) -> Result<()> {
        let mut unknown = None;
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 1 {
                tokio::time::sleep(self.pause(attempt)).await;
            }
            let (settled, commit) = self.look(store, clock, sent).await?;
            self.arrived(sent, &settled);
            if commit.writes.is_empty() {
                return Ok(());
            }
            match store.commit(commit).await {
                Ok(Outcome::Applied { .. }) => {
                    let all = vec![true; sent.len()];
                    self.arrived(sent, &all);
                    return Ok(());
                }
                // Somebody else wrote, or a write of our own landed late: the rows tell.
                Ok(Outcome::Conflicted { .. }) => {}
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => unknown = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        match (unknown, sent.first()) {
            (Some(error), _) => Err(error.into()),
            (None, Some(Sent { row, .. })) => {
                let (key, attempts) = (row.clone(), ATTEMPTS_MAX);
                Err(keyward_records::Error::Contended { key, attempts }.into())
            }
            (None, None) => Ok(()),
        }
    }

    /// What has arrived already, and a commit that brings the rest.
    async fn look(
        &self,
        store: &Store,
        clock: &dyn Clock,
        sent: &[Sent],
    ) -> Result<(Vec<bool>, Commit)> {
        let keys: Vec<Key> = sent.iter().map(|one| one.row.clone()).collect();
        let rows = store.get_many(&keys).await?;
        let found = self.find(store, sent, &rows).await?;
        let compared = store.capabilities().compare;
        let mut settled = Vec::with_capacity(sent.len());
        let mut commit = Commit::new();
        for ((one, row), found) in sent.iter().zip(&rows).zip(found) {
            let fate = self.fate(store, clock, one, row.as_ref(), &found)?;
            settled.push(matches!(fate, Fate::Settled));
            if let Fate::Write { expect, put } = fate {
                if let Some(expect) = expect.filter(|_| compared) {
                    commit = commit.check(one.row.clone(), expect);
                }
                commit = commit.put(one.row.clone(), put);
            }
        }
        Ok((settled, commit))
    }

    /// Which entries are still those that were accessed, where their rows do not tell: because they are
    /// about another entry, or not there. Also when they end, where their rows are to end later than was
    /// seen. The records of others are not read: they may be large.
    async fn find(
        &self,
        store: &Store,
        sent: &[Sent],
        rows: &[Option<Entry>],
    ) -> Result<Vec<Found>> {
        let is_doubted = |one: &Sent, row: &Option<Entry>| match row {
            Some(row) => {
                !AccessRow::read(&row.value).is_ok_and(|row| row.born == *one.part.born)
                    || !is_prolonged(row.expires, one.part.ends)
            }
            // Whoever has nothing to tell makes no row.
            None => one.part.tells(),
        };
        let seen = sent.iter().map(|one| Found { is_born: true, ends: one.part.ends });
        let mut found: Vec<Found> = seen.collect();
        let doubted = sent.iter().zip(rows).enumerate();
        let doubted: Vec<usize> =
            doubted.filter(|(_, (one, row))| is_doubted(one, row)).map(|(n, _)| n).collect();
        for some in doubted.chunks(RECORDS_AT_ONCE) {
            let keys: Vec<Key> = some.iter().map(|n| sent[*n].entry.clone()).collect();
            for (n, record) in some.iter().zip(store.get_many(&keys).await?) {
                if !is_born(record.as_ref(), &sent[*n].part.born) {
                    found[*n].is_born = false;
                } else if let Some(record) = record {
                    found[*n].ends = record.expires;
                }
            }
        }
        Ok(found)
    }

    fn fate(
        &self,
        store: &Store,
        clock: &dyn Clock,
        one: &Sent,
        row: Option<&Entry>,
        found: &Found,
    ) -> Result<Fate> {
        // A row that makes no sense is written anew: nothing more can be learned from it.
        let known = row.and_then(|row| AccessRow::read(&row.value).ok());
        let mut next = match known {
            Some(known) if known.has(&self.handle, one.number) => return Ok(Fate::Settled),
            Some(known) if known.born == *one.part.born => known,
            // Of an entry that is gone, nothing counts any more.
            _ if !found.is_born => return Ok(Fate::Settled),
            // Whoever only prolonged a life has nothing to tell of one that nobody accessed.
            None if !one.part.tells() => return Ok(Fate::Settled),
            _ => AccessRow { born: one.part.born.to_string(), ..AccessRow::default() },
        };
        one.part.add_to(&mut next);
        next.mark(&self.handle, one.number, clock.now());
        let expires = store.capabilities().expiry != ExpirySupport::Unsupported;
        let ends = found.ends.filter(|_| expires).map(row_end);
        let put = Put { value: next.write()?, metadata: None, expiry: ends.map(Expiry::At) };
        let expect = row.map_or(Expect::Absent, |row| Expect::Version(row.version.clone()));
        Ok(Fate::Write { expect: Some(expect), put })
    }

    /// Forgets what has arrived.
    fn arrived(&self, sent: &mut Vec<Sent>, settled: &[bool]) {
        let mut held = self.held();
        let mut settled = settled.iter();
        sent.retain(|one| {
            let settled = *settled.next().unwrap_or(&false);
            if settled
                && let Some(tally) = held.tallies.get_mut(one.entry.as_bytes())
                && tally.arrived(one.number)
            {
                held.tallies.remove(one.entry.as_bytes());
            }
            !settled
        });
    }

    /// How long to wait before the rows are looked at again: not the same for rivals.
    fn pause(&self, attempt: usize) -> Duration {
        const PAUSE_MS_MAX: u64 = 64;
        let due_ms = (1_u64 << attempt.min(6)).min(PAUSE_MS_MAX);
        let share = self
            .handle
            .bytes()
            .fold(attempt as u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Duration::from_millis(due_ms / 2 + share % due_ms.max(1))
    }
}

/// Whether the store does not answer.
fn is_away(error: &Error) -> bool {
    let Error::Records(keyward_records::Error::Store(error)) = error else { return false };
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::OutcomeUnknown)
}

/// Whether a row that ends at a moment, or never, is to end no sooner for an entry that was seen to end
/// then. Somebody else may have seen the entry later, when it had another end.
fn is_prolonged(row: Option<Timestamp>, ends: Option<Timestamp>) -> bool {
    match (row, ends) {
        (None, None) => true,
        (Some(row), Some(ends)) => row <= row_end(ends),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// When the row of an entry ends that ends at a moment.
pub(crate) fn row_end(ends: Timestamp) -> Timestamp {
    ends.saturating_add(ROW_LIFE_MORE).unwrap_or(Timestamp::MAX)
}
