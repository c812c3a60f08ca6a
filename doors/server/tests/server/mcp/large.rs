//! Large values and large messages: a value is bounded, and a message that is refused is answered.

use serde_json::{Value, json};

use super::client::{Agent, Session, messages};
use crate::fixture::answered;
use crate::spaces::served;

const MIB: usize = 1 << 20;

/// A text that has so many bytes as JSON.
fn text(bytes: usize) -> String {
    "x".repeat(bytes - 2)
}

#[tokio::test]
async fn a_value_of_exactly_the_largest_size_is_kept_and_a_larger_one_is_refused_by_its_tool() {
    let server = served().await;
    let agent = Agent::new(&server);
    let session = Session::begin(&server, "2025-11-25", None).await;
    let record = |value: String| json!({ "space": "log", "key": "log:a:00000000000000000001", "value": value });
    let entry = |value: String| json!({ "key": "k", "value": value, "metadata": { "by": "me" } });
    agent.call("agent_set", entry(text(MIB))).await;
    agent.call("record_save", record(text(MIB))).await;
    for (tool, arguments) in
        [("agent_set", entry(text(MIB + 1))), ("record_save", record(text(MIB + 1)))]
    {
        let said = agent.refused(tool, arguments.clone()).await;
        assert!(said.starts_with("value-too-large"), "{tool}: {said}");
        let answer =
            session.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(answer["result"]["isError"], true, "{tool}");
    }
    let kept =
        session.ask("tools/call", json!({ "name": "agent_set", "arguments": entry(text(MIB)) }));
    assert_ne!(kept.await["result"]["isError"], true);
}

#[tokio::test]
async fn a_file_may_be_written_with_escapes_that_are_larger_than_what_is_stored() {
    let server = served().await;
    let agent = Agent::new(&server);
    let file_text = "é".repeat(MIB / 2 - 100);
    let made = json!({ "command": "create", "path": "/memories/f.md", "file_text": file_text });
    let call = json!({ "name": "memory", "arguments": made });
    let written = agent.request("tools/call", call).build().unwrap();
    let body = std::str::from_utf8(written.body().unwrap().as_bytes().unwrap()).unwrap();
    let escaped = body.replace('é', "\\u00e9");
    assert!(escaped.len() > 2 * MIB);
    let request = agent.request("tools/call", json!({ "name": "memory" })).body(escaped);
    let answer = messages(answered(200, request).await).await.pop().unwrap();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

#[tokio::test]
async fn a_message_that_is_too_large_is_answered_and_the_session_goes_on() {
    let server = served().await;
    let session = Session::begin(&server, "2025-11-25", None).await;
    let value = text(8 * MIB);
    let arguments = json!({ "key": "k", "value": value });
    let params = json!({ "name": "agent_set", "arguments": arguments });
    // Clients write members in this order or in that.
    let orders = [
        format!(r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{params}}}"#),
        format!(r#"{{"method":"tools/call","params":{params},"jsonrpc":"2.0","id":"a"}}"#),
    ];
    for message in orders {
        let request = server.post("/mcp", &message);
        let request =
            session.within(request.header("accept", "application/json, text/event-stream"));
        let answer = messages(answered(200, request).await).await.pop().unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("a"), &json!(-32600)));
        assert!(answer["error"]["message"].as_str().unwrap().contains("larger than"), "{answer}");
        assert!(session.ask("tools/list", json!({})).await["result"].is_object());
    }
    // Without a length that was announced.
    let message = format!(r#"{{"id":9,"method":"tools/call","params":{params}}}"#);
    let pieces: Vec<_> = message.into_bytes().chunks(MIB).map(<[u8]>::to_vec).collect();
    let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let request = server.post("/mcp", "").header("accept", "application/json, text/event-stream");
    let answer = answered(200, session.within(request.body(stream))).await;
    assert_eq!(messages(answer).await[0]["id"], 9);
    let agent = Agent::new(&server);
    assert_eq!(agent.call("agent_get", json!({ "key": "k" })).await["found"], false);
}

#[tokio::test]
async fn a_call_that_the_protocols_library_cannot_read_is_answered_and_the_session_goes_on() {
    let server = served().await;
    let session = Session::begin(&server, "2025-11-25", None).await;
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    for value in [deep.as_str(), "1e999", r#""\ud800""#] {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"agent_set","arguments":{{"key":"k","value":{value}}}}}}}"#
        );
        let request = server.post("/mcp", &message);
        let request =
            session.within(request.header("accept", "application/json, text/event-stream"));
        let answer: Value = messages(answered(200, request).await).await.pop().unwrap();
        assert_eq!(answer["id"], 3, "{value}: {answer}");
        assert!(session.ask("tools/list", json!({})).await["result"].is_object());
    }
}
