//! Asking and computing as two requests, for those who compute somewhere else.

use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::Json;
use keyward_key::{Key, ParseError};
use keyward_locks::{Error as LockError, Renewal, Ticket as LockTicket};
use serde::{Deserialize, Serialize};

use crate::cache::{Look, Stale, deadline};
use crate::compute::{Begun, Computing};
use crate::{Cache, Cached, Error, Fetch, Origin, Result, Source};

/// What becomes of somebody who asks for a result.
#[derive(Debug, Clone)]
#[must_use = "whoever has a ticket keeps others from computing"]
pub enum Claim {
    /// There is one, or there was one by the time.
    Fresh(Cached),
    /// The caller shall compute it, and publish it or say that it failed.
    Compute(Ticket),
}

/// The right to compute one result, of one source, until its lease ends. It can be written down, and
/// used in any process that reaches the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct Ticket {
    key: Key,
    lock: LockTicket,
    source: Source,
    ttl: Option<Duration>,
    depends_on: Vec<Key>,
    /// What the computation can use of each of these.
    used: Vec<Option<String>>,
    /// When it began, by the clock of whoever gave the ticket.
    began: Timestamp,
}

/// A ticket as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Text {
    key: String,
    lock: LockTicket,
    source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ttl: Option<Duration>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    used: Vec<Option<String>>,
    began: Timestamp,
}

impl From<Ticket> for Text {
    fn from(ticket: Ticket) -> Self {
        let Ticket { key, lock, source, ttl, depends_on, used, began } = ticket;
        let depends_on = depends_on.iter().map(Key::to_string).collect();
        Self { key: key.to_string(), lock, source, ttl, depends_on, used, began }
    }
}

impl TryFrom<Text> for Ticket {
    type Error = ParseError;

    fn try_from(text: Text) -> Result<Self, ParseError> {
        let Text { key, lock, source, ttl, depends_on, mut used, began } = text;
        let keys = depends_on.iter().map(|key| Key::parse(key));
        let depends_on = keys.collect::<Result<Vec<_>, _>>()?;
        used.resize(depends_on.len(), None);
        Ok(Self { key: Key::parse(&key)?, lock, source, ttl, depends_on, used, began })
    }
}

impl Ticket {
    /// What is to be computed.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What it is made of.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Other cached keys that it is made from.
    pub fn depends_on(&self) -> &[Key] {
        &self.depends_on
    }

    /// The lock that it is computed under.
    pub fn lock(&self) -> &LockTicket {
        &self.lock
    }

    fn computation(&self) -> String {
        format!("{}#{}", self.lock.root(), self.lock.token())
    }

    fn fetch(&self) -> Fetch {
        let depends_on = self.depends_on.clone();
        Fetch { ttl: self.ttl, depends_on, ..Fetch::of(self.source.clone()) }
    }
}

/// A key that is held back after its computation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBack {
    /// How often it failed in a row.
    pub times: u32,
    /// From when on it is tried again, counted from now.
    pub retry_after: Duration,
}

impl Cache {
    /// What is cached, if it is fresh; else the right to compute it, unless somebody else has that:
    /// then what they publish, or [`Error::TimedOut`] if it does not come in time. While the key is
    /// held back after a failure, that failure.
    ///
    /// Who gets a ticket renews its lease in time ([`Cache::renew`]) and ends it with
    /// [`Cache::publish`], [`Cache::fail`] or [`Cache::abandon`]; if not, another one gets the right
    /// when the lease has ended. Asked again by the same name, which nobody else may choose, the same
    /// right is had again: for whoever lost the answer.
    ///
    /// The lock is the cache's own: [`Fetch::under`] is refused.
    pub async fn claim(&self, key: &Key, fetch: &Fetch, name: Option<&str>) -> Result<Claim> {
        self.check(key, fetch)?;
        if fetch.lock.is_some() {
            let message = "what is claimed is computed under the cache's own lock";
            return Err(Error::BadRequest(message.into()));
        }
        if let Look::Fresh(stored) = self.look(key, &fetch.source).await? {
            self.inner.metrics.hits.inc();
            return Ok(Claim::Fresh(stored.cached(Origin::Stored)));
        }
        self.inner.metrics.misses.inc();
        let end = deadline(fetch.wait_max);
        let computing = match self.begin(key, fetch, (Stale::Dropped, end), name).await? {
            Begun::Result(cached) => return Ok(Claim::Fresh(cached)),
            Begun::Computing(computing) => computing,
        };
        let used = computing.used().await?;
        Ok(Claim::Compute(Ticket {
            key: key.clone(),
            lock: computing.guard.detach(),
            source: fetch.source.clone(),
            ttl: fetch.ttl,
            depends_on: fetch.depends_on.clone(),
            used,
            began: self.inner.clock.now(),
        }))
    }

