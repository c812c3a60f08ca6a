//! Asking for a lock until it is granted, refused, or no longer wanted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{BoxFuture, Commit, Expect, Json, Outcome, Put, Version};
use tokio::time::{Instant, sleep};

use crate::catalog::{Asked, CLAIMS_MAX, Catalog, Decision};
use crate::fence::Fence;
use crate::guard::Grant;
use crate::look::{Corpse, Look};
use crate::patience::{Ended, Patience};
use crate::queue::{Line, Woken};
use crate::{Error, Guard, Result, Root};

/// How often in a row the store may fail while something of the request may be in it.
const FAILURES_MAX: u32 = 10;
const FAILURE_PAUSE_MIN: Duration = Duration::from_millis(20);
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often in a row others may be quicker before the request slows down.
const CONFLICTS_AT_ONCE: u32 = 8;
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

/// One request under way.
pub(crate) struct Asking<'r> {
    pub root: &'r Root,
    pub asked: &'r Asked,
    patience: Patience,
    /// Where it stands in line.
    line: Option<Line>,
    /// Whether the store may hold something of it. Taken back when this is dropped.
    entered: bool,
    /// Whether a commit was sent whose answer has not come: it may still land.
    unanswered: bool,
    failures: u32,
    conflicts: u32,
    /// Tokens up to this have a fence that the catalog does not know of.
    skipped: u64,
}

/// Asks until the request is granted, refused, or its patience ends.
pub(crate) async fn run(root: &Root, asked: &Asked, patience: Patience) -> Result<Ended> {
    let mut asking = Asking {
        root,
        asked,
        patience,
        line: None,
        entered: false,
        unanswered: false,
        failures: 0,
        conflicts: 0,
        skipped: 0,
    };
    let ended = asking.run().await;
    if asking.entered && !matches!(ended, Ok(Ended::Granted(_))) {
        // What cannot be taken back now ends with its lease.
        let _ = root.withdraw(&asked.withdrawn(), asking.unanswered).await;
    }
    asking.entered = false;
    ended
}

