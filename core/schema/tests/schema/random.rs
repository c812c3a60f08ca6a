//! Random schemas: nothing panics, and what is called compatible is.

use fastrand::Rng;
use keyward_schema::{EXAMPLE, Schema, ValueSchema, Verdict, diff, docs_page, lint};
use keyward_testkit::{Replay, Test, seeds};
use serde_json::{Map, Value, json};

use crate::schema;

const PACKAGE: &str = "keyward-schema";

/// The example with some of its pieces missing, doubled, swapped or replaced.
fn damaged(rng: &mut Rng) -> String {
    const PIECES: [&str; 16] = [
        "\"", "'", "[", "]", "{", "}", "=", ":", "\n", ".", "1", "true", "학칙", "{user}", "[]",
        "\\",
    ];
    let mut text: Vec<char> = EXAMPLE.chars().collect();
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..text.len());
        let length = rng.usize(..20).min(text.len() - at);
        match rng.u8(..4) {
            0 => drop(text.drain(at..at + length)),
            1 => {
                let copy: Vec<char> = text[at..at + length].to_vec();
                text.splice(at..at, copy);
            }
            2 => {
                let piece = rng.choice(PIECES).unwrap_or_default();
                text.splice(at..at + length.min(3), piece.chars());
            }
            _ => {
                let other = rng.usize(..text.len());
                text.swap(at, other);
            }
        }
    }
    text.into_iter().collect()
}

#[test]
fn damaged_schemas_are_read_or_refused_but_never_fatal() {
    let test = Test {
        package: PACKAGE,
        path: "schema::random::damaged_schemas_are_read_or_refused_but_never_fatal",
    };
    let original = schema(EXAMPLE);
    let mut refused = 0;
    let seeds = seeds(400, 50_000);
    for &seed in &seeds {
        let mut replay = Replay::new(test, seed);
        let text = damaged(&mut Rng::with_seed(seed));
        replay.step(text.clone());
        match Schema::parse(&text, "schema.toml") {
            Ok(schema) => {
                lint(&schema);
                assert!(docs_page(&schema).starts_with("# Key schema"));
                diff(&original, &schema);
                diff(&schema, &original);
            }
            Err(problems) => {
                refused += 1;
                assert!(problems.has_errors(), "{problems}");
                for problem in &problems {
                    let lines = text.split('\n').count();
                    assert!((1..=lines).contains(&problem.line), "{problem}");
                    assert!(!problem.message.is_empty() && !problem.hint.is_empty(), "{problem}");
                }
            }
        }
    }
    assert!(seeds.len() < 100 || (refused > 0 && refused < seeds.len()), "{refused} were refused");
}

/// A JSON Schema of few words, so that two of them meet often.
fn definition(rng: &mut Rng, depth: usize) -> Value {
    if rng.u8(..12) == 0 {
        return Value::Bool(rng.bool());
    }
    let mut node = Map::new();
    for _ in 0..rng.usize(0..4) {
        let (keyword, value) = keyword(rng, depth);
        node.insert(keyword.to_owned(), value);
    }
    Value::Object(node)
}

fn keyword(rng: &mut Rng, depth: usize) -> (&'static str, Value) {
    const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let one_type = |rng: &mut Rng| json!(rng.choice(TYPES).unwrap_or_default());
    let number = |rng: &mut Rng| json!(rng.i32(0..4));
    let name = |rng: &mut Rng| rng.choice(["a", "b"]).unwrap_or_default();
    let nested = |rng: &mut Rng| if depth == 0 { json!(true) } else { definition(rng, depth - 1) };
    match rng.u8(..19) {
        0..3 => ("type", one_type(rng)),
        3 => ("type", json!([one_type(rng), "null"]).clone()),
        4 => ("enum", json!([value(rng, 1), value(rng, 1), value(rng, 0)])),
        5 => ("const", value(rng, 0)),
        6 => ("minimum", number(rng)),
        7 => ("exclusiveMaximum", number(rng)),
        8 => ("maxLength", number(rng)),
        9 => ("minItems", number(rng)),
        10 => ("maxProperties", number(rng)),
        11 => ("required", json!([name(rng)])),
        12 | 13 => ("properties", json!({name(rng): nested(rng)})),
        14 => ("additionalProperties", nested(rng)),
        15 => ("items", nested(rng)),
        16 => ("uniqueItems", json!(rng.bool())),
        17 => ("pattern", json!(rng.choice(["^a", "b$"]).unwrap_or_default())),
        _ => (
            rng.choice(["anyOf", "allOf", "oneOf", "not", "patternProperties"]).unwrap_or("anyOf"),
            nested(rng),
        ),
    }
}

