//! What is wrong with what a config file declares, with the lines that say it.

use std::path::Path;

use toml::de::{DeTable, DeValue};

/// Something that is wrong, with the line that says it.
#[derive(Debug)]
pub struct Problem {
    line: usize,
    setting: String,
    reason: String,
}

/// What was found to be wrong with the members of a table, each of which declares something.
pub struct Found<'t> {
    table: &'static str,
    lines: Lines<'t>,
    problems: Vec<Problem>,
}

impl<'t> Found<'t> {
    /// Nothing yet, in a table of a text.
    pub fn in_table(table: &'static str, text: &'t str) -> Self {
        Self { table, lines: Lines::of(text), problems: Vec::new() }
    }

    /// Something is wrong with a setting of what is declared under a name; with all of it, if that is empty.
    pub fn add(&mut self, name: &str, setting: &str, reason: impl Into<String>) {
        let line = self.lines.of_setting(self.table, name, setting);
        let setting = match setting {
            "" => format!("{}.{name}", self.table),
            setting => format!("{}.{name}.{setting}", self.table),
        };
        self.problems.push(Problem { line, setting, reason: reason.into() });
    }

    /// All of it, in the order of lines.
    pub fn problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }
}

/// Problems for people, a line each.
pub fn drawn(file: &Path, problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let Problem { line, setting, reason } = problem;
        format!("  {}:{line}: {setting}: {reason}", file.display())
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Where a text says what.
struct Lines<'t> {
    text: &'t str,
    file: Option<DeTable<'t>>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, file: DeTable::parse(text).ok().map(|file| file.into_inner()) }
    }

    /// The line of a setting; of one that is left out, that of what it would be in.
    fn of_setting(&self, table: &str, name: &str, setting: &str) -> usize {
        let mut place = 0;
        let mut within = self.file.as_ref();
        for member in [table, name].into_iter().chain(setting.split('.')) {
            let found = within
                .and_then(|table| table.iter().find(|(key, _)| key.get_ref().as_ref() == member));
            let Some((key, value)) = found else { break };
            place = key.span().start;
            within = match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => None,
            };
        }
        1 + self.text[..place].matches('\n').count()
    }
}
