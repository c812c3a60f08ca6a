use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keyward_engine::{Check, Version};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::catalog::{Catalog, Which};
use crate::fence::Fence;
use crate::renewal::keep;
use crate::{Error, LockPath, Mode, Request, Result, Root};

/// A lock that is held: renewed in the background, and given back when this is dropped.
///
/// The guard counts as lost once three quarters of its lease have passed without a renewal, which is
/// before anybody else can get the lock. What is lost stays lost. Writes through the guard
/// ([`Guard::commit`], [`Guard::update`]) are refused by the store itself when the lock is somebody
/// else's; whatever else is done under the lock should carry the [token](Guard::token), so that it
/// can be refused too.
///
/// Dropping the guard releases the lock in the background, if a runtime is there; else its lease
/// ends it. A guard of a [named](Request::named) request, or one that was
/// [resumed](crate::Locks::resume), is given back by [`Guard::release`] only.
pub struct Guard {
    held: Arc<Held>,
    keeper: AbortHandle,
    /// The catalog as it was when the lock was granted: often still the same when it is released.
    known: Mutex<Option<(Version, Catalog)>>,
    is_released: bool,
}

/// What was granted.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub root: Root,
    pub id: String,
    pub owner: String,
    pub paths: Vec<LockPath>,
    pub mode: Mode,
    pub ttl: Duration,
    pub token: u64,
    /// The fence, where there are fences.
    pub fence: Option<Arc<Fence>>,
    /// That others may hold it by the same name or ticket, so that only a release gives it back.
    pub is_kept: bool,
}

/// A grant and how it stands.
pub(crate) struct Held {
    pub grant: Grant,
    term: watch::Sender<Term>,
}

#[derive(Debug, Clone)]
struct Term {
    /// When the last renewal that worked was sent.
    renewed: Instant,
    /// From when on the lock counts as lost.
    deadline: Instant,
    loss: Option<Loss>,
}

/// How a lock was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// A person took it away.
    Broken {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// Its lease had ended, and somebody else took it.
    TakenOver,
    /// It could not be renewed in time: somebody else may have it by now.
    Expired,
    /// It was released.
    Released,
    /// It was released, or its lease ended and it was taken over: of a lock without a guard, nobody
    /// knows which.
    Gone,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { by, reason } if reason.is_empty() => write!(f, "{by} broke it"),
            Self::Broken { by, reason } => write!(f, "{by} broke it: {reason}"),
            Self::TakenOver => f.write_str("its lease ended and it was taken over"),
            Self::Expired => f.write_str("it could not be renewed in time"),
            Self::Released => f.write_str("it was released"),
            Self::Gone => f.write_str("it was released, or its lease ended and it was taken over"),
        }
    }
}

impl Guard {
    pub(crate) fn new(grant: Grant, sent: Instant, known: Option<(Version, Catalog)>) -> Self {
        let deadline = deadline(sent, grant.ttl);
        let term = Term { renewed: sent, deadline, loss: None };
        let held = Arc::new(Held { grant, term: watch::Sender::new(term) });
        let keeper = tokio::spawn(keep(held.clone())).abort_handle();
        Self { held, keeper, known: Mutex::new(known), is_released: false }
    }

    /// The lock's token: higher than that of every lock of this root granted before.
    pub fn token(&self) -> u64 {
        self.held.grant.token
    }

    /// The root.
    pub fn root(&self) -> &Root {
        &self.held.grant.root
    }

    /// What is locked.
    pub fn paths(&self) -> &[LockPath] {
        &self.held.grant.paths
    }

    /// How.
    pub fn mode(&self) -> Mode {
        self.held.grant.mode
    }

    /// How long the lock outlives a process that stopped renewing it.
    pub fn ttl(&self) -> Duration {
        self.held.grant.ttl
    }

    /// Whether the lock is held, as far as this process can know without asking. Once `false`, it
    /// stays so.
    pub fn is_held(&self) -> bool {
        self.held.loss().is_none()
    }

    /// How the lock was lost, if it is.
    pub fn loss(&self) -> Option<Loss> {
        self.held.loss()
    }

    /// Waits until the lock is lost. Where the engine can watch, a lock that somebody broke is known
    /// at once; else with the next renewal.
    pub async fn lost(&self) -> Loss {
        self.held.lost().await
    }

    /// The check that makes any commit to the same store depend on this lock. Refused where commits
    /// have one key only: [`Guard::update`] does the same there.
    ///
    /// It is good for the commit that is sent next: the fence moves after a commit through the guard
    /// whose answer was lost. Whoever sends commits with it, and gets no answer to one, calls
    /// [`Guard::outrun`] before the next.
    pub fn fence(&self) -> Result<Check> {
        let grant = &self.held.grant;
        match &grant.fence {
            Some(fence) => Ok(grant.fence_check(fence.version())),
            None => Err(Error::Unsupported(format!(
                "the {} engine commits one key at a time, so a commit cannot check a lock as well; \
                 use update",
                grant.root.shared.store.capabilities().engine
            ))),
        }
    }

