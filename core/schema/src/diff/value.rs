//! JSON Schemas that change: whether values that satisfied the old one satisfy the new one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Migration, Verdict};
use crate::property::JsonType;
use crate::{Space, ValueSchema};

/// What the change of a space's value schema means, one line for each keyword that matters.
pub(super) fn compare(
    space: &Space,
    old: Option<&ValueSchema>,
    new: Option<&ValueSchema>,
) -> Vec<(String, Verdict)> {
    let anything = Value::Bool(true);
    let definition = |schema: Option<&ValueSchema>| -> Value {
        schema.map_or(anything.clone(), |schema| schema.definition().clone())
    };
    let (old, new) = (definition(old), definition(new));
    if old == new {
        return Vec::new();
    }
    let mut comparison =
        Comparison { old_root: &old, new_root: &new, followed: BTreeSet::new(), found: Vec::new() };
    comparison.nodes(&old, &new, "values", DEPTH_MAX);
    comparison.found.dedup();
    let verdict = |effect: Effect| match effect {
        Effect::Widened => Verdict::Compatible,
        Effect::Narrowed => {
            let migration = Migration::TransformValues { space: space.name.clone() };
            Verdict::NeedsMigration { migration }
        }
        Effect::Unclear => {
            let why = "run doctor to find the values that do not fit";
            Verdict::CannotTell { why: why.to_owned() }
        }
    };
    comparison.found.into_iter().map(|(message, effect)| (message, verdict(effect))).collect()
}

/// How deep schemas are compared; what lies deeper is unclear.
const DEPTH_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Widened,
    Narrowed,
    Unclear,
}

/// Keywords that say nothing about which values are right.
const ANNOTATIONS: [&str; 12] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$id",
    "$anchor",
    "$defs",
    "definitions",
];

/// Keywords that allow less the larger they are, and those that allow less the smaller they are.
const AT_LEAST: [&str; 5] =
    ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
const AT_MOST: [&str; 5] =
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/// Keywords that allow less when they are there; of two of them, which allows less is not known.
const DEMANDS: [&str; 9] = [
    "pattern",
    "format",
    "multipleOf",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "propertyNames",
];

struct Comparison<'a> {
    old_root: &'a Value,
    new_root: &'a Value,
    /// The references that were followed, so that a schema that holds itself has an end.
    followed: BTreeSet<(&'a str, &'a str)>,
    found: Vec<(String, Effect)>,
}

impl<'a> Comparison<'a> {
    fn add(&mut self, message: impl Into<String>, effect: Effect) {
        self.found.push((message.into(), effect));
    }

    fn nodes(&mut self, old: &'a Value, new: &'a Value, at: &str, depth: usize) {
        if depth == 0 {
            return self.add(format!("{at}: too deep to compare"), Effect::Unclear);
        }
        match (*old == Value::Bool(false), *new == Value::Bool(false)) {
            (true, true) => return,
            (false, true) => {
                return self.add(format!("{at}: nothing is allowed any more"), Effect::Narrowed);
            }
            (true, false) => return self.add(format!("{at}: allowed now"), Effect::Widened),
            (false, false) => {}
        }
        self.types(old, new, at);
        self.choices(old, new, at);
        self.required(old, new, at);
        self.properties(old, new, at, depth);
        self.elements(old, new, at, depth);
        self.references(old, new, at, depth);
        self.bounds(old, new, at);
        self.others(old, new, at);
    }

    fn types(&mut self, old: &Value, new: &Value, at: &str) {
        let (before, after) = (types(old), types(new));
        if before == after {
            return;
        }
        let effect = if before.is_subset(&after) { Effect::Widened } else { Effect::Narrowed };
        let said = |node: &Value| match node.get("type") {
            Some(Value::String(name)) => name.clone(),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            _ => "anything".to_owned(),
        };
        self.add(format!("{at}: {}, before {}", said(new), said(old)), effect);
    }

