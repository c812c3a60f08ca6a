//! Reading a table of the schema file, key by key.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::report::{Report, Span};
use crate::bounds::NAME_BYTES_MAX;
use crate::nearest::{listed, nearest};

/// A table: what it declares, and where its name stands.
pub(super) struct Table<'d, 't> {
    /// What it declares, for messages: `the space notes`.
    pub what: String,
    pub at: Span,
    pub table: &'d DeTable<'t>,
}

pub(super) type Item<'d, 't> = &'d Spanned<DeValue<'t>>;

/// A text in the schema file.
#[derive(Debug, Clone)]
pub(super) struct Text<'d> {
    pub text: &'d str,
    pub at: Span,
}

impl Text<'_> {
    /// The place of some bytes of the text. Where the text was written with escapes, the whole of
    /// it.
    pub fn part(&self, from: usize, length: usize, report: &Report<'_>) -> Span {
        let written = report.text_at(&self.at);
        let inside = written.get(1..written.len().saturating_sub(1));
        if inside == Some(self.text) {
            let start = self.at.start + 1 + from;
            start..start + length
        } else {
            self.at.clone()
        }
    }
}

impl<'d, 't> Table<'d, 't> {
    pub fn new(what: impl Into<String>, at: Span, table: &'d DeTable<'t>) -> Self {
        Self { what: what.into(), at, table }
    }

    /// The keys and what they hold, in the order of the file.
    pub fn entries(&self) -> Vec<(&'d Spanned<DeString<'t>>, Item<'d, 't>)> {
        let mut entries: Vec<_> = self.table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries
    }

    pub fn item(&self, key: &str) -> Option<Item<'d, 't>> {
        self.table.get(key)
    }

    /// The place of a key, not of what it holds.
    pub fn key_at(&self, key: &str) -> Span {
        let found = self.table.iter().find(|(known, _)| known.get_ref() == key);
        found.map_or(self.at.clone(), |(known, _)| known.span())
    }

    /// Refuses keys that mean nothing here.
    pub fn only(&self, known: &[&str], report: &mut Report<'_>) {
        for (key, _) in self.entries() {
            if known.contains(&key.get_ref().as_ref()) {
                continue;
            }
            let hint = match nearest(key.get_ref(), known.iter().copied()) {
                Some(name) => format!("did you mean {name}?"),
                None => format!("there are {}", listed(known.iter().copied())),
            };
            let message = format!("{} has no key {:?}", self.what, key.get_ref());
            report.error("unknown-key", key.span(), message, hint);
        }
    }

    /// Refuses keys that have a meaning elsewhere, but not together with the others here.
    pub fn without(&self, keys: &[&str], because: &str, hint: &str, report: &mut Report<'_>) {
        for key in keys.iter().filter(|key| self.item(key).is_some()) {
            let message = format!("{key} has no meaning here: {because}");
            report.error("unexpected-key", self.key_at(key), message, hint);
        }
    }

    pub fn missing(&self, key: &str, hint: &str, report: &mut Report<'_>) {
        let message = format!("{} needs {key}", self.what);
        report.error("missing-key", self.at.clone(), message, hint);
    }

    /// A text; `example` shows a right one.
    pub fn text(&self, key: &str, example: &str, report: &mut Report<'_>) -> Option<Text<'d>> {
        as_text(key, self.item(key)?, example, report)
    }

    pub fn flag(&self, key: &str, report: &mut Report<'_>) -> Option<bool> {
        let item = self.item(key)?;
        let flag = item.get_ref().as_bool();
        if flag.is_none() {
            wrong_type(key, item, "true or false", &format!("write {key} = true"), report);
        }
        flag
    }

    /// One of a few words.
    pub fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
        report: &mut Report<'_>,
    ) -> Option<T> {
        let example = words.first().map_or("", |(word, _)| word);
        let text = self.text(key, &format!("{key} = {example:?}"), report)?;
        as_word(key, &text, words, report)
    }

