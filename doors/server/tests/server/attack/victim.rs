//! The user whose records nobody else must see, and what is secret about them.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::Holder;
use crate::fixture::{Made, Running, answered, told};

/// In everything that must not be seen.
pub const SECRET: &str = "S3CR3T-9f2c71d0";
/// How near to it attackers come by themselves.
pub const GUESS: &str = "S3CR3T";
pub const NAME: &str = "ada";
pub const EMAIL: &str = "ada@example.org";

pub const SPACES: [&str; 8] =
    ["notes", "people", "posts", "places", "pages", "staff", "payslips", "wards"];
pub const INDEXES: [&str; 8] =
    ["by_title", "by_tag", "email", "recent", "posts_by_tag", "geo", "slug", "none"];

/// Namespaces and keys of what agents keep for the victim.
pub const AGENT_ENTRIES: [(&str, &str); 3] =
    [("default", "k0"), ("default", "k1"), ("files:a", "k0")];

pub const SCHEMA: &str = r#"
[stores.app]
url = "memory:"

[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
[spaces.notes.indexes.by_title]
field = "title"
type = "text"
[spaces.notes.indexes.by_tag]
field = "tags"
type = "text"
multi = true

[spaces.people]
key = "user:{user}"
ownership = "user"
[spaces.people.indexes.email]
field = "email"
type = "folded"
unique = true
scope = "shared"

[spaces.posts]
key = "user:{user}:posts:{post}"
ownership = "hybrid"
share = ["text", "tags", "at"]
[spaces.posts.indexes.recent]
kind = "time"
field = "at"
scope = "shared"
[spaces.posts.indexes.posts_by_tag]
field = "tags"
type = "text"
multi = true
scope = "shared"

[spaces.places]
key = "user:{user}:places:{place}"
ownership = "user"
[spaces.places.indexes.geo]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 7

[spaces.pages]
key = "user:{user}:pages:{page}"
ownership = "user"
history = 5
[spaces.pages.indexes.slug]
field = "slug"
type = "text"
unique = true

[spaces.staff]
key = "shared:staff:{person}"
ownership = "shared"
read_roles = ["hr"]
write_roles = ["hr"]
[spaces.staff.indexes.staff_by_name]
field = "name"
type = "text"

[spaces.payslips]
key = "user:{user}:payslips:{slip}"
ownership = "user"
read_roles = ["hr"]
write_roles = ["hr"]

[spaces.wards]
key = "shared:wards:{user}:{ward}"
ownership = "user"
"#;

pub struct Victim<'s> {
    server: &'s Running,
    pub holder: Holder<'s>,
    /// Whoever runs the store.
    operator: Made,
}

impl<'s> Victim<'s> {
    pub async fn new(server: &'s Running) -> Self {
        let operator = server.admin().await;
        let key = server.key(&operator, &json!({"name": "a", "user": NAME})).await;
        let victim = Self { server, holder: Holder { server, secret: key.secret }, operator };
        let mut requests = 0;
        for n in 0..3 {
            let secret = format!("{SECRET} {n}");
            let at = format!("2026-01-0{}T00:00:00Z", n + 1);
            let post = json!({"text": "hello", "tags": ["a"], "at": at, "draft": secret});
            let place = json!({"lat": 52.52, "lon": 13.4 + f64::from(n) / 1000.0, "name": secret});
            for (at, value) in [
                (format!("notes:n{n}"), json!({"title": secret, "tags": ["a", "b"]})),
                (format!("posts:p{n}"), post),
                // No shared index finds it.
                (format!("posts:d{n}"), json!({"text": secret})),
                (format!("places:l{n}"), place),
                (format!("pages:g{n}"), json!({"slug": format!("s{n}"), "text": secret})),
                (format!("pages:g{n}"), json!({"slug": format!("s{n}"), "text": secret, "n": 2})),
            ] {
                let space = at.split(':').next().unwrap();
                victim.put(space, &format!("user:{NAME}:{at}"), value, &mut requests).await;
            }
        }
        for (namespace, key) in AGENT_ENTRIES {
            let path = format!("/v1/agents/namespaces/{namespace}/entries/{key}");
            let body = json!({"value": {"text": SECRET}, "metadata": {"by": SECRET}}).to_string();
            let put = victim.holder.sent(Method::PUT, &path, &body);
            let put = put.header("keyward-agent", SECRET).header("keyward-run", "r1");
            assert!(put.send().await.unwrap().status().is_success());
        }
        // What roles keep from the attacker: shared, their own, and another's among what is shared.
        let secret = json!({"name": SECRET});
        for (space, key) in [
            ("staff", "shared:staff:s0".to_owned()),
            ("staff", "shared:staff:s1".to_owned()),
            ("payslips", "user:mallory:payslips:y0".to_owned()),
            ("payslips", format!("user:{NAME}:payslips:y0")),
            ("wards", format!("shared:wards:{NAME}:w0")),
        ] {
            let path = format!("/v1/spaces/{space}/records/{key}");
            let put = server.put(&path, &secret.to_string()).bearer_auth(&victim.operator.secret);
            assert!(put.send().await.unwrap().status().is_success());
        }
        let person = json!({"email": EMAIL, "name": SECRET});
        victim.put("people", &format!("user:{NAME}"), person, &mut requests).await;
        victim
    }

