//! LMDB's own two tables: the names of the others, and the free pages.

use super::layout::{FIRST_PAGE, Tree, u64_at};
use super::visit::{Bounds, Table, Visitor};

/// Gathers the named tables.
#[derive(Default)]
pub(super) struct Names {
    pub(super) tables: Vec<(Table, Tree)>,
}

impl Visitor for Names {
    fn wants(&self, _: Table, _: Bounds<'_>) -> bool {
        true
    }

    fn row(&mut self, _: Table, _: &[u8], _: Option<&[u8]>) -> Result<(), String> {
        Ok(())
    }

    fn table(&mut self, name: &[u8], tree: Tree) -> Result<(), String> {
        self.tables.push((Table::named(name), tree));
        Ok(())
    }
}

/// Gathers the free pages.
pub(super) struct FreeLists {
    pub(super) last_page: u64,
    pub(super) pages: Vec<u64>,
}

impl Visitor for FreeLists {
    fn wants(&self, _: Table, _: Bounds<'_>) -> bool {
        true
    }

    /// A row is the pages that one transaction freed: their number, then the pages, the largest
    /// first. It may have room for more.
    fn row(&mut self, _: Table, key: &[u8], list: Option<&[u8]>) -> Result<(), String> {
        if key.len() != size_of::<u64>() {
            return Err("a key is no transaction".to_owned());
        }
        let Some(list) = list else { return Ok(()) };
        let wrong = || "a list of free pages is wrong".to_owned();
        let numbers = list.chunks_exact(size_of::<u64>()).filter_map(|chunk| u64_at(chunk, 0));
        let count = u64_at(list, 0).ok_or_else(wrong)?;
        if count > (list.len() / size_of::<u64>()) as u64 - 1 {
            return Err(wrong());
        }
        let first = self.pages.len();
        self.pages.extend(numbers.skip(1).take(count as usize));
        let added = &self.pages[first..];
        let known = |page: &u64| (FIRST_PAGE..=self.last_page).contains(page);
        match added.iter().all(known) && added.is_sorted_by(|a, b| a > b) {
            true => Ok(()),
            false => {
                self.pages.truncate(first);
                Err(wrong())
            }
        }
    }
}
