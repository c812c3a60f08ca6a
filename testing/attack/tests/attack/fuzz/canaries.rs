//! Unique texts in places that not everybody may read, and those who may.

use std::time::Duration;

use serde_json::json;

use crate::http;
use crate::scene::Scene;

/// Somebody who sends requests.
#[derive(Clone)]
pub struct Credential {
    pub name: &'static str,
    pub key: Option<String>,
}

/// A text that only some may read.
struct Canary {
    text: &'static str,
    /// Where it is; nothing for the name of an API key.
    key: Option<&'static str>,
    readers: &'static [&'static str],
}

/// Users without roles, one with the role `hr`, keys that may only read, operators without a user,
/// and strangers.
const CREDENTIALS: [(&str, &str); 8] = [
    ("ada", r#"{"name": "ada", "user": "ada"}"#),
    ("bob", r#"{"name": "bob", "user": "bob"}"#),
    ("hana", r#"{"name": "hana", "user": "hana", "roles": ["hr"]}"#),
    ("mia", r#"{"name": "mia", "user": "mia", "roles": ["member"]}"#),
    ("bob-reads", r#"{"name": "bob reads", "user": "bob", "scopes": ["read:*"]}"#),
    ("bob-stations", r#"{"name": "bob st", "user": "bob", "scopes": ["write:space/stations"]}"#),
    ("stations", r#"{"name": "stations", "scopes": ["write:space/stations"]}"#),
    ("key-canary", r#"{"name": "canary-7f3a-of-a-key", "user": "zoe"}"#),
];

const CANARIES: [Canary; 9] = [
    Canary {
        text: "canary-19c4-of-ada",
        key: Some("user:ada:notes:secret"),
        readers: &["ada", "admin"],
    },
    Canary {
        text: "canary-5d20-of-bob",
        key: Some("user:bob:notes:secret"),
        readers: &["bob", "bob-reads", "admin"],
    },
    // Neither ada nor bob has the role that the diary needs.
    Canary { text: "canary-c871-of-ada", key: Some("user:ada:diary:1"), readers: &["admin"] },
    Canary {
        text: "canary-02be-of-mia",
        key: Some("user:mia:diary:1"),
        readers: &["mia", "admin"],
    },
    Canary {
        text: "canary-e6b9-of-staff",
        key: Some("shared:staff:2"),
        readers: &["hana", "admin"],
    },
    Canary {
        text: "canary-41aa-of-a-user",
        key: Some("user:ada:plain:entry"),
        readers: &["ada", "admin"],
    },
    // Names of records are as secret as what they hold.
    Canary {
        text: "canary-93d7-of-staff",
        key: Some("shared:staff:canary-93d7-of-staff"),
        readers: &["hana", "admin"],
    },
    Canary {
        text: "canary-b05c-of-bob",
        key: Some("user:bob:diary:canary-b05c-of-bob"),
        readers: &["admin"],
    },
    // Keys are records below system:server.
    Canary { text: "canary-7f3a-of-a-key", key: None, readers: &["admin"] },
];

/// Canaries in a store, and the credentials of those who look for them.
pub struct Planted {
    credentials: Vec<Credential>,
}

impl Planted {
    pub fn plant(scene: &Scene) -> Self {
        let mut credentials: Vec<Credential> = CREDENTIALS
            .iter()
            .map(|(name, new)| {
                let key = scene.key(serde_json::from_str(new).unwrap());
                Credential { name, key: Some(key) }
            })
            .collect();
        credentials.push(Credential { name: "admin", key: Some(scene.admin.clone()) });
        credentials.push(Credential { name: "nobody", key: None });
        let made_up = format!("kw_00000000_{}", "0".repeat(52));
        credentials.push(Credential { name: "made-up", key: Some(made_up) });
        let planted = Self { credentials };
        planted.replant(scene);
        planted
    }

    pub fn credentials(&self) -> &[Credential] {
        &self.credentials
    }

    /// Puts every canary in its place, whatever became of it.
    pub fn replant(&self, scene: &Scene) {
        for canary in &CANARIES {
            if let Some(key) = canary.key {
                scene.put(key, &json!({"secret": canary.text}));
            }
        }
    }

    /// The canary that stands in an answer to somebody who may not read it.
    pub fn leaked(&self, reader: &str, said: &[&str]) -> Option<&'static str> {
        let stands = |text: &str| said.iter().any(|said| said.contains(text));
        let leaked =
            CANARIES.iter().find(|canary| !canary.readers.contains(&reader) && stands(canary.text));
        leaked.map(|canary| canary.text)
    }

    /// Sees that canaries are not missing simply because nobody can read them.
    pub fn assert_readable_by_their_readers(&self, scene: &Scene) {
        self.replant(scene);
        for canary in &CANARIES {
            let Some(key) = canary.key else { continue };
            for credential in &self.credentials {
                if !canary.readers.contains(&credential.name) {
                    continue;
                }
                let path = format!("/v1/stores/main/entries/{key}");
                let head = http::head("GET", &path, credential.key.as_deref());
                let patience = Duration::from_secs(30);
                let answer = http::send(scene.server.address, &head, None, patience).unwrap();
                assert!(answer.body.contains(canary.text), "{}: {answer:?}", credential.name);
            }
        }
    }
}
