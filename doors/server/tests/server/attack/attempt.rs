//! One request that an attacker sends, and what they are told.

use data_encoding::BASE64URL_NOPAD;
use fastrand::Rng;
use keyward::{KeyRange, Prefix};
use keyward_testkit::Replay;
use reqwest::Method;
use serde_json::{Value, json};

use super::agents;
use super::ammunition::{bent, escaped, filter, index, key, listed, record, text, value, values};
use super::victim::{NAME, SPACES, Victim};
use super::{ALLOWED_ORIGIN, Holder};
use crate::fixture::told;

const ID: &str = "mallory";

pub struct Attacker<'s> {
    holder: Holder<'s>,
    /// Cursors that were given to the victim.
    stolen: Vec<String>,
    /// Cursors that were given to the attacker.
    own: Vec<String>,
    /// Versions of the victim's records, and one of the attacker's own.
    tags: Vec<String>,
}

impl<'s> Attacker<'s> {
    pub async fn new(victim: &Victim<'s>) -> Self {
        let mut stolen = Vec::new();
        for (space, index) in [("notes", "by_title"), ("notes", "by_tag"), ("pages", "slug")] {
            let question = json!({"index": index, "limit": 1}).to_string();
            let path = format!("/v1/spaces/{space}/query");
            let page = told(200, victim.holder.sent(Method::POST, &path, &question)).await;
            stolen.extend(page["next"].as_str().map(str::to_owned));
        }
        let first = victim.holder.sent(Method::GET, "/v1/spaces/notes/records?limit=1", "");
        stolen.extend(told(200, first).await["next"].as_str().map(str::to_owned));
        for path in ["/v1/agents/namespaces/default/keys?limit=1", "/v1/agents/namespaces?limit=1"]
        {
            let page = told(200, victim.holder.sent(Method::GET, path, "")).await;
            stolen.extend(page["next"].as_str().map(str::to_owned));
        }
        assert!(stolen.len() == 6);
        let record =
            victim.holder.sent(Method::GET, "/v1/spaces/notes/records/user:ada:notes:n0", "");
        let tag = record.send().await.unwrap().headers()["etag"].to_str().unwrap().to_owned();
        let user = json!({"name": "m", "user": ID, "agent": NAME, "roles": ["editor", NAME]});
        let holder = victim.credential(&user).await;
        Self { holder, stolen, own: Vec::new(), tags: vec![tag, "*".into(), "\"1\"".into()] }
    }

