//! What values look like, field by field.

use serde_json::Value;

use super::markdown::{Page, code, row_text};
use crate::ValueSchema;
use crate::property::{JsonType, Property};

/// How deep fields of fields are shown, and how many in all.
const DEPTH_MAX: usize = 4;
const ROWS_MAX: usize = 256;

pub(super) fn write(schema: &ValueSchema, page: &mut Page) {
    let root = Property::root(schema.definition());
    let mut rows = Vec::new();
    add_fields(root, "", 1, &mut rows);
    page.heading(3, "Values");
    if rows.is_empty() {
        page.line(&format!("{}.", capitalized(&described(root))));
        return;
    }
    let cut = rows.len() > ROWS_MAX;
    rows.truncate(ROWS_MAX);
    page.table(&["field", "type", "", "what"], rows);
    if cut {
        page.line(&format!("Further fields are not shown: the table ends after {ROWS_MAX}."));
    }
    if root.keyword("additionalProperties") == Some(&Value::Bool(false)) {
        page.line("There are no other fields.");
    }
}

fn add_fields(object: Property<'_>, before: &str, depth: usize, rows: &mut Vec<Vec<String>>) {
    for (name, property) in object.fields() {
        if rows.len() > ROWS_MAX {
            return;
        }
        let path = format!("{before}{name}");
        rows.push(vec![
            code(&path),
            described(property),
            if property.required { "required" } else { "" }.to_owned(),
            row_text(property.text("description").or_else(|| property.text("title"))),
        ]);
        if depth < DEPTH_MAX {
            add_fields(property, &format!("{path}."), depth + 1, rows);
            if let Some(element) = property.elements() {
                add_fields(element, &format!("{path}[]."), depth + 1, rows);
            }
        }
    }
}

/// The type of a property with its limits: `string (date-time), at most 40 characters`.
fn described(property: Property<'_>) -> String {
    let mut words = vec![type_of(property)];
    let limits = [
        ("minLength", "at least", "characters"),
        ("maxLength", "at most", "characters"),
        ("minimum", "from", ""),
        ("maximum", "to", ""),
        ("minItems", "at least", "elements"),
        ("maxItems", "at most", "elements"),
    ];
    for (keyword, before, unit) in limits {
        if let Some(limit) = property.keyword(keyword).filter(|limit| limit.is_number()) {
            let unit = if limit.as_u64() == Some(1) { unit.trim_end_matches('s') } else { unit };
            words.push(format!("{before} {limit} {unit}").trim_end().to_owned());
        }
    }
    if let Some(pattern) = property.text("pattern") {
        words.push(format!("like {}", code(pattern)));
    }
    words.join(", ")
}

fn type_of(property: Property<'_>) -> String {
    if let Some(values) = property.keyword("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(|value| code(&value.to_string())).collect();
        return format!("one of {}", values.join(", "));
    }
    if let Some(value) = property.keyword("const") {
        return format!("always {}", code(&value.to_string()));
    }
    let Some(types) = property.types() else {
        return "anything".to_owned();
    };
    let format = property.text("format");
    let named: Vec<String> = types
        .iter()
        .map(|kind| match (kind, format, property.elements()) {
            (JsonType::String, Some(format), _) => format!("string ({format})"),
            (JsonType::Array, _, Some(element)) => format!("array of {}", element_type(element)),
            _ => kind.to_string(),
        })
        .collect();
    named.join(" or ")
}

/// Elements of elements are left at the word, so that a schema that holds itself has an end.
fn element_type(element: Property<'_>) -> String {
    let types = element.types().unwrap_or_default();
    let named: Vec<String> = types.iter().map(ToString::to_string).collect();
    if named.is_empty() { "anything".to_owned() } else { named.join(" or ") }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
