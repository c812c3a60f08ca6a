//! The catalog of a root: who holds what, who waits, and the rule that decides who is next. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use keyward_engine::{Entry, Json};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::mark::BLOCK;
use crate::{Error, LockPath, Mode, Request, Result, Who};

/// How many holders, and how many waiters, a root may have.
pub(crate) const CLAIMS_MAX: usize = 256;
/// How many breaks are remembered.
const BROKEN_MAX: usize = 32;
const FORMAT: u32 = 1;

/// What the entry at a root's key says. Never deleted, so that tokens rise for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Catalog {
    keyward: Tag,
    format: u32,
    /// The number that the next claim gets: a grant's token, a waiter's place.
    next_token: u64,
    /// The mark beside the catalog: no token above it is given out before it is raised. Catalogs of older
    /// versions have none.
    #[serde(default)]
    mark: u64,
    /// Whether the mark was raised since the catalog was read, and must be written with it.
    #[serde(skip)]
    is_raised: bool,
    pub holders: Vec<Claim>,
    /// In the order of their arrival.
    pub waiters: Vec<Claim>,
    /// The latest locks that were broken, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<Broken>,
}

/// Why a root's catalog could not be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Somebody must look at it first: the key belongs to something else, or to a newer version.
    Refused(Error),
    /// It is a catalog that makes no sense any more.
    Damaged(Error),
}

/// What tells a catalog from everything else that a key might hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Tag {
    #[serde(rename = "locks")]
    Locks,
}

/// One holder or waiter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// A holder's token. A waiter's is only its lease's name: it gets another with the grant.
    pub token: u64,
    /// Which request this is: random, so that a request finds its own after a lost answer.
    pub id: String,
    /// Whose it is: the first request's id for all guards that were taken under one another.
    pub owner: String,
    pub paths: Vec<LockPath>,
    pub mode: Mode,
    pub ttl_ms: u64,
    /// How often it was renewed, where renewals are kept here.
    #[serde(default)]
    pub beat: u64,
    /// When it came, by the clock of whoever it is. For people only.
    pub since: String,
    pub who: Who,
}

/// A lock that a person took away from its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The lock's token.
    pub token: u64,
    /// What was held.
    pub paths: Vec<LockPath>,
    /// Who held it.
    pub holder: Who,
    /// Who broke it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When, by the clock of whoever broke it.
    pub at: String,
}

/// A request that is not granted yet.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub id: String,
    pub owner: String,
    pub paths: Vec<LockPath>,
    pub mode: Mode,
    pub ttl: Duration,
    pub since: String,
    pub who: Who,
    /// That it may be asked more than once, by its id.
    pub is_named: bool,
}

/// What is to be taken out of a catalog.
#[derive(Debug, Clone)]
pub(crate) enum Which {
    /// A request, whether it holds or waits.
    Request(String),
    /// A request, if it waits.
    Waiter(String),
    /// A request, if it holds what it was granted with this token.
    Grant { id: String, token: u64 },
}

/// What can be done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It can be granted now.
    Granted,
    /// These are in its way, by their tokens.
    Blocked(Vec<u64>),
    /// It would wait for its own owner.
    Circular { asked: LockPath, held: LockPath },
    /// It wants for itself what its owner holds shared.
    Upgrade { asked: LockPath, held: LockPath },
}

impl Asked {
    /// What is to be taken out when the request is given up. Whoever asks again by its name may have
    /// been granted it meanwhile.
    pub fn withdrawn(&self) -> Which {
        match self.is_named {
            true => Which::Waiter(self.id.clone()),
            false => Which::Request(self.id.clone()),
        }
    }
}

impl Claim {
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms).max(Request::TTL_MIN)
    }

    /// Whether a request asks for just this.
    pub fn is_asked(&self, asked: &Asked) -> bool {
        let same_ttl = u128::from(self.ttl_ms) == asked.ttl.as_millis();
        self.paths == asked.paths && self.mode == asked.mode && same_ttl
    }

    fn excludes(&self, paths: &[LockPath], mode: Mode) -> bool {
        let overlaps = |mine: &LockPath| paths.iter().any(|path| mine.overlaps(path));
        self.mode.excludes(mode) && self.paths.iter().any(overlaps)
    }
}

/// Whether an entry is the catalog of a lock root, whatever its key is: for whoever looks through a store
/// and has to tell Keyward's own entries from others.
pub fn is_lock_catalog(entry: &Entry) -> bool {
    #[derive(Deserialize)]
    struct Tagged {
        #[serde(rename = "keyward")]
        _tag: Tag,
        #[serde(rename = "format")]
        _format: u32,
    }
    serde_json::from_slice::<Tagged>(entry.value.as_bytes()).is_ok()
}

