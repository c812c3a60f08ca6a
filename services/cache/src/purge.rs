//! Removing what belongs to something that is gone.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{
    Clock, Commit, ErrorKind, Expect, Expiry, Json, List, Listed, Outcome, Put, Scan, Store, Tier,
    moment_text,
};
use keyward_key::{Key, KeyRange, Prefix, is_reserved};
use keyward_locks::{Error as LockError, Guard, LockPath, Locks, Mode, Request};

use crate::{Error, Result, dependants};

/// What a source says about something that entries belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Present,
    /// It is certainly not there: the source was reached and said so.
    Gone,
    /// Nobody knows: the source could not be reached, refused to tell, or took too long. Nothing is
    /// removed.
    Unknown(String),
}

/// Where to purge, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeOptions {
    /// The segments right below this are the roots, which may be gone with all that lies below them.
    /// In the whole store, first segments that are reserved are no roots.
    pub under: Prefix,
    /// Which segments right below a root belong to it; all of them, if there are none here. For stores
    /// where others keep something under the same first segments.
    pub parts: Vec<String>,
    /// The shortest time between two sweeps, over all processes.
    pub interval: Duration,
    /// How long to wait for a root that others have locked.
    pub wait_max: Duration,
}

impl PurgeOptions {
    /// How often the whole store is swept, when nothing else is said.
    pub const INTERVAL_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
}

impl Default for PurgeOptions {
    fn default() -> Self {
        Self {
            under: Prefix::all(),
            parts: Vec::new(),
            interval: Self::INTERVAL_DEFAULT,
            wait_max: Duration::from_secs(10),
        }
    }
}

/// What became of one root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purged {
    /// It was gone, and so are its entries.
    Removed {
        /// How many there were.
        entries: u64,
    },
    /// It is there.
    Kept,
    /// Nobody knows whether it is there: everything was left as it is.
    Unknown(String),
    /// Somebody works on it: everything was left as it is.
    Locked(String),
    /// It is gone, but its entries could not be removed, or not all: why.
    Failed(String),
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many roots were looked at.
    pub roots: u64,
    /// How many entries were removed.
    pub entries: u64,
    /// Those that were not kept, and why; the last [`Swept::TOLD_MAX`] of them.
    pub told: VecDeque<(Key, Purged)>,
}

impl Swept {
    /// How many roots are told of.
    pub const TOLD_MAX: usize = 1_000;

    fn add(&mut self, root: Key, purged: Purged) {
        self.roots += 1;
        if let Purged::Removed { entries } = &purged {
            self.entries += entries;
        }
        if purged != Purged::Kept {
            if self.told.len() == Self::TOLD_MAX {
                self.told.pop_front();
            }
            self.told.push_back((root, purged));
        }
    }
}

/// Removes what belongs to something that is gone: one root when it is met (lazily), or all of them,
/// at most once in [`PurgeOptions::interval`].
///
/// Whatever is written below a root while its lock is held survives or is removed as a whole. The
/// root's own key, its catalog of locks, stays: its tokens must rise for ever.
#[derive(Clone)]
pub struct Purge {
    store: Store,
    locks: Locks,
    clock: Arc<dyn Clock>,
    options: PurgeOptions,
}

/// How many keys are removed together.
const TOGETHER: usize = 200;
const ROOTS_TOGETHER: usize = 100;

impl Purge {
    /// In the store of some locks, which are those that work below the roots is done under.
    pub fn new(locks: Locks, clock: impl Clock, options: PurgeOptions) -> Result<Self> {
        if options.interval.is_zero() {
            return Err(Error::BadRequest("the time between two sweeps cannot be zero".into()));
        }
        Ok(Self { store: locks.store().clone(), locks, clock: Arc::new(clock), options })
    }

    /// Removes everything below a root, under its lock: the root's own entry stays, and nothing of
    /// another root is touched. Says how many entries there were.
    pub async fn clear(&self, root: &Key) -> Result<u64> {
        let gone = |_| std::future::ready(Presence::Gone);
        // Whoever asks for it wants it gone, whatever a source would say.
        Ok(self.clear_if(root, gone).await?.unwrap_or_default())
    }

