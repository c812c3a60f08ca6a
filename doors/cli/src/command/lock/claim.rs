//! What is to be locked and how, as arguments.

use std::time::Duration;

use clap::Args;
use keyward::Code;
use keyward::locks::{Guard, LockPath, Mode, Request, Root, Tried};
use serde::Serialize;

use super::opened;
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::signals::Signals;
use crate::ttl;

/// What to lock, and how.
#[derive(Debug, Args)]
pub struct Claim {
    /// The key that the lock is below, for example page:7
    pub root: String,
    /// What of it, for example issues:4; all of it if left out. Several are taken together
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Let others who share it hold it too
    #[arg(long)]
    shared: bool,
    /// How long the lock outlives this process, should it die
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse, default_value = "2m")]
    ttl: Duration,
    /// How long to wait for others; without it, until Ctrl-C
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse)]
    timeout: Option<Duration>,
    /// Do not wait for others
    #[arg(long, conflicts_with = "timeout")]
    no_wait: bool,
    /// What the lock is for, for those who list it
    #[arg(long, value_name = "TEXT", default_value = "")]
    purpose: String,
}

/// A lock that is held, as others script against it.
#[derive(Serialize)]
pub struct Shown {
    root: String,
    paths: Vec<String>,
    mode: String,
    token: u64,
}

impl Shown {
    pub fn of(guard: &Guard) -> Self {
        Self {
            root: guard.root().key().to_string(),
            paths: named(guard.root(), guard.paths()),
            mode: guard.mode().to_string(),
            token: guard.token(),
        }
    }
}

/// The names of paths; the whole root shows as its key.
pub fn named(root: &Root, paths: &[LockPath]) -> Vec<String> {
    let name = |path: &LockPath| match root.name(path) {
        name if name.is_empty() => root.key().to_string(),
        name => name,
    };
    paths.iter().map(name).collect()
}

impl Claim {
    /// Takes the lock, waiting as long as was asked for, or until a signal. What was entered is
    /// taken back then.
    pub async fn acquire(
        &self,
        target: &Target,
        signals: &mut Signals,
        output: &Output,
    ) -> Result<Guard> {
        let root = opened::root(target, &self.root, output).await?;
        let asked = tokio::select! {
            guard = self.ask(&root) => return guard,
            signal = signals.next() => signal,
        };
        root.settled().await;
        Err(Failure::passed(asked.exit_code(), "interrupted while waiting for the lock"))
    }

    async fn ask(&self, root: &Root) -> Result<Guard> {
        let mut paths = Vec::with_capacity(self.paths.len().max(1));
        for path in &self.paths {
            paths.push(root.path(path)?);
        }
        if paths.is_empty() {
            paths.push(LockPath::root());
        }
        let mode = if self.shared { Mode::Shared } else { Mode::Exclusive };
        let mut request = Request::default().ttl(self.ttl).purpose(&self.purpose);
        request.wait_max = self.timeout;
        if !self.no_wait {
            return Ok(root.acquire(&paths, mode, &request).await?);
        }
        match root.try_acquire(&paths, mode, &request).await? {
            Tried::Granted(guard) => Ok(guard),
            Tried::Held(holder) => {
                let held = named(root, &holder.paths).join(" and ");
                let message = format!("{held} is held by {} (token {})", holder.who, holder.token);
                Err(Failure::new(Code::Locked, message).hint("Leave out --no-wait to wait for it."))
            }
        }
    }
}
