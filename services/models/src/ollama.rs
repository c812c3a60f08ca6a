//! Ollama's chat.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::wire::{Call, Dialect};
use crate::{Answer, Finish, Result, Usage};

pub(crate) struct Ollama;

#[derive(Deserialize)]
struct Chat {
    model: String,
    message: Message,
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: u64,
    #[serde(default)]
    eval_count: u64,
}

#[derive(Deserialize)]
struct Message {
    content: String,
}

impl Dialect for Ollama {
    const NAME: &'static str = "ollama";
    const BASE_URL: &'static str = "http://127.0.0.1:11434";

    fn path(_model: &str) -> Vec<String> {
        vec!["api".to_owned(), "chat".to_owned()]
    }

    fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }

    fn body(call: &Call<'_>) -> Value {
        let mut messages = Vec::new();
        if !call.request.system.is_empty() {
            messages.push(json!({ "role": "system", "content": call.request.system }));
        }
        messages.push(json!({ "role": "user", "content": call.request.prompt }));
        let mut options = json!({ "num_predict": call.output_tokens_max() });
        if call.form.temperature {
            options["temperature"] = 0.into();
        }
        if let Some(context_tokens) = call.context_tokens {
            options["num_ctx"] = context_tokens.into();
        }
        // What does not fit into the window would be left out without a word.
        let mut body = json!({
            "model": call.model,
            "messages": messages,
            "stream": false,
            "truncate": false,
            "shift": false,
            "options": options,
        });
        if let Some(schema) = call.schema() {
            body["format"] = schema.clone();
        }
        body
    }

    fn answer(body: &[u8]) -> Result<Answer, String> {
        let said: Chat = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let finish = match said.done_reason.as_deref() {
            Some("stop") => Finish::Complete,
            Some("length") => Finish::Truncated,
            reason => return Err(format!("it ended with the reason {reason:?}")),
        };
        let usage = Usage { input_tokens: said.prompt_eval_count, output_tokens: said.eval_count };
        Ok(Answer { text: said.message.content, finish, usage, model: said.model })
    }
}
