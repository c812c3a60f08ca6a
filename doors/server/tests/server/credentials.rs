//! API keys: who is let in, and what they may do then.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use keyward_server::{Config, without_schema};
use keyward_testkit::TestClock;
use reqwest::header::{AUTHORIZATION, CACHE_CONTROL, WWW_AUTHENTICATE};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::fixture::{Running, answered, configured, refused, told};

const STORES: &str = "/v1/stores";

#[tokio::test]
async fn the_first_key_ends_the_time_of_the_local_user() {
    let server = Running::new().await;
    answered(200, server.put("/v1/stores/main/entries/a", "1")).await;
    let create = server.first_key(r#"{"name":"first","scopes":["admin:*"]}"#);
    let created = answered(201, create).await;
    assert_eq!(created.headers()[CACHE_CONTROL], "no-store");
    let created: Value = created.json().await.unwrap();
    let secret = created["secret"].as_str().unwrap();
    assert_eq!(secret.split('_').collect::<Vec<_>>()[..2], ["kw", created["id"].as_str().unwrap()]);

    refused(401, "unauthenticated", server.get(STORES)).await;
    refused(401, "unauthenticated", server.post("/v1/keys", r#"{"name":"mine"}"#)).await;
    answered(200, server.get(STORES).bearer_auth(secret)).await;
    let listed = answered(200, server.get("/v1/keys").bearer_auth(secret)).await;
    let text = listed.text().await.unwrap();
    assert!(text.contains(created["id"].as_str().unwrap()) && !text.contains(secret), "{text}");
    assert!(!text.contains("hash"), "{text}");
}

#[tokio::test]
async fn the_first_key_needs_the_start_token_which_works_once() {
    let server = Running::new().await;
    let token = server.start_token.clone().unwrap();
    let body = r#"{"name":"first","scopes":["admin:*"]}"#;
    let other = Running::new().await.start_token.clone().unwrap();
    for wrong in ["", "kw_start_", &other, &token[..token.len() - 1]] {
        let problem =
            refused(403, "forbidden", server.post("/v1/keys", body).bearer_auth(wrong)).await;
        let hint = problem["hint"].as_str().unwrap();
        for way in ["keyward key create", "--first-key-file", "KEYWARD_FIRST_KEY", "start token"] {
            assert!(hint.contains(way), "{hint}");
        }
        assert!(!problem.to_string().contains(&token), "{problem}");
    }
    refused(403, "forbidden", server.post("/v1/keys", body)).await;
    // What comes to nothing does not use it up.
    refused(400, "invalid", server.first_key(r#"{"name":""}"#)).await;
    refused(415, "unsupported-media-type", {
        let untyped = server.request(Method::POST, "/v1/keys").body(body);
        untyped.bearer_auth(&token)
    })
    .await;
    answered(200, server.get(STORES)).await;

    // Of many at a time, one makes the key.
    let all = (0..20).map(|_| server.first_key(body).send());
    let all = futures_util::future::join_all(all).await;
    let made = all.iter().filter(|answer| answer.as_ref().unwrap().status() == 201).count();
    assert_eq!(made, 1);
    refused(401, "unauthenticated", server.first_key(body)).await;
    refused(401, "unauthenticated", server.get(STORES).bearer_auth(&token)).await;
}

#[tokio::test]
async fn a_request_that_began_before_the_first_key_makes_no_second_one() {
    let server = Running::new().await;
    let body = r#"{"name":"mine","scopes":["admin:*"]}"#;
    let (sender, held) = tokio::sync::oneshot::channel::<()>();
    let begun = std::sync::Arc::new(tokio::sync::Notify::new());
    let reached = begun.clone();
    let late = futures_util::stream::once(async move {
        reached.notify_one();
        let _ = held.await;
        Ok::<_, std::io::Error>(body)
    });
    // Its credential is looked at while there is no key yet.
    let slow = server.request(Method::POST, "/v1/keys").header("content-type", "application/json");
    let slow = tokio::spawn(slow.body(reqwest::Body::wrap_stream(late)).send());
    begun.notified().await;
    for _ in 0..20 {
        answered(200, server.get(STORES)).await;
    }
    let admin = server.admin().await;
    drop(sender);
    let status = slow.await.unwrap().unwrap().status();
    assert!(status == 401 || status == 403, "{status}");
    let keys = told(200, server.get("/v1/keys").bearer_auth(&admin.secret)).await;
    assert_eq!(keys["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_request_needs_the_start_token_where_that_is_asked_for() {
    let config = Config { start_token: true, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let token = server.start_token.clone().unwrap();
    let entry = "/v1/stores/main/entries/a";
    refused(401, "unauthenticated", server.get(STORES)).await;
    refused(401, "unauthenticated", server.put(entry, "1").bearer_auth("kw_start_0")).await;
    refused(401, "unauthenticated", server.post("/mcp", "{}")).await;
    answered(200, server.put(entry, "1").bearer_auth(&token)).await;
    assert_eq!(told(200, server.get(entry).bearer_auth(&token)).await, 1);
    answered(200, server.get("/healthz")).await;
    let admin = server.admin().await;
    refused(401, "unauthenticated", server.get(entry).bearer_auth(&token)).await;
    assert_eq!(told(200, server.get(entry).bearer_auth(&admin.secret)).await, 1);
}

#[tokio::test]
async fn a_key_that_is_brought_along_is_the_first_one_and_only_that() {
    let folder = tempfile::tempdir().unwrap();
    let data = without_schema(&format!("embedded:{}", folder.path().display())).unwrap();
    let secret = |letter: &str| format!("kw_{}_{}", letter.repeat(8), letter.repeat(52));
    let bringing =
        |letter: &str| Config { first_key: Some(secret(letter).parse().unwrap()), ..configured() };
    for _ in 0..2 {
        let server = Running::start(&bringing("a"), &data).await;
        assert_eq!(server.start_token, None);
        refused(401, "unauthenticated", server.get(STORES)).await;
        let keys = told(200, server.get("/v1/keys").bearer_auth(secret("a"))).await;
        assert_eq!(keys["items"].as_array().unwrap().len(), 1, "{keys}");
        assert_eq!(keys["items"][0]["scopes"], json!(["admin:*"]));
        server.stop().await;
    }
    let server = Running::start(&bringing("b"), &data).await;
    refused(401, "unauthenticated", server.get(STORES).bearer_auth(secret("b"))).await;
    answered(200, server.get(STORES).bearer_auth(secret("a"))).await;
    assert!("kw_short".parse::<keyward_server::Secret>().is_err());
}

/// The whole answer to a request without a valid credential.
async fn turned_away(request: RequestBuilder) -> (String, Value) {
    let answer = answered(401, request).await;
    let challenge = answer.headers()[WWW_AUTHENTICATE].to_str().unwrap().to_owned();
    (challenge, answer.json().await.unwrap())
}

#[tokio::test]
async fn no_answer_tells_what_is_wrong_with_a_credential() {
    let clock = TestClock::new();
    let config = Config { clock: Arc::new(clock.clone()), ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let foreign = Running::new().await.admin().await;
    let admin = server.admin().await;
    let brief = json!({"name": "brief", "expires": "2026-01-01T00:01:00Z"});
    let expiring = server.key(&admin, &brief).await;
    let revoked = server.key(&admin, &json!({"name": "revoked"})).await;
    for made in [&expiring, &revoked] {
        answered(200, server.get(STORES).bearer_auth(&made.secret)).await;
    }
    let revoke = server.request(Method::DELETE, &format!("/v1/keys/{}", revoked.id));
    answered(200, revoke.bearer_auth(&admin.secret)).await;
    clock.advance(Duration::from_secs(60));

    let expected = turned_away(server.get(STORES)).await;
    assert_eq!(expected.0, "Bearer");
    assert_eq!(expected.1["code"], "unauthenticated");
    let get = || server.get(STORES);
    let mut wrong = vec![
        get().bearer_auth(&foreign.secret),
        get().bearer_auth(&expiring.secret),
        get().bearer_auth(&revoked.secret),
        get().bearer_auth(""),
        get().bearer_auth("kw_"),
        get().bearer_auth(format!("kw_{}_", admin.id)),
        get().bearer_auth(format!("{}0", admin.secret)),
        get().bearer_auth(admin.secret.to_uppercase()),
        get().basic_auth("admin", Some(&admin.secret)),
        get().header(AUTHORIZATION, &admin.secret),
        get().bearer_auth(&admin.secret).header(AUTHORIZATION, "Bearer x"),
        server.get(&format!("{STORES}?access_token={}", admin.secret)),
    ];
    // The id of one key with the secret of another.
    let (start, _) = admin.secret.rsplit_once('_').unwrap();
    let (_, end) = foreign.secret.rsplit_once('_').unwrap();
    wrong.push(get().bearer_auth(format!("{start}_{end}")));
    for at in 0..admin.secret.len() {
        let mut tampered = admin.secret.clone().into_bytes();
        tampered[at] = if tampered[at] == b'0' { b'1' } else { b'0' };
        wrong.push(get().bearer_auth(String::from_utf8(tampered).unwrap()));
    }
    for request in wrong {
        let shown = format!("{request:?}");
        assert_eq!(turned_away(request).await, expected, "{shown}");
    }
    answered(200, get().bearer_auth(&admin.secret)).await;

    let metrics = answered(200, server.get("/metrics")).await.text().await.unwrap();
    for reason in ["missing", "malformed", "unknown", "wrong", "expired", "revoked"] {
        let counted = format!("keyward_credentials_refused_total{{reason=\"{reason}\"}}");
        assert!(metrics.contains(&counted), "{reason}: {metrics}");
    }
}

#[tokio::test]
async fn a_key_that_makes_no_sense_is_not_made() {
    let server = Running::new().await;
    let admin = server.admin().await;
    for body in [
        json!({"name": ""}),
        json!({"name": "a\nb"}),
        json!({"name": "a", "scopes": []}),
        json!({"name": "a", "scopes": ["everything"]}),
        json!({"name": "a", "user": "7", "scopes": ["admin:*"]}),
        json!({"name": "a", "user": "7", "scopes": ["read:*", "admin:store/main"]}),
        json!({"name": "a", "roles": ["editor"]}),
        json!({"name": "a", "expires": "2020-01-01T00:00:00Z"}),
        json!({"name": "a", "id": "mine"}),
        json!({}),
    ] {
        let create = server.post("/v1/keys", &body.to_string()).bearer_auth(&admin.secret);
        refused(400, "invalid", create).await;
    }
    let twice = server.post("/v1/keys", r#"{"name":"a"}"#).bearer_auth(&admin.secret);
    refused(400, "invalid", twice.header("idempotency-key", "k")).await;
    let keys = told(200, server.get("/v1/keys").bearer_auth(&admin.secret)).await;
    assert_eq!(keys["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn keys_are_listed_in_pages() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let mut made = vec![admin.id.clone()];
    for n in 0..4 {
        made.push(server.key(&admin, &json!({"name": format!("key {n}")})).await.id);
    }
    made.sort();
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/keys?limit=2{cursor}")).bearer_auth(&admin.secret);
        let page = told(200, page).await;
        let ids = page["items"].as_array().unwrap().iter();
        listed.extend(ids.map(|key| key["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(listed, made);
    let none = server.request(Method::DELETE, "/v1/keys/none").bearer_auth(&admin.secret);
    refused(404, "not-found", none).await;
}

/// A request on each route that is declared, with something in the place of variables.
fn every_route(server: &Running, secret: &str) -> Vec<(String, RequestBuilder)> {
    let described = serde_json::to_value(keyward_server::openapi()).unwrap();
    let encoded = |ticket: Value| BASE64URL_NOPAD.encode(ticket.to_string().as_bytes());
    let lock = json!({"root": "a", "id": "x", "token": 1});
    let began = "2026-01-01T00:00:00Z";
    let computation = json!({"key": "a", "lock": lock, "source": "constant", "began": began});
    let (lock, computation) = (encoded(lock), encoded(computation));
    let of_lock = json!({"ticket": lock}).to_string();
    let of_computation = json!({"ticket": computation}).to_string();
    let failed = json!({"ticket": computation, "message": "x"}).to_string();
    let mut requests = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) else { continue };
            let filled = path.replace("{store}", "main").replace("{key}", "a");
            let body = match path.rsplit('/').next().unwrap() {
                "commit" => r#"{"writes":[{"put":{"key":"a","value":1}}]}"#,
                "get" => r#"{"keys":["a"]}"#,
                "keys" => r#"{"name":"mine"}"#,
                "acquire" => r#"{"root":"a"}"#,
                "break" => r#"{"root":"a","token":1,"reason":"x"}"#,
                "renew" | "release" if path.contains("/locks/") => &of_lock,
                "renew" | "release" => &of_computation,
                "fail" => &failed,
                _ => "{}",
            };
            let request = server.sent(method.clone(), &filled, body).bearer_auth(secret);
            let request = request.header("keyward-ticket", &computation);
            requests.push((format!("{method} {path}"), request));
        }
    }
    requests
}

#[tokio::test]
async fn every_route_asks_what_the_key_allows() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let put = server.put("/v1/stores/main/entries/a", "1").bearer_auth(&admin.secret);
    answered(200, put).await;
    let nothing = json!({"name": "nothing", "scopes": ["write:store/other", "write:space/none"]});
    let nothing = server.key(&admin, &nothing).await;
    let mut known = 0;
    for (route, request) in every_route(&server, &nothing.secret) {
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        let lists =
            ["GET /v1/stores", "GET /v1/spaces", "GET /v1/registries", "GET /v1/agreements"];
        let closed = ["/v1/stores/", "/v1/keys", "/v1/registries/", "/v1/agreements/"];
        if lists.contains(&route.as_str()) {
            assert_eq!(text, r#"{"items":[]}"#);
        } else if route == "GET /v1/schema" {
            assert_eq!(text, r#"{"text":"[stores]\n","values":{}}"#);
        } else if route.ends_with("/webhook") {
            // It goes by a signature, and not by a credential; and there is none.
            assert_eq!(status, 404, "{route}: {text}");
        } else if closed.iter().any(|at| route.contains(at)) {
            assert_eq!(status, 403, "{route}: {text}");
            known += 1;
        } else {
            assert!(status.is_client_error(), "{route}: {status} {text}");
        }
    }
    assert!(known >= 11, "{known} routes were looked at");
    let get = server.get("/v1/stores/main/entries/a").bearer_auth(&admin.secret);
    assert_eq!(told(200, get).await, 1);
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say_and_no_more() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let entry = "/v1/stores/main/entries/a";
    let scoped = |scope: &str| json!({"name": scope, "scopes": [scope]});
    let reader = server.key(&admin, &scoped("read:store/main")).await.secret;
    let writer = server.key(&admin, &scoped("write:store/main")).await.secret;
    let keeper = server.key(&admin, &scoped("admin:store/main")).await.secret;
    answered(200, server.put(entry, "1").bearer_auth(&writer)).await;
    for key in [&reader, &writer, &keeper] {
        assert_eq!(told(200, server.get(entry).bearer_auth(key)).await, 1);
        let watch = server.get("/v1/stores/main/watch").bearer_auth(key);
        answered(200, watch).await;
        for admins in [
            server.get("/v1/keys"),
            server.post("/v1/keys", r#"{"name":"more","scopes":["admin:*"]}"#),
            server.request(Method::DELETE, &format!("/v1/keys/{}", admin.id)),
            server.get("/v1/audit"),
        ] {
            refused(403, "forbidden", admins.bearer_auth(key)).await;
        }
        let own = server.get("/v1/stores/main/entries/system:server:keys").bearer_auth(key);
        refused(403, "reserved", own).await;
    }
    let commit = r#"{"writes":[{"put":{"key":"a","value":2}}]}"#;
    for change in [
        server.put(entry, "2"),
        server.sent(Method::PATCH, entry, "2"),
        server.request(Method::DELETE, entry),
        server.post("/v1/stores/main/commit", commit),
    ] {
        let problem = refused(403, "forbidden", change.bearer_auth(&reader)).await;
        assert_eq!(problem["needs"], "write:store/main");
    }
    assert_eq!(told(200, server.get(entry).bearer_auth(&reader)).await, 1);
    answered(200, server.get("/v1/keys").bearer_auth(&admin.secret)).await;
}

#[tokio::test]
async fn nobody_reaches_what_is_kept_of_keys_as_entries() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let key = format!("/v1/stores/main/entries/system:server:keys:{}", admin.id);
    let commit =
        format!(r#"{{"writes":[{{"delete":{{"key":"system:server:keys:{}"}}}}]}}"#, admin.id);
    for request in [
        server.get(&key),
        server.put(&key, "{}"),
        server.request(Method::DELETE, &key),
        server.post("/v1/stores/main/commit", &commit),
        server.get("/v1/stores/main/entries?prefix=system:server:"),
        server.get("/v1/stores/main/watch?prefix=system:server:keys:"),
    ] {
        refused(403, "reserved", request.bearer_auth(&admin.secret)).await;
    }
    let all = told(200, server.get("/v1/stores/main/entries").bearer_auth(&admin.secret)).await;
    assert_eq!(all["items"], json!([]));
}
