//! Signs of life, and giving back.

use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{
    BoxFuture, BoxStream, Commit, Event, Outcome, Result as StoreResult, Version,
};
use keyward_key::KeyRange;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::catalog::{Catalog, Which};
use crate::guard::{Grant, Held};
use crate::look::Look;
use crate::{Error, Loss, Result, Root};

/// How often the store may fail before a release is given up; the lease then ends the lock.
const FAILURES_MAX: u32 = 6;
const FAILURE_PAUSE_MIN: Duration = Duration::from_millis(20);
/// How long a lock must be held before it is worth watching its fence, and how long after a watch
/// ended the next one begins.
const WATCHED_AFTER: Duration = Duration::from_secs(1);

impl Grant {
    /// Renews the lease once. `false`: the lock is somebody else's, for good.
    pub async fn renew(&self, beat: u64) -> Result<bool> {
        let Some(fence) = &self.fence else {
            return self.root.beat(&self.id).await;
        };
        loop {
            let version = fence.version();
            let mut commit = Commit::new()
                .put(self.root.lease_key(self.token), self.root.shared.lease(beat, self.ttl));
            commit.checks.push(self.fence_check(version.clone()));
            let renewed = self.root.shared.store.commit(commit).await?.is_applied();
            // The holder may have moved its fence meanwhile.
            if renewed || fence.version() == version {
                return Ok(renewed);
            }
        }
    }

    /// How a lock was lost that is gone from the store.
    pub async fn reason(&self) -> Loss {
        let look = self.root.look().await.ok();
        let broken = look.and_then(|look| {
            look.catalog.broken.into_iter().find(|broken| broken.token == self.token)
        });
        match broken {
            Some(broken) => Loss::Broken { by: broken.by, reason: broken.reason },
            None => Loss::TakenOver,
        }
    }
}

impl Root {
    /// Counts a renewal in the catalog. `false` if the request is not there.
    pub(crate) async fn beat(&self, id: &str) -> Result<bool> {
        loop {
            let Look { mut catalog, version, .. } = self.look().await?;
            if !catalog.beat(self.key(), id)? {
                return Ok(false);
            }
            let commit = self.replacing(version.as_ref(), &catalog)?;
            if self.shared.store.commit(commit).await?.is_applied() {
                return Ok(true);
            }
        }
    }

    /// Takes claims out of the catalog, if they are there. `known` is the catalog as it was when the
    /// caller last wrote it.
    pub(crate) async fn take_out(
        &self,
        which: &Which,
        known: Option<(Version, Catalog)>,
    ) -> Result<()> {
        self.taken_out(which, known, false).await
    }

    /// Takes back what a request entered into the catalog. If a commit of it is unanswered, that
    /// commit is refused from now on: it may still be on its way to the store, and land after the
    /// catalog was read without it. It would leave a lock that nobody holds until its lease ends.
    pub(crate) async fn withdraw(&self, which: &Which, unanswered: bool) -> Result<()> {
        self.taken_out(which, None, unanswered).await
    }

    fn taken_out<'a>(
        &'a self,
        which: &'a Which,
        mut known: Option<(Version, Catalog)>,
        outruns: bool,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut failures = 0;
            loop {
                match self.taken_out_once(which, known.take(), outruns).await {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(error) if error.is_passing() && failures < FAILURES_MAX => {
                        let pause = FAILURE_PAUSE_MIN * 2_u32.pow(failures);
                        failures += 1;
                        sleep(self.shared.jittered(pause)).await;
                    }
                    Err(error) => return Err(error),
                }
            }
        })
    }

    /// `false` if others changed the catalog meanwhile.
    async fn taken_out_once(
        &self,
        which: &Which,
        known: Option<(Version, Catalog)>,
        outruns: bool,
    ) -> Result<bool> {
        let (version, mut catalog, lost) = match known {
            Some((version, catalog)) => (Some(version), catalog, None),
            None => {
                let Look { version, catalog, lost, mark, .. } = self.look().await?;
                (version, catalog, lost.map(|lost| (lost, mark)))
            }
        };
        let removed = catalog.take_out(which);
        if removed.is_empty() && !outruns {
            self.saw_queue(&catalog);
            return Ok(true);
        }
        // Whoever writes a catalog that was lost first revokes what the lost one had granted.
        if let Some((lost, _)) = &lost
            && !self.revoke(*lost, &catalog).await?
        {
            return Ok(false);
        }
        // Written even if nothing is removed: commits that check the earlier version are refused.
        let mut commit = self.replacing(version.as_ref(), &catalog)?;
        if let Some((_, mark)) = lost.filter(|_| self.shared.is_atomic()) {
            commit.checks.push(mark.unchanged);
        }
        if self.shared.is_atomic() {
            for claim in &removed {
                commit =
                    commit.delete(self.fence_key(claim.token)).delete(self.lease_key(claim.token));
            }
        }
        match self.shared.store.commit(commit).await? {
            Outcome::Applied { .. } => {
                self.saw_queue(&catalog);
                Ok(true)
            }
            Outcome::Conflicted { .. } => Ok(false),
        }
    }
}

