//! Whether everything in a store is as it should be.

mod behind;
mod probe;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Entry, ErrorKind, Sharing, Tier};
use keyward_key::{Key, KeyRange, Pattern};
use keyward_records::{Finding, Flaw, IndexState, Inspector, Recognize, Records};
pub use probe::{Probed, Promise, Scratch, probe, probe_on};
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
/// How many records without their unique entry are remembered, to tell which of them have one value.
const LACKING_MAX: usize = 10_000;
/// How many commits in a row may reclaim nothing before the rest is left to later ones.
const IDLE_COMMITS_MAX: usize = 3;

/// Looks through a whole store, and mends what is safe if asked to. Others may write meanwhile.
#[derive(Clone)]
pub struct Doctor {
    records: Records,
    known: Vec<Pattern>,
    recognize: Option<Recognize>,
    schemaless: bool,
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
    /// How many entries had expired without their space being reclaimed yet, if the engine can tell.
    /// They are no finding: engines reclaim some with every commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired: Option<u64>,
    /// How many of the expired entries were reclaimed by this doctor.
    pub reclaimed: u64,
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
        let (known, recognize) = (Vec::new(), None);
        Self { records, known, recognize, schemaless: false, repair: false, pause: None }
    }

    /// The same, which also knows keys of these shapes, such as the roots of lock trees.
    #[must_use]
    pub fn knowing(mut self, patterns: impl IntoIterator<Item = Pattern>) -> Self {
        self.known.extend(patterns);
        self
    }

    /// The same, which also knows entries that this function recognizes by what they hold, such as the
    /// catalogs of lock roots that no schema declares.
    #[must_use]
    pub fn recognizing(
        mut self,
        recognize: impl Fn(&Key, &Entry) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.recognize = Some(Arc::new(recognize));
        self
    }

    /// The same for a store of which nobody has a schema: keys that no pattern has are no finding
    /// there. What the store itself says is checked all the same: its catalog, the entries of its
    /// indexes, limits, what has expired.
    #[must_use]
    pub fn without_schema(mut self) -> Self {
        self.schemaless = true;
        self
    }

    /// The same, which also mends what can be mended without touching a record: index entries and
    /// the marks that writers left. The space of expired entries is reclaimed too.
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
        let inspector =
            inspector.recognizing(self.recognize.clone()).telling_unknown(!self.schemaless);
        let mut report = Report::default();
        self.verify(&mut report).await?;
        self.compare_catalog(&inspector, &mut report);
        self.look_for_expired(&mut report).await?;
        let mut lacking = Lacking::default();
        let together = self.records.store().capabilities().tier() == Tier::Atomic;
        let mut suspects = Vec::new();
        let mut position = None;
        loop {
            let inspected =
                inspector.inspect_range(&KeyRange::all(), position, ROWS_PER_PAGE).await?;
            report.keys += count(inspected.rows);
            for finding in inspected.findings {
                if together || !finding.flaw.may_pass() {
                    self.tell(&inspector, finding, &mut lacking, &mut report).await?;
                } else {
                    suspects.push(finding);
                }
            }
            position = inspected.position;
            if position.is_none() || suspects.len() >= SUSPECTS_MAX {
                let suspects = std::mem::take(&mut suspects);
                self.look_again(&inspector, suspects, &mut lacking, &mut report).await?;
            }
            progress(&report);
            if position.is_none() {
                return Ok(report);
            }
        }
    }

    /// Has a database server look at what it keeps. What it finds there, such as conflicts of replication, is for
    /// people to decide, and the store works on; damage of a file on this machine is an error of whoever reads it.
    async fn verify(&self, report: &mut Report) -> Result<()> {
        let store = self.records.store();
        if store.capabilities().sharing != Sharing::Network {
            return Ok(());
        }
        let Err(error) = store.verify(&KeyRange::all()).await else { return Ok(()) };
        if error.kind() != ErrorKind::Corrupt {
            return Err(error.into());
        }
        let advice = error.advice().map(|advice| format!(". {advice}")).unwrap_or_default();
        report.add(Found {
            code: "damaged",
            key: store.capabilities().engine.to_owned(),
            message: format!("{error}{advice}"),
            repairable: false,
            repaired: false,
        });
        Ok(())
    }

    /// Tells of what is still as it was.
    async fn look_again(
        &self,
        inspector: &Inspector,
        suspects: Vec<Finding>,
        lacking: &mut Lacking,
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
            self.tell(inspector, finding, lacking, report).await?;
        }
        Ok(())
    }

    /// Counts what has expired and still occupies space, and reclaims it if asked to.
    async fn look_for_expired(&self, report: &mut Report) -> Result<()> {
        let store = self.records.store();
        report.expired = store.expired().await?;
        let (Some(mut left), true) = (report.expired, self.repair) else { return Ok(()) };
        let found = left;
        let mut idle = 0;
        // Every commit reclaims some, also one that changes nothing.
        let nothing = probe::nothing()?;
        while left > 0 && idle < IDLE_COMMITS_MAX {
            store.delete(nothing.clone()).await?;
            let now = store.expired().await?.unwrap_or_default();
            idle = if now < left { 0 } else { idle + 1 };
            left = now;
        }
        report.reclaimed = found.saturating_sub(left);
        Ok(())
    }

    async fn tell(
        &self,
        inspector: &Inspector,
        finding: Finding,
        lacking: &mut Lacking,
        report: &mut Report,
    ) -> Result<()> {
        let mut finding = lacking.judge(finding);
        let mut repaired = false;
        if self.repair && finding.flaw.is_mendable() {
            repaired = inspector.mend(&finding).await?;
            // What cannot be mended may be something else by now: another record has got the entry.
            if !repaired && let Some(now) = inspector.look_again(&finding).await? {
                finding = now;
            }
        }
        let repairable = finding.flaw.is_mendable();
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

/// Records that lack a unique entry, by the entry's key: of two with one value, only the first can get
/// it.
#[derive(Default)]
struct Lacking(HashMap<Key, Key>);

impl Lacking {
    /// The finding as it is, or that the value is another record's too.
    fn judge(&mut self, finding: Finding) -> Finding {
        let Some(record) = finding.record.clone() else { return finding };
        if finding.flaw != Flaw::MissingEntry || !finding.unique {
            return finding;
        }
        match self.0.get(&finding.key) {
            Some(first) if *first != record => finding.duplicate_of(first),
            Some(_) => finding,
            None => {
                if self.0.len() < LACKING_MAX {
                    self.0.insert(finding.key.clone(), record);
                }
                finding
            }
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
