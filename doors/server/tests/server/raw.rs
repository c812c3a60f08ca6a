//! A store as an engine: who reaches what, and that nobody reaches what the server goes by.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use keyward::schema::Schema;
use keyward::{Data, Key, KeyRange, Prefix};
use keyward_server::{Config, Quota};
use keyward_testkit::TestClock;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::fixture::{Made, Running, answered, configured, refused, told};
use crate::tokens::{Signer, trusting, with};
use crate::watching::Events;

/// The first store is also where the server keeps what it knows.
const SCHEMA: &str = r#"
    [stores.a]
    url = "memory:"
    [stores.b]
    url = "memory:"
    [spaces.notes]
    store = "a"
    key = "user:{user}:notes:{note}"
    ownership = "user"
"#;

/// A server that knows somebody, and has something to hide.
async fn guarded(config: &Config) -> (Running, Made) {
    let data = Data::new(Schema::parse(SCHEMA, "schema.toml").unwrap());
    let server = Running::start(config, &data).await;
    let admin = server.admin().await;
    let put = server.put("/v1/stores/a/entries/user:7:name", "\"Ada\"").bearer_auth(&admin.secret);
    answered(200, put.header("idempotency-key", "first")).await;
    let put = server.put("/v1/stores/a/entries/user:8:name", "\"Lin\"").bearer_auth(&admin.secret);
    answered(200, put).await;
    (server, admin)
}

struct Caller<'s> {
    server: &'s Running,
    secret: String,
    store: &'static str,
}

impl Caller<'_> {
    fn post(&self, what: &str, body: &Value) -> RequestBuilder {
        let path = format!("/v1/stores/{}/raw/{what}", self.store);
        self.server.post(&path, &body.to_string()).bearer_auth(&self.secret)
    }

    fn get(&self, keys: &[&str]) -> RequestBuilder {
        self.post("get", &json!({ "keys": keys }))
    }

    fn put(&self, key: &str) -> RequestBuilder {
        self.post("commit", &json!({"writes": [{"put": {"key": key, "value": 1}}]}))
    }

    fn watch(&self, range: &KeyRange) -> RequestBuilder {
        let end = range.end().map_or(String::new(), |end| format!("&end={}", text(end)));
        let start = text(range.start());
        let path = format!("/v1/stores/{}/raw/watch?since=0&start={start}{end}", self.store);
        self.server.get(&path).bearer_auth(&self.secret)
    }

    fn scan(&self, range: &KeyRange, more: Value) -> RequestBuilder {
        let mut body = json!({"start": text(range.start()), "limit": 1000});
        if let Some(end) = range.end() {
            body["end"] = text(end).into();
        }
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.post("scan", &body)
    }

    /// Everything that a range shows, page by page, in every form.
    async fn keys(&self, range: &KeyRange) -> Vec<String> {
        let mut shown: Option<Vec<String>> = None;
        for (order, want, limit) in
            [("ascending", "keys", 1), ("ascending", "entries", 3), ("descending", "keys", 2)]
        {
            let (mut keys, mut after) = (Vec::new(), Value::Null);
            loop {
                let more = json!({"order": order, "want": want, "limit": limit, "after": after});
                let page = told(200, self.scan(range, more)).await;
                let rows = page["rows"].as_array().unwrap();
                keys.extend(rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()));
                if page["next"].is_null() {
                    break;
                }
                let next = BASE64URL_NOPAD.decode(page["next"].as_str().unwrap().as_bytes());
                let next = Key::from_stored(next.unwrap()).to_string();
                assert!(!is_of_the_server(&next), "a cursor names {next}");
                after = page["next"].clone();
            }
            keys.sort();
            assert_eq!(shown.get_or_insert_with(|| keys.clone()), &keys, "{order} {want}");
        }
        shown.unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn is_of_the_server(key: &str) -> bool {
    key.starts_with("system:server") || key.starts_with("system:idempotency")
}