    /// The same, if a look under the lock says that the root is gone; else what it says.
    async fn clear_if<F, C>(&self, root: &Key, mut look: F) -> Result<Result<u64, Presence>>
    where
        F: FnMut(Key) -> C,
        C: Future<Output = Presence>,
    {
        self.check_root(root)?;
        let request =
            Request::default().wait_max(self.options.wait_max).purpose(format!("clear {root}"));
        let lock = self.locks.root(root.clone())?;
        let guard = lock.acquire(&[LockPath::root()], Mode::Exclusive, &request).await?;
        let presence = look(root.clone()).await;
        if presence != Presence::Gone {
            guard.release().await?;
            return Ok(Err(presence));
        }
        let mut removed = self.remove_all(root, &guard).await?;
        // What the cache keeps about keys below the root, by their texts.
        for below in self.texts(root) {
            for kept in [dependants::edges(), Prefix::from_segments(["system", "cache", "failed"])]
            {
                self.remove(KeyRange::segment_prefix(&kept, &below), &guard).await?;
            }
        }
        // What came in under a lock of its own before this one was granted is counted, too.
        removed += self.remove_all(root, &guard).await?;
        guard.release().await?;
        Ok(Ok(removed))
    }

    async fn remove_all(&self, root: &Key, guard: &Guard) -> Result<u64> {
        if self.options.parts.is_empty() {
            return self.remove(KeyRange::under(&whole(root)), guard).await;
        }
        let mut removed = 0;
        for part in &self.options.parts {
            removed += self.remove(KeyRange::subtree(&root.child(part)), guard).await?;
        }
        Ok(removed)
    }

    /// How the texts of keys begin that belong to a root.
    fn texts(&self, root: &Key) -> Vec<String> {
        match self.options.parts.as_slice() {
            [] => vec![format!("{root}:")],
            parts => parts.iter().map(|part| format!("{}:", root.child(part))).collect(),
        }
    }

    /// Removes what belongs to a root, if its source says that it is gone.
    pub async fn purge(&self, root: &Key, presence: Presence) -> Result<Purged> {
        self.purge_if(root, |_| std::future::ready(presence.clone())).await
    }

    /// The same, asking twice: it must be gone also once nobody else works on it, since it may have come
    /// back while that was waited for.
    pub async fn purge_if<F, C>(&self, root: &Key, mut look: F) -> Result<Purged>
    where
        F: FnMut(Key) -> C,
        C: Future<Output = Presence>,
    {
        match look(root.clone()).await {
            Presence::Present => Ok(Purged::Kept),
            Presence::Unknown(reason) => Ok(Purged::Unknown(reason)),
            Presence::Gone => match self.clear_if(root, look).await {
                Ok(Ok(entries)) => Ok(Purged::Removed { entries }),
                Ok(Err(Presence::Unknown(reason))) => Ok(Purged::Unknown(reason)),
                Ok(Err(_)) => Ok(Purged::Kept),
                Err(Error::Lock(error @ LockError::TimedOut { .. })) => {
                    Ok(Purged::Locked(error.to_string()))
                }
                Err(error @ Error::Store(_) | error @ Error::Lock(LockError::Store(_))) => {
                    Err(error)
                }
                // What is wrong with one root is no reason to keep the others.
                Err(error) => Ok(Purged::Failed(error.to_string())),
            },
        }
    }

    /// Asks a source about every root that has entries, and removes those of the ones that are gone.
    /// `None` if a sweep was begun less than [`PurgeOptions::interval`] ago, here or elsewhere.
    pub async fn sweep<F, C>(&self, look: F) -> Result<Option<Swept>>
    where
        F: FnMut(Key) -> C,
        C: Future<Output = Presence>,
    {
        if self.claim().await? { self.sweep_now(look).await.map(Some) } else { Ok(None) }
    }