    /// Tries something, and gives what was told and whether it was refused.
    pub async fn attempt(&mut self, rng: &mut Rng, replay: &mut Replay) -> (String, bool) {
        let space = SPACES[rng.usize(..SPACES.len())];
        let (method, path, body) = self.request(rng, space);
        replay.step(format!("{method} {path} {body}"));
        let mut request = self.holder.sent(method, &path, &body);
        if rng.u8(..4) == 0 {
            let name = if rng.bool() { "if-match" } else { "if-none-match" };
            request = request.header(name, &self.tags[rng.usize(..self.tags.len())]);
        }
        if rng.u8(..3) == 0 {
            // Keys that the victim used as well.
            request = request.header("idempotency-key", format!("k{}", rng.u8(..20)));
        }
        if rng.bool() {
            let page = request.header("origin", ALLOWED_ORIGIN);
            request = page.header("sec-fetch-site", "cross-site");
        }
        // What says who is asking counts for nothing.
        for name in ["x-user", "x-forwarded-user", "x-keyward-user"] {
            request = request.header(name, NAME);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        assert!(status.as_u16() < 500 || status == 501, "{status}");
        let headers = format!("{:?}", answer.headers());
        let text = answer.text().await.unwrap();
        if status.is_success() {
            self.look_at(&path, space, &text);
        }
        (format!("{headers} {text}"), !status.is_success())
    }

    fn request(&self, rng: &mut Rng, space: &str) -> (Method, String, String) {
        if rng.u8(..4) == 0 {
            let cursor = self.cursor(rng);
            return agents::request(rng, cursor);
        }
        let key = key(rng, ID, space);
        let at = escaped(rng, &key);
        let record_at = format!("/v1/spaces/{space}/records/{at}");
        let post = |action: &str| format!("/v1/spaces/{space}/{action}");
        match rng.u8(..20) {
            0 => (Method::GET, format!("{record_at}?view=entry"), String::new()),
            1 => (Method::PUT, record_at, record(rng).to_string()),
            2 => (Method::PATCH, record_at, record(rng).to_string()),
            3 => (Method::DELETE, record_at, String::new()),
            4 | 5 => {
                let body = json!({"values": values(rng, space), "value": record(rng)});
                (Method::POST, post("records"), body.to_string())
            }
            6 => {
                let prefix = escaped(rng, &format!("{key}:"));
                let mut path = format!("{}?limit=2&prefix={prefix}", post("records"));
                if rng.bool() {
                    path = format!("{}?limit={}", post("records"), rng.usize(1..4));
                }
                if let Some(cursor) = self.cursor(rng) {
                    path = format!("{path}&cursor={}", escaped(rng, &cursor));
                }
                (Method::GET, path, String::new())
            }
            7 => {
                let body = json!({"together": rng.bool(), "operations": [
                    {"put": {"key": key, "value": record(rng)}},
                    {"create": {"values": values(rng, space), "value": record(rng)}},
                    {"delete": {"key": self::key(rng, ID, space)}},
                ]});
                (Method::POST, post("batch"), body.to_string())
            }
            8 => (Method::POST, post("get"), json!({"keys": [key]}).to_string()),
            9 => (Method::GET, post(&format!("history/{at}")), String::new()),
            10 => {
                let body = json!({"to": rng.u64(..5)});
                (Method::POST, post(&format!("restore/{at}")), body.to_string())
            }
            11 => (Method::POST, post("near"), self.near(rng).to_string()),
            12 => (Method::POST, post("within"), self.within(rng).to_string()),
            13 => (Method::POST, post("explain"), self.question(rng, space).to_string()),
            14 => {
                // The same keys as entries of the store.
                let method = [Method::GET, Method::PUT, Method::DELETE][rng.usize(..3)].clone();
                (method, format!("/v1/stores/app/entries/{at}?"), record(rng).to_string())
            }
            15 => {
                let listed = listed(rng, ID);
                let prefix = escaped(rng, &listed);
                let how = ["values=true", "depth=1", "depth=2", "limit=1", "descending=true"];
                let how = how[rng.usize(..how.len())];
                let path = format!("/v1/stores/app/entries?{how}&prefix={prefix}");
                (Method::GET, path, String::new())
            }
            16 => {
                let (other, at) = (self::key(rng, ID, space), listed(rng, ID));
                let range = KeyRange::under(&Prefix::parse(&at).unwrap_or_else(|_| Prefix::all()));
                let end = range.end().map(|end| BASE64URL_NOPAD.encode(end));
                let scan = json!({"start": BASE64URL_NOPAD.encode(range.start()), "end": end});
                let check = json!({"checks": [{"key": key, "version": null}]});
                let (what, body) = match rng.u8(..5) {
                    0 => ("get", json!({"keys": [key, other]})),
                    1 => ("raw/get", json!({ "keys": [key] })),
                    2 => ("commit", check),
                    3 => ("raw/commit", check),
                    _ => ("raw/scan", scan),
                };
                (Method::POST, format!("/v1/stores/app/{what}"), body.to_string())
            }
            _ => (Method::POST, post("query"), self.question(rng, space).to_string()),
        }
    }

    /// Of other users' records, only those of a hybrid space are seen that its shared indexes find.
    fn look_at(&mut self, path: &str, space: &str, text: &str) {
        let Ok(answer) = serde_json::from_str::<Value>(text) else { return };
        self.own.extend(answer["next"].as_str().map(str::to_owned));
        let lists = ["records", "items", "rows", "entries"];
        for item in lists.iter().filter_map(|list| answer[list].as_array()).flatten() {
            let shown = item["key"].as_str().or(item["prefix"].as_str()).unwrap_or_default();
            let shared = space == "posts" && (path.ends_with("/query") || path.ends_with("/get"));
            let draft = shown.starts_with("user:ada:posts:d");
            assert!(!draft, "{path} showed {item}");
            assert!(!shown.starts_with("user:ada") || shared, "{path} showed {item}");
            // What lies deeper is no record, and may be the attacker's own.
            let hidden = ["shared:staff:s0", "shared:staff:s1", "user:mallory:payslips:y0"];
            assert!(!hidden.contains(&shown), "{path} showed {item}");
            assert!(!shown.starts_with("shared:wards:ada"), "{path} showed {item}");
        }
    }

    fn cursor(&self, rng: &mut Rng) -> Option<String> {
        match rng.u8(..5) {
            0 => rng.choice(&self.stolen).cloned(),
            1 => rng.choice(&self.own).cloned(),
            2 => rng.choice(&self.own).cloned().map(|cursor| bent(rng, &cursor)),
            3 => Some(text(rng)),
            _ => None,
        }
    }

    fn terms(&self, rng: &mut Rng, mut question: Value) -> Value {
        if rng.u8(..3) == 0 {
            let owner = if rng.bool() { NAME.to_owned() } else { text(rng) };
            question["owner"] = owner.into();
        }
        if rng.bool() {
            question["filter"] = filter(rng);
        }
        if rng.bool() {
            question["fields"] = json!(["draft", "title", "name"]);
        }
        if let Some(cursor) = self.cursor(rng) {
            question["cursor"] = cursor.into();
        }
        question["limit"] = rng.usize(1..4).into();
        question
    }

    fn question(&self, rng: &mut Rng, space: &str) -> Value {
        let mut question = match rng.u8(..5) {
            0 => json!({"values": values(rng, space), "allow_scan": true}),
            _ => json!({"index": index(rng, space)}),
        };
        for _ in 0..rng.usize(..2) {
            question["equal"] = json!([value(rng)]);
        }
        match rng.u8(..5) {
            0 => question["prefix"] = text(rng).into(),
            1 => question["from"] = value(rng),
            2 => question["descending"] = true.into(),
            _ => {}
        }
        self.terms(rng, question)
    }

    fn near(&self, rng: &mut Rng) -> Value {
        self.terms(rng, json!({"index": "geo", "lat": 52.52, "lon": 13.4, "radius_m": 1e6}))
    }

    fn within(&self, rng: &mut Rng) -> Value {
        let area = json!({"index": "geo", "south": 50, "west": 10, "north": 55, "east": 15});
        self.terms(rng, area)
    }
}
