//! Entries: reading, writing, conditions, listings, commits, requests that are sent again.

use reqwest::Method;
use serde_json::json;

use crate::fixture::{Running, answered, etag, refused, told};

const ADA: &str = "/v1/stores/main/entries/user:7:name";

#[tokio::test]
async fn what_is_put_is_read_back_with_its_version() {
    let server = Running::new().await;
    let stored = answered(200, server.put(ADA, r#"{ "n": 12345678901234567890123 }"#)).await;
    let version = etag(&stored);
    let read = answered(200, server.get(ADA)).await;
    assert_eq!(etag(&read), version);
    assert_eq!(read.headers()["content-type"], "application/json");
    assert_eq!(read.text().await.unwrap(), r#"{"n":12345678901234567890123}"#);

    let again = server.get(ADA).header("if-none-match", &version);
    assert_eq!(answered(304, again).await.text().await.unwrap(), "");
    answered(200, server.get(ADA).header("if-none-match", "\"other\"")).await;

    answered(204, server.request(Method::DELETE, ADA)).await;
    refused(404, "not-found", server.request(Method::DELETE, ADA)).await;
    refused(404, "not-found", server.get(ADA)).await;
}

#[tokio::test]
async fn an_entry_has_metadata_and_an_end() {
    let server = Running::new().await;
    let body = r#"{"value":1,"metadata":{"by":"ada"},"ttl":3600}"#;
    answered(200, server.put(&format!("{ADA}?view=entry"), body)).await;
    let entry = told(200, server.get(&format!("{ADA}?view=entry"))).await;
    assert_eq!(entry["metadata"], json!({"by": "ada"}));
    assert_eq!((entry["value"].as_u64(), entry["key"].as_str()), (Some(1), Some("user:7:name")));
    let read = answered(200, server.get(ADA)).await;
    assert_eq!(read.headers()["keyward-expires"], entry["expires"].as_str().unwrap());

    let patch = server.sent(Method::PATCH, ADA, r#"{"n":2}"#);
    answered(200, patch).await;
    let patched = told(200, server.get(&format!("{ADA}?view=entry"))).await;
    assert_eq!(patched["value"], json!({"n": 2}));
    assert_eq!(
        (&patched["metadata"], &patched["expires"]),
        (&entry["metadata"], &entry["expires"])
    );

    refused(400, "invalid", server.put(&format!("{ADA}?ttl=0"), "1")).await;
    refused(400, "invalid", server.put(&format!("{ADA}?view=entry"), r#"{"value":1,"tttl":1}"#))
        .await;
}

#[tokio::test]
async fn a_change_is_made_only_if_its_condition_holds() {
    let server = Running::new().await;
    let create = || server.put(ADA, "1").header("if-none-match", "*");
    refused(412, "precondition-failed", server.put(ADA, "0").header("if-match", "*")).await;
    let first = etag(&answered(201, create()).await);
    refused(412, "precondition-failed", create()).await;
    let second = server.put(ADA, "2").header("if-match", format!("\"x\", {first}"));
    let second = etag(&answered(200, second).await);
    for late in [server.put(ADA, "3"), server.request(Method::DELETE, ADA)] {
        refused(412, "precondition-failed", late.header("if-match", &first)).await;
    }
    let patch = server.sent(Method::PATCH, ADA, "3").header("if-match", &first);
    refused(412, "precondition-failed", patch).await;
    let weak = server.put(ADA, "3").header("if-match", format!("W/{second}"));
    refused(412, "precondition-failed", weak).await;
    refused(400, "invalid", server.put(ADA, "3").header("if-match", "no quotes")).await;
    assert_eq!(told(200, server.get(ADA)).await, json!(2));
    answered(204, server.request(Method::DELETE, ADA).header("if-match", &second)).await;
}

#[tokio::test]
async fn a_merge_patch_changes_members_and_removes_those_that_are_null() {
    let server = Running::new().await;
    let patch = |body: &'static str| {
        let request = server.request(Method::PATCH, ADA).body(body);
        request.header("content-type", "application/merge-patch+json; charset=utf-8")
    };
    answered(200, patch(r#"{"a":{"b":1},"n":10000000000000000000000}"#)).await;
    answered(200, patch(r#"{"a":{"b":null,"c":2}}"#)).await;
    let read = answered(200, server.get(ADA)).await.text().await.unwrap();
    assert_eq!(read, r#"{"a":{"c":2},"n":10000000000000000000000}"#);
}

#[tokio::test]
async fn writers_of_one_counter_lose_nothing() {
    let server = Running::new().await;
    answered(200, server.put(ADA, r#"{"n":0}"#)).await;
    let count = |_| async {
        loop {
            let read = answered(200, server.get(ADA)).await;
            let version = etag(&read);
            let n = read.json::<serde_json::Value>().await.unwrap()["n"].as_u64().unwrap();
            let next = server.put(ADA, &json!({"n": n + 1}).to_string());
            if next.header("if-match", version).send().await.unwrap().status() == 200 {
                return;
            }
        }
    };
    futures_util::future::join_all((0..20).map(count)).await;
    assert_eq!(told(200, server.get(ADA)).await, json!({"n": 20}));
}

#[tokio::test]
async fn a_listing_is_paged_by_a_cursor_that_cannot_be_changed() {
    let server = Running::new().await;
    for n in 0..25 {
        answered(200, server.put(&format!("/v1/stores/main/entries/a:{n:02}"), &n.to_string()))
            .await;
    }
    answered(200, server.put("/v1/stores/main/entries/ab:1", "0")).await;
    let list =
        |more: &str| server.get(&format!("/v1/stores/main/entries?prefix=a:&limit=10{more}"));
    let mut seen = Vec::new();
    let mut next = String::new();
    loop {
        let page = told(200, list(&next)).await;
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["key"].clone()));
        let Some(cursor) = page["next"].as_str() else { break };
        next = format!("&cursor={cursor}");
    }
    assert_eq!(seen, (0..25).map(|n| json!(format!("a:{n:02}"))).collect::<Vec<_>>());

    refused(400, "bad-cursor", list(&format!("{next}&descending=true"))).await;
    refused(400, "bad-cursor", list(&format!("{next}x"))).await;
    refused(400, "bad-cursor", list("&cursor=AAAA")).await;
    refused(400, "invalid", server.get("/v1/stores/main/entries?limit=1001")).await;
    refused(400, "invalid", server.get("/v1/stores/main/entries?limt=1")).await;

    let levels = told(200, server.get("/v1/stores/main/entries?depth=1")).await;
    assert_eq!(levels["items"], json!([{"prefix": "a:"}, {"prefix": "ab:"}]));
    // Deeper than any key can be.
    let keys = told(200, list(&format!("&depth={}", usize::MAX))).await;
    assert_eq!(keys["items"][0]["key"], "a:00");
    let values = told(200, list("&values=true")).await;
    assert_eq!(values["items"][3]["value"], json!(3));
}

#[tokio::test]
async fn a_commit_is_done_whole_or_not_at_all() {
    let server = Running::new().await;
    let commit = |body: &str| server.post("/v1/stores/main/commit", body);
    let body = r#"{"checks":[{"key":"a","version":null}],
        "writes":[{"put":{"key":"a","value":{"x":1},"metadata":{"m":1},"ttl":60}},
                  {"add":{"key":"n","amount":5}},{"delete":{"key":"gone"}}]}"#;
    let done = told(200, commit(body)).await;
    assert!(done["versions"][0].is_string() && done["versions"][2].is_null(), "{done}");
    let conflict = refused(412, "precondition-failed", commit(body)).await;
    assert_eq!(conflict["failed"], json!([{"check": 0, "key": "a"}]));
    let version = &done["versions"][0];
    let next = json!({"checks": [{"key": "a", "version": version}],
                      "writes": [{"add": {"key": "n", "amount": 1}}]});
    answered(200, commit(&next.to_string())).await;

    let asked = r#"{"keys":["n","none","a"]}"#;
    let read = told(200, server.post("/v1/stores/main/get", asked)).await;
    assert_eq!(read["entries"][0]["value"], json!(6));
    assert!(read["entries"][1].is_null());
    assert_eq!(read["entries"][2]["metadata"], json!({"m": 1}));

    for bad in ["{}", "[]", "", r#"{"writes":[{"put":{"key":"a"}}]}"#, r#"{"writes":[{}]}"#] {
        refused(400, "invalid", commit(bad)).await;
    }
    let twice = r#"{"writes":[{"delete":{"key":"n"}},{"delete":{"key":"n"}}]}"#;
    refused(400, "invalid", commit(twice)).await;
    assert_eq!(told(200, server.get("/v1/stores/main/entries/n")).await, json!(6));
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_done_once() {
    let server = Running::new().await;
    let put = |body: &str| server.put(ADA, body).header("idempotency-key", "k1");
    let first = answered(200, put("1")).await;
    answered(200, server.put(ADA, "2")).await;
    let again = answered(200, put("1")).await;
    assert_eq!(etag(&again), etag(&first));
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(told(200, server.get(ADA)).await, json!(2));
    refused(422, "idempotency-reuse", put("3")).await;
    refused(400, "invalid", server.put(ADA, "3").header("idempotency-key", "x".repeat(256))).await;

    let add = || {
        let body = r#"{"writes":[{"add":{"key":"n","amount":1}},{"delete":{"key":"d"}}]}"#;
        server.post("/v1/stores/main/commit", body).header("idempotency-key", "k2")
    };
    let sent = (0..10).map(|_| async { told(200, add()).await["versions"].clone() });
    let versions = futures_util::future::join_all(sent).await;
    assert!(versions.iter().all(|given| *given == versions[0]), "{versions:?}");
    assert_eq!(told(200, server.get("/v1/stores/main/entries/n")).await, json!(1));

    let delete = || server.request(Method::DELETE, ADA).header("idempotency-key", "k3");
    answered(204, delete()).await;
    answered(200, server.put(ADA, "5")).await;
    answered(204, delete()).await;
    assert_eq!(told(200, server.get(ADA)).await, json!(5));

    let other = "/v1/stores/main/entries/other";
    let delete = || server.request(Method::DELETE, other).header("idempotency-key", "k4");
    refused(404, "not-found", delete()).await;
    answered(200, server.put(other, "6")).await;
    refused(404, "not-found", delete()).await;
    assert_eq!(told(200, server.get(other)).await, json!(6));
}

#[tokio::test]
async fn a_failed_condition_is_not_remembered() {
    let server = Running::new().await;
    let put = || server.put(ADA, "1").header("if-match", "*").header("idempotency-key", "k1");
    refused(412, "precondition-failed", put()).await;
    answered(200, server.put(ADA, "0")).await;
    answered(200, put()).await;
}

#[tokio::test]
async fn keywards_own_keys_cannot_be_reached() {
    let server = Running::new().await;
    answered(200, server.put(ADA, "1").header("idempotency-key", "k1")).await;
    for key in ["system:idempotency:x", "system:cursor-secret"] {
        let path = format!("/v1/stores/main/entries/{key}");
        refused(403, "reserved", server.get(&path)).await;
        refused(403, "reserved", server.put(&path, "1")).await;
        refused(403, "reserved", server.request(Method::DELETE, &path)).await;
        let body = json!({"writes": [{"delete": {"key": key}}]}).to_string();
        refused(403, "reserved", server.post("/v1/stores/main/commit", &body)).await;
        let body = json!({"checks": [{"key": key, "version": null}]}).to_string();
        refused(403, "reserved", server.post("/v1/stores/main/commit", &body)).await;
        let body = json!({"keys": [key]}).to_string();
        refused(403, "reserved", server.post("/v1/stores/main/get", &body)).await;
    }
    refused(403, "reserved", server.get("/v1/stores/main/entries?prefix=system:")).await;
    refused(403, "reserved", server.put("/v1/stores/main/entries/queue:q:1", "1")).await;
    let all = told(200, server.get("/v1/stores/main/entries?values=true")).await;
    assert_eq!(all["items"].as_array().unwrap().len(), 1, "{all}");
}

#[tokio::test]
async fn a_record_is_not_written_past_its_indexes() {
    let schema = "[stores.main]\nurl = 'memory:'\n[spaces.notes]\nkey = 'notes:{id}'\nownership = 'shared'\n";
    let server = Running::with_schema(schema).await;
    let problem =
        refused(403, "reserved", server.put("/v1/stores/main/entries/notes:1", "1")).await;
    assert!(problem["hint"].as_str().unwrap().contains("/v1/spaces/notes/records/notes:1"));
    answered(200, server.put("/v1/stores/main/entries/other:1", "1")).await;
}

#[tokio::test]
async fn entries_of_indexes_are_listed_when_they_are_asked_for() {
    let schema = "[stores.main]\nurl = 'memory:'\n[spaces.notes]\nkey = 'notes:{id}'\nownership = 'shared'\n\
                  [spaces.notes.indexes.by_title]\nfield = 'title'\ntype = 'text'\n";
    let server = Running::with_schema(schema).await;
    for n in 0..5 {
        let path = format!("/v1/spaces/notes/records/notes:{n}");
        answered(201, server.put(&path, &format!(r#"{{"title":"t{n}"}}"#))).await;
        answered(200, server.put(&format!("/v1/stores/main/entries/a:{n}"), "1")).await;
    }
    let listed = async |how: &str| {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/stores/main/entries?limit=3{how}{cursor}");
            let page = told(200, server.get(&path)).await;
            for item in page["items"].as_array().unwrap() {
                let name = item.get("key").filter(|key| key.is_string()).unwrap_or(&item["prefix"]);
                found.push(name.as_str().unwrap().split(':').next().unwrap().to_owned());
            }
            let Some(next) = page["next"].as_str() else { break found };
            cursor = format!("&cursor={next}");
        }
    };
    for how in ["", "&values=true", "&descending=true"] {
        let mut found = listed(how).await;
        found.sort();
        assert_eq!(found, [["a"; 5], ["notes"; 5]].concat(), "{how}");
        let mut found = listed(&format!("{how}&all=true")).await;
        found.sort();
        assert_eq!(found, [["a"; 5], ["index"; 5], ["notes"; 5]].concat(), "{how}");
    }
    assert_eq!(listed("&depth=1").await, ["a", "notes"]);
    assert_eq!(listed("&depth=1&all=true").await, ["a", "index", "notes"]);
    assert_eq!(listed("&prefix=index:").await, ["index"; 5]);
    // A cursor belongs to the listing that it is from.
    let page = told(200, server.get("/v1/stores/main/entries?limit=3")).await;
    let next = page["next"].as_str().unwrap();
    let other = server.get(&format!("/v1/stores/main/entries?limit=3&all=true&cursor={next}"));
    assert_eq!(other.send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn a_key_is_one_segment_of_the_path() {
    let server = Running::new().await;
    let path = "/v1/stores/main/entries/files:apache%2Frepo:100%2525:%EA%B5%AD";
    answered(200, server.put(path, "1")).await;
    let listed = told(200, server.get("/v1/stores/main/entries")).await;
    assert_eq!(listed["items"], json!([{"key": "files:apache/repo:100%25:국"}]));
    assert_eq!(told(200, server.get(path)).await, json!(1));
    refused(404, "not-found", server.get("/v1/stores/main/entries/files:apache/repo")).await;
    refused(400, "invalid", server.get("/v1/stores/main/entries/a:%FF")).await;
    refused(400, "invalid", server.get("/v1/stores/main/entries/a:%25")).await;
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused() {
    let server = Running::new().await;
    let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    for bad in ["", "{", r#"{"a":1,"a":2}"#, "nul", "1 2", &deep] {
        refused(400, "invalid", server.put(ADA, bad)).await;
    }
    let not_text = server.put(ADA, "").body(vec![b'"', 0xff, b'"']);
    refused(400, "invalid", not_text).await;
    refused(413, "limit-exceeded", server.put(ADA, &format!("\"{}\"", "x".repeat(1 << 20)))).await;
    let form = server.request(Method::PUT, ADA).header("content-type", "text/plain").body("1");
    refused(415, "unsupported-media-type", form).await;
    let untyped = server.request(Method::PUT, ADA).body("1");
    refused(415, "unsupported-media-type", untyped).await;
    refused(400, "invalid", server.request(Method::PUT, ADA)).await;
    refused(404, "unknown-store", server.get("/v1/stores/none/entries/a")).await;
    refused(405, "method-not-allowed", server.request(Method::POST, ADA)).await;
    refused(404, "not-found", server.get("/v1/none")).await;
    refused(404, "not-found", server.get(ADA)).await;
}

#[tokio::test]
async fn entries_below_a_prefix_are_removed_when_their_number_is_confirmed() {
    let server = Running::new().await;
    for n in 0..5 {
        answered(200, server.put(&format!("/v1/stores/main/entries/team:a:{n}"), "1")).await;
    }
    answered(200, server.put("/v1/stores/main/entries/team:b:0", "1")).await;
    let entries = "/v1/stores/main/entries";
    let clear = |more: &str| server.request(Method::DELETE, &format!("{entries}?{more}"));
    refused(400, "invalid", server.request(Method::DELETE, entries)).await;
    let problem = refused(409, "unconfirmed", clear("prefix=team:a:")).await;
    assert_eq!(problem["count"], 5, "{problem}");
    refused(409, "unconfirmed", clear("prefix=team:a:&confirm=4")).await;
    refused(403, "reserved", clear("prefix=system:&confirm=0")).await;
    let counted = told(200, clear("prefix=team:a:&dry_run=true")).await;
    assert_eq!(counted, json!({ "count": 5, "deleted": 0 }));
    let removed = told(200, clear("prefix=team:a:&confirm=5")).await;
    assert_eq!(removed, json!({ "count": 5, "deleted": 5 }));
    let left = told(200, server.get(&format!("{entries}?prefix=team:"))).await;
    assert_eq!(left["items"], json!([{ "key": "team:b:0" }]));
    // A root of locks is not removed past its locks, and nothing beside it is then.
    let lock = server.post("/v1/stores/main/locks/acquire", r#"{"root":"team:b:root"}"#);
    answered(200, lock).await;
    refused(403, "reserved", clear("prefix=team:&confirm=2")).await;
    answered(200, server.get(&format!("{entries}/team:b:0"))).await;
}

#[tokio::test]
async fn entries_of_others_and_of_spaces_are_not_removed_by_their_prefix() {
    let server = crate::spaces::served().await;
    let note = "/v1/spaces/notes/records/user:ada:notes:n1";
    answered(201, server.put(note, r#"{"title":"t"}"#)).await;
    for key in ["user:ada:x", "user:bob:x", "shared:x"] {
        answered(200, server.put(&format!("/v1/stores/app/entries/{key}"), "1")).await;
    }
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({ "name": "a", "user": "ada" })).await.secret;
    let clear = |prefix: &str, count: usize| {
        let path = format!("/v1/stores/app/entries?prefix={prefix}&confirm={count}");
        server.request(Method::DELETE, &path).bearer_auth(&ada)
    };
    refused(403, "forbidden", clear("user:bob:", 1)).await;
    refused(403, "forbidden", clear("shared:", 1)).await;
    refused(403, "forbidden", clear("", 3)).await;
    // A record is removed as one, and nothing is removed beside it.
    refused(403, "reserved", clear("user:ada:", 2)).await;
    for key in ["user:ada:x", "user:bob:x", "shared:x"] {
        let read = server.get(&format!("/v1/stores/app/entries/{key}"));
        answered(200, read.bearer_auth(&admin.secret)).await;
    }
}
