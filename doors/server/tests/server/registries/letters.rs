use reqwest::Method;
use serde_json::{Value, json};

use super::{AT, Served};
use crate::fixture::{answered, refused, told};

/// Asks until an answer is as it should be.
pub async fn until(served: &Served, path: &str, there: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..20_000 {
        let answer = told(200, served.server.get(&format!("{AT}{path}"))).await;
        if there(&answer) {
            return answer;
        }
    }
    panic!("{path} never was as it should be");
}

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}

#[tokio::test]
async fn without_consumers_changes_wait() {
    let served = Served::new().await;
    served.run().await;
    let queue = told(200, served.server.get(&format!("{AT}/queue?limit=1"))).await;
    assert_eq!(queue["ready"]["count"], 2);
    assert_eq!(queue["items"][0]["id"], "학칙");
    assert_eq!(queue["items"][0]["payload"]["operation"], "add");
    let next = queue["next"].as_str().unwrap();
    let rest = told(200, served.server.get(&format!("{AT}/queue?after={next}"))).await;
    assert_eq!((items(&rest).len(), &rest["items"][0]["id"]), (1, &json!("휴학")));
}

#[tokio::test]
async fn changes_that_nobody_could_be_told_of_are_put_back_or_dropped() {
    let consumers = json!({ "broken": { "command": ["false"] } });
    let served = Served::with(json!({ "retries": 1, "consumers": consumers })).await;
    served.run().await;
    let dead = until(&served, "/dead-letters", |page| items(page).len() == 2).await;
    assert_eq!(
        (&dead["items"][0]["id"], &dead["items"][0]["retry_count"]),
        (&json!("학칙"), &json!(1))
    );
    assert!(dead["items"][0]["reason"].as_str().unwrap().contains("broken"), "{dead}");

    let requeue = |policy: &str| {
        let at = format!("{AT}/dead-letters/{policy}/requeue");
        served.server.post(&at, "").header("idempotency-key", "k")
    };
    assert_eq!(told(200, requeue("학칙")).await["outcome"], "requeued");
    until(&served, "/dead-letters", |page| items(page).len() == 2).await;
    // The old request has been done, and is not done again.
    let again = answered(200, requeue("학칙")).await;
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    let unknown = served.server.post(&format!("{AT}/dead-letters/none/requeue"), "");
    refused(404, "not-found", unknown).await;

    let all = served.server.post(&format!("{AT}/dead-letters/requeue"), r#"{"limit":1}"#);
    let some = told(200, all).await;
    assert_eq!((&some["requeued"], &some["next"]), (&json!(1), &json!("학칙")));
    until(&served, "/dead-letters", |page| items(page).len() == 2).await;
    let remove = || served.server.request(Method::DELETE, &format!("{AT}/dead-letters/휴학"));
    answered(204, remove()).await;
    answered(204, remove()).await;
    let left = told(200, served.server.get(&format!("{AT}/dead-letters"))).await;
    assert_eq!((items(&left).len(), &left["items"][0]["id"]), (1, &json!("학칙")));
}
