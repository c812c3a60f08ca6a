//! How many bytes a page may have.

/// How many rows are read before anything is known of their size.
const FIRST_ROWS: usize = 32;

/// The bytes of a page that is being filled. A page is full with the row that reaches the bound, so that it has at
/// least one row, however large that is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageBytes {
    max: usize,
    taken: usize,
    rows: usize,
}

impl PageBytes {
    /// An empty page of at most so many bytes; `usize::MAX` is without a bound.
    pub fn new(max: usize) -> Self {
        Self { max, taken: 0, rows: 0 }
    }

    /// Counts one more row.
    pub fn add(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(bytes);
        self.rows += 1;
    }

    pub fn is_full(&self) -> bool {
        self.taken >= self.max
    }

    /// How many rows to read next: as many as fit, if they are as large as those before.
    pub fn rows(&self) -> usize {
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
        assert_eq!((page.rows(), page.is_full()), (FIRST_ROWS, false));
        page.add(100);
        assert_eq!(page.rows(), 9);
        page.add(800);
        assert_eq!((page.rows(), page.is_full()), (1, false));
        page.add(100);
        assert!(page.is_full());
        assert_eq!(PageBytes::new(usize::MAX).rows(), usize::MAX);
    }
}
