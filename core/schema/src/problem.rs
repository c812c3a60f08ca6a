//! What is wrong with a schema, and where.

use std::fmt;

use serde::Serialize;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The schema cannot be used.
    Error,
    /// The schema can be used, but somebody should look at it.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One problem of a schema. `Display` draws it for a terminal, with the line and a caret under the
/// place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What kind of problem it is, in a word that stays the same between releases.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The file it is in, as it was named; empty if the problem has no place in a file.
    pub file: String,
    /// The line, from one; zero if the problem has no place in the file.
    pub line: usize,
    /// The character in the line, from one; zero if the problem has no place in the file.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    #[serde(skip)]
    pub(crate) excerpt: Option<Excerpt>,
}

/// What is shown of the line a problem is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The line, or the part of it around the place.
    pub text: String,
    /// How many characters of `text` stand before the place.
    pub before: usize,
    /// How many characters are underlined, at least one.
    pub width: usize,
}

/// A place in a schema file, with what is shown of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub excerpt: Excerpt,
}

impl Problem {
    /// The same at a place, if it has one.
    pub(crate) fn at(self, place: Option<&Place>) -> Self {
        let Some(Place { file, line, column, excerpt }) = place.cloned() else { return self };
        Self { file, line, column, excerpt: Some(excerpt), ..self }
    }

    /// A problem that has no place in a file.
    pub(crate) fn placeless(
        code: &'static str,
        severity: Severity,
        message: String,
        hint: String,
    ) -> Self {
        Self {
            code,
            severity,
            file: String::new(),
            line: 0,
            column: 0,
            message,
            hint,
            excerpt: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if self.line > 0 {
                write!(f, "{}:{}:", self.line, self.column)?;
            }
            f.write_str(" ")?;
        }
        writeln!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        let number = self.line.to_string();
        let margin = if self.excerpt.is_some() { number.len() } else { 0 };
        if let Some(Excerpt { text, before, width }) = &self.excerpt {
            // Tabs stay tabs, so that the caret stands under its place however wide they are.
            let indent: String =
                text.chars().take(*before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            writeln!(f, "{:margin$} |", "")?;
            writeln!(f, "{number} | {text}")?;
            writeln!(f, "{:margin$} | {indent}{}", "", "^".repeat(*width))?;
        }
        write!(f, "{:margin$} = help: {}", "", self.hint)
    }
}

/// The problems of a schema, in the order of their places. `Display` draws them all and counts
/// them; serialized, they are an array.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Problems, put in the order of their places.
    pub fn new(mut problems: Vec<Problem>) -> Self {
        // A stable sort: problems of one place stay in the order they were found.
        problems.sort_by(|a, b| {
            // What has no place in its file comes after what has one.
            let place = |p: &Problem| (p.line == 0, p.line, p.column);
            a.file.cmp(&b.file).then_with(|| place(a).cmp(&place(b)))
        });
        Self(problems)
    }

    /// Those that keep the schema from being used, without the warnings.
    #[must_use]
    pub fn errors(self) -> Self {
        Self(self.0.into_iter().filter(|it| it.severity == Severity::Error).collect())
    }

    /// The problems.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    fn count(&self, severity: Severity) -> usize {
        self.iter().filter(|problem| problem.severity == severity).count()
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = std::slice::Iter<'p, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self {
            write!(f, "{problem}\n\n")?;
        }
        let counted = |severity| match self.count(severity) {
            1 => format!("1 {severity}"),
            n => format!("{n} {severity}s"),
        };
        match (self.count(Severity::Error), self.count(Severity::Warning)) {
            (0, 0) => f.write_str("no problems"),
            (_, 0) => f.write_str(&counted(Severity::Error)),
            (0, _) => f.write_str(&counted(Severity::Warning)),
            _ => write!(f, "{}, {}", counted(Severity::Error), counted(Severity::Warning)),
        }
    }
}

impl std::error::Error for Problems {}
