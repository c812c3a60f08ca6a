use crate::block::Block;

/// A table while it is read. Tables inside its cells are read as text of the cell.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    inside: usize,
}

impl Table {
    pub(crate) fn nest(&mut self) {
        self.inside += 1;
    }

    /// Ends a table in a cell, and says whether there was one.
    pub(crate) fn unnest(&mut self) -> bool {
        let nested = self.inside > 0;
        self.inside = self.inside.saturating_sub(1);
        nested
    }

    pub(crate) fn is_nested(&self) -> bool {
        self.inside > 0
    }

    pub(crate) fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(crate) fn cell(&mut self) {
        if self.rows.is_empty() {
            self.row();
        }
        if let Some(row) = self.rows.last_mut() {
            row.push(String::new());
        }
    }

    /// Adds to the last cell, and says whether there is one.
    pub(crate) fn push(&mut self, text: &str) -> bool {
        let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) else { return false };
        if !cell.is_empty() {
            cell.push(' ');
        }
        cell.push_str(text);
        true
    }

    /// The table; one of a single column only places text on a page, and becomes paragraphs.
    pub(crate) fn into_blocks(mut self) -> Vec<Block> {
        self.rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        if self.rows.iter().all(|row| row.len() <= 1) {
            return self.rows.into_iter().flatten().map(Block::Paragraph).collect();
        }
        vec![Block::Table(self.rows)]
    }
}
