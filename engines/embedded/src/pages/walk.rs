//! A walk through the trees of a snapshot. It goes on past what is damaged, and says what that was.

use std::borrow::Cow;

use super::file::PageFile;
use super::layout::{
    FIRST_PAGE, Kind, Meta, NO_PAGE, PAGE_HEADER_BYTES, Tree, kind, overflow_pages,
};
use super::lists::{FreeLists, Names};
use super::nodes::{self, Content, Node};
use super::page_set::PageSet;
use super::visit::{Bounds, Finding, Table, Visitor};

/// How deep LMDB's own cursors go.
const DEPTH_MAX: u16 = 32;
/// How many findings are kept; the others are only counted.
const FINDINGS_MAX: usize = 100;
/// Of how many lost pages the keys are kept.
const LOST_MAX: usize = 10_000;

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Every leaf page; else only the first and the last of each table.
    pub(super) leaves: bool,
    /// Values on pages of their own too.
    pub(super) values: bool,
    /// Pages to read at most.
    pub(super) pages_max: u64,
}

/// The keys of a lost part of `entries`.
pub(super) type LostKeys = (Option<Vec<u8>>, Option<Vec<u8>>);

pub(super) struct Walk<'f> {
    pub(super) file: &'f PageFile,
    pub(super) last_page: u64,
    reach: Reach,
    pages_left: u64,
    pub(super) used: PageSet,
    pub(super) free: PageSet,
    /// How many free pages lie beyond the end of the file.
    free_beyond: u64,
    pub(super) findings: Vec<Finding>,
    pub(super) findings_more: u64,
    pub(super) lost: Vec<LostKeys>,
}

/// A page on the way down.
#[derive(Clone, Copy)]
struct Place {
    table: Table,
    page: u64,
    level: u16,
    depth: u16,
    /// Whether it is on the way to the first or the last leaf.
    first: bool,
    last: bool,
}

/// What a tree holds, as far as it was walked.
struct Count {
    rows: u64,
    whole: bool,
}

impl<'f> Walk<'f> {
    pub(super) fn new(file: &'f PageFile, meta: &Meta, reach: Reach) -> Self {
        Self {
            file,
            last_page: meta.last_page,
            reach,
            pages_left: reach.pages_max,
            used: PageSet::new(file.pages()),
            free: PageSet::new(file.pages()),
            free_beyond: 0,
            findings: Vec::new(),
            findings_more: 0,
            lost: Vec::new(),
        }
    }

    /// Says whether every leaf page is walked from here on.
    pub(super) fn set_leaves(&mut self, leaves: bool) {
        self.reach.leaves = leaves;
    }

    /// The tables that the snapshot names, with their trees.
    pub(super) fn tables(&mut self, meta: &Meta) -> Vec<(Table, Tree)> {
        let mut names = Names::default();
        self.tree(Table::Main, &meta.main, &mut names);
        names.tables
    }

    /// Walks the list of free pages. No page may be both free and in use, so the tables come first.
    pub(super) fn free_pages(&mut self, meta: &Meta) {
        let mut lists = FreeLists { last_page: self.last_page, pages: Vec::new() };
        self.tree(Table::Free, &meta.free, &mut lists);
        for page in lists.pages {
            if page >= self.file.pages() {
                self.free_beyond += 1;
            } else if !self.free.insert(page) {
                self.found(Table::Free, Some(page), "it is listed twice");
            }
        }
        if let Some(page) = self.used.first_in_both(&self.free) {
            self.found(Table::Free, Some(page), "it is in use and listed as free");
        }
        // LMDB never writes pages at the end that were free again before the commit.
        let missing = (self.last_page + 1).saturating_sub(self.file.pages());
        if self.reach.leaves && self.reach.values && self.free_beyond != missing {
            self.found(Table::Free, None, "pages beyond the end of the file are not all free");
        }
    }

