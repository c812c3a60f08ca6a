//! Agreements, as agents reach them.

use serde_json::{Value, json};

use super::client::{Agent, messages};
use crate::agreements::{Model, PAGE, POLICY, Served, TRANSLATION};
use crate::fixture::{Running, answered, told};

fn of_agreements(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| name.starts_with("agreement_")).collect()
}

#[tokio::test]
async fn tools_are_there_for_who_can_do_something_with_them() {
    let without = Running::new().await;
    assert!(of_agreements(Agent::new(&without).tool_names().await).is_empty());
    let served = Served::new().await;
    let server = &served.server;
    let reading = ["agreement_read_policy", "agreement_list_issues"];
    let writing = ["agreement_make_policy", "agreement_move_issue", "agreement_analyze"];
    let all = [&reading[..], &writing].concat();
    assert_eq!(of_agreements(Agent::new(server).tool_names().await), all);
    for tool in Agent::new(server).tools().await {
        if tool["name"].as_str().unwrap().starts_with("agreement_") {
            let reads = reading.contains(&tool["name"].as_str().unwrap());
            assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{tool}");
            assert_eq!(
                tool["inputSchema"]["properties"]["workspace"]["enum"],
                json!(["inbox", "shelf"])
            );
            assert!(tool["outputSchema"].is_object());
        }
    }
    let issue = served.issue("Guarded", 1).await;
    let admin = server.admin().await;
    for (body, expected) in [
        (json!({ "name": "r", "scopes": ["read:agreements/inbox"] }), &reading[..]),
        (json!({ "name": "w", "scopes": ["write:store/inbox"] }), &all[..]),
        (json!({ "name": "o", "scopes": ["write:agreements/other"] }), &[]),
        (json!({ "name": "u", "user": "ada", "scopes": ["write:*"] }), &[]),
    ] {
        let key = server.key(&admin, &body).await;
        let agent = Agent::with(server, &key.secret);
        assert_eq!(of_agreements(agent.tool_names().await), expected, "{body}");
        for tool in &all {
            let mut arguments = json!({ "workspace": "inbox", "page": "nda" });
            if *tool == "agreement_move_issue" {
                arguments["issue"] = issue["id"].clone();
                arguments["note"] = json!("x");
            }
            if *tool == "agreement_make_policy" {
                arguments["source"] = json!("leave");
            }
            if !expected.contains(tool) {
                let said = agent.refused(tool, arguments).await;
                assert!(said.starts_with("forbidden: "), "{tool}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn a_policy_is_listed_read_and_translated() {
    let served = Served::new().await;
    let agent = Agent::new(&served.server);
    let at = |more: Value| {
        let mut arguments = json!({ "workspace": "inbox", "page": "nda" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let pages = agent.call("agreement_read_policy", json!({ "workspace": "inbox" })).await;
    assert_eq!(pages["pages"]["items"], json!([{ "id": "nda", "title": "NDA" }]));
    let none = json!({ "workspace": "inbox", "page": "none" });
    let said = agent.refused("agreement_read_policy", none).await;
    assert!(said.starts_with("unknown-page: ") && said.contains("without page"), "{said}");
    let listed = agent.call("agreement_read_policy", at(json!({}))).await;
    assert_eq!(listed["policies"]["leave"]["name"], "leave.md");
    let unmade = agent.refused("agreement_read_policy", at(json!({ "source": "leave" }))).await;
    assert!(
        unmade.starts_with("not-made: ") && unmade.contains("agreement_make_policy"),
        "{unmade}"
    );
    let made =
        agent.call("agreement_make_policy", at(json!({ "source": "leave", "wait": 20 }))).await;
    let read = agent.call("agreement_read_policy", at(json!({ "source": "leave" }))).await;
    assert_eq!(read, made);
    assert_eq!((&read["content"], &read["truncated"]), (&json!(POLICY), &json!(false)));
    let french = json!({ "source": "leave", "language": "fr" });
    agent.refused("agreement_read_policy", at(french.clone())).await;
    assert_eq!(served.model.calls(), 0);
    let french = json!({ "source": "leave", "language": "fr", "wait": 20 });
    let read = agent.call("agreement_make_policy", at(french)).await;
    assert_eq!((&read["title"], &read["original"]), (&json!("Congé"), &json!(false)));
    served.model.translate_as(&TRANSLATION.replace("trente", "30"));
    let redo = json!({ "source": "leave", "language": "fr", "redo": true, "wait": 20 });
    let again = agent.call("agreement_make_policy", at(redo)).await;
    assert!(again["content"].as_str().unwrap().contains("a 30 jours"), "{again}");
    assert_eq!(served.model.calls(), 2);
    let said = agent.refused("agreement_read_policy", at(json!({ "source": "none" }))).await;
    assert!(said.starts_with("unknown-policy: ") && said.contains("without source"), "{said}");
    let said = agent.refused("agreement_read_policy", json!({ "page": "nda" })).await;
    assert!(said.starts_with("invalid: ") && said.contains("workspace"), "{said}");
    let said = agent.refused("agreement_read_policy", at(json!({ "more": 1 }))).await;
    assert!(said.starts_with("invalid: "), "{said}");
    answered(200, served.attach("long", &format!("# Long\n\n{}\n", "é ".repeat(200_000)))).await;
    let long =
        agent.call("agreement_make_policy", at(json!({ "source": "long", "wait": 20 }))).await;
    assert_eq!(long["truncated"], true);
    assert!(long["content"].as_str().unwrap().len() <= 256 * 1024);
}

#[tokio::test]
async fn what_is_being_made_is_told_of_by_its_job() {
    let served = Served::with(Model::held()).await;
    let agent = Agent::new(&served.server);
    let arguments =
        json!({ "workspace": "inbox", "page": "nda", "source": "leave", "language": "fr" });
    let read = agent.call("agreement_make_policy", arguments).await;
    assert!(read["job"]["status"]["activity"].is_object(), "{read}");
    served.model.let_answer();
    served.ended(&read["job"]).await;
}

#[tokio::test]
async fn issues_are_found_listed_and_moved() {
    let served = Served::new().await;
    let agent = Agent::new(&served.server);
    let page = json!({ "workspace": "inbox", "page": "nda" });
    let with = |more: Value| {
        let mut arguments = page.clone();
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let analyzed = agent.call("agreement_analyze", with(json!({ "wait": 20 }))).await;
    assert_eq!(analyzed["analysis"]["found"], 1, "{analyzed}");
    let listed =
        agent.call("agreement_list_issues", with(json!({ "severity": "3", "limit": 5 }))).await;
    let issue = &listed["items"][0];
    assert_eq!((&listed["total"], &issue["state"]), (&json!(1), &json!("pending")));
    let id = issue["id"].clone();
    let moved =
        json!({ "issue": id, "state": "active", "why": "begun", "if_version": issue["version"] });
    let moved = agent.call("agreement_move_issue", with(moved)).await;
    assert_eq!((&moved["state"], &moved["history"][1]["why"]), (&json!("active"), &json!("begun")));
    let late = json!({ "issue": id, "severity": 1, "if_version": issue["version"] });
    let said = agent.refused("agreement_move_issue", with(late)).await;
    assert!(said.starts_with("precondition-failed: ") && said.contains("local moved it"), "{said}");
    assert!(said.contains("agreement_list_issues"), "{said}");
    let same = json!({ "issue": id, "state": "active" });
    let said = agent.refused("agreement_move_issue", with(same)).await;
    assert!(said.starts_with("transition-refused: "), "{said}");
    for change in [
        json!({ "issue": id, "severity": 1 }),
        json!({ "issue": id, "annotations": "a" }),
        json!({ "issue": id, "note": "b" }),
        json!({ "issue": id, "archived": true }),
    ] {
        agent.call("agreement_move_issue", with(change)).await;
    }
    let said =
        agent.refused("agreement_move_issue", with(json!({ "issue": id, "note": "c" }))).await;
    assert!(said.starts_with("issue-archived: ") && said.contains("archived: false"), "{said}");
    let shown = agent.call("agreement_list_issues", with(json!({ "issue": id }))).await;
    assert_eq!(shown["items"][0]["annotations"], "a\n\nb");
    assert_eq!(shown["items"][0]["history"].as_array().unwrap().len(), 6);
    let said = agent.refused("agreement_move_issue", with(json!({ "issue": id }))).await;
    assert!(said.starts_with("invalid: "), "{said}");
    let again = told(200, served.server.get(&format!("{PAGE}/issues"))).await;
    assert_eq!(again["total"], 0);
}

#[tokio::test]
async fn without_a_model_an_agent_is_told_what_to_set() {
    let served = Served::without_model().await;
    let agent = Agent::new(&served.server);
    let arguments = json!({ "workspace": "inbox", "page": "nda", "wait": 1 });
    let said = agent.refused("agreement_analyze", arguments).await;
    assert!(
        said.starts_with("model-unset: ") && said.contains("[agreements.inbox.models]"),
        "{said}"
    );
}

#[tokio::test]
async fn whoever_waits_for_an_analysis_is_told_how_far_it_is() {
    let served = Served::new().await;
    let agent = Agent::new(&served.server);
    let params = json!({
        "name": "agreement_analyze",
        "arguments": { "workspace": "inbox", "page": "nda", "wait": 20 },
        "_meta": { "progressToken": "t1" },
    });
    let told = messages(agent.request("tools/call", params).send().await.unwrap()).await;
    let progress = told.iter().filter(|it| it["method"] == "notifications/progress");
    assert!(progress.count() > 0, "{told:?}");
    assert_eq!(told.last().unwrap()["result"]["structuredContent"]["analysis"]["found"], 1);
}