/// Renews a lock until it is lost or released.
pub(crate) async fn keep(held: std::sync::Arc<Held>) {
    let grant = &held.grant;
    let mut beat = 0;
    let mut fence = FenceWatch::new(grant);
    while held.loss().is_none() {
        let (renewed, deadline) = held.times();
        tokio::select! {
            biased;
            () = held.ended() => break,
            () = sleep_until(renewed + grant.ttl / 3) => {}
            () = fence.changed() => {}
        }
        beat += 1;
        let sent = Instant::now();
        match timeout_at(deadline, grant.renew(beat)).await {
            Ok(Ok(true)) => held.renewed(sent),
            Ok(Ok(false)) => held.lose(grant.reason().await),
            Ok(Err(error)) if lasts(&error) => held.lose(Loss::Expired),
            Ok(Err(_)) => {
                let pause = grant.root.shared.jittered(grant.ttl / 24);
                sleep_until((Instant::now() + pause).min(deadline)).await;
            }
            Err(_) => held.lose(Loss::Expired),
        }
    }
    // Others need not wait for the lease of a lost lock to end; unless somebody else renews it.
    if !grant.is_kept {
        let _ = grant.root.take_out(&Which::Request(grant.id.clone()), None).await;
    }
}

/// Whether trying again cannot help.
fn lasts(error: &Error) -> bool {
    match error {
        Error::Store(_) => !error.is_passing(),
        _ => true,
    }
}

/// Hears when a fence goes away, so that a broken lock is known before the next renewal. Begins
/// late: most locks are released before it would be of use.
struct FenceWatch<'g> {
    grant: &'g Grant,
    /// Whether anybody can tell.
    is_told: bool,
    begins_at: Instant,
    watch: Option<BoxStream<'static, StoreResult<Event>>>,
    /// Whether the watch has begun: what happened before is not told.
    has_begun: bool,
}

impl<'g> FenceWatch<'g> {
    fn new(grant: &'g Grant) -> Self {
        let begins_at = Instant::now() + WATCHED_AFTER;
        let is_told = grant.fence.is_some() && grant.root.shared.can_watch();
        Self { grant, is_told, begins_at, watch: None, has_begun: false }
    }

    /// Waits until the fence may have changed; for ever, if nobody can tell.
    async fn changed(&mut self) {
        if !self.is_told {
            return std::future::pending().await;
        }
        loop {
            let watch = match &mut self.watch {
                Some(watch) => watch,
                none => {
                    sleep_until(self.begins_at).await;
                    let range = KeyRange::exactly(&self.grant.root.fence_key(self.grant.token));
                    none.insert(self.grant.root.shared.store.watch(range, None))
                }
            };
            match watch.next().await {
                Some(Ok(Event::Reached(_))) if self.has_begun => {}
                Some(Ok(Event::Reached(_) | Event::Changed { .. })) => {
                    self.has_begun = true;
                    return;
                }
                Some(Ok(Event::TooOld { .. }) | Err(_)) | None => {
                    self.watch = None;
                    self.has_begun = false;
                    self.begins_at = Instant::now() + WATCHED_AFTER;
                }
            }
        }
    }
}
