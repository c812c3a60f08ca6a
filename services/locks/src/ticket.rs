//! Locks that are held without a guard: by whoever has the ticket, in whatever process.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Check, Expect, Version};
use keyward_key::Key;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::catalog::{Catalog, Claim, Which};
use crate::fence::Fence;
use crate::guard::Grant;
use crate::{Error, Guard, Locks, Loss, Request, Result, Root};

/// What proves that somebody holds a lock, without a guard that renews it or gives it back: it can be
/// written down, and used in any process that reaches the store.
///
/// Whoever has it renews the lease ([`Locks::renew`]) and counts the lock as lost once three quarters
/// of the lease have passed since the last renewal that worked was *sent*: before anybody else can
/// have it. Writes depend on it by its fence ([`Locks::fence`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct Ticket {
    root: Key,
    id: String,
    token: u64,
    fence: Option<Version>,
}

/// A ticket as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    root: String,
    id: String,
    token: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fence: Option<String>,
}

impl From<Ticket> for Text {
    fn from(ticket: Ticket) -> Self {
        let Ticket { root, id, token, fence } = ticket;
        Self { root: root.to_string(), id, token, fence: fence.map(|fence| fence.to_string()) }
    }
}

impl TryFrom<Text> for Ticket {
    type Error = keyward_key::ParseError;

    fn try_from(text: Text) -> Result<Self, Self::Error> {
        let Text { root, id, token, fence } = text;
        let fence = fence.map(|fence| Version::parse(&fence));
        Ok(Self { root: Key::parse(&root)?, id, token, fence })
    }
}

impl Ticket {
    /// The root of the lock.
    pub fn root(&self) -> &Key {
        &self.root
    }

    /// The lock's token: higher than that of every lock of this root granted before.
    pub fn token(&self) -> u64 {
        self.token
    }
}

/// A lease that was just renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    /// How long the lock outlives a holder that stopped renewing it.
    pub ttl: Duration,
    /// How much of that is left, at least.
    pub left: Duration,
}

/// How often others may move the fence while it is renewed.
const ATTEMPTS_MAX: usize = 16;
/// How often the store may fail before a renewal is given up.
const FAILURES_MAX: u32 = 4;
const FAILURE_PAUSE_MIN: Duration = Duration::from_millis(20);

impl Guard {
    /// Lets go of the guard without giving the lock back: from now on nobody renews it but whoever has
    /// the ticket, and it is given back with [`Locks::release`] or ends with its lease.
    pub fn detach(mut self) -> Ticket {
        self.forsake();
        self.ticket()
    }

    /// What stands for this lock in other processes. The guard goes on renewing it, and gives it back
    /// when it is dropped.
    pub(crate) fn ticket(&self) -> Ticket {
        let Grant { root, id, token, fence, .. } = &self.held().grant;
        let fence = fence.as_ref().map(|fence| fence.version());
        Ticket { root: root.key().clone(), id: id.clone(), token: *token, fence }
    }

    /// How much of the lease is left, at least.
    pub fn left(&self) -> Duration {
        let (renewed, _) = self.held().times();
        self.ttl().saturating_sub(renewed.elapsed())
    }
}

impl Locks {
    /// Renews the lease of a lock, if it is still held: also one whose lease has ended, as long as
    /// nobody else has taken it over. Done twice, it does no harm.
    ///
    /// Fails with [`Error::Lost`], which says how, if the holder is gone from the catalog.
    pub async fn renew(&self, ticket: &Ticket) -> Result<Renewal> {
        let renewed = self.renewed(ticket).await?;
        let left = renewed.grant.ttl.saturating_sub(renewed.sent.elapsed());
        Ok(Renewal { ttl: renewed.grant.ttl, left })
    }

    /// A guard of a lock that was detached, after a renewal: it renews the lease as long as it is
    /// kept. Dropping it leaves the lock as it is, for whoever has the ticket; only
    /// [`Guard::release`] gives it back.
    pub async fn resume(&self, ticket: &Ticket) -> Result<Guard> {
        let Renewed { grant, sent } = self.renewed(ticket).await?;
        Ok(Guard::new(grant, sent, None))
    }

    /// Gives a lock back. One that is no longer held is left alone, and so is every later lock.
    pub async fn release(&self, ticket: &Ticket) -> Result<()> {
        let which = Which::Grant { id: ticket.id.clone(), token: ticket.token };
        self.root(ticket.root.clone())?.take_out(&which, None).await
    }

    /// The check that makes a commit to the same store depend on a lock. Refused where commits have
    /// one key only.
    ///
    /// Whoever sends a commit with it and gets no answer calls [`Locks::outrun`] before the next one:
    /// else what was sent may land over what comes after it. If the check fails,
    /// [`Locks::refused`] says why.
    pub fn fence(&self, ticket: &Ticket) -> Result<Check> {
        let root = self.root(ticket.root.clone())?;
        match &ticket.fence {
            Some(fence) if self.shared().is_atomic() => Ok(Check {
                key: root.fence_key(ticket.token),
                expect: Expect::Version(fence.clone()),
            }),
            _ => Err(Error::Unsupported(format!(
                "the {} engine commits one key at a time, so a commit cannot check a lock as well",
                self.store().capabilities().engine
            ))),
        }
    }

