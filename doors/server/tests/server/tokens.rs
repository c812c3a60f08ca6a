//! Tokens of an issuer: those that are taken, and every way in which one can be wrong.

use std::path::Path;
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use keyward_server::{Config, Issuer, Server, StartError, without_schema};
use keyward_testkit::TestClock;
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::fixture::{Running, answered, configured, refused, told};

const ISSUER: &str = "https://id.example";
/// What a test clock shows at first, in seconds.
const NOW: i64 = 1_767_225_600;

/// Somebody who signs tokens, with a key of their own.
pub struct Signer(EncodingKey);

impl Signer {
    pub fn new() -> Self {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        Self(EncodingKey::from_ec_der(&pair.serialize_der()))
    }

    pub fn keys(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.0, Algorithm::ES256).unwrap();
        key.common.key_id = Some("one".to_owned());
        json!({ "keys": [key] })
    }

    pub fn token(&self, claims: &Value) -> String {
        self.token_under("one", claims)
    }

    fn token_under(&self, kid: &str, claims: &Value) -> String {
        let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, &self.0).unwrap()
    }
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "keyward", "sub": "7", "exp": NOW + 600, "nbf": NOW - 1})
}

pub fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

pub fn trusting(folder: &Path, keys: &Value) -> Config {
    let file = folder.join("keys.json");
    std::fs::write(&file, keys.to_string()).unwrap();
    let issuer = Some(Issuer::new(ISSUER, "keyward", file));
    Config { issuer, clock: Arc::new(TestClock::new()), ..configured() }
}

#[tokio::test]
async fn a_token_of_the_issuer_is_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::new();
    let config = trusting(folder.path(), &signer.keys());
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    refused(401, "unauthenticated", server.get("/v1/stores")).await;
    let token = signer.token(&claims());
    let entry = |user: &str| server.put(&format!("/v1/stores/main/entries/user:{user}:a"), "1");
    answered(200, entry("7").bearer_auth(&token)).await;
    refused(403, "forbidden", entry("70").bearer_auth(&token)).await;
    refused(403, "forbidden", server.get("/v1/keys").bearer_auth(&token)).await;

    for taken in [
        with("aud", json!(["other", "keyward"])),
        with("exp", json!(NOW - 29)),
        with("nbf", json!(NOW + 30)),
        without("nbf"),
        with("scope", json!("openid write:store/main")),
        with("scope", json!(["write:*"])),
    ] {
        answered(200, entry("7").bearer_auth(signer.token(&taken))).await;
    }
    for narrow in ["openid", "read:*", "write:store/other", "admin:*", ""] {
        let token = signer.token(&with("scope", json!(narrow)));
        refused(403, "forbidden", entry("7").bearer_auth(token)).await;
    }
}

#[tokio::test]
async fn a_token_that_is_wrong_in_any_way_is_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::new();
    let keys = signer.keys();
    let server = trusting(folder.path(), &keys);
    let server = Running::start(&server, &without_schema("memory:").unwrap()).await;
    let get = |token: &str| server.get("/v1/stores").bearer_auth(token);
    let good = signer.token(&claims());
    answered(200, get(&good)).await;

    let mut wrong: Vec<String> = [
        with("iss", json!("https://other.example")),
        with("aud", json!("other")),
        with("aud", json!([])),
        with("exp", json!(NOW - 30)),
        with("exp", json!("never")),
        with("nbf", json!(NOW + 31)),
        with("sub", json!("")),
        with("sub", json!(7)),
        with("sub", json!("7\n")),
        without("iss"),
        without("aud"),
        without("exp"),
        without("sub"),
    ]
    .iter()
    .map(|claims| signer.token(claims))
    .collect();
    wrong.push(Signer::new().token(&claims()));
    wrong.push(signer.token_under("two", &claims()));
    wrong.push(encode(&Header::new(Algorithm::ES256), &claims(), &signer.0).unwrap());
    // The public key, which everybody knows, as the secret of a symmetric algorithm.
    let point = BASE64URL_NOPAD.decode(keys["keys"][0]["x"].as_str().unwrap().as_bytes()).unwrap();
    let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::HS256) };
    wrong.push(encode(&header, &claims(), &EncodingKey::from_secret(&point)).unwrap());
    // A key that the token brings along.
    let stranger = Signer::new();
    let mut header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::ES256) };
    header.jwk = Some(serde_json::from_value(stranger.keys()["keys"][0].clone()).unwrap());
    wrong.push(encode(&header, &claims(), &stranger.0).unwrap());
    let parts: Vec<&str> = good.split('.').collect();
    let part = |value: Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    for algorithm in ["none", "None", "NONE", "ES384", "RS256"] {
        let header = part(json!({"alg": algorithm, "kid": "one", "typ": "JWT"}));
        wrong.push(format!("{header}.{}.", parts[1]));
        wrong.push(format!("{header}.{}.{}", parts[1], parts[2]));
    }
    let other = part(with("sub", json!("8")));
    wrong.push(format!("{}.{other}.{}", parts[0], parts[2]));
    wrong.push(format!("{}.{}.", parts[0], parts[1]));
    wrong.push(format!("{good}.{}", parts[2]));
    wrong.push("a.b.c".to_owned());
    wrong.push("x".repeat(20_000));
    let expected = told(401, server.get("/v1/stores")).await;
    for token in wrong {
        assert_eq!(told(401, get(&token)).await, expected, "{token}");
    }
}

#[tokio::test]
async fn keys_that_check_nothing_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = without_schema("memory:").unwrap();
    let mut nameless = Signer::new().keys();
    nameless["keys"][0].as_object_mut().unwrap().remove("kid");
    let mut sealing = Signer::new().keys();
    sealing["keys"][0]["use"] = json!("enc");
    let symmetric =
        json!({"keys": [{"kty": "oct", "kid": "one", "alg": "HS256", "k": "c2VjcmV0"}]});
    for keys in [json!({"keys": []}), json!({}), json!([]), nameless, sealing, symmetric] {
        let refused = Server::bind(&trusting(folder.path(), &keys), &data).await;
        assert!(matches!(refused, Err(StartError::IssuerKeys { .. })), "{keys}: {refused:?}");
    }
    let everywhere = trusting(folder.path(), &Signer::new().keys());
    let listen = "0.0.0.0:0".parse().unwrap();
    let everywhere = Config { listen, plaintext: true, ..everywhere };
    assert!(!Server::bind(&everywhere, &data).await.unwrap().is_local());
}
