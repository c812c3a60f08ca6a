//! What is sent to the providers, and what is understood of their answers.

use keyward_engine::{Code, Coded};
use keyward_models::{Error, Request};
use serde_json::{Value, json};

use crate::server::Reply;
use crate::speakers::{ALL, KEY, SEED, Speaker, counted, question};

fn speaker(provider: &str) -> Speaker {
    *ALL.iter().find(|speaker| speaker.provider == provider).unwrap()
}

/// What a provider is sent, first for a text and then for JSON.
async fn sent(provider: &str) -> [crate::server::Seen; 2] {
    let speaker = speaker(provider);
    let good = Reply::Say(200, (speaker.good)(r#"{"n":3}"#));
    let stage = speaker.stage_with([good], |settings| settings.context_tokens = Some(4096)).await;
    stage.models.text(&Request { output_tokens_max: Some(99), ..question() }).await.unwrap();
    stage.models.json::<Value>(&counted()).await.unwrap();
    stage.server.seen().try_into().unwrap_or_else(|_| panic!("two requests"))
}

fn system_with_schema() -> String {
    let schema = counted().schema.unwrap();
    format!(
        "You count.\n\nAnswer with one JSON value and nothing else. It fits this JSON Schema:\n{schema}"
    )
}

#[tokio::test]
async fn openai_is_asked_for_a_chat_completion() {
    let [text, json] = sent("openai").await;
    assert_eq!(text.path, "/chat/completions");
    assert_eq!(text.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(text.header("content-type"), Some("application/json"));
    let messages = |system: &str| {
        json!([
            { "role": "system", "content": system },
            { "role": "user", "content": "How many?" },
        ])
    };
    let expected = json!({
        "model": "asked-1",
        "messages": messages("You count."),
        "temperature": 0,
        "max_completion_tokens": 99,
    });
    assert_eq!(text.body, expected);
    let wanted = json!({ "name": "answer", "strict": true, "schema": counted().schema });
    let expected = json!({
        "model": "asked-1",
        "messages": messages(&system_with_schema()),
        "temperature": 0,
        "max_completion_tokens": 8192,
        "response_format": { "type": "json_schema", "json_schema": wanted },
    });
    assert_eq!(json.body, expected);
}

#[tokio::test]
async fn anthropic_is_asked_for_a_message() {
    let [text, json] = sent("anthropic").await;
    assert_eq!(text.path, "/messages");
    assert_eq!(text.header("x-api-key"), Some(KEY));
    assert_eq!(text.header("anthropic-version"), Some("2023-06-01"));
    let expected = json!({
        "model": "asked-1",
        "system": "You count.",
        "messages": [{ "role": "user", "content": "How many?" }],
        "temperature": 0,
        "max_tokens": 99,
    });
    assert_eq!(text.body, expected);
    assert_eq!(json.body["system"], system_with_schema());
    assert_eq!(json.body["max_tokens"], 8192);
    let format = json!({ "type": "json_schema", "schema": counted().schema });
    assert_eq!(json.body["output_config"], json!({ "format": format }));
}

#[tokio::test]
async fn gemini_is_asked_to_generate_content() {
    let [text, json] = sent("gemini").await;
    assert_eq!(text.path, "/models/asked-1:generateContent");
    assert_eq!(text.header("x-goog-api-key"), Some(KEY));
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "You count." }] },
        "contents": [{ "role": "user", "parts": [{ "text": "How many?" }] }],
        "generationConfig": { "temperature": 0, "maxOutputTokens": 99 },
    });
    assert_eq!(text.body, expected);
    let expected = json!({
        "temperature": 0,
        "maxOutputTokens": 8192,
        "responseMimeType": "application/json",
        "responseJsonSchema": counted().schema,
    });
    assert_eq!(json.body["generationConfig"], expected);
    assert_eq!(json.body["systemInstruction"]["parts"][0]["text"], system_with_schema());
}

