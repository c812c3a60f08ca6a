//! Running migrations.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Json, Tier, Version};
use keyward_key::Key;
use keyward_records::{CATALOG_AGE_MAX, Record, Records};

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::ledger::{BEAT, Held, Ledger, Migration, Phase, State};
use crate::pace::{Pace, Pause, past};
use crate::plan::{Plan, plan};
use crate::{adopt, index, rekey, transform};

/// How many records are taken at once.
pub(crate) const RECORDS_PER_PAGE: usize = 500;

/// Runs the migrations of one store. What they do is safe while others write, and written down after
/// each page: one that was killed goes on when it is run again.
#[derive(Clone)]
pub struct Migrator {
    pub(crate) records: Records,
    pause: Arc<dyn Pause>,
    records_per_second: Option<NonZeroU32>,
    records_per_page: usize,
    by: String,
}

/// A function from a record to its new value; `None` leaves it as it is.
pub type Change<'f> =
    dyn FnMut(&Record) -> keyward_records::Result<Option<Json>> + Send + Sync + 'f;

impl Migrator {
    /// Migrations of these records, as fast as they go.
    pub fn new(records: Records, pause: impl Pause + 'static) -> Self {
        let pause = Arc::new(pause);
        let records_per_page = RECORDS_PER_PAGE;
        Self { records, pause, records_per_second: None, records_per_page, by: "keyward".into() }
    }

    /// The same, at most so many records each second.
    #[must_use]
    pub fn rate(mut self, records_per_second: Option<NonZeroU32>) -> Self {
        self.records_per_second = records_per_second;
        self
    }

    /// The same, with at most so many records between two notes of how far it came.
    #[must_use]
    pub fn page(mut self, records: usize) -> Self {
        self.records_per_page = records.clamp(1, RECORDS_PER_PAGE);
        self
    }

    /// The same in somebody's name, for the history.
    #[must_use]
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.by = who.into();
        self
    }

    /// What brings the store's indexes to what the schema declares.
    pub async fn plan(&self) -> Result<Plan> {
        let catalog = self.records.catalog().await?;
        let mut plan = plan(self.records.declarations(), &catalog);
        let build = std::mem::take(&mut plan.build);
        for definition in build {
            plan.build.push(adopt::adopting(&self.records, &catalog, definition).await?);
        }
        Ok(plan)
    }

    /// Runs a migration to its end, or goes on with one that does the same; `progress` is told after
    /// each page. What could not be done is in the answer. A change of values is not run by this: see
    /// [`Migrator::transform`].
    ///
    /// Of several who run the same at once, one goes on; the others get [`Error::Running`], or
    /// [`Error::Overtaken`] if it began in the same moment. A run that was killed looks like a living one
    /// for some seconds: this waits them out before it goes on. Where
    /// the last writer wins, that cannot be told, indexes are made as well as can be
    /// ([`Migration::best_effort`]), and moving records is refused.
    pub async fn run(
        &self,
        definition: Definition,
        mut progress: impl FnMut(&Migration) + Send,
    ) -> Result<Migration> {
        if let Definition::Rekey { space, from, to, sources } = &definition {
            rekey::Rekeying::new(&self.records, space, from, to, sources)?;
            self.refuse_advisory("moving records")?;
        }
        if matches!(definition, Definition::Transform { .. }) {
            let message = "a change of values needs the function that makes it".to_owned();
            return Err(Error::Refused(message));
        }
        let catalog = self.records.catalog().await?;
        let definition = adopt::adopting(&self.records, &catalog, definition).await?;
        if let Definition::AdoptIndex { space, index, .. } = &definition {
            adopt::Comparing::new(&self.records, space, index)?;
        }
        let mut run = self.begin(definition, &mut progress).await?;
        match run.definition().clone() {
            Definition::AdoptIndex { space, index, set_aside } => {
                adopt::run(&mut run, &space, &index, set_aside).await?;
            }
            Definition::AddIndex { space, index } | Definition::RebuildIndex { space, index } => {
                index::add(&mut run, &space, &index).await?;
            }
            Definition::DropIndex { index, .. } => index::drop(&mut run, &index).await?,
            Definition::Rekey { space, from, to, sources } => {
                let rekeying = rekey::Rekeying::new(&self.records, &space, &from, &to, &sources)?;
                rekey::run(&mut run, &rekeying).await?;
            }
            Definition::Transform { .. } => {}
        }
        Ok(run.held.migration)
    }

    /// Changes the values of a space's records by a function, each by a compare-and-swap that keeps
    /// the indexes and checks the schema; `named` says what the function does, and the same words
    /// mean the same function. After a kill, records of the last page are given to it again. Refused
    /// where the last writer wins: there is no compare-and-swap there.
    pub async fn transform(
        &self,
        space: &str,
        named: &str,
        change: &mut Change<'_>,
        mut progress: impl FnMut(&Migration) + Send,
    ) -> Result<Migration> {
        transform::space(&self.records, space)?;
        self.refuse_advisory("changing values")?;
        let definition =
            Definition::Transform { space: space.to_owned(), change: named.to_owned() };
        let mut run = self.begin(definition, &mut progress).await?;
        transform::run(&mut run, space, change).await?;
        Ok(run.held.migration)
    }

    /// All migrations of the store, the oldest first where the engine keeps order.
    pub async fn history(&self) -> Result<Vec<Migration>> {
        let rows = self.ledger().rows(|_| true).await?;
        Ok(rows.into_iter().map(|held| held.migration).collect())
    }

    /// Where the last writer wins, what is read, changed and written again takes the place of what
    /// somebody wrote meanwhile, and nobody learns of it.
    pub(crate) fn refuse_advisory(&self, doing: &str) -> Result<()> {
        let capabilities = self.records.store().capabilities();
        if capabilities.tier() != Tier::Advisory {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "{doing} could undo what others write meanwhile, since the last writer wins on the {} \
             engine: name a coordinator for the store, or copy it to another engine and do it there",
            capabilities.engine
        )))
    }

    fn ledger(&self) -> Ledger<'_> {
        Ledger { store: self.records.store(), pause: &*self.pause }
    }

    async fn begin<'m>(
        &'m self,
        definition: Definition,
        progress: &'m mut (dyn FnMut(&Migration) + Send),
    ) -> Result<Run<'m>> {
        let clock = self.records.clock();
        let held = self.ledger().begin(definition, &self.by, clock.now()).await?;
        let pace = Pace::new(self.records_per_second, clock);
        let beaten = clock.now();
        Ok(Run { migrator: self, held, pace, beaten, progress })
    }
}

