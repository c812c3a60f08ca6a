//! Entries from one agent data store to another.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Cursor, ExpirySupport, List, Listed};
use keyward_key::Key;
use keyward_records::{Precondition, Record, Ttl, Written};

use crate::actor::Actor;
use crate::agents::Agents;
use crate::document::Document;
use crate::document_id::DocumentId;
use crate::entry::{AgentEntry, Body};
use crate::skipped::Skipped;
use crate::user_data::UserData;
use crate::{Error, Result, declaration, fingerprint};

/// How many entries are read at a time.
const PAGE: usize = 64;
/// How many users are listed at a time.
const USERS: usize = 100;
/// How many entries are named that differ, and how many that are refused.
const NAMED_MAX: usize = 10;
/// How often an entry of the target is looked at that others change meanwhile.
const ATTEMPTS_MAX: usize = 16;

/// Makes the entries of one agent data store those of another, whatever the layouts: each keeps its user, namespace
/// and key, and so its id, with its value, metadata, times, who made it, and who accessed it.
///
/// What is equal already is not written, so that a copy that was interrupted goes on when it is run again, and a later
/// one brings what has changed since. Accesses that the target has counted itself are never taken back. Each entry is
/// compared and swapped: what others write into the target meanwhile is a conflict like any other. Entries that only
/// the target has stay.
///
/// History, settings and logs are each store's own. An entry that expires keeps its end; where the target's entries
/// cannot expire, it is left out and counted.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use keyward_agents::{Actor, Agents, EntryCopy, Options, Set};
/// use keyward_engine::{Json, Store, SystemClock};
/// use keyward_memory::Memory;
///
/// let open = || Agents::alone(Store::new(Memory::new()), Options::default(), SystemClock);
/// let (source, target) = (open()?, open()?);
/// let notes = source.user("ada", Actor::agent("planner")).use_namespace("notes")?;
/// notes.set("k", Set::new(Json::parse("[1]")?)).await?;
///
/// let copy = EntryCopy::new(source, target).user("ada");
/// assert_eq!(copy.plan(|_so_far| ()).await?.added, 1);
/// assert_eq!(copy.apply(|_so_far| ()).await?.added, 1);
/// assert_eq!(copy.apply(|_so_far| ()).await?.equal, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct EntryCopy {
    source: Agents,
    target: Agents,
    user: Option<String>,
    namespace: Option<String>,
    on_conflict: OnConflict,
}

/// What happens to an entry that is something else in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnConflict {
    /// The copy ends with [`Error::Differs`]; what stands before it is copied.
    #[default]
    Stop,
    /// The target's entry stays.
    Keep,
    /// The source's entry takes its place.
    Replace,
    /// The entry that was updated later counts. The target's stays if the times do not tell.
    Newer,
}

/// What a copy has done, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopiedEntries {
    /// Entries that the target did not have.
    pub added: u64,
    /// Entries that were something else in the target, or of which it knew fewer accesses.
    pub replaced: u64,
    /// Entries that the target had already.
    pub equal: u64,
    /// Entries that are something else in the target, and stay so.
    pub kept: u64,
    /// Entries that expire, and were left out since the target's cannot.
    pub expiring: u64,
    /// The first of those that are something else in the target.
    pub differing: Vec<DocumentId>,
    /// Of a plan: entries that the target refuses, such as a number that its database does not hold exactly. The copy
    /// would stop at the first of them.
    pub refused: u64,
    /// The first of those, each with the reason.
    pub refusals: Vec<(DocumentId, String)>,
    /// Documents of the source that were left out: see [`Skipped`]. Told at the end.
    pub skipped: Skipped,
}

impl CopiedEntries {
    /// Entries of the source that were looked at.
    pub fn entries(&self) -> u64 {
        self.added + self.replaced + self.equal + self.kept + self.expiring + self.refused
    }
}

/// What is to be done with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Add,
    /// The entry, or who accessed it.
    Replace,
    Equal,
    Keep,
    /// It expires, and must not live for ever.
    LeaveOut,
    Stop,
}

impl EntryCopy {
    /// A copy of the entries of all users. Stores that cannot list users refuse it.
    pub fn new(source: Agents, target: Agents) -> Self {
        let on_conflict = OnConflict::default();
        Self { source, target, user: None, namespace: None, on_conflict }
    }

    /// The same for one user.
    #[must_use]
    pub fn user(mut self, id: impl Into<String>) -> Self {
        self.user = Some(id.into());
        self
    }

