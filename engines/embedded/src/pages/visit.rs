//! What a walk visits, and what it tells of.

use std::cmp::Ordering;
use std::fmt;

use super::layout::{Tree, u64_at};

/// A tree of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// The pages that are free, by the transaction that freed them.
    Free,
    /// The tables by name.
    Main,
    Entries,
    Log,
    Ends,
    Meta,
    Other,
}

impl Table {
    pub(super) fn named(name: &[u8]) -> Self {
        match name {
            b"entries" => Self::Entries,
            b"log" => Self::Log,
            b"ends" => Self::Ends,
            b"meta" => Self::Meta,
            _ => Self::Other,
        }
    }

    /// The flags of its tree that decide how keys are ordered and values kept.
    pub(super) fn flags(self) -> u16 {
        const INTEGER_KEYS: u16 = 0x08;
        if self == Self::Free { INTEGER_KEYS } else { 0 }
    }

    pub(super) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Free => u64_at(a, 0).cmp(&u64_at(b, 0)),
            _ => a.cmp(b),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "list of free pages",
            Self::Main => "list of tables",
            Self::Entries => "table entries",
            Self::Log => "table log",
            Self::Ends => "table ends",
            Self::Meta => "table meta",
            Self::Other => "unknown table",
        })
    }
}

/// Something that is damaged.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) table: Table,
    page: Option<u64>,
    what: String,
}

impl Finding {
    pub(super) fn new(table: Table, page: Option<u64>, what: String) -> Self {
        Self { table, page, what }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.page {
            Some(page) => write!(f, "page {page} ({}): {}", self.table, self.what),
            None => write!(f, "{}: {}", self.table, self.what),
        }
    }
}

/// The keys that a page may hold: from the first on, up to the second and without it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'k> {
    pub(super) lower: Option<&'k [u8]>,
    pub(super) upper: Option<&'k [u8]>,
}

impl Bounds<'_> {
    pub(super) const ALL: Bounds<'static> = Bounds { lower: None, upper: None };

    pub(super) fn hold(&self, table: Table, key: &[u8]) -> bool {
        self.lower.is_none_or(|lower| table.compare(lower, key).is_le())
            && self.upper.is_none_or(|upper| table.compare(key, upper).is_lt())
    }
}

/// What a walk is for.
pub(super) trait Visitor {
    /// Whether pages with keys within these bounds are walked.
    fn wants(&self, table: Table, bounds: Bounds<'_>) -> bool;
    /// Takes a row, or says what is wrong with it. There is no value if values are not read.
    fn row(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) -> Result<(), String>;
    /// Takes a named table out of the list of tables.
    fn table(&mut self, name: &[u8], tree: Tree) -> Result<(), String> {
        let _ = tree;
        Err(format!("the table {:?} lies in a table", String::from_utf8_lossy(name)))
    }
    /// Whether the walk may end here.
    fn is_over(&self) -> bool {
        false
    }
}
