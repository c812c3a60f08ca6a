//! Entries of version 1, and members that are no longer used.

use keyward_engine::{Commit, Expect, Put, Scan, moment_text};
use keyward_locks::{Guard, Tried};
use serde::Serialize;

use crate::apply::{BATCH_MAX, Tally, Writing};
use crate::entry::{has_deprecated, without_deprecated};
use crate::{Error, Problem, Registry, Result, Step, SyncOptions};

/// What a migration did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migrated {
    /// How many entries were looked at.
    pub scanned: u64,
    /// Entries of version 1 that are now under the name of their file: the key before, then the name.
    pub moved: Vec<(String, String)>,
    /// Entries that lost deprecated members.
    pub cleaned: u64,
    /// Entries that stay as they are, and why.
    pub problems: Vec<Problem>,
}

/// How many entries are read at once.
const PAGE: usize = 500;

impl Registry {
    /// Does at once what syncs do one by one: moves entries of version 1, which are kept under their
    /// title, to the name of the file with that title, and takes deprecated members out of all entries
    /// when their time is over. With `dry_run` it only tells. Nothing is deleted.
    ///
    /// Fails if a sync is under way, and as a sync does.
    pub async fn migrate(&self, dry_run: bool) -> Result<Migrated> {
        if dry_run {
            return self.migrate_under(None).await;
        }
        let guard = match self.lock("migrate").await? {
            Tried::Granted(guard) => guard,
            Tried::Held(holder) => {
                let (who, since) = (holder.who, holder.since);
                let message = format!("a run is under way ({who}, since {since}); try again later");
                return Err(Error::Invalid(message));
            }
        };
        let migrated = self.migrate_under(Some(&guard)).await;
        let _ = guard.release().await;
        migrated
    }

    async fn migrate_under(&self, guard: Option<&Guard>) -> Result<Migrated> {
        let (before, _) = self.before().await?;
        let is_over = before.state.is_deprecated_over(self.now(), self.settings().deprecated_kept);
        let mut migrated = Migrated::default();
        let has_old = self.look_through(&mut migrated, is_over).await?;
        if has_old {
            let commit = self.inner.source.fetch().await?;
            let options = SyncOptions { full: true, ..SyncOptions::default() };
            let plan = self.plan_for(&commit, &before, &options, &|_| ()).await?;
            let moving = plan.steps.iter().filter(|step| is_move(step));
            let moving: Vec<Step> = moving.cloned().collect();
            migrated.problems.extend(left_over(&plan.steps));
            migrated.problems.extend(plan.problems);
            if let Some(guard) = guard {
                // Until the next sync, nobody may go by what changed.
                let unclean = Put::new(before.state.unclean().encode()?);
                let commit = Commit::new().put(self.inner.places.state(), unclean);
                self.commit_surely(guard, commit).await?;
                let run = format!("migration {}", moment_text(self.now()));
                let writing =
                    Writing { registry: self, guard, run: &run, keeps_deprecated: !is_over };
                let mut tally = Tally::default();
                for steps in moving.chunks(BATCH_MAX) {
                    writing.batch(steps, &mut tally).await?;
                }
                let failed =
                    |step: &Step| tally.problems.iter().any(|found| found.path == step.path);
                migrated.moved = moving.iter().filter(|step| !failed(step)).map(moved).collect();
                migrated.problems.extend(tally.problems);
            } else {
                migrated.moved = moving.iter().map(moved).collect();
            }
        }
        if let Some(guard) = guard.filter(|_| is_over) {
            migrated.cleaned = self.drop_deprecated(guard).await?;
        }
        Ok(migrated)
    }

    /// Counts entries, and those with deprecated members if they are to lose them; whether some are of
    /// version 1.
    async fn look_through(&self, migrated: &mut Migrated, is_over: bool) -> Result<bool> {
        let (mut after, mut has_old) = (None, false);
        loop {
            let page = self.policies(after.as_deref(), PAGE).await?;
            migrated.scanned += page.items.len() as u64;
            for policy in &page.items {
                has_old |= policy.is_of_version_1();
                migrated.cleaned += u64::from(is_over && has_deprecated(&policy.entry));
            }
            after = page.next;
            if after.is_none() {
                return Ok(has_old);
            }
        }
    }

    /// Takes deprecated members out of all entries; of how many. Consumers are not told: what they get
    /// is the same.
    pub(crate) async fn drop_deprecated(&self, guard: &Guard) -> Result<u64> {
        let mut scan = Scan::new(self.inner.places.policies()).limit(PAGE);
        let mut cleaned = 0;
        loop {
            let page = self.inner.store.scan(&scan).await?;
            for rows in page.rows.chunks(BATCH_MAX) {
                let mut commit = Commit::new();
                for row in rows {
                    let Some(entry) = row.entry.as_ref() else { continue };
                    // What lies deeper is nobody's policy.
                    if self.inner.places.name_of(&row.key).is_none()
                        || !has_deprecated(&entry.value)
                    {
                        continue;
                    }
                    let value = without_deprecated(&entry.value)?;
                    let put = Put { value, metadata: entry.metadata.clone(), expiry: None };
                    commit = commit
                        .check(row.key.clone(), Expect::Version(entry.version.clone()))
                        .put(row.key.clone(), put);
                }
                if !commit.writes.is_empty() {
                    let count = commit.writes.len() as u64;
                    // Who wrote in between has an entry of their own making, which the next run cleans.
                    cleaned += if guard.commit(commit).await?.is_applied() { count } else { 0 };
                }
            }
            match page.next {
                Some(next) => scan = scan.after(Some(next)),
                None => return Ok(cleaned),
            }
        }
    }
}

/// Whether a step brings an entry of version 1 to its place and form.
fn is_move(step: &Step) -> bool {
    let is_in_place = step.operation == crate::Operation::Update && step.old_sha.is_none();
    step.moved_from_title.is_some() || is_in_place
}

fn moved(step: &Step) -> (String, String) {
    let from = step.moved_from_title.as_ref().unwrap_or(&step.policy_name);
    (from.clone(), step.policy_name.clone())
}

/// Entries of version 1 that no file has the title of.
fn left_over(steps: &[Step]) -> impl Iterator<Item = Problem> {
    let left = steps
        .iter()
        .filter(|step| step.operation == crate::Operation::Delete && step.sha.is_empty());
    left.map(|step| {
        let reason = "no file has the title of this entry of version 1; the next sync deletes it";
        Problem::new(&*step.policy_name, reason)
    })
}