impl Catalog {
    fn empty() -> Self {
        Self {
            keyward: Tag::Locks,
            format: FORMAT,
            next_token: 1,
            mark: 0,
            is_raised: false,
            holders: Vec::new(),
            waiters: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// Reads what a root's key holds. Anything but a catalog is refused, never overwritten; a catalog
    /// that cannot be read is [`Unread::Damaged`].
    pub fn read(root: &Key, entry: Option<&Entry>) -> Result<Self, Unread> {
        #[derive(Deserialize)]
        struct Tagged {
            #[serde(rename = "keyward")]
            _tag: Tag,
            format: u32,
        }
        let Some(entry) = entry else {
            return Ok(Self::empty());
        };
        let bytes = entry.value.as_bytes();
        let Ok(tagged) = serde_json::from_slice::<Tagged>(bytes) else {
            return Err(Unread::Refused(Error::ForeignValue { root: root.clone() }));
        };
        let damaged = |reason: String| Error::Damaged { root: root.clone(), reason };
        if tagged.format != FORMAT {
            let format = tagged.format;
            let reason = format!("its format is {format}, and only {FORMAT} is known here");
            return Err(Unread::Refused(damaged(reason)));
        }
        let catalog: Self = match serde_json::from_slice(bytes) {
            Ok(catalog) => catalog,
            Err(error) => return Err(Unread::Damaged(damaged(error.to_string()))),
        };
        // Nobody could have asked for such a lease, and who believed in it would wait for ever.
        let is_too_long = |claim: &&Claim| claim.ttl() > Request::TTL_MAX;
        match catalog.holders.iter().chain(&catalog.waiters).find(is_too_long) {
            Some(claim) => Err(Unread::Refused(damaged(format!(
                "the lease of {} lasts {} ms, and the longest is {} ms",
                claim.token,
                claim.ttl_ms,
                Request::TTL_MAX.as_millis()
            )))),
            None => Ok(catalog),
        }
    }

    pub fn to_json(&self, root: &Key) -> Result<Json> {
        let damaged = |reason: String| Error::Damaged { root: root.clone(), reason };
        Json::from_value(self).map_err(|error| damaged(error.to_string()))
    }

    /// A catalog that begins after a token.
    pub fn after(token: u64) -> Self {
        let mut catalog = Self::empty();
        catalog.skip(token);
        catalog
    }

    /// Gives out no token up to this one.
    pub fn skip(&mut self, token: u64) {
        self.next_token = self.next_token.max(token.saturating_add(1));
    }

    /// Whether a mark was written by a later catalog than this one.
    pub fn is_behind(&self, mark: u64) -> bool {
        mark > self.mark
    }

    /// The mark, if it was raised since the catalog was read.
    pub fn raised(&self) -> Option<u64> {
        self.is_raised.then_some(self.mark)
    }

    /// The catalog after it was written with its mark.
    pub fn written(mut self) -> Self {
        self.is_raised = false;
        self
    }

    pub fn holder(&self, id: &str) -> Option<&Claim> {
        self.holders.iter().find(|claim| claim.id == id)
    }

    pub fn waiter(&self, id: &str) -> Option<&Claim> {
        self.waiters.iter().find(|claim| claim.id == id)
    }

    pub fn claim(&self, token: u64) -> Option<&Claim> {
        self.holders.iter().chain(&self.waiters).find(|claim| claim.token == token)
    }

    /// Whether there is little room left, so that dead claims should go even if they harm nobody.
    pub fn is_crowded(&self) -> bool {
        self.holders.len().max(self.waiters.len()) >= CLAIMS_MAX * 3 / 4
    }

    /// Whether a request can be granted, if these claims are dead.
    ///
    /// It is when no holder and no earlier waiter excludes it. Claims of its own owner stand in its
    /// way only where it would wait for itself, and then it is refused. An earlier waiter that waits
    /// for the request's own owner, or for another one that does, is no reason to wait.
    pub fn decide(&self, asked: &Asked, dead: &BTreeSet<u64>) -> Decision {
        let alive = |claim: &&Claim| !dead.contains(&claim.token);
        let (own, foreign): (Vec<&Claim>, Vec<&Claim>) =
            self.holders.iter().filter(alive).partition(|claim| claim.owner == asked.owner);
        if let Some(refused) = within_family(&own, asked) {
            return refused;
        }
        let earlier = self.waiters.iter().take_while(|claim| claim.id != asked.id).filter(alive);
        // What those wait for who wait for the owner: it, and each other.
        let mut for_us = own;
        let mut waiters: Vec<&Claim> = Vec::new();
        for waiter in earlier {
            let waits = for_us.iter().any(|claim| claim.excludes(&waiter.paths, waiter.mode));
            if waits { for_us.push(waiter) } else { waiters.push(waiter) }
        }
        let blockers: Vec<u64> = foreign
            .into_iter()
            .chain(waiters)
            .filter(|claim| claim.excludes(&asked.paths, asked.mode))
            .map(|claim| claim.token)
            .collect();
        if blockers.is_empty() { Decision::Granted } else { Decision::Blocked(blockers) }
    }

    /// Makes a request a holder and gives its token. Refused if there is no token left.
    pub fn grant(&mut self, root: &Key, asked: &Asked) -> Result<u64> {
        self.remove(&asked.id);
        let claim = self.claimed(root, asked)?;
        let token = claim.token;
        self.holders.push(claim);
        Ok(token)
    }

    /// Puts a request at the end of the line and gives the name of its lease. Refused likewise.
    pub fn join(&mut self, root: &Key, asked: &Asked) -> Result<u64> {
        self.remove(&asked.id);
        let claim = self.claimed(root, asked)?;
        let token = claim.token;
        self.waiters.push(claim);
        Ok(token)
    }

    fn claimed(&mut self, root: &Key, asked: &Asked) -> Result<Claim> {
        let token = self.next_token;
        self.next_token = after(token, root, "next token")?;
        if token > self.mark {
            self.mark = token.saturating_add(BLOCK);
            self.is_raised = true;
        }
        Ok(Claim {
            token,
            id: asked.id.clone(),
            owner: asked.owner.clone(),
            paths: asked.paths.clone(),
            mode: asked.mode,
            ttl_ms: u64::try_from(asked.ttl.as_millis()).unwrap_or(u64::MAX),
            beat: 0,
            since: asked.since.clone(),
            who: asked.who.clone(),
        })
    }

    /// Takes claims out, and gives them.
    pub fn take_out(&mut self, which: &Which) -> Vec<Claim> {
        match which {
            Which::Request(id) => self.remove(id),
            Which::Waiter(id) => self.waiters.extract_if(.., |claim| claim.id == *id).collect(),
            Which::Grant { id, token } => {
                let is_it = |claim: &mut Claim| claim.id == *id && claim.token == *token;
                self.holders.extract_if(.., is_it).collect()
            }
        }
    }

    /// Takes a request out, whether it holds or waits, and gives what was taken out.
    pub fn remove(&mut self, id: &str) -> Vec<Claim> {
        let holders = self.holders.extract_if(.., |claim| claim.id == id);
        let mut removed: Vec<Claim> = holders.collect();
        removed.extend(self.waiters.extract_if(.., |claim| claim.id == id));
        removed
    }

    /// Takes out a claim by its token.
    pub fn reap(&mut self, token: u64) {
        self.holders.retain(|claim| claim.token != token);
        self.waiters.retain(|claim| claim.token != token);
    }

    /// Counts a renewal. Says whether the request is still there. Refused if it cannot be counted.
    pub fn beat(&mut self, root: &Key, id: &str) -> Result<bool> {
        let mut claims = self.holders.iter_mut().chain(&mut self.waiters);
        let Some(claim) = claims.find(|claim| claim.id == id) else {
            return Ok(false);
        };
        claim.beat = after(claim.beat, root, "count of renewals")?;
        Ok(true)
    }

    /// Takes a holder out, and remembers why.
    pub fn break_claim(&mut self, claim: &Claim, by: &str, reason: &str, at: &str) -> Broken {
        self.reap(claim.token);
        let broken = Broken {
            token: claim.token,
            paths: claim.paths.clone(),
            holder: claim.who.clone(),
            by: by.to_owned(),
            reason: reason.to_owned(),
            at: at.to_owned(),
        };
        self.broken.push(broken.clone());
        let surplus = self.broken.len().saturating_sub(BROKEN_MAX);
        self.broken.drain(..surplus);
        broken
    }
}

/// The next number. No honest catalog comes to the last one.
fn after(number: u64, root: &Key, what: &str) -> Result<u64> {
    let next = number.checked_add(1);
    next.ok_or_else(|| {
        let reason = format!("a {what} of {number} cannot be counted on");
        Error::Damaged { root: root.clone(), reason }
    })
}

/// Why a request is refused because of what its own owner holds.
fn within_family(own: &[&Claim], asked: &Asked) -> Option<Decision> {
    for held in own.iter().filter(|held| held.id != asked.id) {
        for (theirs, mine) in
            held.paths.iter().flat_map(|held| asked.paths.iter().map(move |mine| (held, mine)))
        {
            let (asked_path, held_path) = (mine.clone(), theirs.clone());
            if mine == theirs || mine.is_above(theirs) {
                return Some(Decision::Circular { asked: asked_path, held: held_path });
            }
            let wider = asked.mode == Mode::Exclusive && held.mode == Mode::Shared;
            if wider && theirs.is_above(mine) {
                return Some(Decision::Upgrade { asked: asked_path, held: held_path });
            }
        }
    }
    None
}
