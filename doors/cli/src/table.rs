//! Columns of text.

use console::{measure_text_width, truncate_str};

use crate::failure::Result;
use crate::output::Output;
use crate::queues::one_line;

/// Columns that a cell has at most before the last one; what is longer is shortened.
const CELL_MAX: usize = 60;

/// Rows whose cells stand below each other, also where letters are two columns wide. A terminal is never
/// told what to do by what stands in them.
#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Table {
    /// Adds a row. Cells at its end may be left out.
    pub fn row<const N: usize>(&mut self, cells: [&str; N]) {
        let mut left = N;
        let cells = cells.map(|cell| {
            left -= 1;
            match left {
                0 => one_line(cell),
                _ => truncate_str(&one_line(cell), CELL_MAX, "…").into_owned(),
            }
        });
        self.widths.resize(self.widths.len().max(N), 0);
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(measure_text_width(cell));
        }
        self.rows.push(cells.into());
    }

    /// Writes the rows, each on a line that begins with `indent`.
    pub fn write(&self, indent: &str, output: &mut Output) -> Result {
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (cell, width) in row.iter().zip(&self.widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(2 + width - measure_text_width(cell)));
            }
            writeln!(output, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
