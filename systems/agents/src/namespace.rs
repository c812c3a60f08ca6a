use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use keyward_engine::{Commit, Expect, Json, Outcome, Tier};
use keyward_key::{Bindings, Key, Prefix};
use keyward_records::{Precondition, Record, Space, Update, Written};

use crate::access::AccessRow;
use crate::actor::Actor;
use crate::agents::{Agents, Shared};
use crate::declaration::{NAMESPACE, USER};
use crate::entry::{AgentEntry, born, born_bytes, value_of};
use crate::set::{Patch, Seen, Set, Writer};
use crate::settings::Rules;
use crate::track::{Line, Note};
use crate::{Error, Result, places};

/// A namespace of one user, as one agent reaches it. Cheap to clone.
///
/// `get`, `entry` and `get_many` by a named agent count as accesses of the entries they find; going
/// through many (`get_all`, `search`, `stats`, an export) does not. What an agent writes sets who
/// accessed the entry last, and does not raise the count.
#[derive(Clone)]
pub struct Namespace {
    pub(crate) agents: Agents,
    pub(crate) space: Space,
    pub(crate) user: Arc<str>,
    pub(crate) actor: Actor,
    pub(crate) namespace: Arc<str>,
    /// Below what its entries lie.
    pub(crate) prefix: Prefix,
    /// What is done in the same commit as a change.
    pub(crate) rider: Commit,
}

