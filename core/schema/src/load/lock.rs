//! One lock tree.

use std::collections::BTreeMap;

use keyward_key::{Key, Pattern, PatternSet, is_reserved};

use super::report::{Report, Span};
use super::space::pattern;
use super::store::Stores;
use super::table::{Table, Text, as_text, at_most, wrong_type};
use crate::LockTree;
use crate::bounds::LOCK_PATHS_MAX;
use crate::nearest::{listed, nearest};
use crate::shape::{Segment, SegmentKind, Shape};

/// A lock tree as far as it could be read: what is missing has been told.
pub(super) struct Draft<'d> {
    pub name: &'d str,
    pub store: Option<String>,
    pub root: Option<(Pattern, Text<'d>)>,
    pub tree: Option<LockTree>,
}

pub(super) fn read<'d>(
    name: &Text<'d>,
    table: &Table<'d, '_>,
    stores: &Stores,
    report: &mut Report<'_>,
) -> Draft<'d> {
    table.only(&["store", "root", "paths", "aliases"], report);
    let store = stores.chosen(table, report);
    let root = root(table, report);
    let paths = paths(table, report);
    let aliases = paths.as_ref().map(|paths| aliases(table, paths, report));
    let tree = match (&store, &root, paths, aliases) {
        (Some(store), Some((root, _)), Some(paths), Some(aliases)) => Some(LockTree {
            name: name.text.to_owned(),
            store: store.clone(),
            root: root.clone(),
            not_roots: Vec::new(),
            paths,
            aliases,
        }),
        _ => None,
    };
    Draft { name: name.text, store, root, tree }
}

fn root<'d>(table: &Table<'d, '_>, report: &mut Report<'_>) -> Option<(Pattern, Text<'d>)> {
    if table.item("root").is_none() {
        table.missing("root", "say what is locked, as in root = \"{page}\"", report);
    }
    let text = table.text("root", "root = \"{page}\"", report)?;
    let root = pattern(&text, report)?;
    let shape = Shape::of(&root);
    if let Some(literal) = shape.first_literal().filter(|literal| is_reserved(literal)) {
        let message = format!("keys that begin with {literal:?} belong to Keyward itself");
        let at = text.part(0, literal.len(), report);
        report.error("reserved-segment", at, message, "begin with another word");
        return None;
    }
    if shape.lengths.len() > 1 {
        let message = "a root has no optional part: one root is one key, with the locks below it";
        report.error("lock-root", text.at, message, "put the optional part into paths");
        return None;
    }
    Some((root, text))
}

