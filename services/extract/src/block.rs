use crate::text::single_line;
use crate::{Error, Result};

/// How deep lists are shown; items further in are shown at this depth.
const LIST_DEPTH_MAX: usize = 6;
/// What a cell without text takes in a table.
const CELL_BYTES_MIN: usize = 3;

/// One block of a document. All texts are Markdown already: what is not markup is escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    Heading {
        level: u8,
        text: String,
    },
    Paragraph(String),
    /// An item of a list, at a depth from 1; its number if the list is ordered.
    Item {
        depth: usize,
        number: Option<u64>,
        text: String,
    },
    /// A further paragraph of the item before it.
    Continuation {
        depth: usize,
        text: String,
    },
    Quote(String),
    Code(String),
    /// Rows of cells; the first row is the head.
    Table(Vec<Vec<String>>),
}

/// The blocks as Markdown. Fails if it is over `bytes_max`.
pub(crate) fn render(blocks: &[Block], bytes_max: usize) -> Result<String> {
    let mut out = String::new();
    let mut depth_before = 0;
    for block in blocks {
        // Rows are filled up to the longest one, which can come to far more than was read.
        if let Block::Table(rows) = block
            && filled_cells(rows).saturating_mul(CELL_BYTES_MIN) > bytes_max
        {
            return Err(Error::too_large("its text in bytes", bytes_max));
        }
        let (text, depth) = render_one(block, depth_before);
        if text.is_empty() {
            continue;
        }
        if !out.is_empty() {
            let tight = depth_before > 0 && matches!(block, Block::Item { .. });
            out.push_str(if tight { "\n" } else { "\n\n" });
        }
        out.push_str(&text);
        depth_before = depth;
        if out.len() > bytes_max {
            return Err(Error::too_large("its text in bytes", bytes_max));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    Ok(out)
}

/// A block as Markdown, and the depth of the list that it leaves open.
fn render_one(block: &Block, depth_before: usize) -> (String, usize) {
    let text = match block {
        Block::Heading { level, text } => {
            let text = single_line(text);
            let marks = "#".repeat(usize::from((*level).clamp(1, 6)));
            if text.is_empty() { text } else { format!("{marks} {text}") }
        }
        Block::Paragraph(text) => text.trim().to_owned(),
        Block::Quote(text) => prefixed(text.trim(), "> ", "> "),
        Block::Code(text) => fenced(text),
        Block::Table(rows) => table(rows),
        Block::Item { depth, number, text } => {
            let depth = (*depth).clamp(1, LIST_DEPTH_MAX).min(depth_before + 1);
            let indent = " ".repeat(4 * (depth - 1));
            let mark = number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "));
            let text = text.trim();
            if text.is_empty() {
                return (String::new(), depth_before);
            }
            let rest = format!("{indent}{}", " ".repeat(mark.len()));
            return (prefixed(text, &format!("{indent}{mark}"), &rest), depth);
        }
        Block::Continuation { depth, text } => {
            let depth = (*depth).min(depth_before);
            let indent = " ".repeat(4 * depth);
            return (prefixed(text.trim(), &indent, &indent), depth);
        }
    };
    (text, 0)
}

fn prefixed(text: &str, first: &str, rest: &str) -> String {
    let mut out = String::new();
    for (at, line) in text.lines().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(if at == 0 { first } else { rest });
        out.push_str(line);
    }
    out
}

fn fenced(text: &str) -> String {
    let text = text.trim_matches('\n').trim_end();
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|mark| mark != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{text}\n{fence}")
}

fn width(rows: &[Vec<String>]) -> usize {
    rows.iter().map(Vec::len).max().unwrap_or(0)
}

/// How many cells a table has once its rows are filled up.
fn filled_cells(rows: &[Vec<String>]) -> usize {
    width(rows).saturating_mul(rows.len())
}

fn table(rows: &[Vec<String>]) -> String {
    let width = width(rows);
    let filled = rows.iter().any(|row| row.iter().any(|cell| !cell.trim().is_empty()));
    if width == 0 || !filled {
        return String::new();
    }
    let mut lines = Vec::with_capacity(rows.len() + 1);
    for (at, row) in rows.iter().enumerate() {
        let mut line = String::from("|");
        for column in 0..width {
            let cell = row.get(column).map(|cell| single_line(cell)).unwrap_or_default();
            line.push(' ');
            line.push_str(&cell.replace('|', "\\|"));
            line.push_str(" |");
        }
        lines.push(line);
        if at == 0 {
            lines.push(format!("|{}", " --- |".repeat(width)));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use keyward_engine::{Code, Coded};

    use super::*;

    fn item(depth: usize, text: &str) -> Block {
        Block::Item { depth, number: None, text: text.into() }
    }

    #[test]
    fn lists_nest_one_level_at_a_time_and_end_with_a_blank_line() {
        let blocks = [item(1, "a"), item(3, "b"), Block::Paragraph("c".into())];
        assert_eq!(render(&blocks, 99).unwrap(), "- a\n    - b\n\nc\n");
    }

    #[test]
    fn a_table_has_a_head_and_escapes_its_bars() {
        let rows = vec![vec!["a|b".into(), "c\nd".into()], vec!["e".into()]];
        assert_eq!(
            render(&[Block::Table(rows)], 99).unwrap(),
            "| a\\|b | c d |\n| --- | --- |\n| e |  |\n"
        );
    }

    #[test]
    fn a_text_over_the_limit_is_refused() {
        let error = render(&[Block::Paragraph("abc".into())], 2).unwrap_err();
        assert_eq!(error.code(), Code::TooLarge);
    }
}