    /// The values that are listed one by one.
    fn choices(&mut self, old: &Value, new: &Value, at: &str) {
        let (before, after) = (choices(old), choices(new));
        let effect = match (&before, &after) {
            (None, None) => return,
            (Some(_), None) => Effect::Widened,
            (None, Some(_)) => Effect::Narrowed,
            (Some(before), Some(after)) => {
                if before.iter().any(|value| !after.contains(value)) {
                    Effect::Narrowed
                } else if after.iter().any(|value| !before.contains(value)) {
                    Effect::Widened
                } else {
                    return;
                }
            }
        };
        let said = |values: Option<Vec<&Value>>| match values {
            None => "anything".to_owned(),
            Some(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        self.add(format!("{at}: one of {}, before {}", said(after), said(before)), effect);
    }

    fn required(&mut self, old: &Value, new: &Value, at: &str) {
        let (before, after) = (required(old), required(new));
        for name in after.difference(&before) {
            self.add(format!("{}: required now", below(at, name)), Effect::Narrowed);
        }
        for name in before.difference(&after) {
            self.add(format!("{}: required no more", below(at, name)), Effect::Widened);
        }
    }

    fn properties(&mut self, old: &'a Value, new: &'a Value, at: &str, depth: usize) {
        const ANYTHING: &Value = &Value::Bool(true);
        let rest = |node: &'a Value| node.get("additionalProperties").unwrap_or(ANYTHING);
        let (before, after) = (properties(old), properties(new));
        let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        for name in names {
            let path = below(at, name);
            match (before.get(name), after.get(name)) {
                (Some(old), Some(new)) => self.nodes(old, new, &path, depth - 1),
                (None, Some(property)) => match rest(old) {
                    Value::Bool(false) => self.add(format!("{path}: new"), Effect::Widened),
                    _ if says_nothing(property) => {}
                    other if says_nothing(other) => {
                        let message = format!(
                            "{path}: new, and values may already have something else under that name"
                        );
                        self.add(message, Effect::Unclear);
                    }
                    other => self.nodes(other, property, &path, depth - 1),
                },
                (Some(property), None) => match rest(new) {
                    Value::Bool(false) => {
                        self.add(format!("{path}: allowed no more"), Effect::Narrowed);
                    }
                    other if says_nothing(other) => {
                        self.add(format!("{path}: described no more"), Effect::Widened);
                    }
                    other => self.nodes(property, other, &path, depth - 1),
                },
                (None, None) => {}
            }
        }
        if rest(old) != rest(new) {
            let path = format!("{at}, other fields");
            self.nodes(rest(old), rest(new), &path, depth - 1);
        }
    }

    fn elements(&mut self, old: &'a Value, new: &'a Value, at: &str, depth: usize) {
        const ANYTHING: &Value = &Value::Bool(true);
        let items = |node: &'a Value| node.get("items").unwrap_or(ANYTHING);
        let (before, after) = (items(old), items(new));
        // In older drafts an array of schemas, one for each element.
        if before.is_array() || after.is_array() {
            if before != after {
                self.add(format!("{at}: items changes"), Effect::Unclear);
            }
        } else if before != after || before.is_object() {
            self.nodes(before, after, &format!("{at}[]"), depth - 1);
        }
    }

    /// What a reference leads to may change though the reference does not.
    fn references(&mut self, old: &'a Value, new: &'a Value, at: &str, depth: usize) {
        let reference = |node: &'a Value| node.get("$ref").and_then(Value::as_str);
        let target = |root: &'a Value, reference: &str| root.pointer(reference.strip_prefix('#')?);
        let (before, after) = (reference(old), reference(new));
        let (Some(one), Some(other)) = (before, after) else {
            if before != after {
                self.add(format!("{at}: $ref changes"), Effect::Unclear);
            }
            return;
        };
        if !self.followed.insert((one, other)) {
            return;
        }
        match (target(self.old_root, one), target(self.new_root, other)) {
            (Some(old), Some(new)) => self.nodes(old, new, at, depth - 1),
            _ if one == other => {}
            _ => self.add(format!("{at}: $ref changes"), Effect::Unclear),
        }
    }

    fn bounds(&mut self, old: &Value, new: &Value, at: &str) {
        for (keywords, rising) in [(AT_LEAST, true), (AT_MOST, false)] {
            for keyword in keywords {
                let (before, after) = (old.get(keyword), new.get(keyword));
                let effect = match (before, after) {
                    _ if before == after => continue,
                    (Some(_), None) => Effect::Widened,
                    (None, _) => Effect::Narrowed,
                    (Some(before), Some(after)) => match (before.as_f64(), after.as_f64()) {
                        (Some(before), Some(after)) if before == after => continue,
                        (Some(before), Some(after)) if (after > before) == rising => {
                            Effect::Narrowed
                        }
                        (Some(_), Some(_)) => Effect::Widened,
                        _ => Effect::Unclear,
                    },
                };
                self.keyword(keyword, before, after, at, effect);
            }
        }
    }

    /// Every other keyword.
    fn others(&mut self, old: &'a Value, new: &'a Value, at: &str) {
        const DONE: [&str; 8] = [
            "type",
            "enum",
            "const",
            "required",
            "properties",
            "additionalProperties",
            "items",
            "$ref",
        ];
        let done = |keyword: &str| {
            [&DONE[..], &ANNOTATIONS, &AT_LEAST, &AT_MOST]
                .iter()
                .any(|list| list.contains(&keyword))
        };
        let keywords = |node: &'a Value| node.as_object().into_iter().flat_map(|map| map.keys());
        let all: BTreeSet<&String> = keywords(old).chain(keywords(new)).collect();
        for keyword in all.into_iter().filter(|keyword| !done(keyword)) {
            let (before, after) = (old.get(keyword), new.get(keyword));
            let effect = match (before, after, DEMANDS.contains(&keyword.as_str())) {
                (Some(same), _, _) if before == after => {
                    if self.refers_to_changes(same, &mut BTreeSet::new()) {
                        let message = format!("{at}: what {keyword} refers to changes");
                        self.add(message, Effect::Unclear);
                    }
                    continue;
                }
                (Some(_), None, true) => Effect::Widened,
                (None, Some(_), true) => Effect::Narrowed,
                (_, Some(Value::Bool(true)), _) if keyword == "uniqueItems" => Effect::Narrowed,
                _ if keyword == "uniqueItems" => Effect::Widened,
                _ => Effect::Unclear,
            };
            self.keyword(keyword, before, after, at, effect);
        }
    }

    /// Whether something that stands the same in both schemas leads to something that does not.
    fn refers_to_changes(&self, same: &'a Value, seen: &mut BTreeSet<&'a str>) -> bool {
        match same {
            Value::Array(elements) => elements.iter().any(|e| self.refers_to_changes(e, seen)),
            Value::Object(fields) => fields.iter().any(|(name, value)| match value {
                Value::String(reference) if name == "$ref" => {
                    if !seen.insert(reference) {
                        return false;
                    }
                    let pointer = reference.strip_prefix('#');
                    let target =
                        |root: &'a Value| pointer.and_then(|pointer| root.pointer(pointer));
                    match (target(self.old_root), target(self.new_root)) {
                        (Some(old), Some(new)) => old != new || self.refers_to_changes(old, seen),
                        _ => true,
                    }
                }
                _ => self.refers_to_changes(value, seen),
            }),
            _ => false,
        }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        before: Option<&Value>,
        after: Option<&Value>,
        at: &str,
        effect: Effect,
    ) {
        let plain =
            |value: &Value| (!value.is_array() && !value.is_object()).then(|| value.to_string());
        let message = match (before.map(plain), after.map(plain)) {
            (Some(Some(before)), Some(Some(after))) => {
                format!("{at}: {keyword} {after}, before {before}")
            }
            (None, Some(Some(after))) => format!("{at}: {keyword} {after}, before none"),
            (Some(Some(before)), None) => format!("{at}: no {keyword}, before {before}"),
            (None, _) => format!("{at}: {keyword} is new"),
            (_, None) => format!("{at}: {keyword} is gone"),
            _ => format!("{at}: {keyword} changes"),
        };
        self.add(message, effect);
    }
}

/// The path of a field: `values.title`.
fn below(at: &str, name: &str) -> String {
    format!("{at}.{name}")
}

/// The types that a schema allows. Every integer is a number.
fn types(node: &Value) -> BTreeSet<JsonType> {
    const ALL: [JsonType; 7] = [
        JsonType::Null,
        JsonType::Boolean,
        JsonType::Integer,
        JsonType::Number,
        JsonType::String,
        JsonType::Array,
        JsonType::Object,
    ];
    let mut types: BTreeSet<JsonType> = match node.get("type") {
        Some(Value::String(name)) => JsonType::named(name).into_iter().collect(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(|name| JsonType::named(name.as_str()?)).collect()
        }
        _ => ALL.into(),
    };
    if types.contains(&JsonType::Number) {
        types.insert(JsonType::Integer);
    }
    types
}

/// The values that a schema lists, if it does.
fn choices(node: &Value) -> Option<Vec<&Value>> {
    match (node.get("const"), node.get("enum").and_then(Value::as_array)) {
        (Some(only), Some(values)) => Some(values.iter().filter(|value| *value == only).collect()),
        (Some(only), None) => Some(vec![only]),
        (None, Some(values)) => Some(values.iter().collect()),
        (None, None) => None,
    }
}

fn required(node: &Value) -> BTreeSet<&str> {
    let names = node.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn properties(node: &Value) -> BTreeMap<&str, &Value> {
    let properties = node.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, node)| (name.as_str(), node)).collect()
}

/// Whether a schema allows everything.
fn says_nothing(node: &Value) -> bool {
    match node {
        Value::Bool(allowed) => *allowed,
        Value::Object(keywords) => keywords.keys().all(|key| ANNOTATIONS.contains(&key.as_str())),
        _ => false,
    }
}
