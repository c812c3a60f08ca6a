//! Reading a catalog, and telling the dead from the living.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use keyward_engine::{Check, Expect, Version};
use keyward_key::Key;
use tokio::time::Instant;

use crate::catalog::{Catalog, Claim, Unread};
use crate::mark::{Mark, mark_key};
use crate::{Result, Root};

/// A catalog as it was at one moment.
pub(crate) struct Look {
    pub catalog: Catalog,
    pub version: Option<Version>,
    /// The mark at the same moment.
    pub mark: Mark,
    /// The largest token that a catalog may have given out that is gone or damaged.
    pub lost: Option<u64>,
    sent: Instant,
    arrived: Instant,
}

/// A claim whose holder is dead, and what must still be true when it is taken out.
pub(crate) struct Corpse {
    pub token: u64,
    pub check: Option<Check>,
}

/// What changes with every renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The lease's version; none if it has expired.
    Lease(Option<Version>),
    /// The count in the catalog.
    Beat(u64),
}

/// What was last seen of claims, and since when it has been the same.
#[derive(Default)]
pub(crate) struct Sightings(Mutex<BTreeMap<(Key, u64), (Sign, Instant)>>);

/// How many claims are remembered. Forgetting one only makes its takeover later.
const SIGHTINGS_MAX: usize = 8_192;

/// How long a claim must stay unchanged to be dead: longer than its holder goes on, by more than
/// two clocks of one speed can differ.
pub(crate) fn patience(ttl: Duration) -> Duration {
    ttl + ttl / 4
}

impl Sightings {
    /// Whether a claim stayed the same for longer than its lease. What was seen counts from when the
    /// answer arrived, and lasts until the next question was sent: the time between is certain.
    fn is_overdue(
        &self,
        of: (Key, u64),
        sign: &Sign,
        ttl: Duration,
        (sent, arrived): (Instant, Instant),
    ) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get(&of) {
            Some((known, since)) if known == sign => {
                sent.saturating_duration_since(*since) >= patience(ttl)
            }
            _ => {
                if seen.len() >= SIGHTINGS_MAX {
                    seen.clear();
                }
                seen.insert(of, (sign.clone(), arrived));
                false
            }
        }
    }

    /// Since when a claim has been the same.
    fn since(&self, root: &Key, token: u64) -> Option<Instant> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&(root.clone(), token)).map(|(_, since)| *since)
    }

    /// Forgets claims of a root that are gone.
    fn keep(&self, root: &Key, catalog: &Catalog) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = (root.clone(), 0);
        let last = (root.clone(), u64::MAX);
        let of_root = seen.range(first..=last).map(|((_, token), _)| *token);
        let gone: Vec<u64> = of_root.filter(|token| catalog.claim(*token).is_none()).collect();
        for token in gone {
            seen.remove(&(root.clone(), token));
        }
    }
}

impl Root {
    pub(crate) async fn look(&self) -> Result<Look> {
        let sent = Instant::now();
        // At one moment: a mark without a catalog is what is left of a lost one.
        let keys = [self.key().clone(), mark_key(self.key())];
        let mut found = self.shared.store.get_many(&keys).await?.into_iter();
        let (entry, mark) = (found.next().flatten(), found.next().flatten());
        let arrived = Instant::now();
        let mark = Mark::read(self.key(), mark);
        let read = Catalog::read(self.key(), entry.as_ref());
        let version = entry.map(|entry| entry.version);
        let (catalog, lost) = match (read, mark.token_max) {
            // A catalog that is behind its mark is an older one that somebody put back.
            (Ok(mut catalog), Some(lost)) if version.is_some() && catalog.is_behind(lost) => {
                catalog.skip(lost);
                (catalog, Some(lost))
            }
            (Ok(catalog), _) if version.is_some() => (catalog, None),
            (Err(Unread::Refused(error)), _) => return Err(error),
            (Ok(_) | Err(Unread::Damaged(_)), Some(lost)) => (Catalog::after(lost), Some(lost)),
            (Ok(new), None) => (new, None),
            (Err(Unread::Damaged(error)), None) => return Err(error),
        };
        Ok(Look { catalog, version, mark, lost, sent, arrived })
    }

    /// Which of some claims are dead.
    pub(crate) async fn corpses(&self, look: &Look, tokens: &[u64]) -> Result<Vec<Corpse>> {
        let claims: Vec<&Claim> =
            tokens.iter().filter_map(|token| look.catalog.claim(*token)).collect();
        let (signs, times) = self.signs(look, &claims).await?;
        let sightings = &self.shared.sightings;
        sightings.keep(self.key(), &look.catalog);
        let mut corpses = Vec::new();
        for (claim, sign) in claims.into_iter().zip(signs) {
            let of = (self.key().clone(), claim.token);
            let expect = match &sign {
                Sign::Lease(None) => Some(Expect::Absent),
                _ if !sightings.is_overdue(of, &sign, claim.ttl(), times) => continue,
                Sign::Lease(Some(version)) => Some(Expect::Version(version.clone())),
                Sign::Beat(_) => None,
            };
            let check = expect.map(|expect| Check { key: self.lease_key(claim.token), expect });
            corpses.push(Corpse { token: claim.token, check });
        }
        corpses.truncate(self.shared.reaped_max());
        Ok(corpses)
    }

    /// The signs of life of some claims, and when they were asked for and told.
    pub(crate) async fn signs(
        &self,
        look: &Look,
        claims: &[&Claim],
    ) -> Result<(Vec<Sign>, (Instant, Instant))> {
        if !self.shared.is_atomic() {
            let beats = claims.iter().map(|claim| Sign::Beat(claim.beat)).collect();
            return Ok((beats, (look.sent, look.arrived)));
        }
        let keys: Vec<Key> = claims.iter().map(|claim| self.lease_key(claim.token)).collect();
        let sent = Instant::now();
        let leases = self.shared.store.get_many(&keys).await?;
        let signs = leases.into_iter().map(|lease| Sign::Lease(lease.map(|lease| lease.version)));
        Ok((signs.collect(), (sent, Instant::now())))
    }

    /// When to look at some claims again at the latest, because one of them may be dead by then.
    pub(crate) fn next_look(&self, look: &Look, tokens: &[u64]) -> Option<Instant> {
        let claims = tokens.iter().filter_map(|token| look.catalog.claim(*token));
        let moments = claims.map(|claim| {
            let since = self.shared.sightings.since(self.key(), claim.token);
            let overdue = since.map(|since| since + patience(claim.ttl()));
            // A lease that its engine ends is gone at the latest one ttl after it was seen. Looking
            // more often finds it gone soon after.
            let soon = look.arrived + claim.ttl() / 3;
            overdue.filter(|at| *at > look.arrived).map_or(soon, |at| at.min(soon))
        });
        moments.min()
    }
}
