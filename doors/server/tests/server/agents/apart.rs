//! Users, agents and scopes: what is another's stays out of reach, and nobody is told whether it is there.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{NAMESPACE, by, entry, two_users};
use crate::fixture::{Running, answered, refused, told};

fn filled(server: &Running, secret: &str, key: &str, value: &str) -> RequestBuilder {
    let body = json!({"value": value, "metadata": {"of": value}}).to_string();
    by("a", server.put(&entry(key), &body)).bearer_auth(secret).header("keyward-run", "r1")
}

#[tokio::test]
async fn the_user_comes_from_the_credential() {
    let (server, admin, ada, bob) = two_users().await;
    answered(201, filled(&server, &ada.secret, "k", "ada's")).await;
    answered(201, filled(&server, &bob.secret, "k", "bob's")).await;
    for (request, user) in [
        (server.get(&entry("k")).bearer_auth(&ada.secret), "ada"),
        (server.get(&entry("k")).bearer_auth(&bob.secret), "bob"),
        (server.get(&format!("{}?user=ada", entry("k"))).bearer_auth(&ada.secret), "ada"),
        (server.get(&format!("{}?user=bob", entry("k"))).bearer_auth(&admin.secret), "bob"),
    ] {
        let document = told(200, request).await;
        assert_eq!(
            (&document["userId"], &document["value"]),
            (&json!(user), &json!(format!("{user}'s")))
        );
    }
    let nobody = server.get(&entry("k")).bearer_auth(&admin.secret);
    let problem = refused(400, "invalid", nobody).await;
    assert!(problem["hint"].as_str().unwrap().contains("?user="), "{problem}");
    for wrong in ["", "a%00b", &"x".repeat(257)] {
        let request = server.get(&format!("{}?user={wrong}", entry("k")));
        refused(400, "invalid", request.bearer_auth(&admin.secret)).await;
    }
}

