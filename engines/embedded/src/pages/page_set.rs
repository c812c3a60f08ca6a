//! A set of page numbers of one file: one bit each.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageSet {
    words: Vec<u64>,
    pages: u64,
}

impl PageSet {
    /// An empty set for a file of so many pages.
    pub(super) fn new(pages: u64) -> Self {
        Self { words: vec![0; pages.div_ceil(64) as usize], pages }
    }

    pub(super) fn contains(&self, page: u64) -> bool {
        page < self.pages && self.words[(page / 64) as usize] & 1 << (page % 64) != 0
    }

    /// Adds a page; says whether it is new. A page beyond the file is not taken.
    pub(super) fn insert(&mut self, page: u64) -> bool {
        let new = page < self.pages && !self.contains(page);
        if new {
            self.words[(page / 64) as usize] |= 1 << (page % 64);
        }
        new
    }

    pub(super) fn remove(&mut self, page: u64) {
        if self.contains(page) {
            self.words[(page / 64) as usize] &= !(1 << (page % 64));
        }
    }

    /// The first page that is in both sets.
    pub(super) fn first_in_both(&self, other: &Self) -> Option<u64> {
        let both = self.words.iter().zip(&other.words).map(|(ours, theirs)| ours & theirs);
        let (at, word) = both.enumerate().find(|(_, word)| *word != 0)?;
        Some(at as u64 * 64 + u64::from(word.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_takes_the_pages_of_its_file_and_no_others() {
        let mut set = PageSet::new(70);
        assert!(set.insert(0) && set.insert(69) && !set.insert(69));
        assert!(!set.insert(70) && !set.contains(70) && !set.contains(1_000_000));
        let mut other = PageSet::new(70);
        assert_eq!(set.first_in_both(&other), None);
        assert!(other.insert(69));
        assert_eq!(set.first_in_both(&other), Some(69));
        set.remove(69);
        assert_eq!(set.first_in_both(&other), None);
    }
}
