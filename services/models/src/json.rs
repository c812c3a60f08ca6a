//! Answers that are JSON.

use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::told;
use crate::frame::Frame;
use crate::{Error, Result};

/// A model is told of so many things that are wrong with its answer.
const FAULTS_MAX: usize = 5;

/// What an answer has to be.
pub(crate) struct Expected(Option<Validator>);

impl Expected {
    pub fn new(schema: Option<&Value>) -> Result<Self> {
        let build = |schema| jsonschema::options().should_validate_formats(true).build(schema);
        let validator = schema.map(build).transpose().map_err(|error| {
            Error::Invalid(format!("the schema is none: {}", told(&error.to_string())))
        })?;
        Ok(Self(validator))
    }

    /// Reads an answer, or says what is wrong with it.
    pub fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, String> {
        let value: Value = serde_json::from_str(unfenced(text))
            .map_err(|error| format!("it is no JSON: {error}"))?;
        if let Some(validator) = &self.0 {
            let faults = validator.iter_errors(&value).take(FAULTS_MAX).map(|fault| {
                let at = fault.instance_path().to_string();
                format!(
                    "at {}: {}",
                    if at.is_empty() { "/" } else { &at },
                    told(&fault.to_string())
                )
            });
            let faults: Vec<_> = faults.collect();
            if !faults.is_empty() {
                return Err(format!("it does not fit the schema: {}", faults.join("; ")));
            }
        }
        serde_json::from_value(value).map_err(|error| {
            format!("it fits the schema, but not what is read: {}", told(&error.to_string()))
        })
    }
}

/// The system's text, with the schema. It stands there besides the provider's own form of it: not every
/// model takes that form, and a model that is held to a schema answers better when it has read it.
pub(crate) fn with_schema(system: &str, schema: &Value) -> String {
    let gap = if system.is_empty() { "" } else { "\n\n" };
    format!(
        "{system}{gap}Answer with one JSON value and nothing else. It fits this JSON Schema:\n{schema}"
    )
}

/// What is asked of a model whose answer could not be used.
pub(crate) fn again(prompt: &str, answer: &str, why: &str) -> String {
    // What is wrong may quote the answer, so it stands in a frame as well.
    let frame = Frame::around(&[prompt, answer, why]);
    let mut text = format!("{prompt}\n\nYou have answered this:\n\n");
    frame.put(answer, &mut text);
    text.push_str("\n\nThat answer cannot be used:\n\n");
    frame.put(why, &mut text);
    text.push_str("\n\nAnswer again, with the corrected JSON and nothing else.");
    text
}

/// What is inside the first fence of an answer, if it has one and is not JSON as it is.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let opened = match text.strip_prefix("```") {
        Some(opened) => Some(opened),
        None if text.starts_with(['{', '[', '"']) => None,
        None => text.split_once("\n```").map(|(_, opened)| opened),
    };
    // After the fence comes the name of a language, up to the end of the line.
    let Some((_, inside)) = opened.and_then(|opened| opened.split_once('\n')) else { return text };
    inside.rsplit_once("```").map_or(inside, |(inside, _)| inside).trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fences_are_tolerated_and_fences_inside_texts_kept() {
        for text in [
            "{\"a\":\"```\\nx\\n```\"}",
            " \n{\"a\":\"```\\nx\\n```\"}\n",
            "```json\n{\"a\":\"```\\nx\\n```\"}\n```",
            "```\r\n{\"a\":\"```\\nx\\n```\"}\r\n```\r\n",
            "Here it is:\n```json\n{\"a\":\"```\\nx\\n```\"}\n```\nAnything else?",
        ] {
            let read: Value = Expected(None).read(text).unwrap();
            assert_eq!(read, json!({ "a": "```\nx\n```" }), "{text}");
        }
        for text in ["", "```", "```json", "```json\n```", "no", "{\"a\":1", "{} {}"] {
            assert!(Expected(None).read::<Value>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_in_few_words() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let expected = Expected::new(Some(&schema)).unwrap();
        let why = expected.read::<Value>(r#"{"n":"x"}"#).unwrap_err();
        assert!(why.starts_with("it does not fit the schema: at /n: "), "{why}");
        let why = expected.read::<Value>(&format!("\"{}\"", "x".repeat(100_000))).unwrap_err();
        assert!(why.len() < 1_000, "{why}");
        assert!(expected.read::<Vec<u8>>("{}").unwrap_err().starts_with("it fits the schema, but"));
        assert!(Expected::new(Some(&json!({ "type": 7 }))).is_err());
    }

    #[test]
    fn a_schema_that_is_elsewhere_is_refused() {
        let elsewhere = json!({ "$ref": "http://127.0.0.1:9/schema.json" });
        assert!(matches!(Expected::new(Some(&elsewhere)), Err(Error::Invalid(_))));
    }
}