/// Makes what the keywords want of a nested schema: arrays for some, an object for one.
fn valid_form(node: &mut Value) {
    let Value::Object(keywords) = node else {
        return;
    };
    for (keyword, value) in keywords.iter_mut() {
        match keyword.as_str() {
            "anyOf" | "allOf" | "oneOf" => {
                valid_form(value);
                *value = json!([value.take(), {"type": "string"}]);
            }
            "patternProperties" => {
                valid_form(value);
                *value = json!({"a": value.take()});
            }
            "properties" => {
                value.as_object_mut().into_iter().flat_map(|m| m.values_mut()).for_each(valid_form)
            }
            "items" | "additionalProperties" | "not" => valid_form(value),
            // The same type twice is not allowed.
            "type" if *value == json!(["null", "null"]) => *value = json!(["null"]),
            _ => {}
        }
    }
}

fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i32(0..4)),
        3 => json!(f64::from(rng.i32(0..4)) + 0.5),
        4 => json!(rng.choice(["", "a", "b", "ab", "abcd"]).unwrap_or_default()),
        5 => (0..rng.usize(0..3)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let mut object = Map::new();
            for name in ["a", "b", "c"] {
                if rng.bool() {
                    object.insert(name.to_owned(), value(rng, depth - 1));
                }
            }
            Value::Object(object)
        }
    }
}

/// The same definition, with one of its keywords removed, replaced or added.
fn changed(rng: &mut Rng, definition: &Value) -> Value {
    let mut definition = definition.clone();
    let mut node = &mut definition;
    // Down to some nested schema.
    for _ in 0..rng.usize(0..3) {
        let step = match rng.u8(..3) {
            0 => "/properties/a",
            1 => "/additionalProperties",
            _ => "/items",
        };
        if node.pointer(step).is_some_and(Value::is_object) {
            node = node.pointer_mut(step).expect("it is there");
        }
    }
    if let Value::Object(keywords) = node {
        let names: Vec<String> = keywords.keys().cloned().collect();
        if let Some(name) = rng.choice(names).filter(|_| rng.bool()) {
            keywords.remove(&name);
        }
        if rng.bool() {
            let (name, value) = keyword(rng, 1);
            keywords.insert(name.to_owned(), value);
        }
    }
    definition
}

#[test]
fn values_that_fit_still_fit_after_a_change_that_is_called_compatible() {
    let test = Test {
        package: PACKAGE,
        path: "schema::random::values_that_fit_still_fit_after_a_change_that_is_called_compatible",
    };
    let mut tried = 0;
    let seeds = seeds(3_000, 300_000);
    for &seed in &seeds {
        let mut replay = Replay::new(test, seed);
        let mut rng = Rng::with_seed(seed);
        let mut old = definition(&mut rng, 2);
        let mut new =
            if rng.u8(..4) == 0 { definition(&mut rng, 2) } else { changed(&mut rng, &old) };
        valid_form(&mut old);
        valid_form(&mut new);
        replay.step(format!("{old} then {new}"));
        let (Ok(old), Ok(new)) = (ValueSchema::new(old), ValueSchema::new(new)) else {
            continue;
        };
        let with = |value: &ValueSchema| {
            let mut schema = schema("[stores.a]\n[spaces.s]\nkey = 's'\nownership = 'shared'\n");
            schema.spaces[0].value = Some(value.clone());
            schema
        };
        let found = diff(&with(&old), &with(&new));
        replay.step(found.to_string());
        if !found.changes.iter().all(|change| change.verdict == Verdict::Compatible) {
            continue;
        }
        for _ in 0..60 {
            let value = value(&mut rng, 2);
            if old.mismatches(&value).is_empty() {
                tried += 1;
                let mismatches = new.mismatches(&value);
                assert!(mismatches.is_empty(), "{value} fits no more: {mismatches:?}");
            }
        }
    }
    assert!(seeds.len() < 100 || tried > 1_000, "only {tried} values were tried");
}
