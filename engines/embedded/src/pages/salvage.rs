//! Reading what a damaged file still gives.

use std::ops::ControlFlow;

use bytes::Bytes;
use keyward_engine::{Clock, Result, Row};
use keyward_key::Key;

use super::file::PageFile;
use super::layout::{FIRST_PAGE, Kind, kind};
use super::nodes::{self, Content, Node};
use super::visit::{Bounds, Table, Visitor};
use super::walk::{Reach, Walk};
use crate::error::corrupt;
use crate::record::{self, Now, Record};

/// What was read of a damaged store, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Entries that were read.
    pub entries: u64,
    /// Expired entries, which were left out.
    pub expired: u64,
    /// How many entries the store holds by its own account, expired ones among them. Of a damaged
    /// store this may be wrong.
    pub expected: u64,
    /// Entries of `entries` that lie on pages which no page leads to any more.
    pub orphaned: u64,
    /// Whether the newest commit is missing, because only the snapshot before it can be read.
    pub without_last_commit: bool,
    /// What is damaged: the first hundred places, with page numbers and keys as far as they are
    /// known. Empty if nothing was skipped.
    pub damaged: Vec<String>,
    /// How many more places are damaged.
    pub damaged_more: u64,
}

/// Hands over every entry of a file that can be read, until told to stop. Nobody may have the store
/// open.
pub(crate) fn salvage(
    file: &std::path::Path,
    clock: &dyn Clock,
    take: &mut dyn FnMut(Row) -> ControlFlow<()>,
) -> Result<Salvaged> {
    let (file, metas, mut damaged) = PageFile::open_damaged(file)?;
    let reach = Reach { leaves: true, values: true, pages_max: u64::MAX };
    let mut taker = Taker { now: Now::of(clock), take, over: false, entries: 0, expired: 0 };
    for (at, meta) in metas.iter().enumerate() {
        let mut walk = Walk::new(&file, meta, reach);
        let tables = walk.tables(meta);
        let Some(entries) = tables.iter().find(|(table, _)| *table == Table::Entries) else {
            // The snapshot before this one has a list of tables of its own.
            damaged.extend(walk.findings.iter().map(ToString::to_string));
            continue;
        };
        walk.tree(Table::Entries, &entries.1, &mut taker);
        let mut orphaned = 0;
        if !walk.lost.is_empty() && !taker.over {
            for (table, tree) in tables.iter().filter(|(table, _)| *table != Table::Entries) {
                walk.tree(*table, tree, &mut Nothing);
            }
            walk.free_pages(meta);
            orphaned = orphans(&mut walk, &mut taker);
        }
        let ours = |table| matches!(table, Table::Entries | Table::Main);
        let found = walk.findings.iter().filter(|found| ours(found.table));
        damaged.extend(found.map(ToString::to_string));
        return Ok(Salvaged {
            entries: taker.entries,
            expired: taker.expired,
            expected: entries.1.entries,
            orphaned,
            // A damaged meta page may have been the newer one.
            without_last_commit: at > 0 || metas.len() < 2,
            damaged,
            damaged_more: walk.findings_more,
        });
    }
    let path = file.path().display();
    Err(corrupt(format!("{path} has no readable list of tables: {}", damaged.join("; "))))
}

/// Reads the leaves of lost parts of `entries`: pages to which nothing leads any more. Each page of a
/// snapshot is used once or free, so a leaf that is neither, and whose keys all lie where keys were
/// lost, is of this snapshot and not of an older one. Without the list of free pages nothing is
/// certain, and nothing is read.
fn orphans(walk: &mut Walk<'_>, taker: &mut Taker<'_, '_>) -> u64 {
    if walk.findings.iter().any(|found| found.table == Table::Free) {
        return 0;
    }
    let mut candidates: Vec<(Vec<u8>, Vec<u8>, u64)> = Vec::new();
    for page in FIRST_PAGE..=walk.last_page.min(walk.file.pages().saturating_sub(1)) {
        if walk.used.contains(page) || walk.free.contains(page) {
            continue;
        }
        let Ok(bytes) = walk.file.page(page) else { continue };
        if let Some((first, last)) = leaf_of_entries(&bytes, page)
            && walk.lost.iter().any(|(lower, upper)| {
                let bounds = Bounds { lower: lower.as_deref(), upper: upper.as_deref() };
                bounds.hold(Table::Entries, &first) && bounds.hold(Table::Entries, &last)
            })
        {
            candidates.push((first, last, page));
        }
    }
    candidates.sort_unstable();
    let before = taker.entries;
    for (at, (first, last, page)) in candidates.iter().enumerate() {
        // Of two leaves with the same keys one would be old.
        let follows = at.checked_sub(1).is_none_or(|before| candidates[before].1 < *first);
        let precedes = candidates.get(at + 1).is_none_or(|next| *last < next.0);
        if !follows || !precedes || taker.over {
            continue;
        }
        let Ok(bytes) = walk.file.page(*page) else { continue };
        for node in nodes::read(&bytes, Kind::Leaf).nodes {
            if let Err(what) = walk.row(Table::Entries, &node, taker) {
                walk.found(Table::Entries, Some(*page), what);
            }
        }
    }
    taker.entries - before
}

/// The first and the last key of a page, if it is a sound leaf of `entries`.
fn leaf_of_entries(bytes: &[u8], page: u64) -> Option<(Vec<u8>, Vec<u8>)> {
    if kind(bytes, page) != Ok(Kind::Leaf) {
        return None;
    }
    let nodes::Nodes { nodes, problem } = nodes::read(bytes, Kind::Leaf);
    let is_entry = |node: &Node<'_>| match node.content {
        Content::Value(value) => Record::read(value).is_ok(),
        Content::Overflow { .. } => true,
        Content::Child(_) | Content::Tree(_) => false,
    };
    let sound = problem.is_none() && nodes.iter().all(is_entry);
    let ordered = nodes.is_sorted_by(|a, b| a.key < b.key);
    let (first, last) = (nodes.first()?, nodes.last()?);
    (sound && ordered).then(|| (first.key.to_vec(), last.key.to_vec()))
}

/// Hands entries over.
struct Taker<'t, 'c> {
    now: Now<'c>,
    take: &'t mut dyn FnMut(Row) -> ControlFlow<()>,
    over: bool,
    entries: u64,
    expired: u64,
}

impl Visitor for Taker<'_, '_> {
    fn wants(&self, _: Table, _: Bounds<'_>) -> bool {
        true
    }

    fn row(&mut self, _: Table, key: &[u8], value: Option<&[u8]>) -> Result<(), String> {
        let (key, record): (Key, Record<'_>) = record::check(key, value.unwrap_or_default())?;
        if record.is_expired(&self.now) {
            self.expired += 1;
            return Ok(());
        }
        self.entries += 1;
        let entry = record.to_entry(Bytes::copy_from_slice);
        self.over = (self.take)(Row { key, entry: Some(entry) }).is_break();
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Only finds out which pages are in use.
struct Nothing;

impl Visitor for Nothing {
    fn wants(&self, _: Table, _: Bounds<'_>) -> bool {
        true
    }

    fn row(&mut self, _: Table, _: &[u8], _: Option<&[u8]>) -> Result<(), String> {
        Ok(())
    }
}
