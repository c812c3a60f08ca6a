//! What a JSON Schema says about the fields of the values it describes.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::FieldPath;

/// The types of JSON values, in the words of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// A part of a JSON Schema: what it says about a value, or about a field of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Property<'s> {
    root: &'s Value,
    node: &'s Value,
    /// Whether the object that the field belongs to must have it.
    pub required: bool,
}

/// What is known about a field.
#[derive(Debug)]
pub(crate) enum Lookup<'s> {
    /// The schema describes it.
    Found(Property<'s>),
    /// The schema lists the fields there are, and it is not among them.
    Absent {
        /// The fields there are, in the object that should have it.
        known: Vec<&'s str>,
    },
    /// The schema does not say.
    Unknown,
}

/// How many parts of a schema are looked at together, by `$ref` and `allOf`.
const VIEWS_MAX: usize = 32;

impl<'s> Property<'s> {
    /// What a schema says about whole values.
    pub fn root(definition: &'s Value) -> Self {
        Self { root: definition, node: definition, required: true }
    }

    pub fn look_up(self, path: &FieldPath) -> Lookup<'s> {
        let mut at = self;
        for name in path.names() {
            match at.field(name) {
                Lookup::Found(property) => at = property,
                other => return other,
            }
        }
        Lookup::Found(at)
    }

    /// The fields that it lists, by name.
    pub fn fields(self) -> Vec<(&'s str, Property<'s>)> {
        let views = self.views();
        let mut fields: Vec<(&str, Property<'_>)> = Vec::new();
        for properties in views.parts.iter().filter_map(|part| part.get("properties")) {
            for (name, node) in properties.as_object().into_iter().flatten() {
                if fields.iter().all(|(known, _)| known != name) {
                    let required = views.requires(name);
                    fields.push((name, Property { root: self.root, node, required }));
                }
            }
        }
        fields.sort_by_key(|(name, _)| *name);
        fields
    }

    /// The types that values may have, if it says so.
    pub fn types(self) -> Option<BTreeSet<JsonType>> {
        let views = self.views();
        let said = views.parts.iter().find_map(|part| match part.get("type")? {
            Value::String(name) => Some(JsonType::named(name).into_iter().collect()),
            Value::Array(names) => {
                Some(names.iter().filter_map(|n| JsonType::named(n.as_str()?)).collect())
            }
            _ => None,
        });
        said.or_else(|| {
            views.parts.iter().find_map(|part| match (part.get("const"), part.get("enum")) {
                (Some(value), _) => Some([JsonType::of(value)].into()),
                (None, Some(Value::Array(values))) => {
                    Some(values.iter().map(JsonType::of).collect())
                }
                _ => None,
            })
        })
    }

    /// The types without null, which an indexed or optional field may always be.
    pub fn types_but_null(self) -> Option<BTreeSet<JsonType>> {
        let mut types = self.types()?;
        types.remove(&JsonType::Null);
        Some(types)
    }

    /// What it says about the elements of an array.
    pub fn elements(self) -> Option<Property<'s>> {
        let views = self.views();
        let node = views.parts.iter().find_map(|part| part.get("items"))?;
        node.is_object().then_some(Property { root: self.root, node, required: true })
    }

    pub fn text(self, keyword: &str) -> Option<&'s str> {
        self.views().parts.iter().find_map(|part| part.get(keyword)?.as_str())
    }

    pub fn keyword(self, keyword: &str) -> Option<&'s Value> {
        self.views().parts.iter().find_map(|part| part.get(keyword))
    }

    fn field(self, name: &str) -> Lookup<'s> {
        let views = self.views();
        let found = views.parts.iter().find_map(|part| part.get("properties")?.get(name));
        if let Some(node) = found {
            let required = views.requires(name);
            return Lookup::Found(Property { root: self.root, node, required });
        }
        if self.types().is_some_and(|types| !types.contains(&JsonType::Object)) {
            return Lookup::Absent { known: Vec::new() };
        }
        // These may describe further fields, and which is not worth finding out.
        const OPEN: [&str; 10] = [
            "anyOf",
            "oneOf",
            "if",
            "then",
            "else",
            "not",
            "patternProperties",
            "dependentSchemas",
            "dependencies",
            "$dynamicRef",
        ];
        let open = views.cut
            || views
                .parts
                .iter()
                .any(|part| OPEN.iter().any(|keyword| part.contains_key(*keyword)));
        let rest: Vec<&Value> = views
            .parts
            .iter()
            .flat_map(|part| [part.get("additionalProperties"), part.get("unevaluatedProperties")])
            .flatten()
            .collect();
        let closed = rest.iter().any(|rest| **rest == Value::Bool(false));
        let listed = views.parts.iter().any(|part| part.contains_key("properties"));
        if open || (!closed && (!rest.is_empty() || !listed)) {
            return Lookup::Unknown;
        }
        Lookup::Absent { known: self.fields().into_iter().map(|(name, _)| name).collect() }
    }

    /// The objects that together say what this property is: itself, what it refers to, and what
    /// all of it must satisfy.
    fn views(self) -> Views<'s> {
        let mut views = Views { parts: Vec::new(), cut: false };
        let mut open = vec![self.node];
        while let Some(node) = open.pop() {
            let Some(part) = node.as_object() else {
                continue;
            };
            if views.parts.len() == VIEWS_MAX {
                views.cut = true;
                break;
            }
            views.parts.push(part);
            match part.get("$ref").and_then(Value::as_str) {
                None => {}
                Some(reference) => match reference.strip_prefix('#') {
                    Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                        open.extend(self.root.pointer(pointer));
                    }
                    _ => views.cut = true,
                },
            }
            open.extend(part.get("allOf").and_then(Value::as_array).into_iter().flatten().rev());
        }
        views
    }
}