impl Namespace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.namespace
    }

    /// The same, with checks and writes of other keys of the store that every `set`, `patch`, `restore`,
    /// `delete` and `set_many` carries in its one commit, such as the mark of a request that was served:
    /// see [`Space::with_rider`], whose promises and refusals hold here. `clear` carries none.
    #[must_use]
    pub fn with_rider(mut self, rider: Commit) -> Self {
        self.space = self.space.with_rider(rider.clone());
        self.rider = rider;
        self
    }

    /// The value of an entry.
    ///
    /// Where the entry's life is sliding and past its half, it begins anew first, which moves its
    /// version. Counting the access never waits.
    pub async fn get(&self, key: &str) -> Result<Option<Json>> {
        let found = self.read(key).await?;
        let value = found.as_ref().map(|record| value_of(&record.value)).transpose()?;
        let (found, preview) = (value.is_some(), value.as_ref());
        self.log(Line { found: Some(found), preview, ..Line::of("get").key(key) });
        Ok(value)
    }

    /// An entry with everything that is known about it, this access included.
    pub async fn entry(&self, key: &str) -> Result<Option<AgentEntry>> {
        let found = self.read(key).await?;
        let entry = match found {
            Some(record) => Some(self.complete(key.to_owned(), record).await?),
            None => None,
        };
        let preview = entry.as_ref().map(|entry| &entry.value);
        self.log(Line { found: Some(entry.is_some()), preview, ..Line::of("entry").key(key) });
        Ok(entry)
    }

    async fn read(&self, key: &str) -> Result<Option<Record>> {
        let place = self.place(key)?;
        let record = self.space.get(&place).await?;
        if let Some(record) = &record {
            self.saw(&place, record);
        }
        Ok(record)
    }

    /// Counts an access.
    pub(crate) fn saw(&self, place: &Key, record: &Record) {
        let is_agent = self.actor.agent_id().is_some();
        // A read by nobody in particular may have prolonged the entry's life.
        if is_agent || record.expires.is_some() {
            self.note(place, born_bytes(&record.value), record.expires, u64::from(is_agent));
        }
    }

    fn note(&self, entry: &Key, born: &[u8], ends: Option<Timestamp>, count: u64) {
        let (shared, agent) = (self.shared(), self.actor.shared_agent_id());
        let at = shared.clock.now();
        shared.tracker.note(Note { entry: entry.as_bytes(), born, agent, at, ends, count });
    }

    async fn complete(&self, key: String, record: Record) -> Result<AgentEntry> {
        let row = self.shared().store().get(&places::access(&record.key)).await?;
        self.with_access(key, record, row.map(|row| row.value))
    }

    /// The entry of a record, with what a row and this process know about accesses.
    pub(crate) fn with_access(
        &self,
        key: String,
        record: Record,
        row: Option<Json>,
    ) -> Result<AgentEntry> {
        let access = self.shared().tracker.access(&record.key, born(&record.value), row)?;
        Ok(AgentEntry::read(&self.user, &self.namespace, key, record, access)?)
    }

    /// Sets an entry: makes it, or gives it a new value, with metadata merged into what it has. Who made
    /// it and when stays.
    ///
    /// Of two that race, both succeed, and the metadata of both are there.
    /// [`Written::Conflicted`] if the set expects what is not so.
    pub async fn set(&self, key: &str, set: Set) -> Result<Written> {
        let place = self.place(key)?;
        let rules = self.known_rules().await?;
        let writer = self.writer(&rules);
        writer.check(set.value.as_str(), set.metadata.as_ref().map(Json::as_str))?;
        let mut seen = self.before(&place, &rules);
        let update = |record: Option<&Record>| writer.set(record, &set, &mut seen).map(Some);
        let update = Update::new(place.clone(), update).expecting(set.expect.clone());
        let written = self.space.apply(update).await;
        // Also if it is not known whether it was done.
        self.note_time(&place, seen.at);
        let written = written?;
        self.wrote(&place, &written, &seen);
        let (found, refused) = (was_there(&written), is_refused(&written));
        let preview = Some(&set.value);
        self.log(Line { found, refused, preview, ..Line::of("set").key(key) });
        Ok(written)
    }

    /// Merges parts into an entry. [`Written::Unchanged`] without a version if there is no such entry;
    /// [`Written::Conflicted`] if the patch expects what is not so.
    pub async fn patch(&self, key: &str, patch: Patch) -> Result<Written> {
        let place = self.place(key)?;
        if patch.value.is_none() && patch.metadata.is_none() {
            return Err(Error::Invalid("a patch has a part for the value or the metadata".into()));
        }
        let rules = self.known_rules().await?;
        let writer = self.writer(&rules);
        let mut seen = self.before(&place, &rules);
        let update = |record: Option<&Record>| writer.patch(record, &patch, &mut seen);
        let update = Update::new(place.clone(), update).expecting(patch.expect.clone());
        let written = self.space.apply(update).await;
        // Also if it is not known whether it was done.
        self.note_time(&place, seen.at);
        let written = written?;
        self.wrote(&place, &written, &seen);
        let (found, refused) = (was_there(&written), is_refused(&written));
        let preview = patch.value.as_ref().or(patch.metadata.as_ref());
        self.log(Line { found, refused, preview, ..Line::of("patch").key(key) });
        Ok(written)
    }

    /// Removes an entry, and what is known about its accesses. False if there was none.
    pub async fn delete(&self, key: &str) -> Result<bool> {
        Ok(self.delete_expecting(key, Precondition::Any).await? == Written::Removed)
    }

    /// Removes an entry under a condition.
    pub async fn delete_expecting(&self, key: &str, expect: Precondition) -> Result<Written> {
        let place = self.place(key)?;
        let known = self.shared().tracker.born(&place);
        let row = places::access(&place);
        let store = self.shared().store();
        self.note_removal(&place);
        let written = match store.capabilities().tier() {
            Tier::Atomic => {
                let space = self.space.clone().with_rider(self.rider.clone().delete(row));
                space.delete(&place, expect).await?
            }
            Tier::Recoverable | Tier::Advisory => {
                let written = self.space.delete(&place, expect).await?;
                if written == Written::Removed {
                    self.remove_row(&place, row).await?;
                }
                written
            }
        };
        if written == Written::Removed {
            self.shared().tracker.forget(&place, &known);
        }
        let (found, refused) = (was_there(&written), is_refused(&written));
        self.log(Line { found, refused, ..Line::of("delete").key(key) });
        Ok(written)
    }

    /// Removes the row of an entry that is gone. The row of one that was made anew since stays; so does one
    /// that others write all the time, which counts for nothing if its entry is gone.
    async fn remove_row(&self, place: &Key, row: Key) -> Result<()> {
        const ATTEMPTS_MAX: usize = 8;
        let store = self.shared().store();
        for _ in 0..ATTEMPTS_MAX {
            let Some(known) = store.get(&row).await? else { return Ok(()) };
            let entry = store.get(place).await?;
            let is_of = |known: &AccessRow| {
                entry.as_ref().is_some_and(|entry| born(&entry.value) == known.born)
            };
            if AccessRow::read(&known.value).is_ok_and(|known| is_of(&known)) {
                return Ok(());
            }
            let mut removal = Commit::new().delete(row.clone());
            if store.capabilities().compare {
                removal = removal.check(row.clone(), Expect::Version(known.version));
            }
            if let Outcome::Applied { .. } = store.commit(removal).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    pub(crate) fn writer<'w>(&'w self, rules: &'w Rules) -> Writer<'w> {
        let shared = self.shared();
        let declared = self.space.declaration().lifetime.map(|lifetime| lifetime.ttl);
        let now = shared.clock.now();
        Writer { actor: &self.actor, options: &shared.options, rules, declared, now }
    }

    /// What is known of an entry before it is written.
    pub(crate) fn before(&self, place: &Key, rules: &Rules) -> Seen {
        let last = rules.in_place.then(|| self.shared().write_times.last(place)).flatten();
        Seen { last, ..Seen::default() }
    }

    /// Notes that an entry is deleted now. Stores with commits of several keys have versions of their own.
    pub(crate) fn note_removal(&self, place: &Key) {
        if self.shared().store().capabilities().tier() != Tier::Atomic {
            self.note_time(place, Some(self.shared().clock.now()));
        }
    }

    /// Notes when an entry was written or deleted, where times tell its states apart.
    pub(crate) fn note_time(&self, place: &Key, at: Option<Timestamp>) {
        let shared = self.shared();
        if let Some(at) = at {
            shared.write_times.note(place, at, shared.clock.now());
        }
    }

    /// Notes who wrote an entry.
    pub(crate) fn wrote(&self, place: &Key, written: &Written, seen: &Seen) {
        let done = matches!(written, Written::Applied { .. });
        if done && (self.actor.agent_id().is_some() || seen.mortal) {
            self.note(place, seen.born.as_bytes(), seen.ends, 0);
        }
    }

    /// The key of an entry.
    pub(crate) fn place(&self, key: &str) -> Result<Key> {
        let Some(place) = self.prefix.child(key).to_key().filter(|_| !key.is_empty()) else {
            return Err(Error::Invalid("an entry has a key that is not empty".to_owned()));
        };
        let bytes = places::access_bytes(&place);
        let bytes_max = self.shared().store().limits().key_bytes_max;
        if bytes > bytes_max {
            return Err(Error::Invalid(format!(
                "the user's id, the namespace and the key are {} bytes too long together",
                bytes - bytes_max
            )));
        }
        Ok(place)
    }

    /// The entry's key in a record's.
    pub(crate) fn key_of(&self, place: &Key) -> String {
        place.segments().last().unwrap_or_default().into_owned()
    }

    /// The leading values of its records' keys.
    pub(crate) fn values(&self) -> Bindings {
        Bindings::new().with(USER, &*self.user).with(NAMESPACE, &*self.namespace)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.agents.shared
    }

    /// Writes what was done to the log of the run, if there is one.
    pub(crate) fn log(&self, line: Line<'_>) {
        let line = Line { namespace: Some(&self.namespace), ..line };
        self.shared().log(&self.user, &self.actor, line);
    }
}

/// Whether a change was refused because the entry was not as it expected.
pub(crate) fn is_refused(written: &Written) -> bool {
    matches!(written, Written::Conflicted { .. })
}

/// Whether there was an entry before it was written.
pub(crate) fn was_there(written: &Written) -> Option<bool> {
    Some(match written {
        Written::Applied { created, .. } => !created,
        Written::Removed => true,
        Written::Unchanged { version: there } | Written::Conflicted { current: there } => {
            there.is_some()
        }
    })
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Namespace");
        shown.field("user", &self.user).field("namespace", &self.namespace);
        shown.field("actor", &self.actor).finish_non_exhaustive()
    }
}