impl Asking<'_> {
    async fn run(&mut self) -> Result<Ended> {
        loop {
            match self.step().await {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => self.failures = 0,
                // The answer may have been lost, or the waiter's place would be: look again.
                Err(error)
                    if error.is_passing() && self.entered && self.failures < FAILURES_MAX =>
                {
                    let pause =
                        (FAILURE_PAUSE_MIN * 2_u32.pow(self.failures)).min(FAILURE_PAUSE_MAX);
                    self.failures += 1;
                    sleep(self.root.shared.jittered(pause)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks once, and does what can be done.
    fn step(&mut self) -> BoxFuture<'_, Result<Option<Ended>>> {
        Box::pin(async move {
            let look = self.root.look().await?;
            let (holder, waiter) =
                (look.catalog.holder(&self.asked.id), look.catalog.waiter(&self.asked.id));
            if holder.or(waiter).is_some_and(|mine| !mine.is_asked(self.asked)) {
                return Err(Error::IdTaken { root: self.root.key().clone() });
            }
            if let Some(mine) = holder {
                // An earlier grant whose answer was lost had worked.
                let token = mine.token;
                if let Some(guard) = self.adopt(token).await? {
                    return Ok(Some(self.granted(guard)));
                }
                // It was taken over already: begin again.
                self.root.take_out(&self.asked.withdrawn(), None).await?;
                return Ok(None);
            }
            let (decision, corpses) = decide(self.root, self.asked, &look).await?;
            match decision {
                Decision::Granted => self.grant(look, &corpses).await,
                Decision::Blocked(blockers) => self.stand_by(look, blockers, &corpses).await,
                Decision::Circular { asked, held } => Err(Error::WouldDeadlock {
                    root: self.root.key().clone(),
                    asked: self.root.names(&[asked]),
                    held: self.root.names(&[held]),
                }),
                Decision::Upgrade { asked, held } => {
                    let (asked, held) = (self.root.names(&[asked]), self.root.names(&[held]));
                    let message = format!(
                        "{asked} cannot be held exclusively under {held}, which is held shared"
                    );
                    Err(Error::BadRequest(message))
                }
            }
        })
    }

    async fn grant(&mut self, look: Look, corpses: &[Corpse]) -> Result<Option<Ended>> {
        let mut catalog = look.catalog.clone();
        catalog.skip(self.skipped);
        self.reap(&mut catalog, corpses);
        let place = catalog.waiter(&self.asked.id).map(|claim| claim.token);
        let token = catalog.grant(self.root.key(), self.asked)?;
        self.check_room(catalog.holders.len(), "holders")?;
        if !self.ready(&look, &catalog).await? {
            return Ok(None);
        }
        let mut commit = self.replacing(&look, &catalog, corpses)?;
        if self.root.shared.is_atomic() {
            // The fence comes first among the writes after the catalog: its version is read below.
            let (fence, lease) = (self.root.fence_key(token), self.root.lease_key(token));
            commit = commit
                .check(fence.clone(), Expect::Absent)
                .put(fence, Put::new(self.description(token)?))
                .put(lease, self.root.shared.lease(0, self.asked.ttl));
            if let Some(place) = place {
                commit = commit.delete(self.root.lease_key(place));
            }
        }
        let fence_check = commit.checks.len() - 1;
        let fence_write =
            commit.writes.iter().position(|write| *write.key() == self.root.fence_key(token));
        let sent = Instant::now();
        match self.enter(commit).await? {
            Outcome::Applied { versions, .. } => {
                self.took_over(&look, corpses);
                self.root.saw_queue(&catalog);
                let version = |at: usize| -> Option<Version> { versions.get(at)?.clone() };
                let known = version(0).map(|version| (version, catalog.written()));
                let fence = fence_write.and_then(version);
                let guard = self.guard(token, fence, sent, known);
                Ok(Some(self.granted(guard)))
            }
            Outcome::Conflicted { failed } if failed == [fence_check] && fence_write.is_some() => {
                // The catalog is behind those who hold locks: somebody replaced it.
                let last = self.root.last_fence().await?.unwrap_or_default();
                if last >= token && last > self.skipped {
                    self.skipped = last;
                    return Ok(None);
                }
                Err(Error::Damaged {
                    root: self.root.key().clone(),
                    reason: format!("the token {token} was given out before"),
                })
            }
            Outcome::Conflicted { .. } => self.others_were_quicker().await,
        }
    }

    /// What the fence says to those who find it.
    fn description(&self, token: u64) -> Result<Json> {
        let (owner, paths, who) = (&self.asked.owner, &self.asked.paths, &self.asked.who);
        let text = serde_json::json!({
            "root": self.root.key().to_string(),
            "token": token,
            "owner": owner,
            "paths": paths,
            "who": who,
        });
        let damaged = |reason: String| Error::Damaged { root: self.root.key().clone(), reason };
        Json::from_value(&text).map_err(|error| damaged(error.to_string()))
    }

    /// Takes up a grant that had worked without this request hearing of it. Its lease is renewed
    /// first: nobody knows how old it is.
    async fn adopt(&mut self, token: u64) -> Result<Option<Guard>> {
        let sent = Instant::now();
        let fence = if self.root.shared.is_atomic() {
            let Some(entry) = self.root.shared.store.get(&self.root.fence_key(token)).await? else {
                return Ok(None);
            };
            Some(entry.version)
        } else {
            None
        };
        let grant = self.grant_of(token, fence.clone());
        match grant.renew(0).await? {
            true => Ok(Some(self.guard(token, fence, sent, None))),
            false => Ok(None),
        }
    }

    fn grant_of(&self, token: u64, fence: Option<Version>) -> Grant {
        Grant {
            root: self.root.clone(),
            id: self.asked.id.clone(),
            owner: self.asked.owner.clone(),
            paths: self.asked.paths.clone(),
            mode: self.asked.mode,
            ttl: self.asked.ttl,
            token,
            fence: fence.map(|version| Arc::new(Fence::new(version))),
            is_kept: self.asked.is_named,
        }
    }

    fn guard(
        &self,
        token: u64,
        fence: Option<Version>,
        sent: Instant,
        known: Option<(Version, Catalog)>,
    ) -> Guard {
        Guard::new(self.grant_of(token, fence), sent, known)
    }

    fn granted(&mut self, guard: Guard) -> Ended {
        self.entered = false;
        let metrics = &self.root.shared.metrics;
        metrics.acquired.inc();
        metrics.waits.observe(self.patience.waited().as_secs_f64());
        Ended::Granted(guard)
    }

    /// Waits for those in the way, in line.
    async fn stand_by(
        &mut self,
        look: Look,
        blockers: Vec<u64>,
        corpses: &[Corpse],
    ) -> Result<Option<Ended>> {
        let first = blockers.first().copied().unwrap_or_default();
        self.root.saw_queue(&look.catalog);
        let tired = self.line.as_ref().is_some_and(Line::is_tired);
        if self.patience.is_over() || tired {
            let metrics = &self.root.shared.metrics;
            if self.patience.queues() {
                metrics.timed_out.inc()
            } else {
                metrics.contended.inc()
            };
            let waited = self.patience.waited();
            return Ok(Some(Ended::InVain { look, blocker: first, waited }));
        }
        let in_line = look.catalog.waiter(&self.asked.id).map(|claim| claim.token);
        let Some(place) = in_line else {
            return self.join(&look, corpses).await;
        };
        if !corpses.is_empty() {
            return self.bury(&look, corpses).await;
        }
        let line = self.line.get_or_insert_with(|| Line::new(self.root));
        line.stands_at(place);
        let ends_at = self.patience.ends_at();
        let look_at = self.root.next_look(&look, &blockers);
        match line.wait(self.root, self.asked, look_at, ends_at).await {
            Woken::ToLook => Ok(None),
            Woken::ToRenew => {
                let line = self.line.get_or_insert_with(|| Line::new(self.root));
                line.renew(self.root, self.asked).await.map(|()| None)
            }
        }
    }

    async fn join(&mut self, look: &Look, corpses: &[Corpse]) -> Result<Option<Ended>> {
        let mut catalog = look.catalog.clone();
        catalog.skip(self.skipped);
        self.reap(&mut catalog, corpses);
        let place = catalog.join(self.root.key(), self.asked)?;
        self.check_room(catalog.waiters.len(), "waiters")?;
        if !self.ready(look, &catalog).await? {
            return Ok(None);
        }
        let mut commit = self.replacing(look, &catalog, corpses)?;
        let former = self.line.as_ref().and_then(Line::place);
        if self.root.shared.is_atomic() {
            let lease = self.root.shared.lease(0, self.asked.ttl);
            commit = commit.put(self.root.lease_key(place), lease);
            if let Some(former) = former {
                commit = commit.delete(self.root.lease_key(former));
            }
        }
        if !self.entered {
            self.root.shared.metrics.contended.inc();
        }
        let sent = Instant::now();
        match self.enter(commit).await? {
            Outcome::Applied { .. } => {
                // Only now: a number that somebody else got instead is somebody else's lease.
                let line = self.line.get_or_insert_with(|| Line::new(self.root));
                line.joined(place, sent);
                self.took_over(look, corpses);
                Ok(None)
            }
            Outcome::Conflicted { .. } => self.others_were_quicker().await,
        }
    }

    /// Takes the dead out, where that alone does not make way.
    async fn bury(&mut self, look: &Look, corpses: &[Corpse]) -> Result<Option<Ended>> {
        let mut catalog = look.catalog.clone();
        self.reap(&mut catalog, corpses);
        let commit = self.replacing(look, &catalog, corpses)?;
        match self.root.shared.store.commit(commit).await? {
            Outcome::Applied { .. } => {
                self.took_over(look, corpses);
                Ok(None)
            }
            Outcome::Conflicted { .. } => self.others_were_quicker().await,
        }
    }

    /// Does what must be done before a claim is written: revokes what a lost catalog had granted, and
    /// raises the mark where that is a commit of its own. `false`: others were quicker.
    async fn ready(&mut self, look: &Look, catalog: &Catalog) -> Result<bool> {
        let stale = look.lost.unwrap_or_default().max(self.skipped);
        if stale > 0 && !self.root.revoke(stale, &look.catalog).await? {
            return Ok(false);
        }
        self.root.raise_before(catalog, &look.mark).await
    }

    /// Sends a commit that puts something of the request into the store. Until it is answered, the
    /// commit may land at any time, also after this future was dropped.
    ///
    /// Every commit of a request checks the version of the catalog, so an answer to a later one
    /// settles those before it.
    async fn enter(&mut self, commit: Commit) -> Result<Outcome> {
        self.entered = true;
        self.unanswered = true;
        let outcome = self.root.shared.store.commit(commit).await?;
        self.unanswered = false;
        Ok(outcome)
    }

    fn reap(&self, catalog: &mut Catalog, corpses: &[Corpse]) {
        for corpse in corpses {
            catalog.reap(corpse.token);
        }
    }

    /// A commit that replaces the catalog, and takes away what the dead had in the store, if they
    /// have not shown a sign of life since.
    fn replacing(&self, look: &Look, catalog: &Catalog, corpses: &[Corpse]) -> Result<Commit> {
        let mut commit = self.root.replacing(look.version.as_ref(), catalog)?;
        if look.lost.is_some() && self.root.shared.is_atomic() {
            commit.checks.push(look.mark.unchanged.clone());
        }
        for corpse in corpses {
            if let Some(check) = &corpse.check {
                commit.checks.push(check.clone());
                commit = commit
                    .delete(self.root.fence_key(corpse.token))
                    .delete(self.root.lease_key(corpse.token));
            }
        }
        Ok(commit)
    }

    fn took_over(&self, look: &Look, corpses: &[Corpse]) {
        let held = |token: u64| look.catalog.holders.iter().any(|claim| claim.token == token);
        let holders = corpses.iter().filter(|corpse| held(corpse.token)).count();
        self.root.shared.metrics.takeovers.inc_by(holders as u64);
    }

    fn check_room(&self, count: usize, what: &'static str) -> Result<()> {
        if count <= CLAIMS_MAX {
            return Ok(());
        }
        Err(Error::Full { root: self.root.key().clone(), what, count_max: CLAIMS_MAX })
    }

    async fn others_were_quicker(&mut self) -> Result<Option<Ended>> {
        self.conflicts += 1;
        if self.conflicts.is_multiple_of(CONFLICTS_AT_ONCE) {
            sleep(self.root.shared.jittered(CONFLICT_PAUSE)).await;
        }
        Ok(None)
    }
}

/// Decides, looking for signs of life only where somebody is in the way.
async fn decide(root: &Root, asked: &Asked, look: &Look) -> Result<(Decision, Vec<Corpse>)> {
    let catalog = &look.catalog;
    let decision = catalog.decide(asked, &BTreeSet::new());
    let suspects = match &decision {
        _ if catalog.is_crowded() => {
            let claims = catalog.holders.iter().chain(&catalog.waiters);
            let others = claims.filter(|claim| claim.id != asked.id);
            others.map(|claim| claim.token).collect()
        }
        Decision::Blocked(blockers) => blockers.clone(),
        _ => return Ok((decision, Vec::new())),
    };
    let corpses = root.corpses(look, &suspects).await?;
    let dead = corpses.iter().map(|corpse| corpse.token).collect();
    Ok((catalog.decide(asked, &dead), corpses))
}

/// A request that is given up takes back what it had entered.
impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if self.entered {
            let (root, which) = (self.root.clone(), self.asked.withdrawn());
            self.root.shared.withdraw_later(root, which, self.unanswered);
        }
    }
}
