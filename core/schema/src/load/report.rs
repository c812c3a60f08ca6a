//! Gathering problems, each with its place in the file.

use std::ops::Range;

use crate::bounds::PROBLEMS_MAX;
use crate::problem::{Excerpt, Place, Problem, Problems, Severity};

/// A place in the schema file, in bytes.
pub(super) type Span = Range<usize>;

/// The text of a schema file, and what was found wrong with it.
pub(super) struct Report<'t> {
    file: &'t str,
    text: &'t str,
    /// The offsets at which lines begin.
    lines: Vec<usize>,
    problems: Vec<Problem>,
    errors: bool,
}

/// How many characters of a line are shown, and how many of them before the place.
const EXCERPT_CHARS_MAX: usize = 100;
const EXCERPT_CHARS_BEFORE: usize = 40;

impl<'t> Report<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Self { file, text, lines, problems: Vec::new(), errors: false }
    }

    pub fn error(
        &mut self,
        code: &'static str,
        at: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.errors = true;
        self.add(code, Severity::Error, at, message.into(), hint.into());
    }

    pub fn warning(
        &mut self,
        code: &'static str,
        at: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(code, Severity::Warning, at, message.into(), hint.into());
    }

    /// An error in another file, which the schema file names.
    pub fn error_in(&mut self, problem: Problem) {
        self.errors = true;
        self.push(problem);
    }

    pub fn has_errors(&self) -> bool {
        self.errors
    }

    pub fn finish(self) -> Problems {
        Problems::new(self.problems)
    }

    /// What stands at a place.
    pub fn text_at(&self, at: &Span) -> &'t str {
        self.text.get(at.clone()).unwrap_or_default()
    }

    /// A place as it is told, also after the file was read.
    pub fn place_at(&self, at: &Span) -> Place {
        let (line, column, excerpt) = self.place(at);
        Place { file: self.file.to_owned(), line, column, excerpt }
    }

    /// The number of the line, from one, that a place is on.
    pub fn line_of(&self, at: &Span) -> usize {
        self.lines.partition_point(|&start| start <= at.start)
    }

    fn add(
        &mut self,
        code: &'static str,
        severity: Severity,
        at: Span,
        message: String,
        hint: String,
    ) {
        let (line, column, excerpt) = self.place(&at);
        let file = self.file.to_owned();
        let excerpt = Some(excerpt);
        self.push(Problem { code, severity, file, line, column, message, hint, excerpt });
    }

    fn push(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        } else if self.problems.len() == PROBLEMS_MAX {
            let mut last = Problem::placeless(
                "too-many-problems",
                Severity::Error,
                format!("there are more than {PROBLEMS_MAX} problems; the others are not shown"),
                "mend those that are shown, and look again".to_owned(),
            );
            last.file = self.file.to_owned();
            self.problems.push(last);
        }
    }

    fn place(&self, at: &Span) -> (usize, usize, Excerpt) {
        let mut start = at.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let line = self.line_of(&(start..start));
        let line_start = self.lines[line - 1];
        let rest = &self.text[line_start..];
        let shown = rest.split('\n').next().unwrap_or(rest).trim_end_matches('\r');
        let before = self.text[line_start..start].chars().count();
        let marked = self.text.get(start..at.end).unwrap_or_default();
        let marked = marked.split(['\n', '\r']).next().unwrap_or_default().chars().count();
        (line, before + 1, excerpt(shown, before, marked.max(1)))
    }
}

fn excerpt(line: &str, before: usize, width: usize) -> Excerpt {
    let plain = |c: char| if c.is_control() && c != '\t' { ' ' } else { c };
    let length = line.chars().count();
    if length <= EXCERPT_CHARS_MAX {
        let text = line.chars().map(plain).collect();
        return Excerpt { text, before, width: width.min((length - before.min(length)).max(1)) };
    }
    let skipped = before.saturating_sub(EXCERPT_CHARS_BEFORE);
    let mut text: String = line.chars().skip(skipped).take(EXCERPT_CHARS_MAX).map(plain).collect();
    let mut before = before - skipped;
    if skipped > 0 {
        text.insert(0, '…');
        before += 1;
    }
    let width = width.min((text.chars().count() - before).max(1));
    if skipped + EXCERPT_CHARS_MAX < length {
        text.push('…');
    }
    Excerpt { text, before, width }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_characters_and_lines_from_one() {
        let report = Report::new("f", "a = 1\r\n학칙 = 2\n\tb");
        for (at, place) in [(0, (1, 1)), (4, (1, 5)), (7, (2, 1)), (13, (2, 3)), (19, (3, 2))] {
            let (line, column, _) = report.place(&(at..at + 1));
            assert_eq!((line, column), place, "{at}");
        }
        assert_eq!(report.place(&(1000..1001)).0, 3);
        assert_eq!(report.place(&(8..9)).1, 1, "inside a character");
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let line = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let shown = excerpt(&line, 500, 1);
        assert_eq!(shown.text.chars().nth(shown.before), Some('X'));
        assert!(shown.text.starts_with('…') && shown.text.ends_with('…'));
        assert!(shown.text.chars().count() <= EXCERPT_CHARS_MAX + 2);
    }
}
