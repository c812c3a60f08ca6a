//! Who holds what.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Cursor, List, Listed};
use keyward_key::{Key, Prefix};

use crate::catalog::{Broken, Catalog, Claim};
use crate::look::{Look, Sign};
use crate::{Error, LockPath, Locks, Mode, Result, Root, Who};

/// The locks of a root at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Who holds what, oldest first.
    pub holders: Vec<Holder>,
    /// Who waits for what, in the order in which they are served.
    pub waiters: Vec<Waiter>,
    /// The latest locks that were broken, oldest first.
    pub broken: Vec<Broken>,
}

/// Somebody who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The lock's token.
    pub token: u64,
    /// What is held.
    pub paths: Vec<LockPath>,
    /// How.
    pub mode: Mode,
    /// Who holds it.
    pub who: Who,
    /// Since when, by the holder's clock.
    pub since: String,
    /// How long, by the holder's clock then and by this process's clock now.
    pub age: Duration,
    /// How long the lock outlives its holder.
    pub ttl: Duration,
    /// Whether the holder is alive.
    pub life: Life,
}

/// Somebody who waits for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// What is wanted.
    pub paths: Vec<LockPath>,
    /// How.
    pub mode: Mode,
    /// Who wants it.
    pub who: Who,
    /// Since when, by the waiter's clock.
    pub since: String,
    /// How long, by the waiter's clock then and by this process's clock now.
    pub age: Duration,
    /// Whether the waiter is alive.
    pub life: Life,
}

/// What is known of a holder's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Life {
    /// Its lease runs.
    Alive,
    /// Its lease has ended: the next who asks gets the lock.
    Dead,
    /// It would take watching it for longer than its lease to know.
    Unknown,
}

impl Life {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }
}

/// Some roots on which locks are held or wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RootsPage {
    /// The roots, in the order of their text.
    pub roots: Vec<Key>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

impl Root {
    /// Who holds what and who waits.
    pub async fn list(&self) -> Result<Standing> {
        let look = self.look().await?;
        let claims: Vec<&Claim> =
            look.catalog.holders.iter().chain(&look.catalog.waiters).collect();
        let (signs, _) = self.signs(&look, &claims).await?;
        let lives: Vec<Life> = signs.iter().map(life).collect();
        let (of_holders, of_waiters) = lives.split_at(look.catalog.holders.len());
        let holders = look.catalog.holders.iter().zip(of_holders);
        let waiters = look.catalog.waiters.iter().zip(of_waiters);
        Ok(Standing {
            holders: holders.map(|(claim, life)| self.as_holder(claim, *life)).collect(),
            waiters: waiters.map(|(claim, life)| self.as_waiter(claim, *life)).collect(),
            broken: look.catalog.broken.clone(),
        })
    }

    /// One claim of a catalog, whether it holds or waits.
    pub(crate) fn holder(&self, look: &Look, token: u64) -> Holder {
        match look.catalog.claim(token) {
            Some(claim) => self.as_holder(claim, Life::Unknown),
            None => Holder {
                token,
                paths: Vec::new(),
                mode: Mode::Exclusive,
                who: Who::default(),
                since: String::new(),
                age: Duration::ZERO,
                ttl: Duration::ZERO,
                life: Life::Unknown,
            },
        }
    }

    fn as_holder(&self, claim: &Claim, life: Life) -> Holder {
        Holder {
            token: claim.token,
            paths: claim.paths.clone(),
            mode: claim.mode,
            who: claim.who.clone(),
            since: claim.since.clone(),
            age: self.age(claim),
            ttl: claim.ttl(),
            life,
        }
    }

    fn as_waiter(&self, claim: &Claim, life: Life) -> Waiter {
        Waiter {
            paths: claim.paths.clone(),
            mode: claim.mode,
            who: claim.who.clone(),
            since: claim.since.clone(),
            age: self.age(claim),
            life,
        }
    }

    /// Shows how many wait, and for how long the first one does.
    pub(crate) fn saw_queue(&self, catalog: &Catalog) {
        let age = catalog.waiters.first().map(|claim| self.age(claim));
        self.shared.metrics.saw_queue(catalog.waiters.len(), age);
    }

    fn age(&self, claim: &Claim) -> Duration {
        let since = claim.since.parse::<Timestamp>().ok();
        let age = since.map(|since| self.shared.now().duration_since(since));
        age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default()
    }
}

fn life(sign: &Sign) -> Life {
    match sign {
        Sign::Lease(Some(_)) => Life::Alive,
        Sign::Lease(None) => Life::Dead,
        Sign::Beat(_) => Life::Unknown,
    }
}

impl Locks {
    /// The roots on which locks are held or wanted, `limit` at a time. Refused where the engine
    /// commits one key at a time: only the catalogs know of locks there, and they may be anywhere.
    pub async fn roots(&self, after: Option<Cursor>, limit: usize) -> Result<RootsPage> {
        if !self.shared().is_atomic() {
            return Err(Error::Unsupported(format!(
                "locks of the {} engine cannot be found without their root; name the root",
                self.store().capabilities().engine
            )));
        }
        let list = List::new(Prefix::from_segments(["lock"])).depth(1).after(after).limit(limit);
        let listing = self.store().list(&list).await?;
        let roots = listing.items.iter().filter_map(|item| {
            let text = match item {
                Listed::Key(key) => key.segments().nth(1)?.into_owned(),
                Listed::Prefix(prefix) => prefix.segments().nth(1)?.into_owned(),
            };
            Key::parse(&text).ok()
        });
        Ok(RootsPage { roots: roots.collect(), next: listing.next })
    }
}
