//! The fields of an index, and what their values are.

use std::collections::BTreeSet;

use toml::de::DeValue;

use super::field::{self, Described, Surroundings};
use super::report::Report;
use super::table::{Table, Text, as_text, as_word, wrong_type};
use crate::bounds::FIELDS_MAX;
use crate::nearest::{listed, nearest};
use crate::property::{JsonType, Property};
use crate::{FieldPath, Part, ValueKind};

const KINDS: [(&str, ValueKind); 6] = [
    ("text", ValueKind::Text),
    ("folded", ValueKind::Folded),
    ("integer", ValueKind::Integer),
    ("number", ValueKind::Number),
    ("time", ValueKind::Time),
    ("bool", ValueKind::Bool),
];

/// Reads the fields of an index of values. Everything wrong is told, and then nothing is given.
pub(super) fn read_all(
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Vec<Part>> {
    let fields = fields(table, report)?;
    let kinds = kinds(table, &fields, report);
    let multi = multi(table, &fields, report);
    let (kinds, multi) = (kinds?, multi?);
    let parts: Vec<Option<Part>> = fields
        .iter()
        .zip(kinds)
        .map(|((path, text), kind)| {
            let multi = multi.as_ref() == Some(path);
            let kind = resolve(path, text, kind, multi, surroundings, report)?;
            Some(Part { field: path.clone(), kind, multi })
        })
        .collect();
    parts.into_iter().collect()
}

/// Reads the one field of a time index.
pub(super) fn read_time(
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Part> {
    if table.item("field").is_none() {
        table.missing("field", "name the field with the time, as in field = \"createdAt\"", report);
    }
    let text = table.text("field", "field = \"createdAt\"", report)?;
    let path = field::path(&text, report)?;
    let kind = resolve(&path, &text, Some(ValueKind::Time), false, surroundings, report)?;
    Some(Part { field: path, kind, multi: false })
}

/// Types as a sentence has them: `string or null`.
pub(super) fn spoken(types: &BTreeSet<JsonType>) -> String {
    let names: Vec<String> = types.iter().map(ToString::to_string).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(" or ") }
}

type Field<'d> = (FieldPath, Text<'d>);

fn fields<'d>(table: &Table<'d, '_>, report: &mut Report<'_>) -> Option<Vec<Field<'d>>> {
    const HINT: &str = "write field = \"title\", or fields = [\"status\", \"dueAt\"]";
    let texts = match (table.item("field"), table.item("fields")) {
        (Some(_), Some(_)) => {
            table.without(&["fields"], "there is a field already", HINT, report);
            return None;
        }
        (None, None) => {
            table.missing("field", HINT, report);
            return None;
        }
        (Some(_), None) => vec![table.text("field", "field = \"title\"", report)?],
        (None, Some(_)) => {
            table.texts("fields", FIELDS_MAX, "fields = [\"status\", \"dueAt\"]", report)?
        }
    };
    if texts.is_empty() {
        report.error("field", table.key_at("fields"), "an index is over at least one field", HINT);
        return None;
    }
    let mut fields: Vec<Field<'d>> = Vec::new();
    let mut right = true;
    for text in texts {
        match field::path(&text, report) {
            Some(path) if fields.iter().any(|(known, _)| *known == path) => {
                let message = format!("{path} stands here twice");
                report.error("field", text.at, message, "leave one of them out");
                right = false;
            }
            Some(path) => fields.push((path, text)),
            None => right = false,
        }
    }
    right.then_some(fields)
}