    /// Renews the lease of a computation. Fails with [`Error::Lost`] if somebody else has it.
    pub async fn renew(&self, ticket: &Ticket) -> Result<Renewal> {
        self.check_ticket(ticket)?;
        let renewed = self.inner.locks.renew(&ticket.lock).await;
        renewed.map_err(|error| self.refused(&ticket.key, error))
    }

    /// Caches what was computed, and ends the ticket. Refused with [`Error::Lost`] if somebody else
    /// computes it by now. At most one value is cached for one ticket: sent again, also with another
    /// value, it tells what was cached. If what the result depends on has changed meanwhile, it is not
    /// cached, and has no version.
    pub async fn publish(&self, ticket: &Ticket, value: Json) -> Result<Cached> {
        let fetch = self.check_ticket(ticket)?;
        let guard = match self.inner.locks.resume(&ticket.lock).await {
            Ok(guard) => guard,
            Err(error @ LockError::Lost { .. }) => {
                return match self.published(ticket).await? {
                    Some(cached) => Ok(cached),
                    None => Err(self.refused(&ticket.key, error)),
                };
            }
            Err(error) => return Err(error.into()),
        };
        let (key, computation) = (&ticket.key, ticket.computation());
        let computing = Computing { cache: self, key, fetch: &fetch, guard, computation };
        let made = match computing.finish(value, &ticket.used).await {
            // Whoever has the same ticket may have published it, and given the lock back.
            Err(error @ Error::Lost { .. }) => {
                return self.published(ticket).await?.ok_or(error);
            }
            made => made?,
        };
        // What cannot be given back ends with its lease, and keeps nobody from reading.
        let _ = computing.guard.release().await;
        let took = self.inner.clock.now().duration_since(ticket.began);
        self.inner.metrics.computing_seconds.observe(took.as_secs_f64().max(0.0));
        match made.version {
            // Another value may have been published with the same ticket.
            Some(_) => Ok(self.published(ticket).await?.unwrap_or(made)),
            None => Ok(made),
        }
    }

    /// Says that the computation failed, and ends the ticket: the key is held back for a while.
    /// Refused with [`Error::Lost`] if somebody else computes it by now.
    pub async fn fail(&self, ticket: &Ticket, message: &str) -> Result<HeldBack> {
        let fetch = self.check_ticket(ticket)?;
        let key = &ticket.key;
        let failed = match self.inner.locks.resume(&ticket.lock).await {
            Ok(guard) => {
                let computation = ticket.computation();
                let computing = Computing { cache: self, key, fetch: &fetch, guard, computation };
                let failed = computing.fail(message).await;
                let _ = computing.guard.release().await;
                failed
            }
            // It may have been said before.
            Err(error @ LockError::Lost { .. }) => match self.look(key, &fetch.source).await {
                Err(failed) => failed,
                Ok(_) => self.refused(key, error),
            },
            Err(error) => error.into(),
        };
        match failed {
            Error::Failed { times, retry_after, .. } => Ok(HeldBack { times, retry_after }),
            error => Err(error),
        }
    }

    /// Gives the right to compute back, without a result. A ticket that has ended is left alone.
    pub async fn abandon(&self, ticket: &Ticket) -> Result<()> {
        self.check_ticket(ticket)?;
        Ok(self.inner.locks.release(&ticket.lock).await?)
    }

    /// Refuses a ticket that no cache gave: it may come from anybody. Gives what was asked for.
    fn check_ticket(&self, ticket: &Ticket) -> Result<Fetch> {
        let fetch = ticket.fetch();
        self.check(&ticket.key, &fetch)?;
        let (root, _) = self.lock_of(&ticket.key, &fetch)?;
        match root.key() == ticket.lock.root() {
            true => Ok(fetch),
            false => Err(Error::BadRequest("the ticket is of another lock".into())),
        }
    }

    /// What was published with a ticket, if it is still there.
    async fn published(&self, ticket: &Ticket) -> Result<Option<Cached>> {
        let held = self.peek(&ticket.key).await?;
        let held = held.filter(|held| held.label.computation == ticket.computation());
        Ok(held.map(|held| held.cached(Origin::Computed)))
    }

    pub(crate) fn refused(&self, key: &Key, error: LockError) -> Error {
        match error {
            LockError::Lost { .. } => {
                self.inner.metrics.lost.inc();
                Error::Lost { key: key.clone() }
            }
            error => error.into(),
        }
    }
}
