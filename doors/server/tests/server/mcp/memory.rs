//! Files that a model keeps for itself.

use serde_json::{Value, json};

use super::client::Agent;
use crate::fixture::answered;
use crate::spaces::served;

/// What the tool says, and whether that nothing was done.
async fn said(agent: &Agent<'_>, arguments: Value) -> (String, bool) {
    let result = agent.called("memory", arguments).await;
    assert!(result["structuredContent"].is_null(), "{result}");
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (text, result["isError"] == true)
}

#[tokio::test]
async fn a_file_is_made_edited_renamed_and_deleted_in_the_words_that_models_know() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (arguments, answer) in [
        (
            json!({ "command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\n" }),
            "File created successfully at: /memories/a.md",
        ),
        (
            json!({ "command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "2" }),
            "The memory file has been edited. Here is the snippet showing the change (with line \
             numbers):\n     1\tone\n     2\t2",
        ),
        (
            json!({ "command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "0" }),
            "The file /memories/a.md has been edited.",
        ),
        (
            json!({ "command": "view", "path": "/memories/a.md", "view_range": [1, 2] }),
            "Here's the content of /memories/a.md with line numbers:\n     1\t0\n     2\tone",
        ),
        (
            json!({ "command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/d/b.md" }),
            "Successfully renamed /memories/a.md to /memories/d/b.md",
        ),
        (
            json!({ "command": "view", "path": "/memories" }),
            "Here're the files and directories up to 2 levels deep in /memories, excluding hidden \
             items and node_modules:\n8B\t/memories\n8B\t/memories/d/\n8B\t/memories/d/b.md",
        ),
        (json!({ "command": "delete", "path": "/memories/d" }), "Successfully deleted /memories/d"),
    ] {
        let told = said(&agent, arguments.clone()).await;
        assert_eq!(told, (answer.to_owned(), false), "{arguments}");
    }
    let gone = json!({ "command": "view", "path": "/memories/d/b.md" });
    let missing = "The path /memories/d/b.md does not exist. Please provide a valid path.";
    assert_eq!(said(&agent, gone).await, (missing.to_owned(), true));
}

#[tokio::test]
async fn a_command_that_is_none_is_told_what_is_wrong() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (arguments, word) in [
        (json!({ "command": "burn", "path": "/memories" }), "burn"),
        (json!({ "command": "create", "path": "/memories/a.md" }), "file_text"),
        (json!({ "path": "/memories" }), "command"),
        (json!({ "command": "view", "path": "/etc/passwd" }), "/memories"),
    ] {
        let (text, failed) = said(&agent, arguments.clone()).await;
        assert!(failed && text.contains(word), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn memories_are_a_users_and_go_by_the_scopes() {
    let server = served().await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await;
    let eve = server.key(&admin, &json!({ "name": "e", "user": "eve" })).await;
    let reader = json!({ "name": "r", "user": "ada", "scopes": ["read:*"] });
    let reader = server.key(&admin, &reader).await;
    let ada = Agent::with(&server, &ada.secret);
    let made = json!({ "command": "create", "path": "/memories/s.md", "file_text": "secret" });
    assert!(!said(&ada, made).await.1);
    let view = json!({ "command": "view", "path": "/memories/s.md" });

    let eve = Agent::with(&server, &eve.secret);
    let (text, failed) = said(&eve, view.clone()).await;
    assert!(failed && !text.contains("secret"), "{text}");
    for command in [
        json!({ "command": "view", "path": "/memories/s.md", "user": "ada" }),
        json!({ "command": "delete", "path": "/memories/s.md", "user": "ada" }),
    ] {
        let (text, failed) = said(&eve, command).await;
        assert!(failed && text.starts_with("invalid") && text.contains("user"), "{text}");
    }

    let reader = Agent::with(&server, &reader.secret);
    assert!(!reader.tool_names().await.contains(&"memory".to_owned()));
    assert!(!said(&reader, view.clone()).await.1);
    let (text, failed) =
        said(&reader, json!({ "command": "delete", "path": "/memories/s.md" })).await;
    assert!(failed && text.starts_with("forbidden"), "{text}");
    assert!(said(&ada, view).await.0.ends_with("     1\tsecret"));
}

#[tokio::test]
async fn several_files_are_deleted_when_that_is_confirmed_and_their_number_is_in_the_audit_log() {
    let server = served().await;
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await;
    let mut agent = Agent::with(&server, &ada.secret);
    for path in ["d/a.md", "d/e/b.md", "d/c.md", "dd.md", "one/f.md"] {
        let path = format!("/memories/{path}");
        let made = json!({ "command": "create", "path": path, "file_text": "x" });
        assert!(!said(&agent, made).await.1);
    }
    let mut delete = json!({ "command": "delete", "path": "/memories/d" });
    let (text, failed) = said(&agent, delete.clone()).await;
    assert!(failed && text.starts_with("unconfirmed") && text.contains("confirm: 3"), "{text}");
    agent.capabilities = json!({ "elicitation": {} });
    delete["confirm"] = json!(3);
    let asked = agent.called("memory", delete.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    agent.capabilities = json!({});
    assert_eq!(said(&agent, delete).await, ("Successfully deleted /memories/d".to_owned(), false));
    // One file is removed at once, also with the directory it lies in.
    let one = json!({ "command": "delete", "path": "/memories/one" });
    assert_eq!(said(&agent, one).await, ("Successfully deleted /memories/one".to_owned(), false));
    let left = said(&agent, json!({ "command": "view", "path": "/memories" })).await.0;
    assert!(left.contains("/memories/dd.md") && !left.contains("/memories/d/"), "{left}");
    let log = loop {
        let log = answered(200, server.get("/v1/audit").bearer_auth(&admin.secret)).await;
        let log: Value = log.json().await.unwrap();
        let is_of = |key: &str| log.to_string().contains(&format!("memories:{key}\""));
        if is_of("one") {
            break log;
        }
        tokio::task::yield_now().await;
    };
    let acts = log["items"].as_array().unwrap().iter();
    let deleted: Vec<&Value> = acts
        .filter(|act| act["status"] == 200 && act["keys"].to_string().contains("memories:d\""))
        .collect();
    assert_eq!(deleted.len(), 1, "{log}");
    assert_eq!(deleted[0]["keys_total"], 3, "{log}");
}
