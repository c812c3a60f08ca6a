//! What is gathered in memory, and written in the background: who accessed what, and what runs did.
//!
//! A read leaves a **note** of its access here and goes on; nothing of it waits for the store, and nothing
//! is looked up for it. Notes are added up beside the reads, by entry. A flush takes what is **waiting** for
//! an entry **under way**, with a number, and adds it to the entry's row by
//! compare-and-swap. The row remembers the number of each writer's last write, so a write whose answer
//! is lost, or that lands late, is neither forgotten nor done twice: before it is tried again, the row
//! tells whether it has it, and the check of the row's version lets only one of the two through.

mod flush;
mod log;
mod notes;
mod tally;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use keyward_engine::{Clock, Error as StoreError, ErrorKind, Json, Store};
use keyward_key::Key;
use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::access::{Access, AccessRow};
use crate::agents::{Gathered, Options};
use crate::{Result, entry};
pub(crate) use flush::row_end;
use log::HeldLine;
pub(crate) use log::Line;
pub use log::{LoggedOperation, Operations, Runs};
pub(crate) use notes::Note;
use notes::Notes;
use tally::Tally;

/// What this process has gathered and not written yet.
pub(crate) struct Tracker {
    /// Who writes, in marks and in the keys of log lines: by chance, so that nobody else is called so.
    handle: String,
    /// What was noted and not added up yet: in the order of noting. Whoever adds up holds `held` first.
    notes: Mutex<Notes>,
    held: Mutex<Held>,
    /// One flush at a time.
    flushing: tokio::sync::Mutex<()>,
    /// Told when much is held.
    filled: Notify,
    /// Told when many notes wait to be added up.
    noted: Notify,
    tracked_max: usize,
    logged_max: usize,
    log_life: std::time::Duration,
    preview_chars_max: usize,
    accesses_lost: AtomicU64,
    lines_lost: AtomicU64,
    /// Whether the store has refused lines for good: then none are held.
    log_refused: AtomicBool,
    key_bytes_max: usize,
}

#[derive(Default)]
struct Held {
    /// By the entry's key, encoded, as notes have it. Most keys stand in the map itself: finding one again
    /// does not wait for memory elsewhere.
    tallies: HashMap<SmallVec<[u8; KEY_BYTES_INLINE]>, Tally>,
    /// Room for notes, so that adding up allocates nothing.
    spare: Notes,
    lines: VecDeque<HeldLine>,
    /// The number of the last write that was begun, or of the last line.
    last: u64,
}

/// How many notes wait to be added up. The half of it wakes who does that beside the reads; a read that
/// finds all of it adds up itself.
const NOTES_MAX: usize = 4_096;

/// How long the keys are that stand in the map of what is held.
const KEY_BYTES_INLINE: usize = 64;

impl Held {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl Tracker {
    pub fn new(options: &Options, key_bytes_max: usize) -> Result<Self> {
        let mut handle = [0; 8];
        getrandom::fill(&mut handle).map_err(|error| {
            StoreError::new(ErrorKind::Internal, format!("there is no randomness: {error}"))
        })?;
        Ok(Self {
            handle: HEXLOWER.encode(&handle),
            notes: Mutex::default(),
            held: Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
            filled: Notify::new(),
            noted: Notify::new(),
            tracked_max: options.tracked_max,
            logged_max: options.logged_max,
            log_life: options.log_life,
            preview_chars_max: options.preview_chars_max,
            accesses_lost: AtomicU64::new(0),
            lines_lost: AtomicU64::new(0),
            log_refused: AtomicBool::new(false),
            key_bytes_max,
        })
    }

    /// What is held, with everything added up that was noted before.
    fn held(&self) -> MutexGuard<'_, Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes = std::mem::take(&mut held.spare);
        std::mem::swap(&mut *self.notes(), &mut notes);
        for note in notes.iter() {
            self.add(&mut held, note);
        }
        notes.clear();
        held.spare = notes;
        held
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an access of an entry. Never waits for the store.
    pub fn note(&self, note: Note<'_>) {
        let waiting = {
            let mut notes = self.notes();
            notes.push(note);
            notes.len()
        };
        if waiting == NOTES_MAX / 2 {
            self.noted.notify_one();
        } else if waiting >= NOTES_MAX {
            self.add_up();
        }
    }

