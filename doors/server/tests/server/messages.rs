//! Messages: enqueued, looked at, dropped; queues that are paused.

use futures_util::future::join_all;
use keyward_server::without_schema;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::fixture::{Running, answered, refused, told};

const QUEUE: &str = "/v1/stores/main/queues/mails";
const MESSAGES: &str = "/v1/stores/main/queues/mails/messages";

fn keyed(request: RequestBuilder, chosen: &str) -> RequestBuilder {
    request.header("idempotency-key", chosen)
}

async fn depth(server: &Running) -> (u64, u64, u64) {
    let queue = told(200, server.get(QUEUE)).await;
    let count = |name: &str| queue[name]["count"].as_u64().unwrap();
    (count("ready"), count("delayed"), count("claimed"))
}

async fn ids(server: &Running, path: &str) -> Vec<String> {
    let page = told(200, server.get(path)).await;
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn messages_are_enqueued_and_looked_at() {
    let server = Running::new().await;
    assert_eq!(told(200, server.get("/v1/stores/main/queues")).await["queues"], json!([]));
    let body = r#"{"messages":[{"payload":{"n":1.50}},{"payload":2,"id":"a/2","version":"v"},
                   {"payload":3,"id":"late","delay_ms":60000}]}"#;
    let done = told(200, server.post(MESSAGES, body)).await;
    let first = done["messages"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(done["messages"][1], json!({"id": "a/2", "outcome": "added"}));
    let again = r#"{"messages":[{"payload":2,"id":"a/2","version":"v"}]}"#;
    let again = told(200, server.post(MESSAGES, again)).await;
    assert_eq!(again["messages"][0]["outcome"], "duplicate");
    let other = |rest: &str| {
        server.post(MESSAGES, &format!(r#"{{"messages":[{{"payload":9,"id":"a/2"{rest}}}]}}"#))
    };
    refused(409, "id-taken", other("")).await;
    let replaced = told(200, other(r#","replace":true"#)).await;
    assert_eq!(replaced["messages"][0]["outcome"], "replaced");

    // Every digit is kept.
    let message = answered(200, server.get(&format!("{MESSAGES}/{first}"))).await;
    assert!(message.text().await.unwrap().contains(r#""payload":{"n":1.50}"#));
    let message = told(200, server.get(&format!("{MESSAGES}/a%2F2"))).await;
    assert_eq!((&message["payload"], &message["state"]), (&json!(9), &json!("ready")));
    assert_eq!(depth(&server).await, (2, 1, 0));
    let queue = told(200, server.get(QUEUE)).await;
    assert!(queue["oldest_ms"].is_i64() && queue["paused"].is_null(), "{queue}");
    assert_eq!(told(200, server.get("/v1/stores/main/queues")).await["queues"], json!(["mails"]));
    assert_eq!(ids(&server, &format!("{MESSAGES}?state=delayed")).await, ["late"]);
    refused(404, "not-found", server.get(&format!("{MESSAGES}/none"))).await;

    for _ in 0..2 {
        answered(204, server.request(Method::DELETE, &format!("{MESSAGES}/late"))).await;
    }
    assert_eq!(depth(&server).await, (2, 0, 0));
}

#[tokio::test]
async fn what_cannot_be_enqueued_is_told() {
    let server = Running::new().await;
    let post = |body: &str| server.post(MESSAGES, body);
    refused(400, "invalid", post(r#"{"messages":[]}"#)).await;
    refused(400, "invalid", post(r#"{"messages":[{"payload":1,"more":2}]}"#)).await;
    refused(400, "invalid", post(r#"{"messages":[{}]}"#)).await;
    refused(400, "bad-message", post(r#"{"messages":[{"payload":1,"id":""}]}"#)).await;
    let late = r#"{"messages":[{"payload":1,"delay_ms":99999999999999}]}"#;
    refused(400, "invalid", post(late)).await;
    let many = json!({"messages": vec![json!({"payload": 1}); 1_001]}).to_string();
    refused(413, "limit-exceeded", post(&many)).await;
    // One of them cannot be, and so none is.
    let one_bad = r#"{"messages":[{"payload":1},{"payload":1,"id":"x"},{"payload":2,"id":"x"}]}"#;
    refused(409, "id-taken", post(one_bad)).await;
    assert_eq!(depth(&server).await, (0, 0, 0));
    let long = format!("/v1/stores/main/queues/{}", "q".repeat(201));
    refused(400, "bad-message", server.get(&long)).await;
    refused(404, "unknown-store", server.get("/v1/stores/none/queues")).await;
}

#[tokio::test]
async fn ten_of_one_request_at_once_enqueue_once() {
    let server = Running::new().await;
    let body = r#"{"messages":[{"payload":1},{"payload":2},{"payload":3,"id":"own"}]}"#;
    let enqueue = || keyed(server.post(MESSAGES, body), "k");
    let mut answers = Vec::new();
    let mut made = 0;
    for answer in join_all((0..10).map(|_| enqueue().send())).await {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        made += usize::from(!answer.headers().contains_key("idempotency-replayed"));
        answers.push(answer.text().await.unwrap());
    }
    assert_eq!(made, 1);
    assert_eq!(depth(&server).await, (3, 0, 0));
    // Also when nothing of them is left.
    for id in ids(&server, MESSAGES).await {
        answered(204, server.request(Method::DELETE, &format!("{MESSAGES}/{id}"))).await;
    }
    answers.push(answered(200, enqueue()).await.text().await.unwrap());
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(depth(&server).await, (0, 0, 0));
    let other = keyed(server.post(MESSAGES, r#"{"messages":[{"payload":1}]}"#), "k");
    refused(422, "idempotency-reuse", other).await;
    // They stand in line as they were sent.
    let body = json!({"messages": (0..20).map(|n| json!({"payload": n})).collect::<Vec<_>>()});
    answered(200, keyed(server.post(MESSAGES, &body.to_string()), "order")).await;
    let claimed = told(200, server.post(&format!("{QUEUE}/claim"), r#"{"max":20}"#)).await;
    let order: Vec<_> =
        claimed["messages"].as_array().unwrap().iter().map(|it| &it["payload"]).collect();
    assert_eq!(order, (0..20).map(Value::from).collect::<Vec<_>>().iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_drop_is_not_made_up_for_later() {
    let server = Running::new().await;
    let message = r#"{"messages":[{"payload":1,"id":"a"}]}"#;
    let drop =
        |chosen: &str| keyed(server.request(Method::DELETE, &format!("{MESSAGES}/a")), chosen);
    // Nothing was there.
    answered(204, drop("early")).await;
    answered(200, server.post(MESSAGES, message)).await;
    let again = answered(204, drop("early")).await;
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(depth(&server).await, (1, 0, 0));
    answered(204, drop("first")).await;
    answered(200, server.post(MESSAGES, message)).await;
    answered(204, drop("first")).await;
    assert_eq!(depth(&server).await, (1, 0, 0));
}

#[tokio::test]
async fn messages_are_listed_in_pages_that_belong_to_their_listing() {
    let server = Running::new().await;
    let many: Vec<_> = (0..25).map(|n| json!({"payload": n, "id": format!("m{n:02}")})).collect();
    answered(200, server.post(MESSAGES, &json!({"messages": many}).to_string())).await;
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = told(200, server.get(&format!("{MESSAGES}?limit=10{cursor}"))).await;
        for item in page["items"].as_array().unwrap() {
            seen.push(item["payload"].as_u64().unwrap());
        }
        let Some(next) = page["next"].as_str() else { break };
        refused(400, "bad-cursor", server.get(&format!("{QUEUE}/dead-letters?cursor={next}")))
            .await;
        let elsewhere = format!("/v1/stores/main/queues/other/messages?cursor={next}");
        refused(400, "bad-cursor", server.get(&elsewhere)).await;
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, (0..25).collect::<Vec<_>>());
    refused(400, "bad-cursor", server.get(&format!("{MESSAGES}?cursor=AAAA"))).await;
    refused(400, "invalid", server.get(&format!("{MESSAGES}?limit=1001"))).await;
    refused(400, "invalid", server.get(&format!("{MESSAGES}?state=odd"))).await;
}

#[tokio::test]
async fn nothing_is_claimed_from_a_paused_queue() {
    let server = Running::new().await;
    answered(200, server.post(MESSAGES, r#"{"messages":[{"payload":1}]}"#)).await;
    let pause = || server.post(&format!("{QUEUE}/pause"), r#"{"reason":"the mail is down"}"#);
    let resume = || server.post(&format!("{QUEUE}/resume"), "");
    assert_eq!(told(200, keyed(pause(), "p")).await["outcome"], "paused");
    assert_eq!(told(200, server.get(QUEUE)).await["paused"], "the mail is down");
    let claim = || server.post(&format!("{QUEUE}/claim"), "{}");
    let claimed = told(200, claim()).await;
    assert_eq!((&claimed["messages"], &claimed["paused"]), (&json!([]), &json!(true)));
    told(200, resume()).await;
    // An old request does not pause it again.
    let replayed = answered(200, keyed(pause(), "p")).await;
    assert_eq!(replayed.headers()["idempotency-replayed"], "true");
    assert!(told(200, server.get(QUEUE)).await["paused"].is_null());
    assert_eq!(told(200, claim()).await["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn messages_are_part_of_a_commit_or_not_at_all() {
    let server = Running::new().await;
    let commit = |body: &str| server.post("/v1/stores/main/commit", body);
    let body = r#"{"checks":[{"key":"order:1","version":null}],
        "writes":[{"put":{"key":"order:1","value":{"total":9.90}}}],
        "enqueue":[{"queue":"mails","payload":{"order":1}},
                   {"queue":"invoices","payload":1.0,"id":"i1"},
                   {"queue":"mails","payload":2}]}"#;
    let first = answered(200, keyed(commit(body), "k")).await;
    let first = first.text().await.unwrap();
    let done: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(done["versions"].as_array().unwrap().len(), 1);
    let outcomes: Vec<_> = done["enqueued"].as_array().unwrap().iter().collect();
    assert!(outcomes.iter().all(|it| it["outcome"] == "added"), "{done}");
    assert_eq!(outcomes[1]["id"], "i1");
    assert_eq!(depth(&server).await, (2, 0, 0));
    let replay = answered(200, keyed(commit(body), "k")).await;
    assert_eq!(replay.headers()["idempotency-replayed"], "true");
    let replay: Value = replay.json().await.unwrap();
    assert_eq!((&replay["enqueued"], &replay["versions"]), (&done["enqueued"], &done["versions"]));

    // A check that does not hold: neither the entry nor the messages.
    let problem = refused(412, "precondition-failed", commit(body)).await;
    assert_eq!(problem["failed"], json!([{"check": 0, "key": "order:1"}]));
    // A message that cannot be: not the entry either.
    let taken = r#"{"writes":[{"put":{"key":"order:2","value":1}}],
        "enqueue":[{"queue":"invoices","payload":2,"id":"i1"}]}"#;
    refused(409, "id-taken", commit(taken)).await;
    refused(404, "not-found", server.get("/v1/stores/main/entries/order:2")).await;
    assert_eq!(depth(&server).await, (2, 0, 0));
    // One that is there already changes nothing about the rest.
    let known = r#"{"writes":[{"put":{"key":"order:3","value":1}}],
        "enqueue":[{"queue":"invoices","payload":1.0,"id":"i1"}]}"#;
    assert_eq!(told(200, commit(known)).await["enqueued"][0]["outcome"], "duplicate");
    answered(200, server.get("/v1/stores/main/entries/order:3")).await;
    let alone = r#"{"enqueue":[{"queue":"mails","payload":3}]}"#;
    assert_eq!(told(200, commit(alone)).await["versions"], json!([]));
    assert_eq!(depth(&server).await, (3, 0, 0));
}

#[tokio::test]
async fn scopes_say_who_may_do_what_with_queues() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let scoped = async |scope: &str| {
        let body = json!({"name": scope, "scopes": [scope]});
        server.key(&admin, &body).await.secret
    };
    let (reader, writer) = (scoped("read:store/main").await, scoped("write:store/main").await);
    let runner = scoped("admin:store/main").await;
    let stranger = scoped("write:store/other").await;
    let post = |path: &str, body: &str| (Method::POST, path.to_owned(), body.to_owned());
    let get = |path: &str| (Method::GET, path.to_owned(), String::new());
    let delete = |path: &str| (Method::DELETE, path.to_owned(), String::new());
    let (job, dead) = ("/v1/stores/main/jobs/j", format!("{QUEUE}/dead-letters"));
    let attempt = r#"{"nonce":"x"}"#;
    let reading = vec![
        get("/v1/stores/main/queues"),
        get(QUEUE),
        get(MESSAGES),
        get(&format!("{MESSAGES}/m")),
        get(&dead),
        get(&format!("{dead}/d")),
        get("/v1/stores/main/jobs"),
        get(job),
        get(&format!("{job}/watch")),
    ];
    let writing = vec![
        post(MESSAGES, r#"{"messages":[{"payload":1}]}"#),
        post(&format!("{QUEUE}/claim"), "{}"),
        post(&format!("{MESSAGES}/m/complete"), attempt),
        post(&format!("{MESSAGES}/m/release"), attempt),
        post(&format!("{MESSAGES}/m/heartbeat"), attempt),
        post(&format!("{MESSAGES}/m/progress"), attempt),
        post(&format!("{MESSAGES}/m/retry"), r#"{"nonce":"x","reason":"r"}"#),
        post(&format!("{MESSAGES}/m/fail"), r#"{"nonce":"x","reason":"r"}"#),
        post(&format!("{dead}/d/requeue"), ""),
        post("/v1/stores/main/jobs", r#"{"queue":"mails","payload":1}"#),
        post(&format!("{job}/cancel"), ""),
        post("/v1/stores/main/commit", r#"{"enqueue":[{"queue":"mails","payload":1}]}"#),
    ];
    let running = vec![
        post(&format!("{QUEUE}/pause"), r#"{"reason":"r"}"#),
        post(&format!("{QUEUE}/resume"), ""),
        delete(&format!("{MESSAGES}/m")),
        delete(&format!("{dead}/d")),
        post(&format!("{dead}/requeue"), "{}"),
    ];
    let allowed = async |secret: &str, (method, path, body): &(Method, String, String)| {
        let answer = server.sent(method.clone(), path, body).bearer_auth(secret).send().await;
        answer.unwrap().status() != 403
    };
    for (asked, needs) in [(&reading, 0), (&writing, 1), (&running, 2)] {
        for request in asked {
            for (secret, has) in [(&reader, 0), (&writer, 1), (&runner, 2)] {
                assert_eq!(allowed(secret, request).await, has >= needs, "{request:?} {has}");
            }
            assert!(!allowed(&stranger, request).await, "{request:?}");
        }
    }
    // Queues are nobody's in particular, whatever is stored in them.
    let user = json!({"name": "u", "user": "ada", "scopes": ["write:*"]});
    let user = server.key(&admin, &user).await.secret;
    for (method, path, body) in reading.iter().chain(&writing) {
        let request = server.sent(method.clone(), path, body).bearer_auth(&user);
        let problem = refused(403, "forbidden", request).await;
        assert!(problem["detail"].as_str().unwrap().contains("bound to a user"), "{problem}");
    }
}

#[tokio::test]
async fn what_queues_do_is_counted_without_their_names() {
    let server = Running::new().await;
    answered(200, server.post(MESSAGES, r#"{"messages":[{"payload":1},{"payload":2}]}"#)).await;
    let enqueue = server.post(MESSAGES, r#"{"messages":[{"payload":3}]}"#);
    answered(200, keyed(enqueue, "k")).await;
    let claimed = told(200, server.post(&format!("{QUEUE}/claim"), r#"{"max":2}"#)).await;
    let end = |at: usize, how: &str, more: &str| {
        let message = &claimed["messages"][at];
        let (id, nonce) = (message["id"].as_str().unwrap(), &message["nonce"]);
        server.post(&format!("{MESSAGES}/{id}/{how}"), &format!(r#"{{"nonce":{nonce}{more}}}"#))
    };
    answered(200, end(0, "complete", "")).await;
    answered(200, end(1, "fail", r#","reason":"no""#)).await;
    refused(409, "attempt-lost", end(1, "complete", "")).await;
    // The local user of a server without keys may see them.
    server.admin().await;
    let metrics = answered(200, server.get("/metrics")).await.text().await.unwrap();
    for line in [
        "keyward_queue_enqueued_total 3",
        "keyward_queue_claimed_total 2",
        "keyward_queue_completed_total 1",
        "keyward_queue_dead_lettered_total 1",
        "keyward_queue_refused_total 1",
        "keyward_claims_waiting 0",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line}: {metrics}");
    }
    assert!(!metrics.contains("mails"), "{metrics}");
}

#[tokio::test]
async fn a_store_that_cannot_keep_queues_says_so() {
    let server = Running::on(&without_schema("memory:?tier=recoverable").unwrap()).await;
    refused(501, "unsupported", server.get(QUEUE)).await;
    refused(501, "unsupported", server.post(MESSAGES, r#"{"messages":[{"payload":1}]}"#)).await;
    answered(200, server.put("/v1/stores/main/entries/a", "1")).await;
}
