//! The description of the API: that of the operations, and of the routes that are written by hand.

use keyward_operations::TABLE;
use keyward_operations::facts::{Body, Effect, Facts, Tag};
use keyward_operations::operation::{Declared, Status};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Adds the operations of the table to a description.
pub(super) fn add_operations(api: &mut Value) {
    let settings = SchemaSettings::draft2020_12();
    let mut generator = settings
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    for row in TABLE {
        let operation = operation(row, &mut generator);
        let method = row.facts.method.name().to_ascii_lowercase();
        api["paths"][row.facts.path][method] = operation;
    }
    for (name, schema) in generator.take_definitions(true) {
        api["components"]["schemas"][name] = schema;
    }
    api["tags"] = Tag::ALL
        .iter()
        .map(|tag| json!({ "name": tag.name(), "description": tag.description() }))
        .collect();
}

fn operation(row: &Declared, generator: &mut SchemaGenerator) -> Value {
    let facts = &row.facts;
    let mut request = (row.request)(generator);
    let about = request.remove("description");
    let about = about.as_ref().and_then(Value::as_str).unwrap_or_default();
    let (summary, description) = about.split_once("\n\n").unwrap_or((about, ""));
    let fields = Fields::of(facts, &request);
    let mut operation = json!({
        "operationId": facts.id,
        "summary": one_line(summary),
        "tags": [facts.tag.name()],
        "parameters": fields.parameters,
        "responses": responses(row, generator),
    });
    if !description.is_empty() {
        operation["description"] = one_line(description).into();
    }
    if let Some(body) = fields.body {
        operation["requestBody"] = body;
    }
    operation
}

/// The fields of a request, by where they come from.
struct Fields {
    parameters: Vec<Value>,
    body: Option<Value>,
}

impl Fields {
    fn of(facts: &Facts, request: &Schema) -> Self {
        let none = Map::new();
        let properties = request.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required = request.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
        let mut parameters = Vec::new();
        for name in facts.path_fields() {
            parameters.push(parameter(name, "path", true, &properties[name]));
        }
        let mut members = Map::new();
        for (name, schema) in properties {
            let whole = match facts.body {
                Body::Whole(field) | Body::MergePatch(field) => field == name,
                Body::None | Body::Fields => false,
            };
            if facts.is_in_path(name) || whole {
                continue;
            }
            match (header(name), facts.body) {
                (Some(header), _) => parameters.push(parameter(header, "header", false, schema)),
                (None, Body::Fields) => drop(members.insert(name.clone(), schema.clone())),
                (None, _) => {
                    parameters.push(parameter(name, "query", is_required(name), schema));
                }
            }
        }
        if facts.view {
            let schema = json!({ "type": "string", "enum": ["value", "entry"], "default": "value",
                "description": "Whether the body is the value alone, or an object with the value, its \
                                metadata and its time to live." });
            parameters.push(parameter("view", "query", false, &schema));
        }
        if facts.effect == Effect::Reads && facts.view {
            let schema = json!({ "type": "string",
                "description": "Respond with 304 if the version is this one." });
            parameters.push(parameter("If-None-Match", "header", false, &schema));
        }
        if facts.idempotent {
            let schema = json!({ "type": "string", "maxLength": 255,
                "description": "Sent again with the same key, the request is done once." });
            parameters.push(parameter("Idempotency-Key", "header", false, &schema));
        }
        let body = match facts.body {
            Body::None => None,
            Body::Whole(field) => Some(body("application/json", &properties[field])),
            Body::MergePatch(field) => {
                Some(body("application/merge-patch+json", &properties[field]))
            }
            Body::Fields => {
                let needed: Vec<&String> =
                    members.keys().filter(|name| is_required(name)).collect();
                let schema = json!({ "type": "object", "required": needed, "properties": members,
                    "additionalProperties": false });
                Some(body("application/json", &schema))
            }
        };
        Self { parameters, body }
    }
}

/// The header that a field comes from.
fn header(field: &str) -> Option<&'static str> {
    match field {
        "if_version" => Some("If-Match"),
        "if_absent" => Some("If-None-Match"),
        "lock" => Some("Keyward-Lock"),
        _ => None,
    }
}

fn parameter(name: &str, place: &str, required: bool, schema: &Value) -> Value {
    let mut schema = present(schema);
    let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    let about = about.as_ref().and_then(Value::as_str).unwrap_or_default();
    if place == "header" {
        // A header is text, whatever its field is.
        schema = json!({ "type": "string" });
    }
    let mut parameter =
        json!({ "name": name, "in": place, "required": required, "description": one_line(about) });
    let kind = schema["type"].as_str().unwrap_or_default();
    // In a query, a list is written with commas, and an object as JSON.
    if kind == "array" {
        parameter["explode"] = false.into();
    }
    match kind {
        "object" => parameter["content"] = json!({ "application/json": { "schema": schema } }),
        _ => parameter["schema"] = schema,
    }
    parameter
}

fn body(kind: &str, schema: &Value) -> Value {
    json!({ "required": true, "content": { kind: { "schema": schema } } })
}

/// The schema of a field that is there: what is optional is left out rather than null.
fn present(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(kinds) = schema.get("type").and_then(Value::as_array) {
        let mut kinds = kinds.iter().filter(|kind| *kind != "null");
        if let (Some(kind), None) = (kinds.next().cloned(), kinds.next()) {
            schema["type"] = kind;
        }
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let choice = choices.iter().find(|choice| choice["type"] != "null").cloned();
        if let (Some(Value::Object(choice)), Some(schema)) = (choice, schema.as_object_mut()) {
            schema.remove("anyOf");
            schema.extend(choice);
        }
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.retain(|name, value| !(name == "default" && value.is_null()));
    }
    schema
}

fn responses(row: &Declared, generator: &mut SchemaGenerator) -> Value {
    let schema = (row.response)(generator);
    let mut responses = json!({
        "4XX": problem("A problem with the request: nothing was done."),
        "5XX": problem("A problem of the server or of the store."),
    });
    for status in row.statuses {
        let (code, about) = match status {
            Status::Done => ("200", "Done."),
            Status::Created => ("201", "Created: it was not there before."),
            Status::Empty => ("204", "Done."),
        };
        responses[code] = match status {
            Status::Empty => json!({ "description": about }),
            // The value alone is any JSON.
            _ if row.facts.view && row.facts.effect == Effect::Reads => {
                json!({ "description": about, "content": { "application/json": { "schema": {} } } })
            }
            _ => {
                json!({ "description": about, "content": { "application/json": { "schema": schema } } })
            }
        };
    }
    if row.facts.effect == Effect::Reads && row.facts.view {
        responses["304"] = json!({ "description": "The client has this version." });
    }
    responses
}

fn problem(about: &str) -> Value {
    let schema = json!({ "$ref": "#/components/schemas/Problem" });
    json!({ "description": about, "content": { "application/problem+json": { "schema": schema } } })
}

/// Text that the source breaks into lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
