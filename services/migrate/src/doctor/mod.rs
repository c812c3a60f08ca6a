//! Whether everything in a store is as it should be.

mod probe;

use std::collections::BTreeMap;

use keyward_key::{Key, KeyRange, Pattern};
use keyward_records::{IndexState, Inspector, Records};
pub use probe::{Probed, probe};
use serde::Serialize;

use crate::definition::{Definition, plan};
use crate::error::Result;
use crate::index::count;

/// How many rows are looked at together.
const ROWS_PER_PAGE: usize = 500;

/// Looks through a whole store, and mends what is safe if asked to. Others may write meanwhile.
#[derive(Debug, Clone)]
pub struct Doctor {
    records: Records,
    known: Vec<Pattern>,
    repair: bool,
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
        Self { records, known: Vec::new(), repair: false }
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

    /// Looks through the store, a page at a time; `progress` is told after each.
    ///
    /// Where commits take one key, a writer who is under way may have entries already whose record
    /// comes in a moment: there it can be told of one that is none. Mending it does no harm.
    pub async fn run(&self, mut progress: impl FnMut(&Report)) -> Result<Report> {
        let inspector = self.records.inspector().await?.knowing(self.known.iter().cloned());
        let mut report = Report::default();
        self.compare_catalog(&inspector, &mut report);
        let mut position = None;
        loop {
            let inspected =
                inspector.inspect_range(&KeyRange::all(), position, ROWS_PER_PAGE).await?;
            report.keys += count(inspected.rows);
            for finding in inspected.findings {
                let repairable = finding.flaw.is_mendable();
                let repaired = self.repair && repairable && inspector.mend(&finding).await?;
                report.add(Found {
                    code: finding.flaw.code(),
                    key: shown(&finding.key),
                    message: finding.message,
                    repairable,
                    repaired,
                });
            }
            progress(&report);
            position = inspected.position;
            if position.is_none() {
                return Ok(report);
            }
        }
    }

    /// Where the store's indexes are not those of the schema.
    fn compare_catalog(&self, inspector: &Inspector, report: &mut Report) {
        let catalog = inspector.catalog();
        for step in plan(self.records.declarations(), catalog) {
            let name = step.index().unwrap_or_default().to_owned();
            let state = catalog.indexes.get(&name).map(|listed| listed.state);
            let (code, message) = match (&step, state) {
                (Definition::DropIndex { .. }, _) => {
                    ("index-undeclared", "the store keeps it, the schema does not declare it")
                }
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
            report.add(Found { code, key: name, message, repairable: false, repaired: false });
        }
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
