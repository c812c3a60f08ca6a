//! Whether everything in a store is as it should be.

mod probe;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::Tier;
use keyward_key::{Key, KeyRange, Pattern};
use keyward_records::{Finding, IndexState, Inspector, Records};
pub use probe::{Probed, Promise, probe};
use serde::Serialize;

use crate::definition::Definition;
use crate::error::Result;
use crate::index::count;
use crate::pace::Pause;
use crate::plan::plan;

/// How many rows are looked at together.
const ROWS_PER_PAGE: usize = 500;
/// How long a writer who is under way has between two looks at what it leaves on its way.
const GRACE: Duration = Duration::from_secs(1);
/// How many findings wait for their second look.
const SUSPECTS_MAX: usize = 10_000;

/// Looks through a whole store, and mends what is safe if asked to. Others may write meanwhile.
#[derive(Clone)]
pub struct Doctor {
    records: Records,
    known: Vec<Pattern>,
    repair: bool,
    pause: Option<Arc<dyn Pause>>,
}

/// What a doctor found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Keys that were looked at.
    pub keys: u64,
    /// How often each kind of thing was found, by its code.
    pub counts: BTreeMap<&'static str, u64>,
    /// How many of these were mended.
    pub repaired: u64,
    /// The first of them, at most [`Report::FOUND_MAX`].
    pub found: Vec<Found>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What kind of thing it is.
    pub code: &'static str,
    /// The key, as colon text; for what is about a whole index, the index's name.
    pub key: String,
    /// What is wrong with it.
    pub message: String,
    /// Whether a doctor may mend it.
    pub repairable: bool,
    /// Whether it was mended.
    pub repaired: bool,
}

impl Report {
    /// How many findings are named; all are counted.
    pub const FOUND_MAX: usize = 1_000;

    /// How many things are not as they should be, the mended ones not counted.
    pub fn left(&self) -> u64 {
        self.counts.values().sum::<u64>().saturating_sub(self.repaired)
    }

    fn add(&mut self, found: Found) {
        *self.counts.entry(found.code).or_default() += 1;
        self.repaired += u64::from(found.repaired);
        if self.found.len() < Self::FOUND_MAX {
            self.found.push(found);
        }
    }
}

impl Doctor {
    /// A doctor that only looks.
    pub fn new(records: Records) -> Self {
        Self { records, known: Vec::new(), repair: false, pause: None }
    }

    /// The same, which also knows keys of these shapes, such as the roots of lock trees.
    #[must_use]
    pub fn knowing(mut self, patterns: impl IntoIterator<Item = Pattern>) -> Self {
        self.known.extend(patterns);
        self
    }

    /// The same, which also mends what can be mended without touching a record: index entries and
    /// the marks that writers left.
    #[must_use]
    pub fn repair(mut self, repair: bool) -> Self {
        self.repair = repair;
        self
    }

    /// The same, which waits a second before it looks again at what may be a writer's work.
    #[must_use]
    pub fn pausing(mut self, pause: impl Pause + 'static) -> Self {
        self.pause = Some(Arc::new(pause));
        self
    }

    /// Looks through the store, a page at a time; `progress` is told after each.
    ///
    /// Where commits take one key, a writer who is under way may have entries already whose record
    /// comes in a moment. There, such things are told only if a second look at the end finds them as
    /// they were; [`Doctor::pausing`] sees to it that some time lies between.
    pub async fn run(&self, mut progress: impl FnMut(&Report)) -> Result<Report> {
        let inspector = self.records.inspector().await?.knowing(self.known.iter().cloned());
        let mut report = Report::default();
        self.compare_catalog(&inspector, &mut report);
        let together = self.records.store().capabilities().tier() == Tier::Atomic;
        let mut suspects = Vec::new();
        let mut position = None;
        loop {
            let inspected =
                inspector.inspect_range(&KeyRange::all(), position, ROWS_PER_PAGE).await?;
            report.keys += count(inspected.rows);
            for finding in inspected.findings {
                if together || !finding.flaw.is_mendable() {
                    self.tell(&inspector, finding, &mut report).await?;
                } else {
                    suspects.push(finding);
                }
            }
            position = inspected.position;
            if position.is_none() || suspects.len() >= SUSPECTS_MAX {
                self.look_again(&inspector, std::mem::take(&mut suspects), &mut report).await?;
            }
            progress(&report);
            if position.is_none() {
                return Ok(report);
            }
        }
    }

    /// Tells of what is still as it was.
    async fn look_again(
        &self,
        inspector: &Inspector,
        suspects: Vec<Finding>,
        report: &mut Report,
    ) -> Result<()> {
        if let (Some(pause), false) = (&self.pause, suspects.is_empty()) {
            pause.pause(GRACE).await;
        }
        let mut confirmed = Vec::new();
        for finding in suspects {
            if inspector.confirm(&finding).await? {
                confirmed.push(finding);
            }
        }
        // Mended after all were looked at: mending one may move what shows another.
        for finding in confirmed {
            self.tell(inspector, finding, report).await?;
        }
        Ok(())
    }

    async fn tell(
        &self,
        inspector: &Inspector,
        finding: Finding,
        report: &mut Report,
    ) -> Result<()> {
        let repairable = finding.flaw.is_mendable();
        let repaired = self.repair && repairable && inspector.mend(&finding).await?;
        report.add(Found {
            code: finding.flaw.code(),
            key: shown(&finding.key),
            message: finding.message,
            repairable,
            repaired,
        });
        Ok(())
    }

    /// Where the store's indexes are not those of the schema.
    fn compare_catalog(&self, inspector: &Inspector, report: &mut Report) {
        let catalog = inspector.catalog();
        let plan = plan(self.records.declarations(), catalog);
        let mut add = |code, key: String, message| {
            report.add(Found { code, key, message, repairable: false, repaired: false });
        };
        for step in plan.undeclared {
            let name = step.index().unwrap_or_default().to_owned();
            let message = format!(
                "the store keeps it, the schema does not declare it; keyward migrate --drop {name} \
                 removes it, if no other program asks it"
            );
            add("index-undeclared", name, message);
        }
        for differing in plan.differing {
            add("space-differs", differing.space.clone(), differing.to_string());
        }
        for taken in plan.taken {
            let message = format!(
                "the space {} has an index of that name, and the schema does not declare the space",
                taken.holder
            );
            add("index-taken", taken.index, message);
        }
        for step in plan.build {
            let name = step.index().unwrap_or_default().to_owned();
            let state = catalog.indexes.get(&name).map(|listed| listed.state);
            let (code, message) = match (&step, state) {
                (_, None) => ("index-absent", "the schema declares it, the store does not have it"),
                (Definition::AddIndex { .. }, _) => {
                    ("index-unfinished", "it is being built, or building it was stopped")
                }
                (_, Some(IndexState::Disabled)) => {
                    ("index-disabled", "it was given up, because some records did not fit it")
                }
                (_, Some(_)) => ("index-differs", "the store has it as it was declared earlier"),
            };
            let message = format!("{message}; keyward migrate brings it in order");
            add(code, name, message);
        }
    }
}

impl fmt::Debug for Doctor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doctor")
            .field("records", &self.records)
            .field("known", &self.known)
            .field("repair", &self.repair)
            .finish()
    }
}

/// A key as it may stand in a report.
fn shown(key: &Key) -> String {
    const CHARS_MAX: usize = 1_000;
    let text = key.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