#[tokio::test]
async fn nobody_reaches_another_users_entries_or_learns_of_them() {
    let (server, _, ada, bob) = two_users().await;
    for n in 0..5 {
        answered(201, filled(&server, &bob.secret, &format!("b{n}"), "SECRET")).await;
    }
    answered(201, filled(&server, &ada.secret, "own", "ada's")).await;
    let sent = |method: Method, path: &str, body: &str| {
        server.sent(method, path, body).bearer_auth(&ada.secret)
    };
    // Bob's entry and one that nobody has are told of in the same way.
    let requests = |key: &str| {
        let path = entry(key);
        let past = format!("{path}/history");
        [
            (Method::GET, path.clone(), ""),
            (Method::GET, format!("{path}/value"), ""),
            (Method::PATCH, path.clone(), r#"{"value":1}"#),
            (Method::DELETE, path.clone(), ""),
            (Method::GET, past.clone(), ""),
            (Method::POST, format!("{past}/1/restore"), ""),
            (Method::POST, format!("{past}/1/redact"), ""),
        ]
    };
    for (there, nowhere) in requests("b0").into_iter().zip(requests("c0")) {
        let mut answers = Vec::new();
        for (method, path, body) in [there, nowhere] {
            let answer = sent(method.clone(), &path, body).send().await.unwrap();
            let status = answer.status().as_u16();
            let text = answer.text().await.unwrap();
            assert!(!text.contains("SECRET"), "{method} {path}: {text}");
            answers.push((status, text.replace("c0", "b0")));
        }
        assert_eq!(answers[0], answers[1]);
    }
    // Naming him is refused, whatever there is.
    for (method, path, body) in requests("b0").into_iter().chain([
        (Method::PUT, entry("b0"), r#"{"value":1}"#),
        (Method::GET, format!("{NAMESPACE}/keys"), ""),
        (Method::GET, format!("{NAMESPACE}/entries"), ""),
        (Method::GET, format!("{NAMESPACE}/settings"), ""),
        (Method::PUT, format!("{NAMESPACE}/settings"), "{}"),
        (Method::POST, format!("{NAMESPACE}/get"), r#"{"keys":["b0"]}"#),
        (Method::POST, format!("{NAMESPACE}/set"), r#"{"entries":[{"key":"b0","value":1}]}"#),
        (Method::POST, format!("{NAMESPACE}/search"), "{}"),
        (Method::POST, "/v1/agents/search".to_owned(), "{}"),
        (Method::DELETE, NAMESPACE.to_owned(), ""),
        (Method::GET, NAMESPACE.to_owned(), ""),
        (Method::GET, "/v1/agents/namespaces".to_owned(), ""),
        (Method::GET, "/v1/agents/runs".to_owned(), ""),
        (Method::GET, "/v1/agents/runs/r1/operations".to_owned(), ""),
        (Method::GET, "/v1/agents/export".to_owned(), ""),
    ]) {
        for user in ["bob", "nobody", "Ada", "ada%20", "*"] {
            let request = sent(method.clone(), &format!("{path}?user={user}"), body);
            refused(403, "forbidden", request).await;
        }
    }
    // Listings, searches, logs and exports show her own.
    for (method, path, body) in [
        (Method::GET, format!("{NAMESPACE}/keys"), ""),
        (Method::GET, format!("{NAMESPACE}/entries"), ""),
        (Method::POST, format!("{NAMESPACE}/search"), r#"{"filter":{"value":{"exists":true}}}"#),
        (Method::POST, "/v1/agents/search".to_owned(), "{}"),
        (Method::POST, format!("{NAMESPACE}/get"), r#"{"keys":["b0","own"]}"#),
        (Method::GET, "/v1/agents/runs/r1/operations".to_owned(), ""),
        (Method::GET, "/v1/agents/export".to_owned(), ""),
        (Method::GET, NAMESPACE.to_owned(), ""),
    ] {
        let text = answered(200, sent(method, &path, body)).await.text().await.unwrap();
        assert!(!text.contains("SECRET") && !text.contains("\"b1\""), "{path}: {text}");
    }
    let stats = told(200, sent(Method::GET, NAMESPACE, "")).await;
    assert_eq!(stats["recordCount"], 1);
    let cleared = sent(Method::DELETE, &format!("{NAMESPACE}?confirm=1"), "");
    assert_eq!(told(200, cleared).await["removed"], 1);
    let left = server.get(&format!("{NAMESPACE}/keys")).bearer_auth(&bob.secret);
    assert_eq!(told(200, left).await["items"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn cursors_of_others_and_bent_ones_are_refused() {
    let (server, admin, ada, bob) = two_users().await;
    for secret in [&ada.secret, &bob.secret] {
        for n in 0..4 {
            answered(201, filled(&server, secret, &format!("k{n}"), "v")).await;
            let elsewhere = format!("/v1/agents/namespaces/other{n}/entries/k");
            answered(201, server.put(&elsewhere, r#"{"value":1}"#).bearer_auth(secret)).await;
        }
    }
    let pages = [
        format!("{NAMESPACE}/keys?limit=2"),
        format!("{NAMESPACE}/entries?limit=2"),
        "/v1/agents/namespaces?limit=2".to_owned(),
        "/v1/agents/runs/r1/operations?limit=2".to_owned(),
    ];
    for page in &pages {
        let first = told(200, server.get(page).bearer_auth(&ada.secret)).await;
        let cursor = first["next"].as_str().unwrap().to_owned();
        let with = |page: &str, cursor: &str| server.get(&format!("{page}&cursor={cursor}"));
        answered(200, with(page, &cursor).bearer_auth(&ada.secret)).await;
        refused(400, "bad-cursor", with(page, &cursor).bearer_auth(&bob.secret)).await;
        let named = with(&format!("{page}&user=bob"), &cursor).bearer_auth(&admin.secret);
        refused(400, "bad-cursor", named).await;
        for other in pages.iter().filter(|other| *other != page) {
            refused(400, "bad-cursor", with(other, &cursor).bearer_auth(&ada.secret)).await;
        }
        for at in (0..cursor.len()).step_by(7) {
            let mut bent = cursor.clone().into_bytes();
            bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
            let bent = String::from_utf8(bent).unwrap();
            refused(400, "bad-cursor", with(page, &bent).bearer_auth(&ada.secret)).await;
        }
    }
    let in_another = format!("/v1/agents/namespaces/other0/keys?limit=2&cursor={}", {
        let first = told(200, server.get(&pages[0]).bearer_auth(&ada.secret)).await;
        first["next"].as_str().unwrap().to_owned()
    });
    refused(400, "bad-cursor", server.get(&in_another).bearer_auth(&ada.secret)).await;
}

#[tokio::test]
async fn users_with_colons_are_apart() {
    let server = Running::new().await;
    let admin = server.admin().await;
    let users = ["a", "a:b", "a%3Ab", "a%", "a:", ":a", "a/b"];
    let mut keys = Vec::new();
    for user in users {
        keys.push(server.key(&admin, &json!({"name": user, "user": user})).await.secret);
    }
    let places = ["b:default", "default", "%3Adefault", "b%253Adefault"];
    for (user, secret) in users.iter().zip(&keys) {
        for place in places {
            let path = format!("/v1/agents/namespaces/{place}/entries/k");
            let put = server.put(&path, &json!({ "value": user }).to_string());
            answered(201, put.bearer_auth(secret)).await;
        }
    }
    let mut ids = std::collections::BTreeSet::new();
    for (user, secret) in users.iter().zip(&keys) {
        for place in places {
            let path = format!("/v1/agents/namespaces/{place}/entries/k");
            let document = told(200, server.get(&path).bearer_auth(secret)).await;
            assert_eq!((&document["value"], &document["userId"]), (&json!(user), &json!(user)));
            assert!(ids.insert(document["_id"].as_str().unwrap().to_owned()), "{document}");
        }
        let names = told(200, server.get("/v1/agents/namespaces").bearer_auth(secret)).await;
        assert_eq!(names["items"].as_array().unwrap().len(), places.len());
    }
}

#[tokio::test]
async fn a_credential_of_an_agent_speaks_for_no_other() {
    let (server, admin, ada, _) = two_users().await;
    let body = json!({"name": "p", "user": "ada", "agent": "planner"});
    let planner = server.key(&admin, &body).await.secret;
    let put = |request: RequestBuilder, secret: &str| request.bearer_auth(secret);
    let entry_put = || server.put(&entry("k"), r#"{"value":1}"#);
    refused(403, "forbidden", put(by("other", entry_put()), &planner)).await;
    answered(201, put(by("planner", entry_put()), &planner)).await;
    answered(200, put(entry_put(), &planner)).await;
    let document = told(200, server.get(&entry("k")).bearer_auth(&planner)).await;
    assert_eq!(
        (&document["createdByAgent"], &document["accessCount"]),
        (&json!("planner"), &json!(1))
    );
    let document = told(200, server.get(&entry("k")).bearer_auth(&ada.secret)).await;
    assert_eq!(document["accessCount"], 1);
}

#[tokio::test]
async fn scopes_are_for_namespaces_the_space_or_the_store() {
    let (server, admin, ada, _) = two_users().await;
    let other = "/v1/agents/namespaces/other/entries/k";
    for path in [&entry("k"), other] {
        answered(201, server.put(path, r#"{"value":1}"#).bearer_auth(&ada.secret)).await;
    }
    let key = |scopes: Value| {
        let body = json!({"name": "s", "user": "ada", "scopes": scopes});
        let (server, admin) = (&server, &admin);
        async move { server.key(admin, &body).await.secret }
    };
    let one = key(json!(["write:namespace/files:apache/repo"])).await;
    answered(200, server.put(&entry("k"), r#"{"value":2}"#).bearer_auth(&one)).await;
    for request in [
        server.get(other),
        server.put(other, r#"{"value":1}"#),
        server.get("/v1/agents/namespaces/files:apache/keys"),
        server.get("/v1/agents/export"),
        server.get("/v1/agents/runs/r1/operations"),
        server.post("/v1/agents/search", "{}"),
        server.post("/v1/agents/import", ""),
        server.get("/v1/stores/main/entries/user:ada:x"),
    ] {
        refused(403, "forbidden", request.bearer_auth(&one)).await;
    }
    let names = told(200, server.get("/v1/agents/namespaces").bearer_auth(&one)).await;
    assert_eq!(names["items"], json!(["files:apache/repo"]));
    let export = "/v1/agents/export?namespace=files:apache%2Frepo";
    answered(200, server.get(export).bearer_auth(&one)).await;

    for scopes in
        [json!(["read:space/agent_data_store"]), json!(["read:store/main"]), json!(["read:*"])]
    {
        let reader = key(scopes.clone()).await;
        answered(200, server.get(other).bearer_auth(&reader)).await;
        answered(200, server.get("/v1/agents/export").bearer_auth(&reader)).await;
        for request in [
            server.put(other, r#"{"value":1}"#),
            server.sent(Method::PATCH, other, r#"{"value":1}"#),
            server.request(Method::DELETE, other),
            server.request(Method::DELETE, "/v1/agents/namespaces/other?dry_run=true"),
            server.put("/v1/agents/namespaces/other/settings", "{}"),
            server
                .post("/v1/agents/namespaces/other/set", r#"{"entries":[{"key":"k","value":1}]}"#),
            server.post(&format!("{other}/history/1/restore"), ""),
            server.post(&format!("{other}/history/1/redact"), ""),
            server.post("/v1/agents/import", ""),
        ] {
            refused(403, "forbidden", request.bearer_auth(&reader)).await;
        }
    }
    let elsewhere = key(json!(["write:space/notes", "write:store/app"])).await;
    refused(403, "forbidden", server.get(other).bearer_auth(&elsewhere)).await;
    let names = server.get("/v1/agents/namespaces").bearer_auth(&elsewhere);
    refused(403, "forbidden", names).await;
}

#[tokio::test]
async fn entries_are_not_reached_as_anything_else() {
    let (server, admin, ada, bob) = two_users().await;
    answered(201, filled(&server, &bob.secret, "k", "SECRET")).await;
    let raw = "/v1/stores/main/entries/agents:bob:files%253Aapache%252Frepo:k";
    for (request, secret) in [
        (server.get(raw), &ada.secret),
        (server.put(raw, "1"), &ada.secret),
        (server.get("/v1/stores/main/entries?values=true&prefix=agents:"), &ada.secret),
        (server.get("/v1/stores/main/entries?values=true&prefix=system:"), &ada.secret),
        (server.put(raw, "1"), &admin.secret),
        (server.get("/v1/stores/main/entries/system:agent-log:bob"), &admin.secret),
    ] {
        let answer = request.bearer_auth(secret).send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        assert!(matches!(status, 400 | 403) && !text.contains("SECRET"), "{status} {text}");
    }
    let space = "/v1/spaces/agent_data_store";
    for path in
        [space.to_owned(), format!("{space}/records"), format!("{space}/records/agents:bob:n:k")]
    {
        for secret in [&ada.secret, &admin.secret] {
            refused(404, "unknown-space", server.get(&path).bearer_auth(secret)).await;
        }
    }
}
