use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Clock, Store};
use keyward_records::{Belongings, Caller, Records};

use crate::actor::Actor;
use crate::declaration::{self, SPACE, WRITER_ROLE};
use crate::settings::SettingsCache;
use crate::track::Tracker;
use crate::user_data::UserData;
use crate::write_times::WriteTimes;
use crate::{Error, Result, places};

/// The agent data store of one store: what agents keep for users, in namespaces. Cheap to clone; clones
/// gather accesses together.
///
/// Accesses are gathered in memory and written by [`Agents::flush`], which
/// [`Agents::keep_flushing`] calls again and again. Whoever opens one drives that future, and waits for
/// its end before the process ends: after [`Agents::close`] nothing is lost.
#[derive(Clone)]
pub struct Agents {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub records: Records,
    pub options: Options,
    pub clock: Arc<dyn Clock>,
    pub tracker: Tracker,
    pub settings: SettingsCache,
    pub write_times: WriteTimes,
}

/// Bounds and times of an agent data store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The largest `value` of an entry, as JSON text.
    pub value_bytes_max: usize,
    /// The largest `metadata` of an entry, as JSON text.
    pub metadata_bytes_max: usize,
    /// How deep arrays and objects of a value or of metadata may nest. At most
    /// [`Options::DEPTH_MAX`].
    pub depth_max: usize,
    /// How often gathered accesses are written: what a crash loses at most.
    pub flush_interval: Duration,
    /// How many entries accesses are gathered of at a time. Past half of it they are written at once.
    pub tracked_max: usize,
    /// How many lines of operations logs are held until they are written.
    pub logged_max: usize,
    /// How long lines of operations logs are kept.
    pub log_life: Duration,
    /// How many characters of a value a line of an operations log shows.
    pub preview_chars_max: usize,
}

impl Options {
    /// The deepest nesting: a document in a page of documents still fits what JSON may have here.
    pub const DEPTH_MAX: usize = 60;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            value_bytes_max: 1 << 20,
            metadata_bytes_max: 64 << 10,
            depth_max: Self::DEPTH_MAX,
            flush_interval: Duration::from_secs(2),
            tracked_max: 65_536,
            logged_max: 16_384,
            log_life: Duration::from_secs(30 * 24 * 60 * 60),
            preview_chars_max: 200,
        }
    }
}

/// What is gathered and not written yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gathered {
    /// Entries with accesses that are held.
    pub entries: usize,
    /// Accesses that are held.
    pub accesses: u64,
    /// Lines of operations logs that are held.
    pub lines: usize,
    /// Accesses that were not counted, because there was no room for them.
    pub accesses_lost: u64,
    /// Lines that were not logged, because there was no room for them, or their keys were too long.
    pub lines_lost: u64,
}

