//! Changes of records that are sent again.

use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::fixture::{Running, answered, etag, refused, told};
use crate::spaces::served;

const NOTE: &str = "/v1/spaces/notes/records/user:ada:notes:n1";

fn keyed(request: RequestBuilder, chosen: &str) -> RequestBuilder {
    request.header("idempotency-key", chosen)
}

async fn versions(server: &Running) -> usize {
    let history = told(200, server.get("/v1/spaces/notes/history/user:ada:notes:n1")).await;
    history["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn ten_of_one_request_at_once_make_one_change() {
    let server = served().await;
    let requests = |kind: &str| match kind {
        "put" => server.put(NOTE, r#"{"title":"a","tags":[]}"#),
        "merge" => {
            server.sent(Method::PATCH, &format!("{NOTE}?arrays=append"), r#"{"tags":["x"]}"#)
        }
        "restore" => server.post("/v1/spaces/notes/restore/user:ada:notes:n1", r#"{"to":1}"#),
        _ => server.request(Method::DELETE, NOTE),
    };
    for (done, kind) in ["put", "merge", "restore", "delete"].into_iter().enumerate() {
        let twins = (0..10).map(|_| keyed(requests(kind), kind).send());
        let answers = join_all(twins).await;
        let first = answers[0].as_ref().unwrap();
        let mut made = 0;
        for answer in &answers {
            let answer = answer.as_ref().unwrap();
            assert_eq!(answer.status(), first.status(), "{kind}");
            assert_eq!(answer.headers().get("etag"), first.headers().get("etag"), "{kind}");
            made += usize::from(!answer.headers().contains_key("idempotency-replayed"));
        }
        assert_eq!(made, 1, "{kind}");
        assert_eq!(versions(&server).await, done + 1, "{kind}");
    }
    let create = r#"{"values":{"user":"ada","note":"n2"},"value":{"title":"a"}}"#;
    let create = || keyed(server.post("/v1/spaces/notes/records", create), "create");
    let answers = join_all((0..10).map(|_| create().send())).await;
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 201);
        assert!(answer.headers().contains_key("location"));
    }
}

#[tokio::test]
async fn a_replay_answers_as_the_first_time_whatever_came_later() {
    let server = served().await;
    let put = || keyed(server.put(NOTE, r#"{"title":"1"}"#), "first");
    let replaced = || keyed(server.put(NOTE, r#"{"title":"2"}"#), "second");
    let first = etag(&answered(201, put()).await);
    let second = etag(&answered(200, replaced()).await);
    answered(204, server.request(Method::DELETE, NOTE)).await;
    let again = answered(201, put()).await;
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(etag(&again), first);
    assert_eq!(etag(&answered(200, replaced()).await), second);
    refused(404, "not-found", server.get(NOTE)).await;
    // The condition held the first time.
    let only_new =
        || keyed(server.put(NOTE, r#"{"title":"3"}"#), "new").header("if-none-match", "*");
    let third = etag(&answered(201, only_new()).await);
    assert_eq!(etag(&answered(201, only_new()).await), third);
    let other = keyed(server.put(NOTE, r#"{"title":"4"}"#), "new").header("if-none-match", "*");
    refused(422, "idempotency-reuse", other).await;
    // What was refused was not done, and may be done later.
    let late = || keyed(server.put(NOTE, r#"{"title":"5"}"#), "late").header("if-none-match", "*");
    refused(412, "precondition-failed", late()).await;
    answered(204, server.request(Method::DELETE, NOTE)).await;
    answered(201, late()).await;
}

#[tokio::test]
async fn a_delete_of_nothing_is_not_made_up_for_later() {
    let server = served().await;
    let delete = || keyed(server.request(Method::DELETE, NOTE), "gone");
    let batch = json!({"operations": [{"delete": {"key": "user:ada:notes:n1"}}]}).to_string();
    let together = || keyed(server.post("/v1/spaces/notes/batch", &batch), "batch");
    refused(404, "not-found", delete()).await;
    answered(200, together()).await;
    answered(201, server.put(NOTE, r#"{"title":"later"}"#)).await;
    refused(404, "not-found", delete()).await;
    answered(200, together()).await;
    answered(200, server.get(NOTE)).await;
}

#[tokio::test]
async fn a_batch_is_made_once() {
    let server = served().await;
    answered(201, server.put(NOTE, r#"{"title":"a","tags":[]}"#)).await;
    let body = json!({"operations": [
        {"merge": {"key": "user:ada:notes:n1", "value": {"tags": ["x"]}, "arrays": "append"}},
        {"delete": {"key": "user:ada:notes:n0"}},
    ]});
    let body = body.to_string();
    let batch = || keyed(server.post("/v1/spaces/notes/batch", &body), "batch");
    let mut answers = Vec::new();
    for answer in join_all((0..10).map(|_| batch().send())).await {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        answers.push(answer.text().await.unwrap());
    }
    answered(200, server.put(NOTE, r#"{"title":"b","tags":["x"]}"#)).await;
    answers.push(answered(200, batch()).await.text().await.unwrap());
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(told(200, server.get(NOTE)).await["tags"], json!(["x"]));
    assert_eq!(versions(&server).await, 3);
}