/// Keys that nobody may reach, in every spelling.
fn closed_keys(admin: &Made) -> Vec<String> {
    vec![
        format!("system:server:keys:{}", admin.id),
        "system:server:keys:evil".to_owned(),
        "system:server:keys-used:x".to_owned(),
        "system:server:audit:1:x".to_owned(),
        "system:server:usage:1:user%2F7:writes".to_owned(),
        "system:server".to_owned(),
        "system:server:".to_owned(),
        "system:idempotency:x".to_owned(),
        "%73ystem:server:keys:evil".to_owned(),
        "system:s%65rver:keys:evil".to_owned(),
    ]
}

#[tokio::test]
async fn nobody_reaches_what_the_server_goes_by() {
    let (server, admin) = guarded(&configured()).await;
    let key_of = |scope: &'static str| {
        let body = json!({"name": scope, "scopes": [scope]});
        let (server, admin) = (&server, &admin);
        async move { server.key(admin, &body).await.secret }
    };
    let user = server.key(&admin, &json!({"name": "seven", "user": "7"})).await.secret;
    let callers =
        [admin.secret.clone(), key_of("admin:store/a").await, key_of("write:*").await, user];
    for secret in &callers {
        let who = Caller { server: &server, secret: secret.clone(), store: "a" };
        for closed in closed_keys(&admin) {
            let put = json!({"put": {"key": closed, "value": 1}});
            let fine = json!({"put": {"key": "user:7:fine", "value": 1}});
            let check = json!([{"key": closed, "version": null}]);
            for attempt in [
                who.get(&[&closed]),
                who.get(&["user:7:name", &closed]),
                who.put(&closed),
                who.post("commit", &json!({"writes": [fine, put]})),
                who.post("commit", &json!({"writes": [{"delete": {"key": closed}}]})),
                who.post("commit", &json!({"writes": [{"add": {"key": closed, "amount": 1}}]})),
                who.post("commit", &json!({"checks": check, "writes": [fine]})),
                who.post("commit", &json!({"checks": check})),
                who.put(&closed).header("idempotency-key", "mine"),
            ] {
                let status = attempt.send().await.unwrap().status();
                // Spellings that are none of a key are refused as such.
                assert!([400, 403].contains(&status.as_u16()), "{closed}: {status}");
            }
        }
        for range in [
            KeyRange::under(&Prefix::parse("system:server").unwrap()),
            KeyRange::subtree(&key("system:server:keys")),
            KeyRange::exactly(&key(&format!("system:server:keys:{}", admin.id))),
            KeyRange::subtree(&key("system:idempotency")),
        ] {
            let scanned = who.scan(&range, json!({})).send().await.unwrap().status();
            let watched = who.watch(&range).send().await.unwrap().status();
            assert_eq!((scanned.as_u16(), watched.as_u16()), (403, 403), "{range:?}");
        }
    }
    // Nothing of it was done: no key came of it, and none went.
    let listed = told(200, server.get("/v1/keys").bearer_auth(&admin.secret)).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 4);
    refused(401, "unauthenticated", server.get("/v1/stores").bearer_auth("kw_evil_1")).await;
}