    /// The same at once, whenever the last one was.
    pub async fn sweep_now<F, C>(&self, mut look: F) -> Result<Swept>
    where
        F: FnMut(Key) -> C,
        C: Future<Output = Presence>,
    {
        let mut swept = Swept::default();
        let mut list = List::new(self.options.under.clone()).depth(1).limit(ROOTS_TOGETHER);
        loop {
            let page = self.store.list(&list).await?;
            let prefixes = page.items.into_iter().filter_map(|item| match item {
                Listed::Prefix(prefix) => prefix.to_key(),
                // A root with nothing below it.
                Listed::Key(_) => None,
            });
            for root in prefixes.filter(|root| self.check_root(root).is_ok()) {
                let purged = self.purge_if(&root, &mut look).await?;
                swept.add(root, purged);
            }
            match page.next {
                Some(cursor) => list = list.after(Some(cursor)),
                None => return Ok(swept),
            }
        }
    }

    /// Takes the turn to sweep: an entry that the engine itself lets expire, so that nobody's clock
    /// matters.
    async fn claim(&self) -> Result<bool> {
        let key = self.claim_key()?;
        let unknown = |error: String| Error::BadRequest(error);
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|error| unknown(error.to_string()))?;
        let by: String = nonce.iter().map(|byte| format!("{byte:02x}")).collect();
        let value = serde_json::json!({ "at": moment_text(self.clock.now()), "by": by });
        let value = Json::from_value(&value).map_err(|error| unknown(error.to_string()))?;
        let put = Put::new(value.clone()).expiring(Expiry::After(self.options.interval));
        let commit = Commit::new().check(key.clone(), Expect::Absent).put(key.clone(), put);
        match self.store.commit(commit).await {
            Ok(outcome) => Ok(outcome.is_applied()),
            // It may have been done all the same, and nobody else would sweep then.
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                let claimed = self.store.get(&key).await?;
                Ok(claimed.is_some_and(|entry| entry.value == value))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// `system:purged`, or for roots below a prefix `system:purged:{prefix}`.
    fn claim_key(&self) -> Result<Key> {
        let mut prefix = Prefix::from_segments(["system", "purged"]);
        if self.options.under != Prefix::all() {
            prefix = prefix.child(&self.options.under.to_string());
        }
        prefix.to_key().ok_or_else(|| Error::BadRequest("no key".into()))
    }

    fn check_root(&self, root: &Key) -> Result<()> {
        let under = &self.options.under;
        let inside = root.depth() == under.depth() + 1
            && root.segments().zip(under.segments()).all(|(one, other)| one == other);
        if !inside {
            return Err(Error::BadRequest(format!("{root} is no root: roots are below {under}*")));
        }
        if is_reserved(&root.first()) {
            let first = root.first();
            return Err(Error::BadRequest(format!("{first} is reserved, and no root")));
        }
        Ok(())
    }

    async fn remove(&self, range: KeyRange, guard: &Guard) -> Result<u64> {
        let mut removed = 0;
        let scan = Scan::new(range).limit(TOGETHER).keys_only();
        loop {
            let page = self.store.scan(&scan).await?;
            let keys: Vec<Key> = page.rows.into_iter().map(|row| row.key).collect();
            if keys.is_empty() {
                return Ok(removed);
            }
            removed += keys.len() as u64;
            self.delete(keys, guard).await?;
        }
    }

    async fn delete(&self, keys: Vec<Key>, guard: &Guard) -> Result<()> {
        if self.store.capabilities().tier() == Tier::Atomic {
            let together = (self.store.limits().commit_keys_max - 1).clamp(1, TOGETHER);
            for some in keys.chunks(together) {
                let commit =
                    some.iter().fold(Commit::new(), |commit, key| commit.delete(key.clone()));
                let _: Outcome = guard.commit(commit).await?;
            }
            return Ok(());
        }
        for key in keys {
            if let Some(loss) = guard.loss() {
                return Err(Error::BadRequest(format!("the lock was lost: {loss:?}")));
            }
            self.store.delete(key).await?;
        }
        Ok(())
    }
}

/// Everything below a key.
fn whole(root: &Key) -> Prefix {
    Prefix::from_segments(root.segments())
}

impl fmt::Debug for Purge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Purge").field("under", &self.options.under).finish()
    }
}
