//! Anthropic's messages.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::wire::{Call, Dialect};
use crate::{Answer, Finish, Result, Usage};

pub(crate) struct Anthropic;

#[derive(Deserialize)]
struct Message {
    model: String,
    content: Vec<Block>,
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Tokens,
}

/// A piece of the answer: text, or something that is not for readers, such as a thought.
#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    input_tokens: u64,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: u64,
}

impl Dialect for Anthropic {
    const NAME: &'static str = "anthropic";
    const BASE_URL: &'static str = "https://api.anthropic.com/v1";

    fn path(_model: &str) -> Vec<String> {
        vec!["messages".to_owned()]
    }

    fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", "2023-06-01".to_owned());
        key.map(|key| ("x-api-key", key.to_owned())).into_iter().chain([version]).collect()
    }

    fn body(call: &Call<'_>) -> Value {
        let mut body = json!({
            "model": call.model,
            "max_tokens": call.output_tokens_max(),
            "messages": [{ "role": "user", "content": call.request.prompt }],
        });
        if !call.request.system.is_empty() {
            body["system"] = call.request.system.as_str().into();
        }
        if call.form.temperature {
            body["temperature"] = 0.into();
        }
        if let Some(schema) = call.schema() {
            body["output_config"] =
                json!({ "format": { "type": "json_schema", "schema": schema } });
        }
        body
    }

    fn answer(body: &[u8]) -> Result<Answer, String> {
        let said: Message = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let finish = match said.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence") => Finish::Complete,
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Truncated,
            Some("refusal") => Finish::Refused,
            reason => return Err(format!("it ended with the reason {reason:?}")),
        };
        let texts = said.content.into_iter().filter(|block| block.kind == "text");
        let tokens = said.usage;
        let cached = [tokens.cache_creation_input_tokens, tokens.cache_read_input_tokens];
        let cached = cached.into_iter().flatten().fold(0, u64::saturating_add);
        let usage = Usage {
            input_tokens: tokens.input_tokens.saturating_add(cached),
            output_tokens: tokens.output_tokens,
        };
        let text = texts.map(|block| block.text).collect();
        Ok(Answer { text, finish, usage, model: said.model })
    }
}