    /// Refuses, from now on, every commit that was sent with this ticket's fence and has not landed
    /// yet, and gives the ticket to go on with. Sent again after a lost answer, it gives the same.
    pub async fn outrun(&self, ticket: &Ticket) -> Result<Ticket> {
        let (root, claim) = self.claim(ticket).await?;
        let Some(known) = &ticket.fence else { return Ok(ticket.clone()) };
        let grant = grant(&root, &claim, Some(known.clone()));
        let Some(fence) = &grant.fence else { return Ok(ticket.clone()) };
        match grant.move_fence(fence).await? {
            true => Ok(Ticket { fence: Some(fence.version()), ..ticket.clone() }),
            false => Err(self.lost(&root, ticket).await),
        }
    }

    /// Why the store refused a commit that checks a ticket's fence.
    pub async fn refused(&self, ticket: &Ticket) -> Error {
        self.metrics().fence_refusals.inc();
        match self.claim(ticket).await {
            Ok(_) => Error::OldTicket { root: ticket.root.clone(), token: ticket.token },
            Err(error) => error,
        }
    }

    /// The request, asked by the owner of a lock: what lies below the lock's paths is no conflict, and
    /// what lies above them is refused at once rather than waited for.
    pub async fn under(&self, ticket: &Ticket, mut request: Request) -> Result<Request> {
        let (_, claim) = self.claim(ticket).await?;
        request.owner = Some(claim.owner);
        Ok(request)
    }

    async fn renewed(&self, ticket: &Ticket) -> Result<Renewed> {
        let mut failures = 0;
        loop {
            match self.renewed_once(ticket).await {
                Err(error) if error.is_passing() && failures < FAILURES_MAX => {
                    let pause = FAILURE_PAUSE_MIN * 2_u32.pow(failures);
                    failures += 1;
                    sleep(self.shared().jittered(pause)).await;
                }
                renewed => return renewed,
            }
        }
    }

    async fn renewed_once(&self, ticket: &Ticket) -> Result<Renewed> {
        let (root, claim) = self.claim(ticket).await?;
        for _ in 0..ATTEMPTS_MAX {
            let sent = Instant::now();
            let fence = match self.shared().is_atomic() {
                true => match self.store().get(&root.fence_key(ticket.token)).await? {
                    Some(entry) => Some(entry.version),
                    None => return Err(self.lost(&root, ticket).await),
                },
                false => None,
            };
            let has_fence = fence.is_some();
            let grant = grant(&root, &claim, fence);
            match grant.renew(0).await? {
                true => return Ok(Renewed { grant, sent }),
                // Somebody may have moved the fence: the next look tells.
                false if has_fence => {}
                false => return Err(self.lost(&root, ticket).await),
            }
        }
        Err(Error::Contended { key: ticket.root.clone(), attempts: ATTEMPTS_MAX })
    }

    /// What the catalog says of a ticket's lock.
    async fn claim(&self, ticket: &Ticket) -> Result<(Root, Claim)> {
        let root = self.root(ticket.root.clone())?;
        let catalog = root.look().await?.catalog;
        let held = catalog.holder(&ticket.id).filter(|claim| claim.token == ticket.token);
        match held.cloned() {
            Some(claim) => Ok((root, claim)),
            None => Err(is_lost(ticket, &catalog)),
        }
    }

    /// How a lock was lost that is gone from the store.
    async fn lost(&self, root: &Root, ticket: &Ticket) -> Error {
        match root.look().await {
            Ok(look) => is_lost(ticket, &look.catalog),
            Err(error) => error,
        }
    }
}

/// A grant whose lease was renewed by what was sent then.
struct Renewed {
    grant: Grant,
    sent: Instant,
}

fn is_lost(ticket: &Ticket, catalog: &Catalog) -> Error {
    let broken = catalog.broken.iter().find(|broken| broken.token == ticket.token).cloned();
    let loss = match broken {
        Some(broken) => Loss::Broken { by: broken.by, reason: broken.reason },
        None => Loss::Gone,
    };
    Error::Lost { root: ticket.root.clone(), token: ticket.token, loss }
}

fn grant(root: &Root, claim: &Claim, fence: Option<Version>) -> Grant {
    Grant {
        root: root.clone(),
        id: claim.id.clone(),
        owner: claim.owner.clone(),
        paths: claim.paths.clone(),
        mode: claim.mode,
        ttl: claim.ttl(),
        token: claim.token,
        fence: fence.map(|version| Arc::new(Fence::new(version))),
        is_kept: true,
    }
}