    /// The same for one namespace.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = Some(name.into());
        self
    }

    /// The same with another answer to what differs.
    #[must_use]
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = on_conflict;
        self
    }

    /// What would be done, page by page. Nothing is written. Of the entries that would stop the copy, those that differ
    /// are counted as kept, and those that the target cannot hold as refused, as far as its limits tell.
    pub async fn plan(&self, progress: impl FnMut(&CopiedEntries)) -> Result<CopiedEntries> {
        self.run(false, progress).await
    }

    /// Copies, telling after each page what has been done so far.
    ///
    /// An entry that the target cannot hold ends the copy with [`Error::InEntry`]. After any error, and when the future
    /// is dropped, what was written stays, and another run goes on from there.
    pub async fn apply(&self, progress: impl FnMut(&CopiedEntries)) -> Result<CopiedEntries> {
        self.run(true, progress).await
    }

    async fn run(
        &self,
        apply: bool,
        mut progress: impl FnMut(&CopiedEntries),
    ) -> Result<CopiedEntries> {
        // What is gathered about accesses belongs to the entries.
        self.source.flush().await?;
        if apply {
            self.target.flush().await?;
        }
        let mut copied = CopiedEntries::default();
        let Some(user) = &self.user else {
            let mut after = None;
            loop {
                let (users, next) = self.users(after).await?;
                for user in users {
                    self.copy_user(&user, apply, &mut copied, &mut progress).await?;
                }
                after = next;
                if after.is_none() {
                    return Ok(copied);
                }
            }
        };
        self.copy_user(user, apply, &mut copied, &mut progress).await?;
        let source = self.source.user(user, Actor::nobody());
        copied.skipped = source.skipped(self.namespace.as_deref()).await?;
        Ok(copied)
    }

    /// One page of the users that the source has entries of.
    async fn users(&self, after: Option<Cursor>) -> Result<(Vec<String>, Option<Cursor>)> {
        let shared = &self.source.shared;
        let all = declaration::all(shared.declaration()?)?;
        let list = List::new(all).depth(1).after(after).limit(USERS);
        let listing = shared.store().list(&list).await?;
        let users = listing.items.iter().filter_map(|item| match item {
            Listed::Prefix(prefix) => prefix.segments().last(),
            Listed::Key(_) => None,
        });
        Ok((users.map(|user| user.into_owned()).collect(), listing.next))
    }

    async fn copy_user(
        &self,
        user: &str,
        apply: bool,
        copied: &mut CopiedEntries,
        progress: &mut impl FnMut(&CopiedEntries),
    ) -> Result<()> {
        let source = self.source.user(user, Actor::nobody());
        let target = self.target.user(user, Actor::nobody());
        let mut after = None;
        loop {
            let namespace = self.namespace.as_deref();
            let (entries, next) = source.page_of_all(namespace, after, PAGE).await?;
            let known = target.known_entries(&entries).await?;
            for (entry, known) in entries.into_iter().zip(known) {
                self.copy_entry(&target, entry, known, apply, copied).await?;
            }
            progress(copied);
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn copy_entry(
        &self,
        target: &UserData,
        entry: AgentEntry,
        known: Option<AgentEntry>,
        apply: bool,
        copied: &mut CopiedEntries,
    ) -> Result<()> {
        let mut known = known;
        for _ in 0..ATTEMPTS_MAX {
            let differs = known.as_ref().is_some_and(|known| !is_same(&entry, known));
            let fate = self.fate(&entry, known.as_ref());
            if !apply
                && matches!(fate, Fate::Add | Fate::Replace)
                && let Some(refused) = target.refusal(&Document::from(entry.clone())).await?
            {
                copied.refuse(entry.id(), &refused);
                return Ok(());
            }
            if apply && fate == Fate::Stop {
                return Err(differing(&entry));
            }
            if apply
                && matches!(fate, Fate::Add | Fate::Replace)
                && !self.write(target, &entry, known.as_ref()).await?
            {
                // Somebody has changed it meanwhile.
                let again = target.known_entries(std::slice::from_ref(&entry)).await?;
                known = again.into_iter().next().flatten();
                continue;
            }
            copied.count(fate, differs.then(|| entry.id()));
            return Ok(());
        }
        Err(differing(&entry))
    }

    fn fate(&self, entry: &AgentEntry, known: Option<&AgentEntry>) -> Fate {
        let expires = |agents: &Agents| {
            agents.shared.store().capabilities().expiry != ExpirySupport::Unsupported
        };
        if entry.expires.is_some() && !expires(&self.target) {
            return Fate::LeaveOut;
        }
        let Some(known) = known else { return Fate::Add };
        if is_same(entry, known) {
            // A copy that ended early may have written the entry alone.
            let lacks = known.access.count < entry.access.count
                || (known.access.at.is_none() && entry.access.at.is_some());
            return if lacks { Fate::Replace } else { Fate::Equal };
        }
        let updated = |entry: &AgentEntry| entry.updated_at.parse::<Timestamp>().ok();
        match self.on_conflict {
            OnConflict::Stop => Fate::Stop,
            OnConflict::Keep => Fate::Keep,
            OnConflict::Replace => Fate::Replace,
            OnConflict::Newer => match (updated(entry), updated(known)) {
                (Some(one), Some(other)) if one > other => Fate::Replace,
                _ => Fate::Keep,
            },
        }
    }

    /// Writes an entry, if what the target has is still what was seen.
    async fn write(
        &self,
        target: &UserData,
        entry: &AgentEntry,
        known: Option<&AgentEntry>,
    ) -> Result<bool> {
        let ttl = match entry.expires {
            Some(expires) => {
                let left = expires.duration_since(self.target.shared.clock.now());
                match Duration::try_from(left) {
                    Ok(left) if !left.is_zero() => Ttl::After(left),
                    // It has ended meanwhile.
                    _ => return Ok(true),
                }
            }
            None => Ttl::Never,
        };
        let expect = match known {
            // Where the last writer wins, nothing can be expected.
            _ if !self.target.shared.store().capabilities().compare => Precondition::Any,
            Some(known) => Precondition::Version(known.version.clone()),
            None => Precondition::Absent,
        };
        let document = Document::from(entry.clone());
        let before = known.map(|known| known.created_at.as_str());
        match target.put_document(&document, before, expect, ttl).await {
            Ok(Written::Conflicted { .. }) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) => {
                let AgentEntry { user, namespace, key, .. } = entry.clone();
                Err(Error::InEntry { user, namespace, key, source: Box::new(error) })
            }
        }
    }
}