    /// A credential of somebody else.
    pub async fn credential(&self, body: &Value) -> Holder<'s> {
        let key = self.server.key(&self.operator, body).await;
        Holder { server: self.server, secret: key.secret }
    }

    async fn put(&self, space: &str, key: &str, value: Value, requests: &mut usize) {
        let path = format!("/v1/spaces/{space}/records/{key}?view=entry");
        let body = json!({"value": value, "metadata": {"by": SECRET}}).to_string();
        let chosen = format!("k{requests}");
        *requests += 1;
        let put = self.holder.sent(Method::PUT, &path, &body).header("idempotency-key", chosen);
        assert!(put.send().await.unwrap().status().is_success());
    }

    /// Every entry of the store and every version of the victim's records.
    pub async fn everything(&self) -> BTreeMap<String, String> {
        let mut rows = BTreeMap::new();
        let mut cursor = String::new();
        let get = |path: &str| self.server.get(path).bearer_auth(&self.operator.secret);
        loop {
            let path = format!("/v1/stores/app/entries?all=true&values=true&limit=1000{cursor}");
            let page = told(200, get(&path)).await;
            for item in page["items"].as_array().unwrap() {
                rows.insert(item["key"].as_str().unwrap().to_owned(), item.to_string());
            }
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        for n in 0..3 {
            let path = format!("/v1/spaces/pages/history/user:{NAME}:pages:g{n}");
            let versions = answered(200, get(&path)).await;
            rows.insert(path, versions.text().await.unwrap());
        }
        rows
    }

    /// Nothing that was there has changed, and nothing was added below the victim's name or in it.
    pub async fn check(&self, before: &BTreeMap<String, String>) {
        let after = self.everything().await;
        for (key, row) in before {
            assert_eq!(after.get(key), Some(row), "{key}");
        }
        for (key, row) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
            let below = *key == "user:ada"
                || key.starts_with("user:ada:")
                || key.starts_with("agents:ada:");
            // In a record of their own, attackers may write any text.
            let own = key.starts_with("user:mallory:") || key.starts_with("agents:mallory:");
            let named = row.contains("\"user:ada\"") || row.contains("\"user:ada:");
            assert!(!below && (own || !named), "{key} {row}");
        }
    }

    pub async fn still_finds_everything(&self) {
        for (space, index) in [("notes", "by_title"), ("notes", "by_tag"), ("pages", "slug")] {
            let path = format!("/v1/spaces/{space}/query");
            let question = json!({ "index": index }).to_string();
            let page = told(200, self.holder.sent(Method::POST, &path, &question)).await;
            assert_eq!(page["records"].as_array().unwrap().len(), 3, "{index}");
        }
        for (namespace, key) in AGENT_ENTRIES {
            let path = format!("/v1/agents/namespaces/{namespace}/entries/{key}");
            let document = told(200, self.holder.sent(Method::GET, &path, "")).await;
            assert_eq!(document["value"]["text"], SECRET);
            assert_eq!(document["accessCount"], 0, "nobody else has read it");
            assert_eq!(document["lastAccessedByAgent"], SECRET);
            let history = self.holder.sent(Method::GET, &format!("{path}/history"), "");
            assert_eq!(told(200, history).await["items"].as_array().unwrap().len(), 1);
        }
        let log = self.holder.sent(Method::GET, "/v1/agents/runs/r1/operations", "");
        assert_eq!(told(200, log).await["items"].as_array().unwrap().len(), AGENT_ENTRIES.len());
    }
}
