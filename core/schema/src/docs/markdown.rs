//! Markdown, as far as a page needs it.

pub(super) struct Page(String);

impl Page {
    pub fn new(title: &str) -> Self {
        Self(format!("# {title}\n"))
    }

    pub fn heading(&mut self, level: usize, text: &str) {
        self.block(&format!("{} {}", "#".repeat(level), plain(text)));
    }

    /// A paragraph.
    pub fn line(&mut self, text: &str) {
        self.block(text);
    }

    /// Lines that stand together.
    pub fn block(&mut self, lines: &str) {
        self.0.push('\n');
        self.0.push_str(lines);
        self.0.push('\n');
    }

    /// A table; nothing, if there are no rows.
    pub fn table(&mut self, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let mut lines: Vec<String> = rows.into_iter().map(|cells| row(&cells)).collect();
        if lines.is_empty() {
            return;
        }
        let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
        let rule = format!("|{}", "---|".repeat(head.len()));
        lines.splice(0..0, [row(&head), rule]);
        self.block(&lines.join("\n"));
    }

    pub fn finish(self) -> String {
        self.0
    }
}

fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}

/// Text as code, whatever backticks it has.
pub(super) fn code(text: &str) -> String {
    let text = plain(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Text on one line, without characters that Markdown would take for its own.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The text of a cell that may be empty.
pub(super) fn row_text(text: Option<&str>) -> String {
    text.map(prose).unwrap_or_default()
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out_of_its_place() {
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(prose("<b>*x*</b>\n# y"), "\\<b\\>\\*x\\*\\</b\\> \\# y");
        assert_eq!(row(&["a|b".to_owned(), String::new()]), "| a\\|b |  |");
    }
}
