//! Google's `generateContent`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::wire::{Call, Dialect};
use crate::{Answer, Finish, Result, Usage};

pub(crate) struct Gemini;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Generated {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Tokens,
    #[serde(default)]
    model_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    content: Content,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Content {
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: String,
    /// What the model thought, which is not for readers.
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    prompt_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

impl Dialect for Gemini {
    const NAME: &'static str = "gemini";
    const BASE_URL: &'static str = "https://generativelanguage.googleapis.com/v1beta";

    fn path(model: &str) -> Vec<String> {
        let model = model.strip_prefix("models/").unwrap_or(model);
        vec!["models".to_owned(), format!("{model}:generateContent")]
    }

    fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect()
    }

    fn body(call: &Call<'_>) -> Value {
        let texts = |text: &str| json!([{ "text": text }]);
        let mut config = json!({ "maxOutputTokens": call.output_tokens_max() });
        if call.form.temperature {
            config["temperature"] = 0.into();
        }
        if call.request.schema.is_some() {
            config["responseMimeType"] = "application/json".into();
        }
        if let Some(schema) = call.schema() {
            config["responseJsonSchema"] = schema.clone();
        }
        let mut body = json!({
            "contents": [{ "role": "user", "parts": texts(&call.request.prompt) }],
            "generationConfig": config,
        });
        if !call.request.system.is_empty() {
            body["systemInstruction"] = json!({ "parts": texts(&call.request.system) });
        }
        body
    }

    fn answer(body: &[u8]) -> Result<Answer, String> {
        let said: Generated = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let tokens = said.usage_metadata;
        let usage = Usage {
            input_tokens: tokens.prompt_token_count,
            output_tokens: tokens
                .candidates_token_count
                .saturating_add(tokens.thoughts_token_count),
        };
        let answer = |text, finish| Answer { text, finish, usage, model: said.model_version };
        if let Some(reason) = said.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Ok(answer(reason, Finish::Refused));
        }
        let candidate = said.candidates.into_iter().next().ok_or("it has no candidates")?;
        let parts = candidate.content.parts.into_iter().filter(|part| !part.thought);
        let text = parts.map(|part| part.text).collect();
        match candidate.finish_reason.as_deref() {
            Some("STOP") => Ok(answer(text, Finish::Complete)),
            Some("MAX_TOKENS") => Ok(answer(text, Finish::Truncated)),
            Some(
                reason @ ("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"),
            ) => Ok(answer(reason.to_owned(), Finish::Refused)),
            reason => Err(format!("it ended with the reason {reason:?}")),
        }
    }
}
