//! From a schema file to a [`Schema`], with every problem told at once.
//!
//! The file is walked by hand rather than deserialized: a wrong key does not hide the problems
//! after it, and each problem knows its line. What one declaration says is checked where it is read
//! (`store`, `space`, `index`, `query`, `lock`); what two of them must agree on, in `together`.

mod definition;
mod field;
mod index;
mod lock;
mod part;
mod quantity;
mod query;
mod report;
mod space;
mod store;
mod table;
mod together;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use toml::de::DeTable;

use crate::bounds::{FILE_BYTES_MAX, LOCKS_MAX, SPACES_MAX, STORES_MAX};
use crate::places::{Declared, Places};
use crate::problem::{Problem, Problems, Severity};
use crate::{LockTree, Schema, Space};
use report::Report;
use table::Table;

/// How many places are told at which a file is not TOML: those after them mostly follow from them.
const SYNTAX_ERRORS_MAX: usize = 10;

impl Schema {
    /// Reads a schema file, and the JSON Schema files it names beside itself.
    ///
    /// Everything that is wrong is told at once. What TOML cannot read is told alone, since little
    /// can be said about the rest of such a file.
    pub fn load(path: &Path) -> Result<Self, Problems> {
        Self::load_with_warnings(path).map(|(schema, _)| schema)
    }

    /// [`Schema::load`], together with the warnings about a schema that can be used.
    pub fn load_with_warnings(path: &Path) -> Result<(Self, Problems), Problems> {
        let file = path.display().to_string();
        let text = read_bounded(path).map_err(|problem| Problems::new(vec![*problem]))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        read(&text, &file, Some(folder))
    }

    /// Reads the text of a schema file; problems name it `file`. There is no folder that it could
    /// name other files in, so the JSON Schemas of values must stand in the text itself.
    ///
    /// ```
    /// use keyward_schema::Schema;
    ///
    /// let text = r#"
    ///     [stores.app]
    ///     [spaces.notes]
    ///     ky = "user:{user}:notes:{note}"
    ///     ownership = "usr"
    /// "#;
    /// let problems = Schema::parse(text, "schema.toml").unwrap_err();
    /// let hints: Vec<&str> = problems.iter().map(|problem| problem.hint.as_str()).collect();
    /// assert_eq!(hints[1..], ["did you mean key?", "did you mean \"user\"?"]);
    /// ```
    pub fn parse(text: &str, file: &str) -> Result<Self, Problems> {
        Self::parse_with_warnings(text, file).map(|(schema, _)| schema)
    }

    /// [`Schema::parse`], together with the warnings about a schema that can be used.
    pub fn parse_with_warnings(text: &str, file: &str) -> Result<(Self, Problems), Problems> {
        if text.len() > FILE_BYTES_MAX {
            return Err(Problems::new(vec![too_large(file)]));
        }
        read(text, file, None)
    }
}

/// Reads a file that is not too large and is text.
fn read_bounded(path: &Path) -> Result<String, Box<Problem>> {
    let file = path.display().to_string();
    let problem = |code, message, hint: &str| {
        let placeless = Problem::placeless(code, Severity::Error, message, hint.to_owned());
        Box::new(Problem { file: file.clone(), ..placeless })
    };
    let unreadable = |error: std::io::Error| {
        problem("file-unreadable", format!("the file cannot be read: {error}"), "check the path")
    };
    let opened = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    opened.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(Box::new(too_large(&file)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let message =
            format!("the file is not UTF-8 text (byte {})", error.utf8_error().valid_up_to());
        problem("file-unreadable", message, "save it as UTF-8")
    })
}

fn too_large(file: &str) -> Problem {
    let message = format!("the file has more than {FILE_BYTES_MAX} bytes");
    let hint =
        "split it: JSON Schemas can have files of their own, and stores schemas of their own";
    let problem = Problem::placeless("file-too-large", Severity::Error, message, hint.to_owned());
    Problem { file: file.to_owned(), ..problem }
}

fn read(text: &str, file: &str, folder: Option<&Path>) -> Result<(Schema, Problems), Problems> {
    let mut report = Report::new(file, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    let (doubled, mut broken): (Vec<_>, Vec<_>) =
        errors.into_iter().partition(|error| error.message() == "duplicate key");
    broken.sort_by_key(|error| error.span().map_or(0, |at| at.start));
    for error in broken.iter().take(SYNTAX_ERRORS_MAX) {
        let hint = "the schema file is TOML: see https://toml.io";
        report.error("syntax", error.span().unwrap_or_default(), error.message(), hint);
    }
    if !broken.is_empty() {
        return Err(report.finish());
    }
    for error in doubled {
        let at = error.span().unwrap_or_default();
        let message = format!("{} stands here for the second time", report.text_at(&at));
        report.error("duplicate-key", at, message, "keep one of the two");
    }
    let root = Table::new("a schema", 0..0, document.get_ref());
    let schema = read_root(&root, text, folder, &mut report);
    if report.has_errors() { Err(report.finish()) } else { Ok((schema, report.finish())) }
}

fn read_root(
    root: &Table<'_, '_>,
    text: &str,
    folder: Option<&Path>,
    report: &mut Report<'_>,
) -> Schema {
    root.only(&["stores", "spaces", "locks"], report);
    let mut places = Places::default();
    let tables = root.tables("stores", "stores", "store", STORES_MAX, report);
    for (name, table) in &tables {
        let name = || name.text.to_owned();
        for (key, declared) in
            [("url", Declared::Url(name())), ("coordinator", Declared::Coordinator(name()))]
        {
            if let Some(item) = table.item(key) {
                places.insert(declared, report.place_at(&item.span()));
            }
        }
    }
    let stores = store::Stores::read(tables, report);

    let tables = root.tables("spaces", "spaces", "space", SPACES_MAX, report);
    let spaces: Vec<space::Draft<'_>> = tables
        .iter()
        .map(|(name, table)| space::read(name, table, &stores, folder, report))
        .collect();
    for ((name, table), draft) in tables.iter().zip(&spaces) {
        for key in ["history", "key", "ttl", "value_bytes_max"] {
            if let Some(item) = table.item(key) {
                let said = Declared::Space(name.text.to_owned(), key);
                places.insert(said, report.place_at(&item.span()));
            }
        }
        for (index, at) in &draft.indexes {
            let index = Declared::Index(name.text.to_owned(), index.clone());
            places.insert(index, report.place_at(at));
        }
    }

    let tables = root.tables("locks", "locks", "lock tree", LOCKS_MAX, report);
    let locks: Vec<lock::Draft<'_>> =
        tables.iter().map(|(name, table)| lock::read(name, table, &stores, report)).collect();
    for draft in &locks {
        if let Some((_, text)) = &draft.root {
            places.insert(Declared::Root(draft.name.to_owned()), report.place_at(&text.at));
        }
    }

    together::check(&stores, &spaces, &locks, report);
    // A draft without a result has been told as an error, so the schema is not given out.
    let spaces: Vec<Space> = spaces.into_iter().filter_map(|draft| draft.space).collect();
    let locks: Vec<LockTree> = locks.into_iter().filter_map(|draft| draft.tree).collect();
    Schema { stores: stores.declared, spaces, locks, places, text: text.into() }
}
