//! Checking a snapshot: what LMDB must be able to rely on, and what the rows say.

use std::ops::Bound;
use std::ops::RangeBounds;

use keyward_engine::Result;
use keyward_key::{Key, KeyRange};

use super::file::PageFile;
use super::layout::Meta;
use super::visit::{Bounds, Table, Visitor};
use super::walk::{Reach, Walk};
use crate::commit::revision_of;
use crate::error::corrupt;
use crate::record::{self, Record};

/// How many pages are read when a store is opened: 16 MiB with pages of 4 KiB. A smaller store is
/// walked whole; of a larger one, the pages above the leaves, and the first and the last leaf of
/// each table.
const OPENING_PAGES_MAX: u64 = 4_096;

/// Checks what an opening can afford: the structure, and rows as far as a glance tells. A file that
/// is shorter than it should be is checked whole.
pub(crate) fn check_opening(file: &PageFile, meta: &Meta) -> Result<()> {
    if file.length() < file.expected_length(meta) {
        return check(file, meta, &KeyRange::all());
    }
    let reach = Reach { leaves: false, values: false, pages_max: OPENING_PAGES_MAX };
    let mut walk = Walk::new(file, meta, reach);
    let tables = walk.tables(meta);
    let pages =
        tables.iter().fold(meta.free.pages(), |sum, (_, tree)| sum.saturating_add(tree.pages()));
    walk.set_leaves(pages <= OPENING_PAGES_MAX);
    let mut contents = Contents::new(KeyRange::all(), false);
    for (table, tree) in &tables {
        walk.tree(*table, tree, &mut contents);
    }
    walk.free_pages(meta);
    refuse(&walk, meta)
}

/// Checks everything that lies in a range: the structure, and every row and value.
pub(crate) fn check(file: &PageFile, meta: &Meta, range: &KeyRange) -> Result<()> {
    let reach = Reach { leaves: true, values: true, pages_max: u64::MAX };
    let mut walk = Walk::new(file, meta, reach);
    let mut contents = Contents::new(range.clone(), true);
    for (table, tree) in walk.tables(meta) {
        walk.tree(table, &tree, &mut contents);
    }
    if contents.all {
        walk.free_pages(meta);
        if let Some(what) = contents.later_than_the_log() {
            walk.found(Table::Entries, None, what);
        }
    }
    refuse(&walk, meta)
}

/// The error that names what was found.
fn refuse(walk: &Walk<'_>, meta: &Meta) -> Result<()> {
    let Some(first) = walk.findings.first() else { return Ok(()) };
    let path = walk.file.path().display();
    let (found, expected) = (walk.file.length(), walk.file.expected_length(meta));
    let more = match walk.findings_count() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Err(corrupt(match found < expected {
        true => format!(
            "{path} is {found} bytes long and should be {expected}: it was cut off; {first}{more}"
        ),
        false => format!("{path} is damaged: {first}{more}"),
    }))
}

/// Looks at rows.
struct Contents {
    range: KeyRange,
    /// Whether the range is everything.
    all: bool,
    /// Whether keys, values and metadata are parsed.
    thorough: bool,
    /// The last version of an entry, with its key.
    newest: Option<(u64, Vec<u8>)>,
    /// The last revision of the log.
    revision: u64,
}

impl Contents {
    fn new(range: KeyRange, thorough: bool) -> Self {
        let all = range == KeyRange::all();
        Self { range, all, thorough, newest: None, revision: 0 }
    }

    /// What is wrong with an entry whose version is none that the store has given out.
    fn later_than_the_log(&self) -> Option<String> {
        let (version, key) = self.newest.as_ref()?;
        let key = Key::from_stored(key.clone());
        (*version > self.revision)
            .then(|| format!("{key} has version {version}, and the last one is {}", self.revision))
    }

    fn entry(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), String> {
        let Some(value) = value else { return Ok(()) };
        let record = match self.thorough {
            true => record::check(key, value)?.1,
            false => Record::read(value).map_err(|error| error.to_string())?,
        };
        if self.newest.as_ref().is_none_or(|(newest, _)| *newest < record.version) {
            self.newest = Some((record.version, key.to_vec()));
        }
        Ok(())
    }
}

impl Visitor for Contents {
    fn wants(&self, table: Table, bounds: Bounds<'_>) -> bool {
        if self.all || table == Table::Main {
            return true;
        }
        let after = |end: Bound<&[u8]>| match (end, bounds.lower) {
            (Bound::Excluded(end), Some(lower)) => lower >= end,
            _ => false,
        };
        let before = bounds.upper.is_some_and(|upper| upper <= self.range.start());
        table == Table::Entries && !before && !after(self.range.end_bound())
    }

    fn row(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) -> Result<(), String> {
        let told = |error: keyward_engine::Error| error.to_string();
        match table {
            Table::Entries => self.entry(key, value),
            Table::Log => {
                self.revision = revision_of(key).map_err(told)?.max(self.revision);
                value.map_or(Ok(Vec::new()), record::changes).map(drop).map_err(told)
            }
            Table::Ends => record::split_end(key).map(drop).map_err(told),
            Table::Free | Table::Main | Table::Meta | Table::Other => Ok(()),
        }
    }
}