    /// Adds up what was noted.
    pub fn add_up(&self) {
        let much = self.held().tallies.len() >= self.tracked_max / 2;
        if much {
            self.filled.notify_one();
        }
    }

    /// Adds an access to its entry's. Where there is no room for one more entry, it says so in a counter.
    fn add(&self, held: &mut Held, note: Note<'_>) {
        if let Some(tally) = held.tallies.get_mut(note.entry) {
            tally.note(note);
        } else if held.tallies.len() < self.tracked_max {
            held.tallies.insert(note.entry.into(), Tally::new(note));
        } else {
            self.accesses_lost.fetch_add(note.count, Ordering::Relaxed);
        }
    }

    /// When the entries at a key were made that something is held of: to be looked up before one is
    /// removed, so that what is forgotten after it is of none that was made since.
    pub fn born(&self, entry: &Key) -> Vec<Box<str>> {
        self.held().tallies.get(entry.as_bytes()).map(Tally::born).unwrap_or_default()
    }

    /// Drops what is held of entries that are gone, by when they were made.
    pub fn forget(&self, entry: &Key, born: &[Box<str>]) {
        if let Some(tally) = self.held().tallies.get_mut(entry.as_bytes()) {
            tally.forget(born);
        }
    }

    /// What is known about the accesses of an entry that was made at `born`: what its row holds, and
    /// what is not written yet. Besides, the id of the entry's document, if the row says one.
    pub fn access(
        &self,
        entry: &Key,
        born: &str,
        row: Option<Json>,
    ) -> Result<(Access, Option<String>)> {
        let mut row = row.map(|row| AccessRow::read(&row)).transpose()?;
        let id = row.as_mut().and_then(|row| row.id.take());
        let mut row = row.filter(|row| row.born == born).unwrap_or_default();
        if let Some(tally) = self.held().tallies.get(entry.as_bytes()) {
            tally.add_to(&mut row, born, &self.handle);
        }
        Ok((row.into(), id))
    }

    pub fn gathered(&self) -> Gathered {
        let held = self.held();
        Gathered {
            entries: held.tallies.len(),
            accesses: held.tallies.values().map(Tally::accesses).sum(),
            lines: held.lines.len(),
            accesses_lost: self.accesses_lost.load(Ordering::Relaxed),
            lines_lost: self.lines_lost.load(Ordering::Relaxed),
        }
    }

    /// Ready when there is something to be added up.
    pub async fn noted(&self) {
        self.noted.notified().await;
    }

    /// Ready when much is held.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Writes what is held. What cannot be written stays.
    pub async fn flush(&self, store: &Store, clock: &dyn Clock) -> Result<()> {
        let _one_at_a_time = self.flushing.lock().await;
        let counted = self.flush_tallies(store, clock).await;
        let logged = self.flush_lines(store).await;
        counted.and(logged)
    }

    /// Writes the log lines that are held.
    pub async fn flush_log(&self, store: &Store) -> Result<()> {
        let _one_at_a_time = self.flushing.lock().await;
        self.flush_lines(store).await
    }

    /// Notes what was done in a run.
    pub fn log(&self, user: &str, run: &str, agent: Option<&str>, at: Timestamp, line: Line<'_>) {
        if self.log_refused.load(Ordering::Relaxed) {
            self.lines_lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let value = line.write(agent, at, self.preview_chars_max);
        let mut held = self.held();
        let number = held.next();
        match (value, crate::places::line(user, run, at, &self.handle, number)) {
            (Ok(value), Ok(key))
                if held.lines.len() < self.logged_max
                    && key.as_bytes().len() <= self.key_bytes_max =>
            {
                held.lines.push_back(HeldLine { key, value });
            }
            _ => drop(self.lines_lost.fetch_add(1, Ordering::Relaxed)),
        }
        let much = held.lines.len() >= self.logged_max / 2;
        drop(held);
        if much {
            self.filled.notify_one();
        }
    }
}

/// Whether the record at a key is the entry that was made at `born`.
fn is_born(record: Option<&keyward_engine::Entry>, born: &str) -> bool {
    record.is_some_and(|record| entry::born(&record.value) == born)
}
