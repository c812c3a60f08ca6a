//! Pages bounded in bytes.

use crate::Entry;

/// How many rows are read before anything is known of their size.
const FIRST_ROWS: usize = 32;

/// The bytes of a page that is being filled. A page is full with the row that reaches the bound, so that it has at
/// least one row, however large that is.
#[derive(Debug, Clone, Copy)]
pub struct PageBytes {
    max: usize,
    taken: usize,
    rows: usize,
}

impl PageBytes {
    /// An empty page that is full with this many bytes; `usize::MAX` is without a bound.
    pub fn new(max: usize) -> Self {
        Self { max, taken: 0, rows: 0 }
    }

    /// Counts one more row.
    pub fn add(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(bytes);
        self.rows += 1;
    }

    /// Counts one more row that holds this: its value and its metadata.
    pub fn add_entry(&mut self, entry: &Entry) {
        self.add(entry.value.len() + entry.metadata.as_ref().map_or(0, |metadata| metadata.len()));
    }

    /// Whether the page ends here.
    pub fn is_full(&self) -> bool {
        self.taken >= self.max
    }

    /// How many rows to read next: as many as fit, if they are as large as those before.
    pub fn rows_to_read(&self) -> usize {
        match (self.max, self.rows) {
            (usize::MAX, _) => usize::MAX,
            (_, 0) => FIRST_ROWS,
            (max, rows) => {
                let average = (self.taken / rows).max(1);
                (max.saturating_sub(self.taken) / average).max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_far_as_they_fit() {
        let mut page = PageBytes::new(1_000);
        assert_eq!((page.rows_to_read(), page.is_full()), (FIRST_ROWS, false));
        page.add(100);
        assert_eq!(page.rows_to_read(), 9);
        page.add(800);
        assert_eq!((page.rows_to_read(), page.is_full()), (1, false));
        page.add(100);
        assert!(page.is_full());
        assert_eq!(PageBytes::new(usize::MAX).rows_to_read(), usize::MAX);
    }
}
