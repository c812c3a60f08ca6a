//! Locks that clients hold by their tickets, at whatever server of a store.

use keyward::Data;
use keyward_server::without_schema;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::fixture::{Running, answered, configured, refused, told};

const ENTRY: &str = "/v1/stores/main/entries/page:7:text";

fn asked(server: &Running, body: &Value) -> RequestBuilder {
    server.post("/v1/stores/main/locks/acquire", &body.to_string())
}

fn acquire(server: &Running, path: &str) -> RequestBuilder {
    asked(server, &json!({"root": "page:7", "paths": [path], "ttl": 60}))
}

fn acted(server: &Running, act: &str, body: &Value) -> RequestBuilder {
    server.post(&format!("/v1/stores/main/locks/{act}"), &body.to_string())
}

fn ticket(answer: &Value) -> &str {
    answer["ticket"].as_str().unwrap()
}

async fn standing(server: &Running) -> Value {
    told(200, server.get("/v1/stores/main/locks?root=page:7")).await
}

/// Two servers of one store.
async fn two() -> (Data, Running, Running) {
    let data = without_schema("memory:").unwrap();
    let (one, other) = (Running::on(&data).await, Running::on(&data).await);
    (data, one, other)
}

async fn until_somebody_waits(server: &Running) {
    while standing(server).await["waiters"] == json!([]) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_lock_goes_on_at_another_server() {
    let (_data, one, other) = two().await;
    let held = told(200, acquire(&one, "policies:1")).await;
    assert_eq!((&held["root"], &held["paths"]), (&json!("page:7"), &json!(["policies:1"])));
    assert_eq!((&held["mode"], &held["ttl"]), (&json!("exclusive"), &json!(60)));
    let left = held["left"].as_f64().unwrap();
    assert!(left > 30.0 && left <= 60.0, "{left}");
    // The server that granted it goes, and the lock stays.
    one.stop().await;
    let in_the_way = refused(409, "locked", acquire(&other, "policies")).await;
    assert_eq!(in_the_way["retryable"], true);
    let holder = &in_the_way["holder"];
    assert_eq!((&holder["token"], &holder["paths"]), (&held["token"], &json!(["policies:1"])));
    assert_eq!(holder["who"]["name"], "local");

    let renew = json!({"ticket": held["ticket"]});
    let renewed = told(200, acted(&other, "renew", &renew)).await;
    assert_eq!((&renewed["ticket"], &renewed["token"]), (&held["ticket"], &held["token"]));
    assert_eq!(renewed["ttl"], 60);
    for _ in 0..2 {
        answered(204, acted(&other, "release", &renew)).await;
    }
    let lost = refused(409, "lock-lost", acted(&other, "renew", &renew)).await;
    assert_eq!(lost["retryable"], false);
    let next = told(200, acquire(&other, "policies")).await;
    assert!(next["token"].as_u64() > held["token"].as_u64());
    // Sent again, a release leaves the next lock alone.
    answered(204, acted(&other, "release", &renew)).await;
    assert_eq!(standing(&other).await["holders"][0]["token"], next["token"]);
}

#[tokio::test]
async fn who_waits_is_served_when_the_holder_is_done() {
    let (_data, one, other) = two().await;
    let held = told(200, acquire(&one, "a")).await;
    let body = json!({"root": "page:7", "paths": ["a"], "wait": 20, "purpose": "translate"});
    let waiting = tokio::spawn(told(200, asked(&other, &body)));
    until_somebody_waits(&one).await;
    let shown = standing(&one).await;
    assert_eq!(shown["waiters"][0]["who"]["purpose"], "translate");
    assert_eq!(shown["waiters"][0]["life"], "alive");
    assert_eq!(shown["holders"][0]["token"], held["token"]);
    assert!(shown["holders"][0]["age"].is_number() && shown["holders"][0]["ttl"] == 60.0);
    answered(204, acted(&one, "release", &json!({"ticket": ticket(&held)}))).await;
    let next = waiting.await.unwrap();
    assert!(next["token"].as_u64() > held["token"].as_u64());
    // Those who share do not wait for each other.
    answered(204, acted(&one, "release", &json!({"ticket": ticket(&next)}))).await;
    let shared = json!({"root": "page:7", "mode": "shared"});
    told(200, asked(&one, &shared)).await;
    told(200, asked(&other, &shared)).await;
    // A time to wait that is over.
    let vain = json!({"root": "page:7", "paths": ["a"], "wait": 0.05});
    refused(409, "locked", asked(&other, &vain)).await;
    assert_eq!(standing(&one).await["waiters"], json!([]));
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_the_line() {
    let server = Running::new().await;
    told(200, acquire(&server, "a")).await;
    let body = json!({"root": "page:7", "paths": ["a"], "wait": 25});
    for keyed in [false, true] {
        let mut waiting = asked(&server, &body);
        if keyed {
            waiting = waiting.header("idempotency-key", "k");
        }
        let waiting = tokio::spawn(waiting.send());
        until_somebody_waits(&server).await;
        waiting.abort();
        while standing(&server).await["waiters"] != json!([]) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn those_who_wait_leave_room_for_others() {
    let mut config = configured();
    config.limits.requests_max = 3;
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    told(200, acquire(&server, "a")).await;
    let body = json!({"root": "page:7", "paths": ["a"], "wait": 25});
    let waiting = tokio::spawn(asked(&server, &body).send());
    until_somebody_waits(&server).await;
    let full = refused(503, "overloaded", asked(&server, &body)).await;
    assert_eq!(full["retryable"], true);
    // Who does not wait is served.
    refused(409, "locked", acquire(&server, "a")).await;
    told(200, acquire(&server, "b")).await;
    waiting.abort();
}

#[tokio::test]
async fn a_stop_ends_waits_at_once_and_leaves_nobody_in_line() {
    let (_data, one, other) = two().await;
    told(200, acquire(&one, "a")).await;
    let body = json!({"root": "page:7", "paths": ["a"], "wait": 25});
    let waiting = tokio::spawn(refused(503, "stopping", asked(&one, &body)));
    until_somebody_waits(&other).await;
    one.stop().await;
    assert_eq!(waiting.await.unwrap()["retryable"], true);
    assert_eq!(standing(&other).await["waiters"], json!([]));
}

#[tokio::test]
async fn a_request_sent_again_gets_the_same_lock() {
    let (_data, one, other) = two().await;
    let keyed =
        |server: &Running, path: &str| acquire(server, path).header("idempotency-key", "nightly-1");
    let (first, second) = tokio::join!(told(200, keyed(&one, "a")), told(200, keyed(&other, "a")));
    assert_eq!(first["token"], second["token"]);
    assert_eq!(told(200, keyed(&other, "a")).await["token"], first["token"]);
    assert_eq!(standing(&one).await["holders"].as_array().unwrap().len(), 1);
    refused(422, "idempotency-reuse", keyed(&one, "b")).await;
    answered(204, acted(&one, "release", &json!({"ticket": ticket(&second)}))).await;
    assert_eq!(standing(&one).await["holders"], json!([]));
}

#[tokio::test]
async fn changes_depend_on_a_lock() {
    let (_data, one, other) = two().await;
    let held = told(200, acquire(&one, "a")).await;
    let under = |request: RequestBuilder, held: &Value| {
        request.header("keyward-lock", held["ticket"].as_str().unwrap())
    };
    let commit = json!({"writes": [{"put": {"key": "page:7:title", "value": 1}}]}).to_string();
    let changes = |server: &Running| {
        [
            server.put(ENTRY, r#"{"n":1}"#),
            server.sent(Method::PATCH, ENTRY, r#"{"m":2}"#),
            server.post("/v1/stores/main/commit", &commit),
            server.request(Method::DELETE, ENTRY),
        ]
    };
    for (change, status) in changes(&other).into_iter().zip([200, 200, 200, 204]) {
        answered(status, under(change, &held)).await;
    }
    // After a lost answer, what was sent before is outrun.
    let outrun = json!({"ticket": ticket(&held), "outrun": true});
    let later = told(200, acted(&other, "renew", &outrun)).await;
    assert_ne!(later["ticket"], held["ticket"]);
    assert_eq!(told(200, acted(&one, "renew", &outrun)).await["ticket"], later["ticket"]);
    refused(409, "old-ticket", under(one.put(ENTRY, "1"), &held)).await;
    answered(200, under(one.put(ENTRY, "1"), &later)).await;
    // What was done is told again, whoever has the lock by then.
    let keyed =
        || under(one.put("/v1/stores/main/entries/k", "1"), &later).header("idempotency-key", "k");
    answered(200, keyed()).await;

    let breaking = json!({"root": "page:7", "path": "a", "reason": "stuck"});
    let broken = told(200, acted(&one, "break", &breaking)).await;
    assert_eq!(broken["broken"][0]["token"], held["token"]);
    let next = told(200, acquire(&other, "a")).await;
    for server in [&one, &other] {
        for change in changes(server) {
            let lost = refused(409, "lock-lost", under(change, &later)).await;
            assert_eq!((&lost["by"], &lost["reason"]), (&json!("local"), &json!("stuck")));
        }
    }
    assert_eq!(answered(200, keyed()).await.headers()["idempotency-replayed"], "true");
    answered(200, under(one.put(ENTRY, "2"), &next)).await;
    // A condition that fails is told as before.
    let newer = one.put(ENTRY, "3").header("if-none-match", "*");
    refused(412, "precondition-failed", under(newer, &next)).await;
    let check = json!({"checks": [{"key": "page:7:title", "version": null}]}).to_string();
    let failed = under(one.post("/v1/stores/main/commit", &check), &next);
    let failed = refused(412, "precondition-failed", failed).await;
    assert_eq!(failed["failed"], json!([{"check": 0, "key": "page:7:title"}]));
    let metrics = answered(200, one.get("/metrics")).await.text().await.unwrap();
    assert!(metrics.contains("keyward_locks_fence_refusals_total 5"), "{metrics}");
}

#[tokio::test]
async fn a_lock_is_broken_by_admins_only_and_for_a_reason() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let writer = server.key(&admin, &json!({"name": "importer"})).await.secret;
    let held = told(200, acquire(&server, "a").bearer_auth(&writer)).await;
    let by_token = json!({"root": "page:7", "token": held["token"], "reason": "it hangs"});
    refused(403, "forbidden", acted(&server, "break", &by_token).bearer_auth(&writer)).await;
    let as_admin = |body: &Value| acted(&server, "break", body).bearer_auth(&admin.secret);
    for bad in [
        json!({"root": "page:7", "token": 1, "reason": " "}),
        json!({"root": "page:7", "token": 1, "path": "a", "reason": "x"}),
        json!({"root": "page:7", "reason": "x"}),
    ] {
        refused(400, "invalid", as_admin(&bad)).await;
    }
    let by_path = json!({"root": "page:7", "path": "b", "reason": "x"});
    refused(409, "not-held", as_admin(&by_path)).await;
    let keyed = as_admin(&by_path).header("idempotency-key", "k");
    refused(400, "invalid", keyed).await;
    // Sent again, it breaks nothing else.
    let broken = told(200, as_admin(&by_token)).await;
    let next = told(200, acquire(&server, "a").bearer_auth(&writer)).await;
    assert_eq!(told(200, as_admin(&by_token)).await, broken);
    assert_eq!(broken["broken"][0]["by"], admin.id);
    let renew = acted(&server, "renew", &json!({"ticket": ticket(&next)}));
    told(200, renew.bearer_auth(&writer)).await;
    let renew = acted(&server, "renew", &json!({"ticket": ticket(&held)}));
    let lost = refused(409, "lock-lost", renew.bearer_auth(&writer)).await;
    assert_eq!((&lost["by"], &lost["reason"]), (&json!(admin.id), &json!("it hangs")));
}

#[tokio::test]
async fn users_see_and_take_the_locks_of_their_own_keys_only() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let of_user = |user: &str| json!({"name": user, "user": user});
    let ada = server.key(&admin, &of_user("ada")).await.secret;
    let bob = server.key(&admin, &of_user("bob")).await.secret;
    let own = json!({"root": "user:ada:page", "purpose": "secret plans"});
    let held = told(200, asked(&server, &own).bearer_auth(&ada)).await;
    for root in ["user:ada:page", "shared:page", "page:7", "user", "users:bob", "system:x"] {
        let body = json!({"root": root});
        let taken = asked(&server, &body).bearer_auth(&bob).send().await.unwrap();
        assert_eq!(taken.status(), 403, "{root}");
        let listed = server.get(&format!("/v1/stores/main/locks?root={root}"));
        let listed = listed.bearer_auth(&bob).send().await.unwrap();
        assert_eq!(listed.status(), 403, "{root}");
    }
    refused(403, "forbidden", server.get("/v1/stores/main/locks").bearer_auth(&bob)).await;
    // A ticket of somebody else is of no use.
    let stolen = json!({"ticket": ticket(&held)});
    for act in ["renew", "release"] {
        refused(403, "forbidden", acted(&server, act, &stolen).bearer_auth(&bob)).await;
    }
    let put = server.put("/v1/stores/main/entries/user:bob:x", "1").bearer_auth(&bob);
    refused(403, "forbidden", put.header("keyward-lock", ticket(&held))).await;
    let put = server.put("/v1/stores/main/entries/user:ada:x", "1").bearer_auth(&ada);
    answered(200, put.header("keyward-lock", ticket(&held))).await;

    let reader = json!({"name": "reader", "scopes": ["read:store/main"]});
    let reader = server.key(&admin, &reader).await.secret;
    refused(403, "forbidden", acquire(&server, "a").bearer_auth(&reader)).await;
    let listed = server.get("/v1/stores/main/locks").bearer_auth(&reader);
    assert_eq!(told(200, listed).await, json!({"items": ["user:ada:page"], "next": null}));
    let listed = server.get("/v1/stores/main/locks?root=user:ada:page").bearer_auth(&reader);
    let holder = told(200, listed).await["holders"][0].clone();
    assert_eq!(holder["who"]["purpose"], "secret plans");
    assert!(holder.get("id").is_none() && holder.get("ticket").is_none(), "{holder}");
}

#[tokio::test]
async fn roots_are_listed_a_page_at_a_time() {
    let server = Running::new().await;
    for n in 0..5 {
        told(200, asked(&server, &json!({"root": format!("page:{n}")}))).await;
    }
    let mut seen = Vec::new();
    let mut path = "/v1/stores/main/locks?limit=2".to_owned();
    loop {
        let page = told(200, server.get(&path)).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|root| root.as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/stores/main/locks?limit=2&cursor={next}");
    }
    assert_eq!(seen, ["page:0", "page:1", "page:2", "page:3", "page:4"]);
}

#[tokio::test]
async fn paths_have_the_names_of_the_lock_tree() {
    let schema = r#"
        [stores.main]
        url = "memory:"
        [locks.agreement]
        root = "{page}"
        paths = ["policies", "policies:{source}[:{language}]"]
        aliases = { policy = "policies" }
    "#;
    let server = Running::with_schema(schema).await;
    let body = |paths: Value| json!({"root": "page7", "paths": paths});
    let held = told(200, asked(&server, &body(json!(["policies:123:fr"])))).await;
    assert_eq!(held["paths"], json!(["policy:123:fr"]));
    let locked = refused(409, "locked", asked(&server, &body(json!(["policy:123"])))).await;
    assert_eq!(locked["holder"]["paths"], json!(["policy:123:fr"]));
    refused(400, "outside-tree", asked(&server, &body(json!(["issues"])))).await;
    // Below a lock of one's own.
    let above = told(200, asked(&server, &body(json!(["policy:9"])))).await;
    let mut below = body(json!(["policy:9:de"]));
    refused(409, "locked", asked(&server, &below)).await;
    below["under"] = above["ticket"].clone();
    told(200, asked(&server, &below)).await;
    let listed = told(200, server.get("/v1/stores/main/locks?root=page7")).await;
    assert_eq!(listed["holders"][1]["paths"], json!(["policy:9"]));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let server = Running::new().await;
    for body in [
        json!({"root": "page:7", "ttl": 0}),
        json!({"root": "page:7", "ttl": -1}),
        json!({"root": "page:7", "ttl": 1e9}),
        json!({"root": "page:7", "wait": -1}),
        json!({"root": "page:7", "mode": "both"}),
        json!({"root": "page:7", "paths": vec!["a"; 65]}),
        json!({"root": "page:7", "under": "x"}),
        json!({"root": "page:7", "who": "me"}),
        json!({"root": ""}),
        json!({}),
    ] {
        refused(400, "invalid", asked(&server, &body)).await;
    }
    refused(400, "bad-path", acquire(&server, "a::b")).await;
    for root in ["system:x", "lock:x", "job:x", "index:x"] {
        refused(403, "reserved", asked(&server, &json!({"root": root}))).await;
    }
    for ticket in ["", "x", "e30", "eyJyb290IjoiYSJ9", "é"] {
        for act in ["renew", "release"] {
            refused(400, "invalid", acted(&server, act, &json!({"ticket": ticket}))).await;
        }
        let put = server.put(ENTRY, "1").header("keyward-lock", ticket);
        refused(400, "invalid", put).await;
    }
    answered(200, server.put("/v1/stores/main/entries/taken", "1")).await;
    refused(409, "foreign-value", asked(&server, &json!({"root": "taken"}))).await;
    refused(400, "invalid", server.get("/v1/stores/main/locks?root=a&limit=3")).await;
    assert_eq!(told(200, server.get("/v1/stores/main/locks")).await["items"], json!([]));
    refused(404, "not-found", server.get(ENTRY)).await;
}

#[tokio::test]
async fn weaker_engines_say_what_they_cannot_do() {
    let recoverable = Running::on(&without_schema("memory:?tier=recoverable").unwrap()).await;
    let held = told(200, acquire(&recoverable, "a")).await;
    refused(409, "locked", acquire(&recoverable, "a")).await;
    let put = recoverable.put(ENTRY, "1").header("keyward-lock", ticket(&held));
    refused(501, "unsupported", put).await;
    refused(501, "unsupported", recoverable.get("/v1/stores/main/locks")).await;
    told(200, acted(&recoverable, "renew", &json!({"ticket": ticket(&held)}))).await;
    answered(204, acted(&recoverable, "release", &json!({"ticket": ticket(&held)}))).await;
    let advisory = Running::on(&without_schema("memory:?tier=advisory").unwrap()).await;
    refused(501, "unsupported", acquire(&advisory, "a")).await;
}
