//! How long to wait, and how it ended.

use std::time::Duration;

use tokio::time::Instant;

use crate::catalog::Asked;
use crate::look::Look;
use crate::{Error, Guard, Holder, Request, Result, Root};

/// How a request that does not wait ended.
#[derive(Debug)]
#[must_use = "dropping the guard releases the lock"]
pub enum Tried {
    /// The lock is held now.
    Granted(Guard),
    /// This holder, or earlier waiter, is in the way.
    Held(Holder),
}

/// How long to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    began: Instant,
    /// `None` is for ever.
    wait_max: Option<Duration>,
    /// Whether to stand in line at all.
    queues: bool,
}

impl Patience {
    pub fn of(request: &Request) -> Self {
        Self { began: Instant::now(), wait_max: request.wait_max, queues: true }
    }

    pub fn none() -> Self {
        Self { began: Instant::now(), wait_max: None, queues: false }
    }

    /// Whether to stand in line at all.
    pub fn queues(&self) -> bool {
        self.queues
    }

    pub fn waited(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn ends_at(&self) -> Option<Instant> {
        self.wait_max.and_then(|wait| self.began.checked_add(wait))
    }

    pub fn is_over(&self) -> bool {
        !self.queues || self.ends_at().is_some_and(|end| Instant::now() >= end)
    }
}

/// How a request ended.
pub(crate) enum Ended {
    Granted(Guard),
    /// Nothing is held, and nobody waits.
    InVain {
        look: Look,
        blocker: u64,
        waited: Duration,
    },
}

impl Ended {
    pub fn granted(self, root: &Root, asked: &Asked) -> Result<Guard> {
        let (look, blocker, waited) = match self {
            Self::Granted(guard) => return Ok(guard),
            Self::InVain { look, blocker, waited } => (look, blocker, waited),
        };
        let holder = look.catalog.claim(blocker).map(|claim| {
            let (paths, token, who) = (root.names(&claim.paths), claim.token, &claim.who);
            format!("{who} (token {token}, on {paths}, since {})", claim.since)
        });
        Err(Error::TimedOut {
            root: root.key().clone(),
            path: root.names(&asked.paths),
            waited,
            holder: holder.unwrap_or_default(),
        })
    }

    pub fn tried(self, root: &Root) -> Tried {
        match self {
            Self::Granted(guard) => Tried::Granted(guard),
            Self::InVain { look, blocker, .. } => Tried::Held(root.holder(&look, blocker)),
        }
    }
}
