//! A key pattern that changes.

use std::collections::BTreeMap;

use keyward_key::Variable;

use super::{Migration, Source, Verdict};
use crate::Space;
use crate::property::Property;
use crate::shape::{Segment, SegmentKind, Shape};

/// What the change of a space's key means; nothing, if it does not change.
pub(super) fn compare(old: &Space, new: &Space) -> Option<Verdict> {
    if old.key == new.key {
        return None;
    }
    let (before, after) = (Shape::of(&old.key), Shape::of(&new.key));
    let both = before.segments.len().min(after.segments.len());
    let differing: Vec<usize> =
        (0..both).filter(|&at| !alike(&before.segments[at], &after.segments[at])).collect();
    if differing.is_empty() {
        return Some(lengths(&before, &after));
    }
    if before.lengths == after.lengths
        && let [at] = differing[..]
        && let (Some(from), Some(to)) =
            (before.segments[at].literal(), after.segments[at].literal())
    {
        let (space, from, to) = (new.name.clone(), from.to_owned(), to.to_owned());
        let migration = Migration::RenameSegment { space, from, to };
        return Some(Verdict::NeedsMigration { migration });
    }
    Some(rekey(old, new, &before, &after))
}

/// Whether two segments hold the same in a key: variables may be called differently.
fn alike(one: &Segment, other: &Segment) -> bool {
    match (&one.kind, &other.kind) {
        (SegmentKind::Literal(a), SegmentKind::Literal(b)) => a == b,
        (SegmentKind::Variable(a), SegmentKind::Variable(b)) => a.kind == b.kind,
        _ => false,
    }
}

/// The segments are the same; only how many of them a key may have can differ.
fn lengths(before: &Shape, after: &Shape) -> Verdict {
    let lost = before.lengths.iter().find(|length| !after.lengths.contains(length));
    let Some(lost) = lost else {
        return Verdict::Compatible;
    };
    let key: Vec<&str> = before.segments[..*lost].iter().map(|s| s.text.as_str()).collect();
    let why = format!("keys such as {} would match no pattern any more", key.join(":"));
    Verdict::Incompatible { why }
}

fn rekey(old: &Space, new: &Space, before: &Shape, after: &Shape) -> Verdict {
    let variables = |shape: &Shape| -> Vec<Variable> {
        shape.segments.iter().filter_map(|segment| segment.variable().cloned()).collect()
    };
    let (old_variables, new_variables) = (variables(before), variables(after));
    let mut sources = BTreeMap::new();
    for variable in &new_variables {
        let Some(source) = source(variable, &old_variables, old) else {
            let why = format!(
                "nothing says what {{{}}} shall be: neither the old key nor the value has it",
                variable.name
            );
            return Verdict::Incompatible { why };
        };
        sources.insert(variable.name.clone(), source);
    }
    let kept = |name: &str| sources.values().any(|s| *s == Source::Variable(name.to_owned()));
    if let Some(lost) = old_variables.iter().find(|variable| !kept(&variable.name)) {
        let why = format!("records that differ in {{{}}} only would become one", lost.name);
        return Verdict::Incompatible { why };
    }
    let migration = Migration::Rekey {
        space: new.name.clone(),
        from: old.key.to_string(),
        to: new.key.to_string(),
        sources,
    };
    Verdict::NeedsMigration { migration }
}

/// Where the value of a variable comes from: the old variable of that name, or a field called like
/// it, with or without `id` at the end.
fn source(variable: &Variable, old_variables: &[Variable], old: &Space) -> Option<Source> {
    if old_variables.iter().any(|old| old.name == variable.name) {
        return Some(Source::Variable(variable.name.clone()));
    }
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let stem = |name: &str| {
        let plain = plain(name);
        plain.strip_suffix("id").filter(|s| !s.is_empty()).map_or(plain.clone(), str::to_owned)
    };
    let fields = Property::root(old.value.as_ref()?.definition()).fields();
    let found = fields.into_iter().find(|(name, _)| stem(name) == stem(&variable.name));
    found.map(|(name, _)| Source::Field(name.to_owned()))
}