    /// Walks one tree.
    pub(super) fn tree(&mut self, table: Table, tree: &Tree, visitor: &mut dyn Visitor) {
        const KNOWN_FLAGS: u16 = 0x7E;
        if !visitor.wants(table, Bounds::ALL) {
            return;
        }
        let before = self.findings_count();
        if tree.flags & KNOWN_FLAGS != table.flags() {
            self.found(table, None, "its flags are not those of this format");
        }
        let mut count = Count { rows: 0, whole: true };
        if tree.root != NO_PAGE {
            let (page, depth) = (tree.root, tree.depth);
            let place = Place { table, page, level: 1, depth, first: true, last: true };
            self.page(place, Bounds::ALL, &mut count, visitor);
        }
        if before == self.findings_count() && count.whole && count.rows != tree.entries {
            let (rows, entries) = (count.rows, tree.entries);
            self.found(table, None, format!("it has {rows} rows where {entries} should be"));
        }
    }

    fn page(&mut self, at: Place, bounds: Bounds<'_>, count: &mut Count, to: &mut dyn Visitor) {
        if to.is_over() || self.pages_left == 0 {
            count.whole = false;
            return;
        }
        self.pages_left -= 1;
        match self.load(at) {
            Ok((kind, bytes)) => {
                let nodes::Nodes { nodes, problem } = nodes::read(&bytes, kind);
                if let Some(problem) = problem {
                    self.found(at.table, Some(at.page), problem);
                }
                if kind == Kind::Branch {
                    self.branch(at, &nodes, problem.is_none(), bounds, count, to);
                } else {
                    self.leaf(at, &nodes, bounds, count, to);
                }
            }
            Err(what) => self.lose(at, bounds, count, what),
        }
    }

    /// Reads a page of a tree, which nothing else may use.
    fn load(&mut self, at: Place) -> Result<(Kind, Vec<u8>), String> {
        self.refuse_outside(at.page)?;
        if at.level > DEPTH_MAX {
            return Err("it lies too deep".to_owned());
        }
        if self.used.contains(at.page) {
            return Err("it is used twice".to_owned());
        }
        let bytes = self.file.page(at.page)?;
        let kind = kind(&bytes, at.page)?;
        match (kind, at.level.cmp(&at.depth)) {
            (Kind::Branch, std::cmp::Ordering::Less) | (Kind::Leaf, std::cmp::Ordering::Equal) => {}
            (Kind::Branch | Kind::Leaf, _) => {
                // Its rows are readable all the same.
                let what = format!("it is at level {} of a tree of {}", at.level, at.depth);
                self.found(at.table, Some(at.page), what);
            }
            _ => return Err("it is neither a branch nor a leaf".to_owned()),
        }
        self.used.insert(at.page);
        Ok((kind, bytes))
    }

    fn refuse_outside(&self, page: u64) -> Result<(), String> {
        match (FIRST_PAGE..=self.last_page).contains(&page) {
            true => Ok(()),
            false => Err("there is no such page".to_owned()),
        }
    }