    /// Texts in an array, at most `max`. A wrong element is told and left out.
    pub fn texts(
        &self,
        key: &str,
        max: usize,
        example: &str,
        report: &mut Report<'_>,
    ) -> Option<Vec<Text<'d>>> {
        let item = self.item(key)?;
        let Some(array) = item.get_ref().as_array() else {
            wrong_type(key, item, "an array of texts", &format!("write {example}"), report);
            return None;
        };
        at_most(key, item.span(), array.len(), max, report);
        Some(array.iter().take(max).filter_map(|e| as_text(key, e, example, report)).collect())
    }

    /// The tables below a key: `[spaces.NAME]`, of which `header` is `spaces`. At most `max`; names
    /// that are none are told.
    pub fn tables(
        &self,
        key: &str,
        header: &str,
        noun: &str,
        max: usize,
        report: &mut Report<'_>,
    ) -> Vec<(Text<'d>, Table<'d, 't>)> {
        let Some(item) = self.item(key) else {
            return Vec::new();
        };
        let Some(table) = item.get_ref().as_table() else {
            let hint = format!("write [{header}.NAME] above the keys of each {noun}");
            wrong_type(key, item, "a table of tables", &hint, report);
            return Vec::new();
        };
        let table = Table::new(key, self.key_at(key), table);
        at_most(key, table.at.clone(), table.table.len(), max, report);
        let mut tables = Vec::new();
        for (name, item) in table.entries().into_iter().take(max) {
            let name = Text { text: name.get_ref(), at: name.span() };
            check_name(noun, &name, report);
            match item.get_ref().as_table() {
                Some(inner) => {
                    let what = format!("the {noun} {}", name.text);
                    let inner = Table::new(what, name.at.clone(), inner);
                    tables.push((name, inner));
                }
                None => {
                    let hint = format!("a {noun} is a table: write [{header}.{}]", name.text);
                    wrong_type(name.text, item, "a table", &hint, report);
                }
            }
        }
        tables
    }

    /// The tables of an array: `[[spaces.notes.queries]]`, which is `header`. At most `max`.
    pub fn array_of_tables(
        &self,
        key: &str,
        header: &str,
        noun: &str,
        max: usize,
        report: &mut Report<'_>,
    ) -> Vec<Table<'d, 't>> {
        let Some(item) = self.item(key) else {
            return Vec::new();
        };
        let hint = format!("write [[{header}]] above the keys of each {noun}");
        let Some(array) = item.get_ref().as_array() else {
            wrong_type(key, item, "an array of tables", &hint, report);
            return Vec::new();
        };
        at_most(key, self.key_at(key), array.len(), max, report);
        let mut tables = Vec::new();
        for element in array.iter().take(max) {
            match element.get_ref().as_table() {
                Some(table) => {
                    tables.push(Table::new(format!("the {noun}"), element.span(), table));
                }
                None => wrong_type(noun, element, "a table", &hint, report),
            }
        }
        tables
    }
}

pub(super) fn as_text<'d>(
    key: &str,
    item: Item<'d, '_>,
    example: &str,
    report: &mut Report<'_>,
) -> Option<Text<'d>> {
    let text = item.get_ref().as_str().map(|text| Text { text, at: item.span() });
    if text.is_none() {
        wrong_type(key, item, "text", &format!("write {example}"), report);
    }
    text
}

pub(super) fn as_word<T: Copy>(
    key: &str,
    text: &Text<'_>,
    words: &[(&str, T)],
    report: &mut Report<'_>,
) -> Option<T> {
    let known = || words.iter().map(|(word, _)| *word);
    let found = words.iter().find(|(word, _)| *word == text.text);
    if found.is_none() {
        let hint = match nearest(text.text, known()) {
            Some(word) => format!("did you mean {word:?}?"),
            None => format!("there are {}", listed(known())),
        };
        let message = format!("there is no {key} {:?}", text.text);
        report.error("unknown-word", text.at.clone(), message, hint);
    }
    found.map(|(_, meaning)| *meaning)
}

pub(super) fn as_integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

pub(super) fn wrong_type(
    key: &str,
    item: Item<'_, '_>,
    expected: &str,
    hint: &str,
    report: &mut Report<'_>,
) {
    let found = match item.get_ref() {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    };
    let message = format!("{key} should be {expected}, not {found}");
    report.error("wrong-type", item.span(), message, hint);
}

pub(super) fn at_most(what: &str, at: Span, count: usize, max: usize, report: &mut Report<'_>) {
    if count > max {
        let message = format!("{what} has {count} entries, and {max} is the most");
        report.error("too-many", at, message, "split it");
    }
}

fn check_name(noun: &str, name: &Text<'_>, report: &mut Report<'_>) {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let starts_well = name.text.starts_with(|c: char| c.is_ascii_lowercase());
    if starts_well && name.text.chars().all(fits) && name.text.len() <= NAME_BYTES_MAX {
        return;
    }
    let message = format!("{:?} cannot be the name of a {noun}", name.text);
    let hint = format!(
        "names are lower-case letters, digits, _ and -, begin with a letter, and have at most \
         {NAME_BYTES_MAX} characters"
    );
    report.error("name", name.at.clone(), message, hint);
}

/// The place of what a JSON Pointer leads to below `item`, or of the last thing on the way there.
pub(super) fn pointed(item: Item<'_, '_>, pointer: &str) -> Span {
    let mut at = item;
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        let next = match at.get_ref() {
            DeValue::Table(table) => table.get(name.as_str()),
            DeValue::Array(array) => name.parse().ok().and_then(|n: usize| array.get(n)),
            _ => None,
        };
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    at.span()
}