impl CopiedEntries {
    fn refuse(&mut self, id: DocumentId, error: &Error) {
        self.refused += 1;
        if self.refusals.len() < NAMED_MAX {
            self.refusals.push((id, error.to_string()));
        }
    }

    fn count(&mut self, fate: Fate, differing: Option<DocumentId>) {
        match fate {
            Fate::Add => self.added += 1,
            Fate::Replace => self.replaced += 1,
            Fate::Equal => self.equal += 1,
            Fate::Keep | Fate::Stop => self.kept += 1,
            Fate::LeaveOut => self.expiring += 1,
        }
        if self.differing.len() < NAMED_MAX {
            self.differing.extend(differing);
        }
    }
}

impl UserData {
    /// The user's entries of the same namespaces and keys, as they are here.
    async fn known_entries(&self, entries: &[AgentEntry]) -> Result<Vec<Option<AgentEntry>>> {
        let place = |entry: &AgentEntry| {
            let namespace = self.use_namespace(&entry.namespace).ok()?;
            // An entry whose key is too long for this store is not here.
            namespace.place(&entry.key).ok()
        };
        let places: Vec<Option<Key>> = entries.iter().map(place).collect();
        let known: Vec<Key> = places.iter().flatten().cloned().collect();
        let mut records = self.space()?.get_many(&known).await?.into_iter();
        let records: Vec<Option<Record>> =
            places.into_iter().map(|place| place.and_then(|_| records.next().flatten())).collect();
        let found: Vec<_> = records.iter().flatten().cloned().collect();
        let mut known = self.complete_all(found).await?.into_iter();
        Ok(records.iter().map(|record| record.as_ref().and_then(|_| known.next())).collect())
    }
}

/// Whether two entries say the same, however it is written. Who accessed them does not matter.
fn is_same(one: &AgentEntry, other: &AgentEntry) -> bool {
    let version = |entry: &AgentEntry| {
        let quoted = keyward_records::field::quoted;
        let (created_at, updated_at) = (quoted(&entry.created_at), quoted(&entry.updated_at));
        let created_by_agent = entry.created_by_agent.as_deref().map(quoted);
        fingerprint::of_entry(&Body {
            created_by_agent: created_by_agent.as_deref(),
            created_at: &created_at,
            updated_at: &updated_at,
            metadata: entry.metadata.as_ref().map(keyward_engine::Json::as_str),
            value: entry.value.as_str(),
        })
    };
    version(one) == version(other)
}

fn differing(entry: &AgentEntry) -> Error {
    let AgentEntry { user, namespace, key, .. } = entry.clone();
    Error::Differs { user, namespace, key }
}
