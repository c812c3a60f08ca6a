//! OpenAI's chat completions, and what speaks like them: vLLM, llama.cpp, LM Studio, gateways.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::wire::{Call, Dialect};
use crate::{Answer, Finish, Result, Usage};

pub(crate) struct OpenAi;

#[derive(Deserialize)]
struct Completion {
    model: Option<String>,
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl Dialect for OpenAi {
    const NAME: &'static str = "openai";
    const BASE_URL: &'static str = "https://api.openai.com/v1";

    fn path(_model: &str) -> Vec<String> {
        vec!["chat".to_owned(), "completions".to_owned()]
    }

    fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }

    fn body(call: &Call<'_>) -> Value {
        let request = call.request;
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            messages.push(json!({ "role": "system", "content": request.system }));
        }
        messages.push(json!({ "role": "user", "content": request.prompt }));
        let mut body = json!({ "model": call.model, "messages": messages });
        let limit = if call.form.newer_names { "max_completion_tokens" } else { "max_tokens" };
        body[limit] = call.output_tokens_max().into();
        if call.form.temperature {
            body["temperature"] = 0.into();
        }
        if let Some(schema) = call.schema() {
            let wanted = json!({ "name": "answer", "schema": schema, "strict": is_strict(schema) });
            body["response_format"] = json!({ "type": "json_schema", "json_schema": wanted });
        }
        body
    }

    fn answer(body: &[u8]) -> Result<Answer, String> {
        let said: Completion = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let choice = said.choices.into_iter().next().ok_or("it has no choices")?;
        let (text, finish) = match (choice.message.refusal, choice.finish_reason.as_deref()) {
            (Some(refusal), _) => (refusal, Finish::Refused),
            (None, Some("stop")) => (choice.message.content.unwrap_or_default(), Finish::Complete),
            (None, Some("length")) => {
                (choice.message.content.unwrap_or_default(), Finish::Truncated)
            }
            (None, Some(reason @ "content_filter")) => (reason.to_owned(), Finish::Refused),
            (None, reason) => return Err(format!("it ended with the reason {reason:?}")),
        };
        let tokens = said.usage.unwrap_or_default();
        let usage =
            Usage { input_tokens: tokens.prompt_tokens, output_tokens: tokens.completion_tokens };
        Ok(Answer { text, finish, usage, model: said.model.unwrap_or_default() })
    }
}

/// Whether a schema is one that answers can be held to while they are written: every object is closed
/// and has all its members, and nothing is said that this part of JSON Schema has no words for.
fn is_strict(schema: &Value) -> bool {
    const PLAIN: [&str; 7] = ["type", "enum", "const", "title", "description", "$ref", "required"];
    let Some(schema) = schema.as_object() else { return false };
    let all_strict = |members: &Map<String, Value>| members.values().all(is_strict);
    let is_closed = match schema.get("properties").and_then(Value::as_object) {
        Some(members) => {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = |name| required.is_some_and(|all| all.iter().any(|own| own == name));
            schema.get("additionalProperties") == Some(&Value::Bool(false))
                && members.keys().all(is_required)
                && all_strict(members)
        }
        None => schema.get("type") != Some(&Value::from("object")),
    };
    is_closed
        && schema.iter().all(|(word, said)| match word.as_str() {
            "properties" | "additionalProperties" => true,
            "items" => is_strict(said),
            "anyOf" => said.as_array().is_some_and(|all| all.iter().all(is_strict)),
            "$defs" => said.as_object().is_some_and(all_strict),
            word => PLAIN.contains(&word),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_schemas_that_can_be_kept_to_are_strict() {
        let closed = json!({
            "type": "object",
            "properties": {
                "a": { "type": "array", "items": { "type": "string", "enum": ["x"] } },
                "b": { "anyOf": [{ "$ref": "#/$defs/c" }, { "type": "null" }] },
            },
            "required": ["a", "b"],
            "additionalProperties": false,
            "$defs": { "c": { "type": "integer" } },
        });
        assert!(is_strict(&closed));
        for (at, odd) in [
            ("/additionalProperties", json!(true)),
            ("/required", json!(["a"])),
            ("/properties/a/items", json!({ "type": "string", "minLength": 1 })),
            ("/properties/b", json!({ "type": "object" })),
            ("/$defs/c", json!(true)),
        ] {
            let mut open = closed.clone();
            *open.pointer_mut(at).unwrap() = odd;
            assert!(!is_strict(&open), "{at}");
        }
    }
}