struct Views<'s> {
    parts: Vec<&'s Map<String, Value>>,
    /// Whether there is more than `parts` shows.
    cut: bool,
}

impl Views<'_> {
    fn requires(&self, name: &str) -> bool {
        let required = self.parts.iter().filter_map(|part| part.get("required")?.as_array());
        required.flatten().any(|required| required.as_str() == Some(name))
    }
}

impl JsonType {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

impl fmt::Display for JsonType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(definition: &Value, path: &str) -> String {
        match Property::root(definition).look_up(&path.parse().unwrap()) {
            Lookup::Found(property) => match property.types() {
                Some(types) => types.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"),
                None => "anything".to_owned(),
            },
            Lookup::Absent { known } => format!("absent among {}", known.join(",")),
            Lookup::Unknown => "unknown".to_owned(),
        }
    }

    #[test]
    fn fields_are_found_through_references_and_all_of() {
        let definition = json!({
            "properties": {"address": {"$ref": "#/$defs/address"}, "n": {"enum": [1, null]}},
            "allOf": [{"properties": {"title": {"type": "string"}}}],
            "$defs": {"address": {"properties": {"city": {"type": ["string", "null"]}}}},
        });
        assert_eq!(said(&definition, "address.city"), "null|string");
        assert_eq!(said(&definition, "address.town"), "absent among city");
        assert_eq!(said(&definition, "title"), "string");
        assert_eq!(said(&definition, "n"), "null|integer");
        assert_eq!(said(&definition, "x"), "absent among address,n,title");
        assert_eq!(said(&definition, "title.x"), "absent among ");
    }

    #[test]
    fn a_schema_that_leaves_fields_open_says_nothing_about_them() {
        for definition in [
            json!(true),
            json!({}),
            json!({"type": "object"}),
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
            json!({"properties": {"a": {}}, "anyOf": [{}]}),
            json!({"properties": {"a": {}}, "$ref": "#anchor"}),
            json!({"$ref": "#"}),
        ] {
            assert_eq!(said(&definition, "x"), "unknown", "{definition}");
        }
        for definition in [
            json!({"properties": {"a": {}}}),
            json!({"properties": {"a": {}}, "additionalProperties": false}),
        ] {
            assert_eq!(said(&definition, "x"), "absent among a", "{definition}");
        }
        assert_eq!(said(&json!({"additionalProperties": false}), "x"), "absent among ");
    }

    #[test]
    fn a_reference_to_itself_ends() {
        let definition = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert_eq!(said(&definition, "a"), "unknown");
    }
}
