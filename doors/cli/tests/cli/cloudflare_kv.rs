//! Stores in Cloudflare KV, by URL, with and without a coordinator.

use serde_json::{Value, json};

use crate::database::{address, ask, first_steps, is_sound, name};
use crate::sandbox::{Ran, Sandbox};

const TOKEN: &str = "keyward-test-token";
/// May read and not write.
const READ_TOKEN: &str = "keyward-test-token-for-reading";

/// A new namespace on the test server.
pub struct Namespace {
    api: String,
    id: String,
}

impl Namespace {
    pub fn new() -> Self {
        let api = address("KEYWARD_TEST_CLOUDFLARE_KV");
        let mut namespace = Self { api, id: String::new() };
        let title = json!({"title": name()}).to_string();
        let created: Value = serde_json::from_str(&namespace.ask("POST", "", &title).1).unwrap();
        namespace.id = format!("/{}", created["result"]["id"].as_str().unwrap());
        namespace
    }

    /// The URL, with more options.
    pub fn url(&self, more: &str) -> String {
        format!("cloudflare-kv://account{}?api={}{more}", self.id, self.api)
    }

    /// A request of a plain client.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let (host, base) = self.api.trim_start_matches("http://").split_once('/').unwrap();
        let head =
            format!("{method} /{base}/accounts/account/storage/kv/namespaces{}{path}", self.id);
        ask(host, &head, &format!("Authorization: Bearer {TOKEN}\r\n"), body)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.ask("DELETE", "", "");
    }
}

pub fn sandbox() -> Sandbox {
    Sandbox::new().with("CLOUDFLARE_API_TOKEN", TOKEN)
}

#[test]
fn without_a_coordinator_what_needs_a_promise_is_refused() {
    let (kw, namespace) = (sandbox(), Namespace::new());
    let url = namespace.url("");
    first_steps(&kw, &url);
    let stats = kw.json(&["-s", &url, "stats", "--json"]);
    assert_eq!(stats["tier"], "advisory");
    assert!(stats["guarantee"].as_str().unwrap().contains("coordinator"), "{stats}");
    for refused in [
        &["lock", "exec", "page:7", "--", "true"][..],
        &["queue", "push", "q", "1"],
        &["cache", "run", "k", "--", "echo", "1"],
    ] {
        let told = kw.run(&[&["-s", &url], refused].concat()).fails(4);
        assert!(told.to_lowercase().contains("name a coordinator"), "{refused:?}: {told}");
    }
    let probed = kw.json(&["-s", &url, "doctor", "--probe", "--json"]);
    assert_eq!((&probed["probe"], &probed["probed"]), (&"unsupported".into(), &json!([])));
    assert!(probed["not_probed"].to_string().contains("the last writer wins"), "{probed}");
}

#[test]
fn a_probe_finds_a_value_store_that_refuses_writes() {
    let namespace = Namespace::new();
    let url = namespace.url("&coordinator=embedded:./coord");
    let kw = sandbox();
    kw.ok(&["-s", &url, "put", "a", "1"]);
    let probed = kw.json(&["-s", &url, "doctor", "--probe", "--json"]);
    assert_eq!(probed["probe"], "sound", "{probed}");
    assert!(probed["probed"].to_string().contains("pushed to the value store"), "{probed}");
    let names = namespace.ask("GET", "/keys", "").1;
    assert!(!names.contains("keyward-probe"), "the probe leaves nothing: {names}");

    let mut command = kw.command(&["-s", &url, "doctor", "--probe", "--json"]);
    let told = Ran::of(command.env("CLOUDFLARE_API_TOKEN", READ_TOKEN)).ended(10);
    let probed: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(probed["probe"], "broken", "{probed}");
    assert!(probed["broken"].to_string().contains("may write"), "{probed}");
}

#[test]
fn a_coordinator_makes_it_atomic_and_other_programs_see_the_values() {
    let (kw, namespace) = (sandbox(), Namespace::new());
    assert_eq!(namespace.ask("PUT", "/values/old%3Akey", "\"there\"").0, 200);
    let url = namespace.url("&coordinator=embedded:./coord");
    let told = kw.fails(7, &["-s", &url, "get", "old:key"]);
    assert!(told.contains("there is no coordinator at embedded:./coord"), "{told}");
    first_steps(&kw, &url);
    assert_eq!(kw.ok(&["-s", &url, "get", "old:key"]), "\"there\"\n");
    assert_eq!(namespace.ask("GET", "/values/user%3A7%3Aname", ""), (200, "\"Ada\"".to_owned()));
    is_sound(&kw, &url, "atomic");
    kw.ok(&["-s", &url, "lock", "exec", "page:7", "--", "true"]);
    kw.ok(&["-s", &url, "queue", "push", "q", "1"]);

    // The same by a schema, with a place relative to its file.
    let plain = namespace.url("");
    let schema = format!("[stores.kv]\nurl = '{plain}'\ncoordinator = 'embedded:./coord'\n");
    kw.write("keyward.schema.toml", &schema);
    for named in [&[][..], &["-s", "kv"], &["-s", &plain]] {
        let mut stats = kw.command(&[named, &["stats", "--json"]].concat());
        let stats = Ran::of(stats.env_remove("KEYWARD_STORE")).ok();
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats["tier"], "atomic", "{named:?}: {stats}");
    }
}
