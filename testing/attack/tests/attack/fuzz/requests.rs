//! Random requests, by the description of the API and beside it.

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use fastrand::Rng;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Map, Value, json};

use super::api::{Api, Operation};
use super::canaries::Credential;

/// Keys of users, of spaces that need roles, of locks and of Keyward itself, and strange ones.
const KEYS: [&str; 22] = [
    "user:ada:notes:secret",
    "user:bob:notes:secret",
    "user:ada:diary:1",
    "user:mia:diary:1",
    "user:ada:plain:entry",
    "user:hana:notes:1",
    "shared:staff:2",
    "shared:staff:9",
    "shared:stations:s1",
    "page:8",
    "page:8:policies",
    "system:server:key",
    "system:idempotency:x",
    "index:stations_near:u0y:x",
    "lock:page:8",
    "queue:mails:1",
    "user:ada",
    "user",
    "shared",
    "a%3Ab",
    "user:%61da:notes:secret",
    "*",
];
const WORDS: [&str; 14] = [
    "ada",
    "bob",
    "mia",
    "main",
    "notes",
    "diary",
    "staff",
    "stations",
    "stations_near",
    "secret",
    "1",
    "x",
    "",
    "ü%2F☃",
];
const ORIGINS: [&str; 4] = ["http://localhost:1", "https://evil.example", "null", "http://[::1]"];
const SITES: [&str; 4] = ["cross-site", "same-site", "same-origin", "none"];
const TAGS: [&str; 4] = ["*", "\"1\"", "W/\"2\"", "nonsense"];
const PATHS: [&str; 9] = [
    "/metrics",
    "/readyz",
    "/openapi.json",
    "/docs/",
    "/problems",
    "/mcp",
    "/v1/nothing",
    "/v1/stores/main/entries/..%2f..%2fkeys",
    "/v1/./keys",
];
const METHODS: [&str; 8] = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE"];
/// Beginnings and ends of ranges as base64url: everything, nothing, the middle.
const BOUNDS: [&str; 4] = ["", "_w", "AA", "AnVzZXIA"];

/// What was sent, for those who judge the answer.
pub struct Random {
    pub method: String,
    pub path: String,
    pub credential: Credential,
    /// Whether a browser would send this for a page of another site.
    pub from_foreign_site: bool,
    /// Whether the answer may never end.
    pub is_stream: bool,
    body: String,
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, path, credential, body, .. } = self;
        let foreign = if self.from_foreign_site { " from another site" } else { "" };
        let body: String = body.chars().take(300).collect();
        write!(f, "{} {method} {path}{foreign} {body}", credential.name)
    }
}

/// Makes requests from a seed.
pub struct Generator<'a> {
    api: &'a Api,
    credentials: &'a [Credential],
    address: SocketAddr,
    rng: Rng,
}

impl<'a> Generator<'a> {
    pub fn new(api: &'a Api, credentials: &'a [Credential], address: SocketAddr, rng: Rng) -> Self {
        Self { api, credentials, address, rng }
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(..n) == 0
    }