#[tokio::test]
async fn a_range_over_everything_passes_over_what_is_closed() {
    let (server, admin) = guarded(&configured()).await;
    let runs = json!({"name": "runs", "scopes": ["admin:store/a"]});
    let secret = server.key(&admin, &runs).await.secret;
    let who = Caller { server: &server, secret, store: "a" };
    for key in ["system:catalog:x", "system:zzz", "queue:mails:row:1", "zebra"] {
        answered(200, who.put(key)).await;
    }
    let all = [
        "queue:mails:row:1",
        "system:catalog:x",
        "system:zzz",
        "user:7:name",
        "user:8:name",
        "zebra",
    ];
    assert_eq!(who.keys(&KeyRange::all()).await, all);
    let system = ["system:catalog:x", "system:zzz"];
    assert_eq!(who.keys(&KeyRange::subtree(&key("system"))).await, system);
    // From the middle of what is closed, and with a cursor that lies in there.
    let middle = KeyRange::all().after(&key(&format!("system:server:keys:{}", admin.id)));
    assert_eq!(who.keys(&middle).await, all[2..]);
    let after = text(key("system:server:audit").as_bytes());
    let page = told(200, who.scan(&KeyRange::all(), json!({ "after": after }))).await;
    assert_eq!(page["rows"].as_array().unwrap().len(), 4, "{page}");

    // Somebody who only reads sees nothing of Keyward's own.
    let reads = json!({"name": "reads", "scopes": ["read:store/a"]});
    let secret = server.key(&admin, &reads).await.secret;
    let reader = Caller { server: &server, secret, store: "a" };
    let own = [all[0], all[3], all[4], all[5]];
    assert_eq!(reader.keys(&KeyRange::all()).await, own);
    refused(403, "reserved", reader.scan(&KeyRange::subtree(&key("system")), json!({}))).await;

    // A watch from the beginning tells the same keys, and no others.
    for (caller, shown) in [(&who, &all[..]), (&reader, &own[..])] {
        let mut events = Events::new(caller.watch(&KeyRange::all())).await;
        let mut seen = Vec::new();
        while seen.len() < shown.len() {
            let (_, changes) = events.changed().await;
            let changes = changes.as_array().unwrap().iter();
            seen.extend(changes.map(|change| change["key"].as_str().unwrap().to_owned()));
        }
        seen.sort();
        assert_eq!(seen, shown);
    }
}

#[tokio::test]
async fn keywards_own_keys_are_for_those_who_run_the_store_and_are_nobody() {
    let (server, admin) = guarded(&configured()).await;
    let made = |body: Value| {
        let (server, admin) = (&server, &admin);
        async move { server.key(admin, &body).await.secret }
    };
    let caller = |secret: String| Caller { server: &server, secret, store: "a" };
    let runs = caller(made(json!({"name": "r", "scopes": ["admin:store/a"]})).await);
    let writes = caller(made(json!({"name": "w", "scopes": ["write:*"]})).await);
    let elsewhere = caller(made(json!({"name": "e", "scopes": ["admin:store/b"]})).await);
    let user = caller(made(json!({"name": "u", "user": "7"})).await);
    let own = ["lock:a", "queue:q:1", "index:i:1", "system:queue:q", "user:7:notes:n1"];
    for key in own {
        answered(200, runs.put(key)).await;
        refused(403, "reserved", writes.put(key)).await;
        refused(403, "forbidden", elsewhere.put(key)).await;
        let status = user.put(key).send().await.unwrap().status();
        assert_eq!(status, 403, "{key}");
    }
    refused(403, "reserved", writes.get(&["system:queue:q"])).await;
    answered(200, runs.get(&own)).await;

    // A user reaches what is theirs, and nothing else.
    answered(200, user.put("user:7:mine")).await;
    answered(200, user.get(&["user:7:mine", "shared:x"])).await;
    let theirs = KeyRange::subtree(&key("user:7"));
    assert_eq!(user.keys(&theirs).await, ["user:7:mine", "user:7:name", "user:7:notes:n1"]);
    for range in [
        KeyRange::all(),
        KeyRange::under(&Prefix::parse("user").unwrap()),
        KeyRange::subtree(&key("user:8")),
        KeyRange::subtree(&key("user:70")),
        KeyRange::from_bounds(theirs.start().to_vec(), None::<Vec<u8>>),
        KeyRange::from_bounds(Vec::new(), theirs.end().map(<[u8]>::to_vec)),
    ] {
        refused(403, "forbidden", user.scan(&range, json!({}))).await;
        refused(403, "forbidden", user.watch(&range)).await;
    }
    // A cursor does not lead out of a range.
    let before = text(key("user:1").as_bytes());
    let page = told(200, user.scan(&theirs, json!({ "after": before }))).await;
    assert_eq!(page["rows"].as_array().unwrap().len(), 3, "{page}");
    refused(403, "forbidden", user.get(&["user:8:name"])).await;
    let stats = |who: &Caller<'_>| server.get("/v1/stores/a/raw/stats").bearer_auth(&who.secret);
    refused(403, "forbidden", stats(&user)).await;
    refused(403, "forbidden", stats(&elsewhere)).await;
    answered(200, stats(&writes)).await;
    // Those who run another store find nothing of this one there.
    let there = Caller { store: "b", ..elsewhere };
    assert_eq!(there.keys(&KeyRange::all()).await, Vec::<String>::new());
    refused(403, "reserved", there.put("system:server:keys:evil")).await;
}