/// A migration that is being run.
pub(crate) struct Run<'m> {
    migrator: &'m Migrator,
    held: Held,
    pace: Pace,
    /// When the last sign of life was given.
    beaten: Timestamp,
    progress: &'m mut (dyn FnMut(&Migration) + Send),
}

impl Run<'_> {
    pub fn records(&self) -> &Records {
        &self.migrator.records
    }

    pub fn definition(&self) -> &Definition {
        &self.held.migration.definition
    }

    pub fn migration(&mut self) -> &mut Migration {
        &mut self.held.migration
    }

    pub fn phase(&self) -> Phase {
        self.held.migration.phase
    }

    /// How many records to take at once.
    pub fn page(&self) -> usize {
        self.pace.page(self.migrator.records_per_page)
    }

    pub fn problem(&mut self, key: &Key, message: String) {
        self.held.migration.problem(key.to_string(), message);
    }

    /// Writes down that another phase begins.
    pub async fn enter(&mut self, phase: Phase) -> Result<()> {
        self.held.migration.phase = phase;
        self.held.migration.position = None;
        self.save().await?;
        self.pace.begin_phase(self.migrator.records.clock());
        Ok(())
    }

    /// Writes down how far it came, and keeps to the pace.
    pub async fn reach(&mut self, position: Option<&[u8]>, records: usize) -> Result<()> {
        let clock = self.migrator.records.clock();
        self.pace.end_page(records, clock);
        self.held.migration.set_position(position);
        self.save().await?;
        let wait = self.pace.wait(records, clock);
        self.wait(wait).await?;
        self.pace.begin_page(clock);
        Ok(())
    }

    /// Gives a sign of life in the middle of a page, if the last one is a while ago.
    pub async fn beat(&mut self) -> Result<()> {
        let clock = self.migrator.records.clock();
        // A clock that was set back says nothing about how long it was.
        if clock.now() >= self.beaten && past(self.beaten, clock) < BEAT {
            return Ok(());
        }
        self.migrator.ledger().touch(&mut self.held).await?;
        self.beaten = clock.now();
        (self.progress)(&self.held.migration);
        Ok(())
    }

    /// The ledger's row.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The row was written as this migration by the commit that moved records, and got this version.
    pub fn moved(&mut self, migration: Migration, versions: Vec<Option<Version>>) {
        self.held.saved(migration, versions.into_iter().next().flatten());
        self.beaten = self.migrator.records.clock().now();
        (self.progress)(&self.held.migration);
    }

    /// Writes down what was counted since the last time.
    pub async fn note(&mut self) -> Result<()> {
        self.save().await
    }

    /// Waits, and gives signs of life if that takes long.
    async fn wait(&mut self, mut time: Duration) -> Result<()> {
        while time > BEAT {
            self.migrator.pause.pause(BEAT).await;
            self.migrator.ledger().touch(&mut self.held).await?;
            time -= BEAT;
        }
        if time > Duration::ZERO {
            self.migrator.pause.pause(time).await;
        }
        Ok(())
    }

    /// Writes down the end: everything is done, unless there were problems. Whoever comes next reads
    /// what was written.
    pub async fn end(&mut self) -> Result<()> {
        self.appear().await?;
        let migration = &mut self.held.migration;
        let failed = migration.counts.problems > 0;
        migration.state = if failed { State::Failed } else { State::Done };
        migration.finished = Some(self.migrator.records.clock().now());
        migration.runner = None;
        self.enter(Phase::End).await
    }

    /// Waits until no writer goes by an older catalog.
    pub async fn settle(&mut self) -> Result<()> {
        if self.migrator.records.store().capabilities().tier() == Tier::Atomic {
            return Ok(());
        }
        // Twice: a writer may have looked just before, and be slow.
        self.wait(2 * CATALOG_AGE_MAX + self.lag()).await
    }

    /// Waits until what was written can be read, where reads are late.
    pub async fn appear(&mut self) -> Result<()> {
        let lag = self.lag();
        self.wait(2 * lag).await
    }

    /// How late reads are.
    fn lag(&self) -> Duration {
        self.migrator.records.store().capabilities().consistency.lag()
    }

    async fn save(&mut self) -> Result<()> {
        self.migrator.ledger().save(&mut self.held).await?;
        self.beaten = self.migrator.records.clock().now();
        (self.progress)(&self.held.migration);
        Ok(())
    }
}

impl fmt::Debug for Migrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migrator").field("records", &self.records).field("by", &self.by).finish()
    }
}