    fn choose<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.rng.usize(..from.len())]
    }

    /// The next request that can be sent at all.
    pub fn request(&mut self) -> (Request<Full<Bytes>>, Random) {
        loop {
            if let Some(made) = self.attempt() {
                return made;
            }
        }
    }

    fn attempt(&mut self) -> Option<(Request<Full<Bytes>>, Random)> {
        let api = self.api;
        let operation = &api.operations[self.rng.usize(..api.operations.len())];
        if !operation.is_data && self.rng.bool() {
            return None;
        }
        let credential = self.credentials[self.rng.usize(..self.credentials.len())].clone();
        let mut method = operation.method.clone();
        if self.one_in(20) {
            method = self.choose(&METHODS).to_owned();
        }
        let path = match self.one_in(20) {
            true => self.choose(&PATHS).to_owned(),
            false => self.path(operation),
        };
        if credential.name == "admin" && is_self_harm(&method, &operation.path) {
            return None;
        }
        let mut request = Request::builder().method(method.as_str()).uri(&path);
        if let Some(key) = &credential.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let (headers, from_foreign_site) = self.headers();
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let body = match &operation.body {
            Some((kind, schema)) => {
                match self.rng.u32(..20) {
                    0 => {}
                    1 => request = request.header("content-type", "text/plain"),
                    _ => request = request.header("content-type", kind),
                }
                self.body(schema)
            }
            None => String::new(),
        };
        let is_stream = path.contains("watch") || path.contains("/events") || path == "/mcp";
        let sent = Full::new(Bytes::from(body.clone()));
        let request = request.body(sent).ok()?;
        Some((request, Random { method, path, credential, from_foreign_site, is_stream, body }))
    }

    /// Headers that say where a request comes from and what it expects, and whether they make it one
    /// that a browser sends for another site.
    fn headers(&mut self) -> (Vec<(&'static str, String)>, bool) {
        let own = self.address.to_string();
        let mut headers = Vec::new();
        let mut foreign = false;
        match self.rng.u32(..40) {
            0 => {}
            1 => headers.extend([("host", own.clone()), ("host", "evil.example".to_owned())]),
            2 => headers.push(("host", "evil.example".to_owned())),
            _ => headers.push(("host", own.clone())),
        }
        match self.rng.u32(..10) {
            0 | 1 => {
                let origin = self.choose(&ORIGINS);
                // A page of the very host that the request names is none of another site.
                let asked = headers.iter().map(|(_, host)| host.as_str());
                foreign =
                    asked.collect::<Vec<_>>() != [origin.rsplit('/').next().unwrap_or_default()];
                headers.push(("origin", origin.to_owned()));
            }
            2 => headers.push(("origin", format!("http://{own}"))),
            _ => {}
        }
        if self.one_in(4) {
            let site = self.choose(&SITES);
            foreign |= matches!(site, "cross-site" | "same-site");
            headers.push(("sec-fetch-site", site.to_owned()));
            headers.push(("sec-fetch-mode", "no-cors".to_owned()));
        }
        if self.one_in(6) {
            headers.push(("idempotency-key", format!("key-{}", self.rng.u8(..8))));
        }
        if self.one_in(8) {
            let name = self.choose(&["if-match", "if-none-match"]);
            headers.push((name, self.choose(&TAGS).to_owned()));
        }
        if self.one_in(12) {
            headers.push(("last-event-id", self.rng.u8(..).to_string()));
        }
        (headers, foreign)
    }

    /// A path of an operation, with values for its parameters.
    fn path(&mut self, operation: &Operation) -> String {
        let mut path = operation.path.clone();
        let mut query = Vec::new();
        for parameter in &operation.parameters {
            let name = parameter["name"].as_str().unwrap_or_default();
            let place = format!("{{{name}}}");
            match parameter["in"].as_str() {
                Some("path") => path = path.replace(&place, &self.segment(name)),
                Some("query") if parameter["required"] == true || !self.one_in(3) => {
                    let value = match self.value(&parameter["schema"], name, 0) {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    query.push(format!("{name}={}", encoded(&value)));
                }
                _ => {}
            }
        }
        match query.is_empty() {
            true => path,
            false => format!("{path}?{}", query.join("&")),
        }
    }

    /// A value for a parameter of the path: mostly one that is there.
    fn segment(&mut self, name: &str) -> String {
        if self.one_in(15) {
            return encoded(self.choose(&WORDS));
        }
        let text = match name {
            "store" => "main",
            "space" => self.choose(&["notes", "diary", "staff", "stations"]),
            "user" => self.choose(&["ada", "bob", "mia"]),
            "key" => self.choose(&KEYS),
            _ => self.choose(&["x", "ada", "mails", "1", "stations"]),
        };
        encoded(text)
    }

    fn body(&mut self, schema: &Value) -> String {
        match self.rng.u32(..25) {
            0 => String::new(),
            1 => "{".to_owned(),
            2 => "[".repeat(200),
            3 => json!({"constructor": null, "key": 1}).to_string(),
            _ => self.value(schema, "", 0).to_string(),
        }
    }

    /// A value that mostly fits a schema.
    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        let schema = self.api.resolve(schema);
        if depth > 8 {
            return Value::Null;
        }
        for several in ["oneOf", "anyOf", "allOf"] {
            if let Some(choices) = schema[several].as_array().filter(|one| !one.is_empty()) {
                let choice = &choices[self.rng.usize(..choices.len())];
                return self.value(choice, name, depth + 1);
            }
        }
        if let Some(choices) = schema["enum"].as_array().filter(|one| !one.is_empty()) {
            return choices[self.rng.usize(..choices.len())].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find_map(Value::as_str).unwrap_or_default(),
            kind => kind.as_str().unwrap_or_default(),
        };
        match kind {
            "object" => self.object(schema, depth),
            "array" => {
                let length = self.rng.usize(..4);
                (0..length).map(|_| self.value(&schema["items"], name, depth + 1)).collect()
            }
            "boolean" => self.rng.bool().into(),
            // Nobody should wait.
            "integer" | "number" if name.starts_with("wait") => 0.into(),
            "integer" => [json!(0), json!(1), json!(10), json!(1_000), json!(-1), json!(u64::MAX)]
                [self.rng.usize(..6)]
            .clone(),
            "number" => {
                [json!(0), json!(50.0), json!(-181.5), json!(1e300)][self.rng.usize(..4)].clone()
            }
            "string" => self.text(name).into(),
            _ => [json!(1), json!("text"), json!({"title": "x"}), json!(null), json!([[1]])]
                [self.rng.usize(..5)]
            .clone(),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if required.contains(&Value::from(name.as_str())) || self.one_in(3) {
                object.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        if object.is_empty() && schema["additionalProperties"].is_object() {
            let name = self.choose(&WORDS).to_owned();
            let value = self.value(&schema["additionalProperties"], &name, depth + 1);
            object.insert(name, value);
        }
        object.into()
    }

    /// A text that means something where it stands, mostly.
    fn text(&mut self, name: &str) -> String {
        let text = match name {
            _ if self.one_in(10) => self.choose(&WORDS),
            "key" | "keys" | "depends_on" => self.choose(&KEYS),
            "prefix" => {
                self.choose(&["user:ada", "user:bob", "user", "shared", "shared:staff", ""])
            }
            "root" => self.choose(&["page:8", "user:ada:lock", "shared:staff:2", "system"]),
            "path" | "paths" => self.choose(&["policies", "policies:1", ""]),
            "start" | "end" | "after" => self.choose(&BOUNDS),
            "owner" | "user" => self.choose(&["ada", "bob", "mia"]),
            "index" => "stations_near",
            "view" => "entry",
            "ttl" => self.choose(&["60", "keep", "never", "-1"]),
            _ => self.choose(&WORDS),
        };
        match self.one_in(60) {
            true => text.repeat(2_000),
            false => text.to_owned(),
        }
    }
}

/// What an admin may do and should not in this test: take the users away, write past the services that
/// keep Keyward's own keys, or give out keys without end.
fn is_self_harm(method: &str, path: &str) -> bool {
    match path {
        "/v1/users/{user}" => method == "DELETE",
        "/v1/keys" => method == "POST",
        _ => path.ends_with("/raw/commit"),
    }
}

/// A text as one segment of a path or one value of a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:*".contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}