#[tokio::test]
async fn ollama_is_asked_to_chat_and_to_leave_nothing_out() {
    let [text, json] = sent("ollama").await;
    assert_eq!(text.path, "/api/chat");
    assert_eq!(text.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let expected = json!({
        "model": "asked-1",
        "messages": [
            { "role": "system", "content": "You count." },
            { "role": "user", "content": "How many?" },
        ],
        "stream": false,
        "truncate": false,
        "shift": false,
        "options": { "temperature": 0, "num_predict": 99, "num_ctx": 4096 },
    });
    assert_eq!(text.body, expected);
    assert_eq!(json.body["format"], counted().schema.unwrap());
    assert_eq!(json.body["messages"][0]["content"], system_with_schema());
}

#[tokio::test]
async fn an_answer_comes_with_a_receipt() {
    for speaker in ALL {
        let stage = speaker.stage([Reply::Say(200, (speaker.good)("Three."))]).await;
        let (text, receipt) = stage.models.text(&question()).await.unwrap();
        assert_eq!(text, "Three.");
        assert_eq!((&*receipt.provider, &*receipt.model), (speaker.provider, "served-1"));
        assert_eq!((receipt.input_tokens, receipt.output_tokens), (11, 7), "{}", speaker.provider);
        assert_eq!((receipt.attempts, receipt.cost), (1, None));
        assert_eq!(stage.models.spent().input_tokens, 11);
    }
}

#[tokio::test]
async fn a_cut_answer_is_never_a_result_and_says_what_to_raise() {
    for speaker in ALL {
        let stage = speaker.stage([Reply::Say(200, (speaker.truncated)())]).await;
        let error = stage.models.text(&question()).await.unwrap_err();
        assert_eq!(error, Error::Truncated { output_tokens_max: 8192 });
        assert!(error.to_string().contains("raise [models] output_tokens_max"), "{error}");
        let limited = Request { output_tokens_max: Some(5), ..counted() };
        let error = stage.models.json::<Value>(&limited).await.unwrap_err();
        assert_eq!(error, Error::Truncated { output_tokens_max: 5 });
        // Not asked again either.
        assert_eq!(stage.server.seen().len(), 2, "{}", speaker.provider);
    }
}

#[tokio::test]
async fn an_answer_that_is_declined_is_told_as_such() {
    for speaker in ALL.iter().filter(|speaker| speaker.provider != "ollama") {
        let stage = speaker.stage([Reply::Say(200, (speaker.refused)())]).await;
        let error = stage.models.json::<Value>(&counted()).await.unwrap_err();
        assert_eq!(error, Error::Declined { why: "I will not".to_owned() });
        assert_eq!(stage.server.seen().len(), 1, "{}", speaker.provider);
    }
}

#[tokio::test]
async fn a_filter_declines_too() {
    let filtered = [("openai", "/choices/0/finish_reason", "content_filter")];
    for (provider, at, reason) in filtered.into_iter().chain([
        ("gemini", "/candidates/0/finishReason", "SAFETY"),
        ("gemini", "/candidates/0/finishReason", "RECITATION"),
    ]) {
        let speaker = speaker(provider);
        let mut answer = (speaker.good)("Three, and");
        *answer.pointer_mut(at).unwrap() = reason.into();
        let stage = speaker.stage([Reply::Say(200, answer)]).await;
        let error = stage.models.text(&question()).await.unwrap_err();
        assert_eq!(error, Error::Declined { why: reason.to_owned() });
    }
}

#[tokio::test]
async fn an_answer_that_ended_for_an_unknown_reason_is_not_trusted() {
    for speaker in ALL {
        let stage = speaker.stage([Reply::Say(200, (speaker.odd)())]).await;
        let error = stage.models.text(&question()).await.unwrap_err();
        assert_eq!(error.code(), Code::ModelMalformed, "{} {error}", speaker.provider);
    }
}

#[tokio::test]
async fn a_wire_that_makes_no_sense_is_malformed_and_not_asked_again() {
    for speaker in ALL {
        for nonsense in ["", "<html>", "{", "[]", "{\"choices\":[],\"candidates\":[]}"] {
            let stage = speaker.stage([Reply::Text(200, nonsense.to_owned())]).await;
            let error = stage.models.text(&question()).await.unwrap_err();
            assert_eq!(error.code(), Code::ModelMalformed, "{} {nonsense}", speaker.provider);
            assert_eq!(stage.server.seen().len(), 1);
        }
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_shown_to_the_model_once() {
    for speaker in ALL {
        let say = |text: &str| Reply::Say(200, (speaker.good)(text));
        let stage = speaker.stage([say(r#"{"n":"three"}"#), say("```json\n{\"n\":3}\n```")]).await;
        let (value, receipt) = stage.models.json::<Value>(&counted()).await.unwrap();
        assert_eq!(value, json!({ "n": 3 }));
        // The first answer is paid for as well.
        assert_eq!((receipt.attempts, receipt.input_tokens, receipt.output_tokens), (2, 22, 14));
        let shown = stage.server.seen()[1].body.to_string();
        assert!(shown.contains("How many?") && shown.contains(r#"three"#), "{shown}");
        assert!(shown.contains("it does not fit the schema: at /n"), "{shown}");

        let stage = speaker.stage([say("three"), say(r#"{"n":null}"#)]).await;
        let error = stage.models.json::<Value>(&counted()).await.unwrap_err();
        assert_eq!(error.code(), Code::ModelMalformed);
        assert!(error.to_string().contains("at /n"), "{error}");
        assert_eq!(stage.server.seen().len(), 2, "{}", speaker.provider);
    }
}

#[tokio::test]
async fn what_a_model_does_not_take_is_left_out_from_then_on() {
    for speaker in ALL {
        let refused = |message| Reply::Say(400, (speaker.error)(message));
        let good = Reply::Say(200, (speaker.good)(r#"{"n":3}"#));
        let replies = [
            refused("Unsupported value: 'temperature' does not support 0 with this model."),
            refused("Invalid schema: 'minLength' is not permitted."),
            good,
        ];
        let stage = speaker.stage(replies).await;
        let (_, receipt) = stage.models.json::<Value>(&counted()).await.unwrap();
        assert_eq!(receipt.attempts, 1);
        stage.models.json::<Value>(&counted()).await.unwrap();
        let bodies: Vec<_> = stage.server.seen().iter().map(|seen| seen.body.to_string()).collect();
        let has =
            |name: &str| -> Vec<bool> { bodies.iter().map(|body| body.contains(name)).collect() };
        assert_eq!(has("\"temperature\""), [true, false, false, false], "{}", speaker.provider);
        // A schema is tried again: the next one may be taken.
        let form = match speaker.provider {
            "openai" => "response_format",
            "anthropic" => "output_config",
            "gemini" => "responseJsonSchema",
            _ => "\"format\"",
        };
        assert_eq!(has(form), [true, true, false, true], "{}", speaker.provider);
    }
}

#[tokio::test]
async fn a_server_that_knows_the_older_name_of_a_limit_is_asked_by_it() {
    let speaker = speaker("openai");
    let error = json!({ "error": { "message": "Extra inputs", "param": "max_completion_tokens" } });
    let stage =
        speaker.stage([Reply::Say(422, error), Reply::Say(200, (speaker.good)("Three."))]).await;
    stage.models.text(&question()).await.unwrap();
    let last = &stage.server.seen()[1].body;
    assert_eq!((&last["max_tokens"], last.get("max_completion_tokens")), (&json!(8192), None));
}

#[tokio::test]
async fn a_price_makes_a_cost() {
    let speaker = speaker("ollama");
    let good = Reply::Say(200, (speaker.good)("Three."));
    let price = json!({ "input_per_million": 1e6, "output_per_million": 2e6, "currency": "EUR" });
    let stage = speaker
        .stage_with([good], |settings| {
            settings.price = Some(serde_json::from_value(price).unwrap());
        })
        .await;
    let (_, receipt) = stage.models.text(&question()).await.unwrap();
    assert_eq!((receipt.cost, receipt.currency.as_deref()), (Some(25.0), Some("EUR")));
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    let speaker = speaker("ollama");
    let good = Reply::Say(200, (speaker.good)("Three."));
    let stage = speaker.stage_with([good], |settings| settings.api_key = None).await;
    stage.models.text(&question()).await.unwrap();
    assert_eq!(stage.server.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn settings_without_a_provider_ask_nobody() {
    let error = keyward_models::Models::open(&Default::default(), SEED).unwrap_err();
    assert_eq!(error.code(), Code::ModelUnset);
    let mut settings = speaker("ollama").settings("http://user:word@127.0.0.1/");
    let error = keyward_models::Models::open(&settings, SEED).unwrap_err();
    assert!(error.to_string().starts_with("set [models] base_url"), "{error}");
    settings.base_url = None;
    keyward_models::Models::open(&settings, SEED).unwrap();
}
