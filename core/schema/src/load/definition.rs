//! What values look like: a JSON Schema as a table of the schema file, or in a file beside it.

use std::path::{Component, Path};

use serde_json::{Map, Number, Value};
use toml::de::DeValue;

use super::read_bounded;
use super::report::Report;
use super::table::{Item, Text, as_integer, pointed, wrong_type};
use crate::ValueSchema;
use crate::problem::{Problem, Severity};

/// Reads the `value` of a space. What is wrong is told, and then nothing is given.
pub(super) fn read(
    item: Item<'_, '_>,
    folder: Option<&Path>,
    report: &mut Report<'_>,
) -> Option<ValueSchema> {
    match item.get_ref() {
        DeValue::String(file) => from_file(&Text { text: file, at: item.span() }, folder, report),
        DeValue::Table(_) | DeValue::Boolean(_) => from_table(item, report),
        _ => {
            let hint = "write a JSON Schema as a table, or the name of a file with one";
            wrong_type("value", item, "a JSON Schema", hint, report);
            None
        }
    }
}

fn from_table(item: Item<'_, '_>, report: &mut Report<'_>) -> Option<ValueSchema> {
    let definition = json(item, report)?;
    match ValueSchema::compile(definition) {
        Ok(schema) => Some(schema),
        Err(faults) => {
            for fault in faults {
                report.error(
                    "value-schema",
                    pointed(item, &fault.pointer),
                    format!("this is not a JSON Schema: {}", fault.message),
                    "see https://json-schema.org for what a schema may say",
                );
            }
            None
        }
    }
}

fn from_file(
    name: &Text<'_>,
    folder: Option<&Path>,
    report: &mut Report<'_>,
) -> Option<ValueSchema> {
    let beside = Path::new(name.text).components().all(|c| matches!(c, Component::Normal(_)));
    if !beside || name.text.is_empty() {
        let message = format!("{:?} does not lie beside or below the schema file", name.text);
        let hint = "write a relative path without .., such as \"note.schema.json\"";
        report.error("value-file", name.at.clone(), message, hint);
        return None;
    }
    let Some(folder) = folder else {
        let message =
            format!("{:?} cannot be found: this schema is a text without a folder", name.text);
        let hint = "load the schema from its file, or write the JSON Schema here as a table";
        report.error("value-file", name.at.clone(), message, hint);
        return None;
    };
    let path = folder.join(name.text);
    let text = match read_bounded(&path) {
        Ok(text) => text,
        Err(problem) => {
            let message = format!("{}: {}", name.text, problem.message);
            report.error("value-file", name.at.clone(), message, problem.hint);
            return None;
        }
    };
    let file = path.display().to_string();
    let definition: Value = match serde_json::from_str(&text) {
        Ok(definition) => definition,
        Err(error) => {
            let place = format!(" at line {} column {}", error.line(), error.column());
            let message = error.to_string().replace(&place, "");
            report.error_in(Problem {
                line: error.line(),
                // Zero is the end of the line before.
                column: error.column().max(1),
                file,
                ..Problem::placeless(
                    "value-file",
                    Severity::Error,
                    format!("this is not JSON: {message}"),
                    "mend the file; it holds one JSON Schema".to_owned(),
                )
            });
            return None;
        }
    };
    match ValueSchema::compile(definition) {
        Ok(schema) => Some(schema),
        Err(faults) => {
            for fault in faults {
                let place = if fault.pointer.is_empty() { "the root" } else { &fault.pointer };
                report.error_in(Problem {
                    file: file.clone(),
                    ..Problem::placeless(
                        "value-schema",
                        Severity::Error,
                        format!("this is not a JSON Schema, at {place}: {}", fault.message),
                        "see https://json-schema.org for what a schema may say".to_owned(),
                    )
                });
            }
            None
        }
    }
}

/// The JSON that a TOML value stands for. TOML's depth is bounded by its parser.
fn json(item: Item<'_, '_>, report: &mut Report<'_>) -> Option<Value> {
    match item.get_ref() {
        DeValue::String(text) => Some(Value::String(text.to_string())),
        DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
        DeValue::Integer(_) => as_integer(item.get_ref()).map(Value::from).or_else(|| {
            no_json(item, "the number has more than 64 bits", report);
            None
        }),
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(Number::from_f64);
            if number.is_none() {
                no_json(item, "JSON has no such number", report);
            }
            number.map(Value::Number)
        }
        DeValue::Datetime(_) => {
            no_json(item, "JSON has no times; write it as text", report);
            None
        }
        DeValue::Array(array) => {
            let elements: Vec<Option<Value>> = array.iter().map(|e| json(e, report)).collect();
            elements.into_iter().collect::<Option<Vec<Value>>>().map(Value::Array)
        }
        DeValue::Table(table) => {
            let fields: Vec<Option<(String, Value)>> = table
                .iter()
                .map(|(name, item)| Some((name.get_ref().to_string(), json(item, report)?)))
                .collect();
            fields.into_iter().collect::<Option<Map<String, Value>>>().map(Value::Object)
        }
    }
}

fn no_json(item: Item<'_, '_>, why: &str, report: &mut Report<'_>) {
    let message = format!("this cannot stand in a JSON Schema: {why}");
    report.error("value-schema", item.span(), message, "write what JSON can say");
}