impl Agents {
    /// The agent data store of these records, among whose spaces is the one that
    /// [`declare`](crate::declare) adds.
    pub fn open(records: Records, options: Options, clock: impl Clock) -> Result<Self> {
        let Some(space) = records.declarations().find(|space| space.name == SPACE) else {
            return Err(Error::Unprepared(format!(
                "the store has no space {SPACE}, or another space has keys of the same shape"
            )));
        };
        declaration::check(space)?;
        if options.depth_max > Options::DEPTH_MAX {
            let message = format!("depth_max is at most {}", Options::DEPTH_MAX);
            return Err(Error::Invalid(message));
        }
        let tracker = Tracker::new(&options, records.store().limits().key_bytes_max)?;
        let (clock, settings) = (Arc::new(clock), SettingsCache::default());
        let write_times = WriteTimes::default();
        let shared = Shared { records, options, clock, tracker, settings, write_times };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The agent data store of a store that holds nothing else.
    pub fn alone(store: Store, options: Options, clock: impl Clock + Clone) -> Result<Self> {
        let mut spaces = Vec::new();
        declaration::declare(&mut spaces, "", store.capabilities());
        Self::open(Records::open(store, spaces, clock.clone())?, options, clock)
    }

    /// What is a user's, as an agent reaches it.
    pub fn user(&self, id: impl AsRef<str>, actor: Actor) -> UserData {
        let caller = actor.caller(id.as_ref());
        UserData { agents: self.clone(), user: id.as_ref().into(), actor, caller }
    }

    /// What is the caller's, who must be a user. Roles that the space asks for are the caller's.
    pub fn caller(&self, caller: &Caller) -> Result<UserData> {
        let Some(user) = caller.user_id() else {
            let message = "agents keep entries for users, and the caller is none";
            return Err(Error::Invalid(message.to_owned()));
        };
        let (user, actor) = (user.into(), Actor::from(caller));
        let caller = caller.clone().with_role(WRITER_ROLE);
        Ok(UserData { agents: self.clone(), user, actor, caller })
    }

    /// The records that the entries are among.
    pub fn records(&self) -> &Records {
        &self.shared.records
    }

    /// The bounds and times in force.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Everything of a user's in the store: records of all spaces, and what is kept about the user's
    /// entries here (accesses, settings, operations logs).
    pub fn belongings(&self, user: &str) -> Result<Belongings> {
        let shared = &self.shared;
        let mut belongings = shared.records.belongings(user)?;
        for prefix in places::of_user(shared.declaration()?, user)? {
            belongings = belongings.including(&prefix);
        }
        Ok(belongings)
    }

    /// What is gathered and not written yet, by this handle and its clones.
    pub fn gathered(&self) -> Gathered {
        self.shared.tracker.gathered()
    }

    /// Writes the accesses and log lines that were gathered. What cannot be written now is kept for the
    /// next time; nothing is counted twice, also where an outcome is unknown.
    pub async fn flush(&self) -> Result<()> {
        let shared = &self.shared;
        shared.tracker.flush(shared.records.store(), &*shared.clock).await
    }

    /// Writes what was gathered, trying again for a while. An error tells what is still held: then this
    /// can be called again.
    pub async fn close(&self) -> Result<()> {
        const ATTEMPTS_MAX: u32 = 8;
        const PAUSE_FIRST: Duration = Duration::from_millis(10);
        let mut pause = PAUSE_FIRST;
        for attempt in 1.. {
            let flushed = self.flush().await;
            let Gathered { accesses, lines, entries, .. } = self.gathered();
            match flushed {
                Ok(()) if entries == 0 && lines == 0 => break,
                Err(error) if attempt >= ATTEMPTS_MAX => {
                    return Err(Error::Unflushed { accesses, lines, source: Box::new(error) });
                }
                // Somebody goes on reading.
                Ok(()) if attempt >= ATTEMPTS_MAX => break,
                _ => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        Ok(())
    }

    /// Writes what is gathered every [`Options::flush_interval`], and sooner when it is much, until
    /// `stop` is ready; then [closes](Agents::close). Dropped before, it writes nothing more.
    pub async fn keep_flushing(&self, stop: impl Future<Output = ()>) -> Result<()> {
        let mut stop = std::pin::pin!(stop);
        let mut failed = false;
        while self.gather(failed, stop.as_mut()).await {
            failed = self.flush().await.is_err();
        }
        self.close().await
    }

    /// Adds up what is noted, until it is time to write it: true; or to stop: false.
    async fn gather(&self, failed: bool, mut stop: Pin<&mut impl Future<Output = ()>>) -> bool {
        let tracker = &self.shared.tracker;
        let mut full = std::pin::pin!(async {
            match failed {
                // Where writing fails, being full is no reason to try at once.
                true => std::future::pending().await,
                false => tracker.filled().await,
            }
        });
        let mut pause = std::pin::pin!(tokio::time::sleep(self.shared.options.flush_interval));
        loop {
            tokio::select! {
                () = &mut stop => return false,
                () = &mut pause => return true,
                () = &mut full => return true,
                () = tracker.noted() => tracker.add_up(),
            }
        }
    }
}

impl Shared {
    pub fn declaration(&self) -> Result<&keyward_schema::Space> {
        let found = self.records.declarations().find(|space| space.name == SPACE);
        found.ok_or_else(|| Error::Unprepared(format!("the store has no space {SPACE}")))
    }

    pub fn store(&self) -> &Store {
        self.records.store()
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agents").field("gathered", &self.gathered()).finish_non_exhaustive()
    }
}