fn paths(table: &Table<'_, '_>, report: &mut Report<'_>) -> Option<Vec<Pattern>> {
    let texts =
        table.texts("paths", LOCK_PATHS_MAX, "paths = [\"issues\", \"issues:{id}\"]", report);
    if table.item("paths").is_none() {
        let hint = "say what can be locked below the root, as in paths = [\"issues\", \"issues:{id}\"]; \
                    paths = [] if only the root is locked";
        table.missing("paths", hint, report);
    }
    let texts = texts?;
    let count = texts.len();
    let read: Vec<(Pattern, Text<'_>)> =
        texts.into_iter().filter_map(|text| Some((pattern(&text, report)?, text))).collect();
    if read.len() < count {
        return None;
    }
    for (at, (path, text)) in read.iter().enumerate() {
        for (earlier, _) in &read[..at] {
            if let Err(clash) = PatternSet::new([earlier.clone(), path.clone()]) {
                let message =
                    format!("{path} and {earlier} could both mean the lock {}", clash.example);
                let hint = "keep one of them, or make a literal segment differ";
                report.error("lock-path", text.at.clone(), message, hint);
            }
        }
    }
    check_parents(&read, report);
    let mut paths: Vec<Pattern> = read.into_iter().map(|(path, _)| path).collect();
    // Coarse before fine; otherwise as in the file.
    paths.sort_by_key(|path| Shape::of(path).always().len());
    Some(paths)
}

/// Words for the first words of paths. A name must mean one path, and a path have one name.
fn aliases(
    table: &Table<'_, '_>,
    paths: &[Pattern],
    report: &mut Report<'_>,
) -> BTreeMap<String, String> {
    const EXAMPLE: &str = "aliases = { issue = \"issues\" }";
    let mut aliases = BTreeMap::new();
    let Some(item) = table.item("aliases") else {
        return aliases;
    };
    let Some(inner) = item.get_ref().as_table() else {
        wrong_type("aliases", item, "a table of texts", &format!("write {EXAMPLE}"), report);
        return aliases;
    };
    let inner = Table::new("aliases", table.key_at("aliases"), inner);
    at_most("aliases", inner.at.clone(), inner.table.len(), LOCK_PATHS_MAX, report);
    let shapes: Vec<Shape> = paths.iter().map(Shape::of).collect();
    for (alias, item) in inner.entries().into_iter().take(LOCK_PATHS_MAX) {
        let alias = Text { text: alias.get_ref(), at: alias.span() };
        let Some(word) = as_text(alias.text, item, EXAMPLE, report) else {
            continue;
        };
        match alias_problem(&alias, &word, &shapes, &aliases) {
            Some((at, message, hint)) => report.error("lock-alias", at, message, hint),
            None => {
                aliases.insert(alias.text.to_owned(), word.text.to_owned());
            }
        }
    }
    aliases
}

/// What is wrong with an alias: where, what, and what to do.
fn alias_problem(
    alias: &Text<'_>,
    word: &Text<'_>,
    shapes: &[Shape],
    known: &BTreeMap<String, String>,
) -> Option<(Span, String, String)> {
    let (name, of) = (alias.text, word.text);
    if !Key::parse(name).is_ok_and(|key| key.depth() == 1) {
        let message = format!("{name:?} cannot be an alias: it is not one segment of a key");
        return Some((alias.at.clone(), message, "write one word".to_owned()));
    }
    let begins = |shape: &&Shape| shape.first_literal() == Some(of);
    let goes_deeper = |shape: &Shape| shape.lengths.iter().any(|&length| length > 1);
    if !shapes.iter().filter(begins).any(goes_deeper) {
        let deep = shapes.iter().filter(|shape| goes_deeper(shape));
        let words: Vec<&str> = deep.filter_map(Shape::first_literal).collect();
        let hint = match nearest(of, words.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {}", listed(words.iter().copied())),
        };
        let message = format!("{name} stands for {of:?}, below which nothing can be locked");
        return Some((word.at.clone(), message, hint));
    }
    let taken = shapes.iter().find_map(|shape| match &shape.segments.first()?.kind {
        SegmentKind::Literal(literal) => (literal == name).then(|| literal.clone()),
        SegmentKind::Variable(variable) => Some(format!("{{{}}}", variable.name)),
    });
    if let Some(taken) = taken {
        let message = format!("{name} could also be {taken}, with which a path begins");
        return Some((alias.at.clone(), message, "choose another word".to_owned()));
    }
    let other = known.iter().find(|(_, word)| word.as_str() == of);
    other.map(|(other, _)| {
        let message = format!("{of} is called {other} already");
        (alias.at.clone(), message, "keep one alias for each word".to_owned())
    })
}

/// A lock is found in conflict with another by going up from it, so every step must be declared.
fn check_parents(paths: &[(Pattern, Text<'_>)], report: &mut Report<'_>) {
    let shapes: Vec<Shape> = paths.iter().map(|(path, _)| Shape::of(path)).collect();
    let declared = |segments: &[Segment]| {
        shapes.iter().any(|shape| {
            shape.lengths.contains(&segments.len())
                && same(&shape.segments[..segments.len()], segments)
        })
    };
    for (shape, (path, text)) in shapes.iter().zip(paths) {
        for &length in &shape.lengths {
            let parent = &shape.segments[..length - 1];
            if parent.is_empty() || declared(parent) {
                continue;
            }
            let parent = parent.iter().map(|s| s.text.as_str()).collect::<Vec<_>>().join(":");
            let message =
                format!("the parent of {path}, which is {parent}, is not among the paths");
            let hint =
                format!("add {parent:?} to paths; variables must have the same names in both");
            report.error("lock-parent", text.at.clone(), message, hint);
        }
    }
}

fn same(one: &[Segment], other: &[Segment]) -> bool {
    let kind = |segment: &Segment| -> SegmentKind { segment.kind.clone() };
    one.iter().map(kind).eq(other.iter().map(kind))
}