#[tokio::test]
async fn a_token_that_says_admin_is_still_a_users() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::new();
    let data = Data::new(Schema::parse(SCHEMA, "schema.toml").unwrap());
    let server = Running::start(&trusting(folder.path(), &signer.keys()), &data).await;
    let secret = signer.token(&with("scope", json!("admin:* write:* read:*")));
    let who = Caller { server: &server, secret, store: "a" };
    answered(200, who.put("user:7:mine")).await;
    for key in ["system:server:keys:evil", "system:catalog:x", "lock:a", "user:8:name"] {
        for attempt in [who.put(key), who.get(&[key])] {
            assert_eq!(attempt.send().await.unwrap().status(), 403, "{key}");
        }
    }
    refused(403, "forbidden", who.scan(&KeyRange::all(), json!({}))).await;
    refused(403, "forbidden", who.watch(&KeyRange::all())).await;
}

#[tokio::test]
async fn a_key_that_has_ended_or_was_revoked_reaches_nothing() {
    let clock = TestClock::new();
    let config = Config { clock: Arc::new(clock.clone()), ..configured() };
    let (server, admin) = guarded(&config).await;
    let ends = json!({"name": "e", "scopes": ["admin:*"], "expires": "2026-01-01T00:01:00Z"});
    let ended = server.key(&admin, &ends).await.secret;
    let revoked = server.key(&admin, &json!({"name": "r", "scopes": ["admin:*"]})).await;
    let path = format!("/v1/keys/{}", revoked.id);
    let revoke = server.request(reqwest::Method::DELETE, &path).bearer_auth(&admin.secret);
    answered(200, Caller { server: &server, secret: ended.clone(), store: "a" }.put("k")).await;
    answered(200, revoke).await;
    clock.advance(Duration::from_secs(3_600));
    for secret in [ended, revoked.secret, String::new()] {
        let who = Caller { server: &server, secret, store: "a" };
        for attempt in [
            who.get(&["user:7:name"]),
            who.put("user:7:name"),
            who.scan(&KeyRange::all(), json!({})),
            who.watch(&KeyRange::all()),
        ] {
            refused(401, "unauthenticated", attempt).await;
        }
    }
}