/// What is said about each field's values, in the order of the fields.
fn kinds(
    table: &Table<'_, '_>,
    fields: &[Field<'_>],
    report: &mut Report<'_>,
) -> Option<Vec<Option<ValueKind>>> {
    const HINT: &str = "write types = { status = \"text\", dueAt = \"time\" }";
    if table.item("types").is_some() {
        table.without(&["type"], "there are types already", HINT, report);
        return types(table, fields, HINT, report);
    }
    if table.item("type").is_none() {
        return Some(vec![None; fields.len()]);
    }
    if fields.len() > 1 {
        table.without(&["type"], "it does not say for which of the fields", HINT, report);
        return None;
    }
    table.word("type", &KINDS, report).map(|kind| vec![Some(kind)])
}

fn types(
    table: &Table<'_, '_>,
    fields: &[Field<'_>],
    hint: &str,
    report: &mut Report<'_>,
) -> Option<Vec<Option<ValueKind>>> {
    let item = table.item("types")?;
    let Some(types) = item.get_ref().as_table() else {
        wrong_type("types", item, "a table", hint, report);
        return None;
    };
    let mut kinds = vec![None; fields.len()];
    let mut right = true;
    for (name, item) in Table::new("types", item.span(), types).entries() {
        let at = fields.iter().position(|(_, text)| text.text == name.get_ref());
        let Some(at) = at else {
            let known = || fields.iter().map(|(_, text)| text.text);
            let hint = match nearest(name.get_ref(), known()) {
                Some(field) => format!("did you mean {field:?}?"),
                None => format!("the index is over {}; quote names with dots", listed(known())),
            };
            let message = format!("the index has no field {:?}", name.get_ref());
            report.error("unknown-field", name.span(), message, hint);
            right = false;
            continue;
        };
        let word = as_text("type", item, "\"text\"", report);
        kinds[at] = word.and_then(|word| as_word("type", &word, &KINDS, report));
        right &= kinds[at].is_some();
    }
    right.then_some(kinds)
}

/// The field whose elements are indexed one by one, if there is one.
fn multi(
    table: &Table<'_, '_>,
    fields: &[Field<'_>],
    report: &mut Report<'_>,
) -> Option<Option<FieldPath>> {
    let Some(item) = table.item("multi") else {
        return Some(None);
    };
    match (item.get_ref(), fields) {
        (DeValue::Boolean(false), _) => Some(None),
        (DeValue::Boolean(true), [(only, _)]) => Some(Some(only.clone())),
        (DeValue::Boolean(true), _) => {
            let message = "multi does not say which of the fields holds an array";
            let hint =
                format!("name it: multi = {:?}", fields.last().map_or("tags", |(_, t)| t.text));
            report.error("multi", item.span(), message, hint);
            None
        }
        (DeValue::String(name), _) => {
            let found = fields.iter().find(|(_, text)| text.text == name.as_ref());
            if found.is_none() {
                let known = || fields.iter().map(|(_, text)| text.text);
                let hint = match nearest(name, known()) {
                    Some(field) => format!("did you mean {field:?}?"),
                    None => format!("the index is over {}", listed(known())),
                };
                let message = format!("the index has no field {:?}", name.as_ref());
                report.error("unknown-field", item.span(), message, hint);
            }
            found.map(|(path, _)| Some(path.clone()))
        }
        (DeValue::Array(_), _) => {
            let message = "only one field of an index can hold an array: with two, every pair of \
                           their elements would be an entry";
            let hint = "make an index for each of them";
            report.error("multi", item.span(), message, hint);
            None
        }
        _ => {
            let hint = "write multi = true, or multi = \"tags\"";
            wrong_type("multi", item, "true or a field", hint, report);
            None
        }
    }
}

/// What a field's values are: as it is said, if the value's schema agrees, or as the schema says.
fn resolve(
    path: &FieldPath,
    text: &Text<'_>,
    said: Option<ValueKind>,
    multi: bool,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<ValueKind> {
    let described = surroundings.described(path, text, report);
    let property = match described {
        Some(property) => element(path, text, property, multi, report)?,
        None => None,
    };
    let types = property.and_then(Property::types_but_null);
    let format = property.and_then(|property| property.text("format"));
    match (said, types) {
        (Some(kind), Some(types)) => {
            check(path, text, kind, &types, format, report);
            Some(kind)
        }
        (Some(kind), None) => Some(kind),
        (None, Some(types)) => {
            let kind = derived(&types, format);
            if kind.is_none() {
                let message = format!("{path} holds {}, so its type must be said", spoken(&types));
                report.error("index-type", text.at.clone(), message, type_hint());
            }
            kind
        }
        // Told already: the schema is wrong, or has no such field.
        (None, None) if matches!(surroundings.value, Described::Wrongly) => None,
        (None, None) if described.is_none() && is_absent(path, surroundings) => None,
        (None, None) => {
            let message = format!("the value's schema does not say what {path} is");
            report.error("index-type", text.at.clone(), message, type_hint());
            None
        }
    }
}

fn is_absent(path: &FieldPath, surroundings: &Surroundings<'_>) -> bool {
    matches!(surroundings.look_up(path), crate::property::Lookup::Absent { .. })
}

fn type_hint() -> String {
    format!("write type, one of {}", listed(KINDS.iter().map(|(word, _)| *word)))
}

/// What is indexed of a field: itself, or with `multi` its elements. The outer nothing is an error
/// that was told, the inner one a schema that does not say.
fn element<'s>(
    path: &FieldPath,
    text: &Text<'_>,
    property: Property<'s>,
    multi: bool,
    report: &mut Report<'_>,
) -> Option<Option<Property<'s>>> {
    let types = property.types_but_null();
    let array = types.as_ref().map(|types| types.contains(&JsonType::Array));
    match (multi, array) {
        (true, Some(false)) => {
            let message = format!(
                "{path} holds {}, but multi is for arrays",
                types.as_ref().map_or_else(String::new, spoken)
            );
            report.error("multi", text.at.clone(), message, "leave multi out");
            None
        }
        (true, _) => Some(property.elements()),
        (false, Some(true)) => {
            let message = format!("{path} holds an array");
            let hint = format!("write multi = {:?} to index each of its elements", text.text);
            report.error("multi", text.at.clone(), message, hint);
            None
        }
        (false, _) => Some(Some(property)),
    }
}

fn derived(types: &BTreeSet<JsonType>, format: Option<&str>) -> Option<ValueKind> {
    let types: Vec<JsonType> = types.iter().copied().collect();
    Some(match types[..] {
        [JsonType::String] if format == Some("date-time") => ValueKind::Time,
        [JsonType::String] => ValueKind::Text,
        [JsonType::Integer] => ValueKind::Integer,
        [JsonType::Number] | [JsonType::Integer, JsonType::Number] => ValueKind::Number,
        [JsonType::Boolean] => ValueKind::Bool,
        _ => return None,
    })
}

fn check(
    path: &FieldPath,
    text: &Text<'_>,
    kind: ValueKind,
    types: &BTreeSet<JsonType>,
    format: Option<&str>,
    report: &mut Report<'_>,
) {
    let fits = |found: &JsonType| match kind {
        ValueKind::Text | ValueKind::Folded | ValueKind::Time => *found == JsonType::String,
        ValueKind::Integer => *found == JsonType::Integer,
        ValueKind::Number => matches!(found, JsonType::Integer | JsonType::Number),
        ValueKind::Bool => *found == JsonType::Boolean,
    };
    let word = KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(word, _)| word);
    if types.is_empty() || !types.iter().all(fits) {
        let message = format!("{path} holds {}, which {word} entries cannot be", spoken(types));
        let hint = match derived(types, format) {
            Some(right) => {
                let right = KINDS.iter().find(|(_, known)| *known == right);
                format!("write type = {:?}, or leave type out", right.map_or("", |(word, _)| word))
            }
            None => "change the value's schema, or index another field".to_owned(),
        };
        report.error("type-mismatch", text.at.clone(), message, hint);
    } else if kind == ValueKind::Time && format != Some("date-time") {
        let message = format!("the value's schema does not say that {path} is a time");
        let hint =
            "add format = \"date-time\" there, so that other text is refused when it is written";
        report.warning("time-format", text.at.clone(), message, hint);
    }
}