    /// Refuses, from now on, every commit that was sent under this guard before and has not landed
    /// yet. [`Guard::commit`] and [`Guard::update`] do this themselves after a lost answer; it is for
    /// those who send commits with [`Guard::fence`]. Does nothing where commits have one key.
    pub async fn outrun(&self) -> Result<()> {
        let Some(fence) = &self.held.grant.fence else { return Ok(()) };
        match self.held.grant.move_fence(fence).await? {
            true => Ok(()),
            false => Err(self.refused().await),
        }
    }

    /// Takes a lock on paths below this guard's, for the same owner. Others who hold or want such a
    /// path wait for this guard anyway, so it is granted at once; it is held on its own then, also
    /// after this guard is released. Refused: paths that are not below this guard's, what the owner
    /// holds already or holds a part of, and an exclusive lock under a shared one.
    pub async fn descend(
        &self,
        paths: &[LockPath],
        mode: Mode,
        request: &Request,
    ) -> Result<Guard> {
        if let Some(loss) = self.loss() {
            return Err(self.held.is_lost(loss));
        }
        for path in paths {
            let (asked, held) =
                (self.root().names(std::slice::from_ref(path)), self.root().names(self.paths()));
            if self.paths().iter().any(|mine| mine == path || path.is_above(mine)) {
                let root = self.root().key().clone();
                return Err(Error::WouldDeadlock { root, asked, held });
            }
            if !self.paths().iter().any(|mine| mine.is_above(path)) {
                return Err(Error::BadRequest(format!("{asked} is not below {held}")));
            }
        }
        // What was sent under this guard must not land over what is written under the new one.
        if self.held.grant.fence.as_ref().is_some_and(|fence| fence.is_doubted()) {
            self.outrun().await?;
        }
        self.root().acquire(paths, mode, &request.clone().under(self)).await
    }

    /// Gives the lock back, and waits until that is done. A lock that was lost before is left alone.
    /// If the store cannot be reached, the lease ends the lock.
    pub async fn release(mut self) -> Result<()> {
        self.keeper.abort();
        self.held.end();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Grant { root, id, token, .. } = &self.held.grant;
        let which = Which::Grant { id: id.clone(), token: *token };
        let released = root.take_out(&which, known).await;
        self.is_released = true;
        released
    }

    /// Ends the renewals, and leaves the lock as it is.
    pub(crate) fn forsake(&mut self) {
        // Its keeper is not told that the lock has ended: it would take it out of the catalog.
        self.keeper.abort();
        self.is_released = true;
    }

    pub(crate) fn owner(&self) -> &str {
        &self.held.grant.owner
    }

    pub(crate) fn held(&self) -> &Held {
        &self.held
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.keeper.abort();
        if self.is_released || self.held.grant.is_kept {
            return;
        }
        self.held.end();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (root, id) = (self.root().clone(), self.held.grant.id.clone());
        self.root().shared.take_out_later(root, Which::Request(id), known);
    }
}

impl Held {
    /// When the last renewal was sent, and from when on the lock is lost.
    pub fn times(&self) -> (Instant, Instant) {
        let term = self.term.borrow();
        (term.renewed, term.deadline)
    }

    /// Takes note of a renewal that worked; too late, it changes nothing any more.
    pub fn renewed(&self, sent: Instant) {
        let now = Instant::now();
        self.term.send_modify(|term| {
            if now < term.deadline && term.loss.is_none() {
                term.renewed = sent;
                term.deadline = deadline(sent, self.grant.ttl);
            }
        });
        // Sets the loss, if it was too late.
        let _ = self.loss();
    }

    pub fn lose(&self, loss: Loss) {
        let lost = self.term.send_if_modified(|term| {
            let first = term.loss.is_none();
            if first {
                term.loss = Some(loss);
            }
            first
        });
        if lost {
            self.grant.root.shared.metrics.lost.inc();
        }
    }

    fn end(&self) {
        let end = |term: &mut Term| {
            let first = term.loss.is_none();
            if first {
                term.loss = Some(Loss::Released);
            }
            first
        };
        self.term.send_if_modified(end);
    }

    pub fn loss(&self) -> Option<Loss> {
        let (loss, deadline) = {
            let term = self.term.borrow();
            (term.loss.clone(), term.deadline)
        };
        if loss.is_none() && Instant::now() >= deadline {
            self.lose(Loss::Expired);
            return self.term.borrow().loss.clone();
        }
        loss
    }

    pub async fn lost(&self) -> Loss {
        let mut term = self.term.subscribe();
        loop {
            if let Some(loss) = self.loss() {
                return loss;
            }
            let deadline = term.borrow_and_update().deadline;
            tokio::select! {
                biased;
                _ = term.changed() => {}
                () = sleep_until(deadline) => {}
            }
        }
    }

    /// Waits until the lock is lost or released, by somebody's word rather than by time.
    pub async fn ended(&self) {
        // Fails only without a sender, and this is one.
        let _ = self.term.subscribe().wait_for(|term| term.loss.is_some()).await;
    }

    pub fn is_lost(&self, loss: Loss) -> Error {
        Error::Lost { root: self.grant.root.key().clone(), token: self.grant.token, loss }
    }
}

/// How long a holder goes on without a renewal: shorter than any observer's patience.
fn deadline(sent: Instant, ttl: Duration) -> Instant {
    sent + ttl * 3 / 4
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("root", self.root())
            .field("paths", &self.paths())
            .field("token", &self.token())
            .field("loss", &self.loss())
            .finish_non_exhaustive()
    }
}