#[tokio::test]
async fn what_is_written_counts_and_is_told_in_the_audit_log() {
    let quota = Some(Quota { writes_per_day_max: 3, bytes_per_day_max: 1_000_000 });
    let (server, admin) = guarded(&Config { quota, ..configured() }).await;
    let runs = server.key(&admin, &json!({"name": "r", "scopes": ["admin:store/b"]})).await;
    let who = Caller { server: &server, secret: runs.secret.clone(), store: "b" };
    let two = json!([{"put": {"key": "lock:x", "value": 1}}, {"delete": {"key": "k"}}]);
    answered(200, who.post("commit", &json!({ "writes": two }))).await;
    answered(200, who.get(&["lock:x"])).await;
    answered(200, who.put("k")).await;
    refused(429, "over-quota", who.put("k")).await;
    answered(200, who.get(&["k"])).await;
    let log = || server.get("/v1/audit?limit=1000").bearer_auth(&admin.secret);
    loop {
        let log = told(200, log()).await;
        let acts = log["items"].as_array().unwrap().iter();
        let acts: Vec<_> = acts.filter(|act| act["credential"] == runs.id.as_str()).collect();
        if acts.len() < 3 {
            // It is written a moment later.
            tokio::task::yield_now().await;
            continue;
        }
        assert_eq!(acts.len(), 3, "{acts:?}");
        assert_eq!(acts[0]["route"], "/v1/stores/{store}/raw/commit");
        assert_eq!(acts[0]["keys"], json!(["lock:x", "k"]));
        assert_eq!((&acts[0]["act"], &acts[0]["target"]), (&json!("write"), &json!("store/b")));
        assert_eq!(acts[2]["status"], 429);
        break;
    }
}

#[tokio::test]
async fn a_commit_says_what_came_of_it_and_is_done_once() {
    let server = Running::new().await;
    let who = Caller { server: &server, secret: String::new(), store: "main" };
    let commit = json!({
        "checks": [{"key": "a", "version": null}, {"key": "b", "version": "7"}],
        "writes": [{"put": {"key": "a", "value": 1}}],
    });
    let problem = refused(412, "precondition-failed", who.post("commit", &commit)).await;
    assert_eq!(problem["failed"], json!([{"check": 1, "key": "b"}]));
    let add = json!({"writes": [{"add": {"key": "n", "amount": 2}}]});
    for _ in 0..2 {
        answered(200, who.post("commit", &add).header("idempotency-key", "once")).await;
    }
    let digits = r#"{"writes":[{"put":{"key":"p","value":1.50000000000000000000000000001,"metadata":{"m":1e400},"expiry":{"after":{"seconds":600}}}}]}"#;
    answered(200, server.post("/v1/stores/main/raw/commit", digits)).await;
    let held = answered(200, who.get(&["n", "p", "nothing"])).await.text().await.unwrap();
    assert!(held.contains(r#""key":"n","value":2,"#), "{held}");
    assert!(
        held.contains(r#""value":1.50000000000000000000000000001,"metadata":{"m":1e400}"#),
        "{held}"
    );
    assert!(held.contains(r#""expires":""#) && held.ends_with("null]}"), "{held}");
    for wrong in [
        json!({}),
        json!({"writes": [{"put": {"key": "a", "value": 1, "ttl": 3}}]}),
        json!({"writes": [{"put": {"key": "a", "value": 1, "expiry": {"after": {"seconds": 0, "nanoseconds": 1_000_000_000}}}}]}),
        json!({"writes": [{"put": {"key": "", "value": 1}}]}),
    ] {
        refused(400, "invalid", who.post("commit", &wrong)).await;
    }
    for wrong in [json!({"limit": 0}), json!({"limit": 1001}), json!({"start": "=="})] {
        refused(400, "invalid", who.scan(&KeyRange::all(), wrong)).await;
    }
}

#[tokio::test]
async fn the_schema_shows_what_a_key_reaches_and_no_passwords() {
    let (server, admin) = guarded(&configured()).await;
    let schema = |secret: &str| server.get("/v1/schema").bearer_auth(secret);
    let all = told(200, schema(&admin.secret)).await;
    let text = all["text"].as_str().unwrap();
    assert!(text.contains("notes") && text.contains("[stores.b]"), "{text}");
    assert!(!text.contains("memory:"), "{text}");
    let some = server.key(&admin, &json!({"name": "b", "scopes": ["read:store/b"]})).await;
    let some = told(200, schema(&some.secret)).await;
    let text = some["text"].as_str().unwrap();
    assert!(text.contains("[stores.b]") && !text.contains("notes"), "{text}");
    refused(401, "unauthenticated", server.get("/v1/schema")).await;
}
