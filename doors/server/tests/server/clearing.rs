//! Deleting by a prefix while others write below it: no more is deleted than was confirmed.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::fixture::{Running, answered, told};
use crate::spaces::served;

/// How many there are before, so that they are deleted in many commits, and how many come meanwhile.
const MANY: usize = 12_000;
const LATE: usize = 500;
const PATIENCE: Duration = Duration::from_secs(120);

/// Clears what was confirmed. As soon as the first of them is gone, more come, which stand behind the others.
async fn cleared_while_more_come(
    first: impl Fn() -> RequestBuilder,
    late: RequestBuilder,
    clear: RequestBuilder,
) -> Value {
    let adding = async {
        while first().send().await.unwrap().status() != 404 {}
        assert!(late.send().await.unwrap().status().is_success());
    };
    let (cleared, ()) = tokio::join!(told(200, clear), async {
        timeout(PATIENCE, adding).await.expect("the first one goes");
    });
    cleared
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn entries_that_come_while_others_are_cleared_stay() {
    let server = Running::new().await;
    let commit = |names: std::ops::Range<usize>, start: &str| {
        let put = |n: usize| json!({"put": {"key": format!("t:{start}{n:05}"), "value": n}});
        let writes: Vec<Value> = names.map(put).collect();
        server.post("/v1/stores/main/commit", &json!({ "writes": writes }).to_string())
    };
    for from in (0..MANY).step_by(LATE) {
        answered(200, commit(from..from + LATE, "a")).await;
    }
    let path = format!("/v1/stores/main/entries?prefix=t:&confirm={MANY}");
    let cleared = cleared_while_more_come(
        || server.get("/v1/stores/main/entries/t:a00000"),
        commit(0..LATE, "z"),
        server.request(Method::DELETE, &path),
    );
    assert_eq!(cleared.await, json!({ "count": MANY, "deleted": MANY }));
    let left = told(200, server.get("/v1/stores/main/entries?prefix=t:&limit=1000")).await;
    assert_eq!(left["items"].as_array().unwrap().len(), LATE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn records_that_come_while_others_are_cleared_stay() {
    let server = served().await;
    let batch = |names: std::ops::Range<usize>, start: &str| {
        let put = |n: usize| json!({"put": {"key": format!("sessions:app:{start}{n:05}"), "value": {"n": n}}});
        let operations: Vec<Value> = names.map(put).collect();
        server.post("/v1/spaces/sessions/batch", &json!({ "operations": operations }).to_string())
    };
    for from in (0..MANY).step_by(LATE) {
        answered(200, batch(from..from + LATE, "a")).await;
    }
    let path = format!("/v1/spaces/sessions/records?prefix=sessions:app:&confirm={MANY}");
    let cleared = cleared_while_more_come(
        || server.get("/v1/spaces/sessions/records/sessions:app:a00000"),
        batch(0..LATE, "z"),
        server.request(Method::DELETE, &path),
    );
    assert_eq!(cleared.await, json!({ "count": MANY, "deleted": MANY }));
    let left = told(200, server.get("/v1/spaces/sessions/records?limit=1000")).await;
    assert_eq!(left["items"].as_array().unwrap().len(), LATE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn agents_entries_that_come_while_others_are_cleared_stay() {
    let server = Running::new().await;
    let namespace = "/v1/agents/namespaces/n";
    let set = |names: std::ops::Range<usize>, start: &str| {
        let one = |n: usize| json!({"key": format!("{start}{n:05}"), "value": n});
        let entries: Vec<Value> = names.map(one).collect();
        server.post(&format!("{namespace}/set"), &json!({ "entries": entries }).to_string())
    };
    for from in (0..MANY).step_by(LATE) {
        answered(200, set(from..from + LATE, "a")).await;
    }
    let cleared = cleared_while_more_come(
        || server.get(&format!("{namespace}/entries/a00000")),
        set(0..LATE, "z"),
        server.request(Method::DELETE, &format!("{namespace}?confirm={MANY}")),
    );
    assert_eq!(cleared.await, json!({ "count": MANY, "removed": MANY }));
    let left = told(200, server.get(&format!("{namespace}/keys?limit=1000"))).await;
    assert_eq!(left["items"].as_array().map(Vec::len), Some(LATE), "{left}");
}