    fn branch(
        &mut self,
        at: Place,
        nodes: &[Node<'_>],
        sound: bool,
        bounds: Bounds<'_>,
        count: &mut Count,
        to: &mut dyn Visitor,
    ) {
        let Place { table, level, depth, .. } = at;
        // The first key of a branch page is not looked at: the page above has it.
        let keys = || nodes.iter().skip(1).map(|node| node.key);
        let outside = keys().filter(|key| !bounds.hold(table, key)).count();
        if nodes.len() > 1 && outside == nodes.len() - 1 {
            self.used.remove(at.page);
            return self.lose(at, bounds, count, "its keys belong elsewhere".to_owned());
        }
        let ordered = keys().is_sorted_by(|a, b| table.compare(a, b).is_lt());
        if outside > 0 || !ordered {
            self.found(table, Some(at.page), "its keys are out of order");
        }
        if nodes.len() < 2 && table != Table::Free {
            self.found(table, Some(at.page), "it has too few nodes");
        }
        let usable = sound && outside == 0 && ordered;
        for (index, node) in nodes.iter().enumerate() {
            let Content::Child(page) = node.content else { continue };
            let below = match usable {
                true => Bounds {
                    lower: if index == 0 { bounds.lower } else { Some(node.key) },
                    upper: nodes.get(index + 1).map_or(bounds.upper, |next| Some(next.key)),
                },
                false => bounds,
            };
            let child = Place {
                page,
                level: level + 1,
                first: at.first && index == 0,
                last: at.last && index + 1 == nodes.len(),
                ..at
            };
            let skipped =
                !self.reach.leaves && child.level >= depth && !(child.first || child.last);
            if skipped || !to.wants(table, below) {
                count.whole = false;
            } else {
                self.page(child, below, count, to);
            }
        }
    }

    fn leaf(
        &mut self,
        at: Place,
        nodes: &[Node<'_>],
        bounds: Bounds<'_>,
        count: &mut Count,
        to: &mut dyn Visitor,
    ) {
        let Place { table, page, .. } = at;
        let outside = nodes.iter().filter(|node| !bounds.hold(table, node.key)).count();
        if outside == nodes.len() {
            self.used.remove(page);
            return self.lose(at, bounds, count, "its keys belong elsewhere".to_owned());
        }
        let ordered = nodes.is_sorted_by(|a, b| table.compare(a.key, b.key).is_lt());
        if outside > 0 || !ordered {
            self.found(table, Some(page), "its keys are out of order");
        }
        for node in nodes.iter().filter(|node| bounds.hold(table, node.key)) {
            if to.is_over() {
                count.whole = false;
                return;
            }
            count.rows += 1;
            if let Err(what) = self.row(table, node, to) {
                self.found(table, Some(page), what);
            }
        }
    }

    /// Hands a row of a leaf over.
    pub(super) fn row(
        &mut self,
        table: Table,
        node: &Node<'_>,
        to: &mut dyn Visitor,
    ) -> Result<(), String> {
        let value = match &node.content {
            Content::Value(value) if table != Table::Main => Some(Cow::Borrowed(*value)),
            Content::Overflow { page, length } if table != Table::Main => {
                self.overflow(*page, *length)?.map(Cow::Owned)
            }
            Content::Tree(tree) if table == Table::Main => {
                return to.table(node.key, *tree);
            }
            _ => return Err("a node is not of the kind that this table has".to_owned()),
        };
        to.row(table, node.key, value.as_deref())
    }

    /// A value that has pages of its own.
    fn overflow(&mut self, page: u64, length: usize) -> Result<Option<Vec<u8>>, String> {
        let size = self.file.page_size();
        let wrong = |what: &str| format!("a value on page {page}: {what}");
        self.refuse_outside(page).map_err(|what| wrong(&what))?;
        let head = self.file.bytes(page, 0, PAGE_HEADER_BYTES).map_err(|what| wrong(&what))?;
        if kind(&head, page).map_err(|what| wrong(&what))? != Kind::Overflow {
            return Err(wrong("it is no overflow page"));
        }
        self.pages_left = self.pages_left.saturating_sub(1);
        let needed = ((PAGE_HEADER_BYTES - 1 + length) / size + 1) as u64;
        let end = page.saturating_add(overflow_pages(&head));
        if end - page < needed || end > (self.last_page + 1).min(self.file.pages()) {
            return Err(wrong("its length is wrong"));
        }
        if (page..end).any(|page| self.used.contains(page)) {
            return Err(wrong("it is used twice"));
        }
        for page in page..end {
            self.used.insert(page);
        }
        match self.reach.values {
            true => self.file.bytes(page, PAGE_HEADER_BYTES, length).map(Some),
            false => Ok(None),
        }
    }

    /// Notes that a page and what lies below it cannot be read.
    fn lose(&mut self, at: Place, bounds: Bounds<'_>, count: &mut Count, what: String) {
        count.whole = false;
        self.found(at.table, Some(at.page), what);
        if at.table == Table::Entries && self.lost.len() < LOST_MAX {
            let own = |key: Option<&[u8]>| key.map(<[u8]>::to_vec);
            self.lost.push((own(bounds.lower), own(bounds.upper)));
        }
    }

    pub(super) fn findings_count(&self) -> u64 {
        self.findings.len() as u64 + self.findings_more
    }

    pub(super) fn found(&mut self, table: Table, page: Option<u64>, what: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding::new(table, page, what.into()));
        } else {
            self.findings_more += 1;
        }
    }
}
