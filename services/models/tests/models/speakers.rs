//! What the providers say, as they document it.

use std::time::Duration;

use keyward_models::{Models, Request, Secret, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Reply, Server};

/// A text that must appear nowhere.
pub const KEY: &str = "canary-key-5f1d";
pub const SEED: u64 = 42;

/// One provider's side of the wire.
#[derive(Clone, Copy)]
pub struct Speaker {
    pub provider: &'static str,
    /// An answer with this text, 11 tokens read, 7 written.
    pub good: fn(&str) -> Value,
    pub truncated: fn() -> Value,
    pub refused: fn() -> Value,
    /// An answer that ended for a reason that nobody knows.
    pub odd: fn() -> Value,
    /// A failure with this message.
    pub error: fn(&str) -> Value,
    /// The status of its overload.
    pub overload: u16,
}

pub const ALL: [Speaker; 4] = [
    Speaker {
        provider: "openai",
        good: |text| {
            openai(json!({ "role": "assistant", "content": text, "refusal": null }), "stop")
        },
        truncated: || openai(json!({ "role": "assistant", "content": "{\"n\":" }), "length"),
        refused: || {
            openai(json!({ "role": "assistant", "content": null, "refusal": "I will not" }), "stop")
        },
        odd: || openai(json!({ "role": "assistant", "content": "x" }), "tool_calls"),
        error: |message| json!({ "error": { "message": message, "type": "t", "param": null, "code": null } }),
        overload: 429,
    },
    Speaker {
        provider: "anthropic",
        good: |text| anthropic(text, "end_turn"),
        truncated: || anthropic("{\"n\":", "max_tokens"),
        refused: || anthropic("I will not", "refusal"),
        odd: || anthropic("x", "pause_turn"),
        error: |message| json!({ "type": "error", "error": { "type": "t", "message": message } }),
        overload: 529,
    },
    Speaker {
        provider: "gemini",
        good: |text| gemini(text, "STOP"),
        truncated: || gemini("{\"n\":", "MAX_TOKENS"),
        refused: || json!({ "promptFeedback": { "blockReason": "I will not" }, "usageMetadata": {} }),
        odd: || gemini("x", "OTHER"),
        error: |message| json!({ "error": { "code": 400, "message": message, "status": "S" } }),
        overload: 503,
    },
    Speaker {
        provider: "ollama",
        good: |text| ollama(text, "stop"),
        truncated: || ollama("{\"n\":", "length"),
        // It has no word for it: a model that declines says so in a text of its own.
        refused: || ollama("I will not", "stop"),
        odd: || ollama("", "load"),
        error: |message| json!({ "error": message }),
        overload: 503,
    },
];

fn openai(message: Value, reason: &str) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-1",
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }],
        "usage": { "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 },
    })
}

fn anthropic(text: &str, reason: &str) -> Value {
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served-1",
        "content": [
            { "type": "thinking", "thinking": "hm", "signature": "s" },
            { "type": "text", "text": text },
        ],
        "stop_reason": reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": 6,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 5,
            "output_tokens": 7,
        },
    })
}

fn gemini(text: &str, reason: &str) -> Value {
    let parts = json!([{ "text": "hm", "thought": true }, { "text": text }]);
    json!({
        "candidates": [{
            "content": { "parts": parts, "role": "model" },
            "finishReason": reason,
            "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 11,
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 3,
            "totalTokenCount": 18,
        },
        "modelVersion": "served-1",
        "responseId": "r",
    })
}

fn ollama(text: &str, reason: &str) -> Value {
    json!({
        "model": "served-1",
        "created_at": "2026-01-02T03:04:05Z",
        "message": { "role": "assistant", "content": text },
        "done": true,
        "done_reason": reason,
        "total_duration": 1,
        "prompt_eval_count": 11,
        "eval_count": 7,
    })
}

/// A model of a provider that is a server of the test's.
pub struct Stage {
    pub server: Server,
    pub models: Models,
    _folder: TempDir,
}

impl Speaker {
    pub fn settings(&self, url: &str) -> Settings {
        let settings = json!({ "provider": self.provider, "model": "asked-1", "base_url": url });
        serde_json::from_value(settings).unwrap()
    }

    /// A server that gives these replies.
    pub async fn stage(&self, replies: impl IntoIterator<Item = Reply>) -> Stage {
        self.stage_with(replies, |_| {}).await
    }

    pub async fn stage_with(
        &self,
        replies: impl IntoIterator<Item = Reply>,
        change: impl FnOnce(&mut Settings),
    ) -> Stage {
        let server = Server::start(replies).await;
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        keyward_testkit::write_secret(&key, format!("{KEY}\n")).unwrap();
        let mut settings = self.settings(&server.url);
        settings.api_key = Some(Secret::File(key));
        settings.timeout = Duration::from_secs(20);
        settings.pause_min = Duration::from_millis(1);
        change(&mut settings);
        let models = Models::open(&settings, SEED).unwrap();
        Stage { server, models, _folder: folder }
    }
}

pub fn question() -> Request {
    Request {
        system: "You count.".to_owned(),
        prompt: "How many?".to_owned(),
        ..Request::default()
    }
}

/// A question whose answer is `{"n":3}`, or another number.
pub fn counted() -> Request {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" } },
        "required": ["n"],
        "additionalProperties": false,
    });
    Request { schema: Some(schema), ..question() }
}
