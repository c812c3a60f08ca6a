//! What a space declares about its readers holds on every way to its keys.

use data_encoding::BASE64URL_NOPAD;
use keyward::{KeyRange, Prefix};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::fixture::{Running, answered, refused, told};
use crate::watching::Events;

const SCHEMA: &str = r#"
    [stores.main]
    url = "memory:"
    [spaces.staff]
    key = "shared:staff:{person}"
    ownership = "shared"
    read_roles = ["hr"]
    [spaces.payslips]
    key = "user:{user}:payslips:{slip}"
    ownership = "user"
    read_roles = ["hr"]
    [spaces.wards]
    key = "shared:wards:{user}:{ward}"
    ownership = "user"
    [spaces.news]
    key = "shared:news:{item}"
    ownership = "shared"
"#;

const HIDDEN: [&str; 4] =
    ["shared:staff:1", "shared:staff:2", "user:bob:payslips:1", "shared:wards:ada:1"];
const SEEN: [&str; 3] = ["shared:news:1", "shared:plain", "shared:wards:bob:1"];

struct Staffed {
    server: Running,
    /// Whoever runs the store.
    admin: String,
    /// Bob, without the role.
    plain: String,
    /// Bob, with the role.
    hr: String,
}

impl Staffed {
    async fn new() -> Self {
        let server = Running::with_schema(SCHEMA).await;
        let admin = server.admin().await;
        for key in HIDDEN.iter().chain(&SEEN) {
            let space = ["staff", "payslips", "wards", "news"];
            let path = match space.iter().find(|space| key.contains(**space)) {
                Some(space) => format!("/v1/spaces/{space}/records/{key}"),
                None => format!("/v1/stores/main/entries/{key}"),
            };
            let put = server.put(&path, r#"{"secret":"s3cret"}"#).bearer_auth(&admin.secret);
            assert!(put.send().await.unwrap().status().is_success(), "{key}");
        }
        let plain = server.key(&admin, &json!({"name": "p", "user": "bob"})).await.secret;
        let hr = json!({"name": "h", "user": "bob", "roles": ["hr"]});
        let hr = server.key(&admin, &hr).await.secret;
        Self { server, admin: admin.secret, plain, hr }
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.server.get(&format!("/v1/stores/main/{path}")).bearer_auth(&self.plain)
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        let path = format!("/v1/stores/main/{path}");
        self.server.post(&path, &body.to_string()).bearer_auth(&self.plain)
    }

    fn scan(&self, prefix: &str) -> RequestBuilder {
        let range = KeyRange::under(&Prefix::parse(prefix).unwrap());
        let end = range.end().map(|end| BASE64URL_NOPAD.encode(end));
        let scan = json!({"start": BASE64URL_NOPAD.encode(range.start()), "end": end});
        self.post("raw/scan", &scan)
    }
}

#[tokio::test]
async fn a_record_that_roles_protect_is_refused_by_every_raw_route() {
    let staffed = Staffed::new().await;
    for key in HIDDEN {
        let by_space = match key.split(':').nth(1) {
            Some("bob") => format!("/v1/spaces/payslips/records/{key}"),
            space => format!("/v1/spaces/{}/records/{key}", space.unwrap()),
        };
        let by_space = staffed.server.get(&by_space).bearer_auth(&staffed.plain);
        let expected = refused(403, "forbidden", by_space).await;
        let check = json!({"checks": [{"key": key, "version": null}]});
        for request in [
            staffed.get(&format!("entries/{key}")),
            staffed.get(&format!("entries/{key}?view=entry")),
            staffed.post("get", &json!({"keys": ["shared:plain", key]})),
            staffed.post("raw/get", &json!({ "keys": [key] })),
            staffed.post("commit", &check),
            staffed.post("raw/commit", &check),
        ] {
            let problem = refused(403, "forbidden", request).await;
            assert_eq!(problem["detail"], expected["detail"], "{key}");
        }
        // What is not there is refused alike.
        let absent = staffed.get(&format!("entries/{key}0"));
        assert_eq!(refused(403, "forbidden", absent).await["detail"], expected["detail"]);
    }
    for key in HIDDEN.iter().filter(|key| !key.contains("ada")) {
        let path = format!("/v1/stores/main/entries/{key}");
        answered(200, staffed.server.get(&path).bearer_auth(&staffed.hr)).await;
        answered(200, staffed.server.get(&path).bearer_auth(&staffed.admin)).await;
    }
    for key in SEEN {
        answered(200, staffed.get(&format!("entries/{key}"))).await;
    }
}

#[tokio::test]
async fn listings_and_scans_show_only_what_a_role_lets_one_read() {
    let staffed = Staffed::new().await;
    for prefix in ["shared:staff:", "user:bob:payslips:"] {
        let page = told(200, staffed.get(&format!("entries?prefix={prefix}"))).await;
        assert_eq!(page, json!({"items": [], "next": null}));
        let page = told(200, staffed.scan(prefix)).await;
        assert_eq!(page, json!({"rows": [], "next": null}));
    }
    for how in ["", "&values=true", "&descending=true", "&limit=1", "&depth=1", "&depth=2"] {
        for prefix in ["shared:", "user:bob:"] {
            let mut shown = String::new();
            let mut cursor = String::new();
            loop {
                let path = format!("entries?prefix={prefix}{how}{cursor}");
                let page = told(200, staffed.get(&path)).await;
                shown.push_str(&page["items"].to_string());
                match page["next"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            for hidden in ["shared:staff", "payslips", "shared:wards:ada"] {
                assert!(!shown.contains(hidden), "{prefix}{how} shows {shown}");
            }
            assert!(prefix != "shared:" || shown.contains("shared:news"), "{how}: {shown}");
        }
    }
    let rows = told(200, staffed.scan("shared:")).await["rows"].to_string();
    assert!(rows.contains("shared:wards:bob:1") && rows.contains("shared:plain"), "{rows}");
    assert!(!rows.contains("staff") && !rows.contains("wards:ada"), "{rows}");
}

#[tokio::test]
async fn watches_tell_nothing_of_what_a_role_hides() {
    let staffed = Staffed::new().await;
    let range = KeyRange::under(&Prefix::parse("shared:").unwrap());
    let start = BASE64URL_NOPAD.encode(range.start());
    let end = BASE64URL_NOPAD.encode(range.end().unwrap());
    for path in ["watch?prefix=shared:".to_owned(), format!("raw/watch?start={start}&end={end}")] {
        let mut events = Events::new(staffed.get(&path)).await;
        events.next().await;
        for (space, key) in [("staff", "shared:staff:1"), ("wards", "shared:wards:ada:1")] {
            let path = format!("/v1/spaces/{space}/records/{key}");
            let put = staffed.server.put(&path, "{}").bearer_auth(&staffed.admin);
            answered(200, put).await;
        }
        let put = staffed.server.put("/v1/stores/main/entries/shared:plain", "2");
        answered(200, put.bearer_auth(&staffed.admin)).await;
        loop {
            let event = format!("{:?}", events.next().await);
            assert!(!event.contains("staff") && !event.contains("wards"), "{event}");
            if event.contains("shared:plain") {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_catalog_of_locks_is_not_an_entry_to_write() {
    let server = Running::new().await;
    let path = "/v1/stores/main/entries/page:8";
    answered(200, server.put(path, "1")).await;
    answered(204, server.request(Method::DELETE, path)).await;
    let acquire = || {
        let body = json!({"root": "page:8", "paths": ["a"], "ttl": 60}).to_string();
        server.post("/v1/stores/main/locks/acquire", &body)
    };
    let held = told(200, acquire()).await;
    let write = json!({"writes": [{"delete": {"key": "page:8"}}, {"delete": {"key": "x"}}]});
    for request in [
        server.request(Method::DELETE, path),
        server.put(path, "1"),
        server.put(path, "1").header("if-match", "*"),
        server.sent(Method::PATCH, path, "{}"),
        server.post("/v1/stores/main/commit", &write.to_string()),
    ] {
        let problem = refused(403, "reserved", request).await;
        assert!(problem["detail"].as_str().unwrap().contains("page:8"), "{problem}");
    }
    let release = json!({"ticket": held["ticket"]}).to_string();
    answered(204, server.post("/v1/stores/main/locks/release", &release)).await;
    // Also when nobody holds it.
    refused(403, "reserved", server.request(Method::DELETE, path)).await;
    let next = told(200, acquire()).await;
    assert!(next["token"].as_u64() > held["token"].as_u64());
}

#[tokio::test]
async fn a_catalog_that_an_admin_deleted_goes_on_after_the_largest_token() {
    let server = Running::new().await;
    let acquire = || {
        let body = json!({"root": "page:8", "paths": ["a"], "ttl": 60}).to_string();
        server.post("/v1/stores/main/locks/acquire", &body)
    };
    let held = told(200, acquire()).await;
    let delete = json!({"writes": [{"delete": {"key": "page:8"}}]}).to_string();
    answered(200, server.post("/v1/stores/main/raw/commit", &delete)).await;
    let next = told(200, acquire()).await;
    assert!(next["token"].as_u64() > held["token"].as_u64());
    let late = server.put("/v1/stores/main/entries/page:8:text", "1");
    let late = late.header("keyward-lock", held["ticket"].as_str().unwrap());
    refused(409, "lock-lost", late).await;
}
