//! Being told which resources changed.

use serde_json::{Value, json};

use super::client::{Agent, Events, Session};
use crate::fixture::answered;
use crate::spaces::served;

const RECORDS: &str = "keyward://app/spaces/places/records";
const ONE: &str = "keyward://app/spaces/places/records/shared:places:a";

async fn saved(agent: &Agent<'_>, name: &str) {
    let key = format!("shared:places:{name}");
    agent.call("record_save", json!({ "space": "places", "key": key, "value": {} })).await;
}

#[tokio::test]
async fn a_client_of_the_newest_revision_is_told_what_it_asked_for() {
    let server = served().await;
    let agent = Agent::new(&server);
    let watched = json!({
        "resourceSubscriptions": [ONE, "keyward://schema", "keyward://app/spaces/none/records"],
        "toolsListChanged": true,
    });
    let listen = agent.request("subscriptions/listen", json!({ "notifications": watched }));
    let mut events = Events::new(answered(200, listen).await);
    let first = events.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let accepted = &first["params"]["notifications"];
    assert_eq!(accepted["resourceSubscriptions"][0], ONE, "{first}");
    assert!(!accepted.to_string().contains("keyward://schema"), "{first}");
    assert!(accepted["toolsListChanged"].is_null(), "{first}");
    saved(&agent, "b").await;
    saved(&agent, "a").await;
    let told = events.next().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], ONE);
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
}

#[tokio::test]
async fn a_client_is_told_when_another_agent_keeps_something() {
    let server = served().await;
    let agent = Agent::new(&server);
    let (all, one) =
        ("keyward://agents/namespaces/plan", "keyward://agents/namespaces/plan/entries/a");
    let watched = json!({ "resourceSubscriptions": [one, all] });
    let listen = agent.request("subscriptions/listen", json!({ "notifications": watched }));
    let mut events = Events::new(answered(200, listen).await);
    events.next().await.unwrap();
    let set =
        |namespace: &str, key: &str| json!({ "namespace": namespace, "key": key, "value": 1 });
    agent.call("agent_set", set("other", "a")).await;
    agent.call("agent_set", set("plan", "b")).await;
    assert_eq!(events.next().await.unwrap()["params"]["uri"], all);
    agent.call("agent_set", set("plan", "a")).await;
    let mut told = [events.next().await.unwrap(), events.next().await.unwrap()]
        .map(|event| event["params"]["uri"].as_str().unwrap().to_owned());
    told.sort();
    assert_eq!(told, [all, one]);
}

#[tokio::test]
async fn an_older_client_subscribes_and_unsubscribes() {
    let server = served().await;
    let agent = Agent::new(&server);
    let session = Session::begin(&server, "2025-11-25", None).await;
    let mut events = session.listen().await;
    let ask = async |method: &str, uri: &str| session.ask(method, json!({ "uri": uri })).await;
    assert_eq!(ask("resources/subscribe", RECORDS).await["result"], json!({}));
    saved(&agent, "x").await;
    let told = events.next().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], RECORDS);
    assert_eq!(ask("resources/unsubscribe", RECORDS).await["result"], json!({}));
    assert_eq!(ask("resources/subscribe", ONE).await["result"], json!({}));
    saved(&agent, "y").await;
    saved(&agent, "a").await;
    let told: Value = events.next().await.unwrap();
    assert_eq!(told["params"]["uri"], ONE, "it was told of what it had left: {told}");
    for uri in ["keyward://schema", "keyward://app/spaces/none/records", "x"] {
        assert!(ask("resources/subscribe", uri).await["error"].is_object(), "{uri}");
    }
}
