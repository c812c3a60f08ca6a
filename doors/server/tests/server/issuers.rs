//! Keys of issuers that publish them: fetched, kept, looked at again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use keyward_server::{Config, Issuer, KeySource, Server, StartError, without_schema};
use keyward_testkit::TestClock;
use rcgen::KeyPair;
use rsa::pkcs1::EncodeRsaPrivateKey;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;

use crate::fixture::{Running, answered, configured, refused};

/// What a test clock shows at first, in seconds.
const NOW: i64 = 1_767_225_600;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Somebody who signs tokens, with a key of their own.
struct Signer {
    id: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
}

impl Signer {
    fn ec(id: &'static str) -> Self {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        Self {
            id,
            algorithm: Algorithm::ES256,
            key: EncodingKey::from_ec_der(&pair.serialize_der()),
        }
    }

    fn ed(id: &'static str) -> Self {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        // Its private part alone, without the public one that is written after it.
        let der = pair.serialize_der();
        let mut short =
            vec![0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
        short.extend([0x04, 0x22, 0x04, 0x20]);
        let at = der.windows(4).position(|part| part == [0x04, 0x22, 0x04, 0x20]).unwrap() + 4;
        short.extend(&der[at..at + 32]);
        Self { id, algorithm: Algorithm::EdDSA, key: EncodingKey::from_ed_der(&short) }
    }

    fn rsa(id: &'static str) -> (Self, rsa::RsaPrivateKey) {
        let pair = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).unwrap();
        let der = pair.to_pkcs1_der().unwrap();
        let key = EncodingKey::from_rsa_der(der.as_bytes());
        (Self { id, algorithm: Algorithm::RS256, key }, pair)
    }

    fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        key.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(key).unwrap()
    }

    fn token(&self, issuer: &str) -> String {
        let header = Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) };
        encode(&header, &claims(issuer), &self.key).unwrap()
    }
}

fn claims(issuer: &str) -> Value {
    json!({"iss": issuer, "aud": "keyward", "sub": "7", "exp": NOW + 10 * 86_400})
}

fn keys(signers: &[&Signer]) -> String {
    json!({ "keys": signers.iter().map(|signer| signer.public()).collect::<Vec<_>>() }).to_string()
}

/// Who publishes documents by HTTP, and counts how often they are asked for.
struct Provider {
    address: SocketAddr,
    documents: Arc<Mutex<BTreeMap<String, (u16, String)>>>,
    asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Provider {
    async fn new() -> Self {
        Self::behind(None).await
    }

    async fn behind(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let documents = Arc::<Mutex<BTreeMap<String, (u16, String)>>>::default();
        let asked = Arc::new(AtomicUsize::new(0));
        let (given, counted) = (documents.clone(), asked.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                match &tls {
                    None => answer(stream, &given).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer(stream, &given).await;
                        }
                    }
                }
            }
        });
        Self { address, documents, asked, task }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn publish(&self, path: &str, status: u16, text: impl Into<String>) {
        self.documents.lock().unwrap().insert(path.to_owned(), (status, text.into()));
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    documents: &Mutex<BTreeMap<String, (u16, String)>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap();
    let found = documents.lock().unwrap().get(path).cloned();
    let (status, text) = found.unwrap_or((404, String::new()));
    let answer = format!(
        "HTTP/1.1 {status} Told\r\nlocation: /keys\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// A server that trusts an issuer, whose clock stands still.
async fn trusting(issuer: &str, keys: KeySource) -> (Running, TestClock) {
    let clock = TestClock::new();
    let issuer = Some(Issuer::new(issuer, "keyward", keys));
    let config = Config { issuer, clock: Arc::new(clock.clone()), ..configured() };
    (Running::start(&config, &without_schema("memory:").unwrap()).await, clock)
}

async fn taken(server: &Running, token: &str) {
    answered(200, server.get("/v1/stores").bearer_auth(token)).await;
}

async fn nobodys(server: &Running, token: &str) {
    refused(401, "unauthenticated", server.get("/v1/stores").bearer_auth(token)).await;
}

#[tokio::test]
async fn tokens_by_rsa_ec_and_ed_keys_are_taken_with_keys_from_a_url() {
    let provider = Provider::new().await;
    let ((rsa, pair), ec, ed) = (Signer::rsa("rsa"), Signer::ec("ec"), Signer::ed("ed"));
    provider.publish("/keys", 200, keys(&[&rsa, &ec, &ed]));
    let (server, _) = trusting("me", KeySource::Url(provider.url("/keys"))).await;
    for signer in [&rsa, &ec, &ed] {
        taken(&server, &signer.token("me")).await;
        nobodys(&server, &signer.token("you")).await;
    }
    for (one, id) in
        [(Signer::ec("ec"), "ec"), (Signer::ed("ed"), "ed"), (Signer::rsa("rsa").0, "rsa")]
    {
        assert_eq!(one.id, id);
        nobodys(&server, &one.token("me")).await;
    }
    // The public key, which everybody can have, as the secret of a symmetric algorithm.
    use rsa::pkcs8::EncodePublicKey;
    let public = pair.to_public_key();
    let pem = public.to_public_key_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    let der = public.to_public_key_der().unwrap();
    for secret in [pem.as_bytes(), pem.trim().as_bytes(), der.as_bytes()] {
        let header = Header { kid: Some("rsa".to_owned()), ..Header::new(Algorithm::HS256) };
        let token = encode(&header, &claims("me"), &EncodingKey::from_secret(secret)).unwrap();
        nobodys(&server, &token).await;
    }
    // One key is not taken for another kind of signature.
    let header = Header { kid: Some("rsa".to_owned()), ..Header::new(Algorithm::ES256) };
    nobodys(&server, &encode(&header, &claims("me"), &ec.key).unwrap()).await;
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn an_issuer_is_asked_where_its_keys_are() {
    let provider = Provider::new().await;
    let (signer, issuer) = (Signer::ec("one"), provider.url("/realm"));
    let told = json!({"issuer": issuer, "jwks_uri": provider.url("/keys")});
    provider.publish("/realm/.well-known/openid-configuration", 200, told.to_string());
    provider.publish("/keys", 200, keys(&[&signer]));
    let (server, _) = trusting(&issuer, KeySource::Discovered).await;
    taken(&server, &signer.token(&issuer)).await;

    // One that calls itself otherwise, or sends elsewhere without TLS, is not believed.
    let elsewhere = json!({"issuer": issuer, "jwks_uri": "http://id.example/keys"});
    for told in [json!({"issuer": "other", "jwks_uri": provider.url("/keys")}), elsewhere] {
        provider.publish("/realm/.well-known/openid-configuration", 200, told.to_string());
        let (server, _) = trusting(&issuer, KeySource::Discovered).await;
        nobodys(&server, &signer.token(&issuer)).await;
    }
}

#[tokio::test]
async fn a_key_that_nobody_knows_is_looked_for_once_a_minute() {
    let provider = Provider::new().await;
    let (one, two) = (Signer::ec("one"), Signer::ec("two"));
    provider.publish("/keys", 200, keys(&[&one]));
    let (server, clock) = trusting("me", KeySource::Url(provider.url("/keys"))).await;
    provider.publish("/keys", 200, keys(&[&two]));
    for _ in 0..20 {
        nobodys(&server, &two.token("me")).await;
    }
    taken(&server, &one.token("me")).await;
    assert_eq!(provider.asked(), 1, "at the start");
    clock.advance(Duration::from_secs(60));
    taken(&server, &two.token("me")).await;
    // What the issuer has taken back counts for nothing from then on.
    nobodys(&server, &one.token("me")).await;
    for _ in 0..20 {
        nobodys(&server, &Signer::ec("three").token("me")).await;
    }
    assert_eq!(provider.asked(), 2);
}

#[tokio::test]
async fn keys_that_cannot_be_looked_at_any_more_are_used_for_a_day() {
    let provider = Provider::new().await;
    let signer = Signer::ec("one");
    provider.publish("/keys", 200, keys(&[&signer]));
    let (server, clock) = trusting("me", KeySource::Url(provider.url("/keys"))).await;
    for (status, text) in [
        (500, keys(&[&signer])),
        (302, keys(&[&signer])),
        (200, "{}".to_owned()),
        (200, "x".repeat(2_000_000)),
    ] {
        provider.publish("/keys", status, text);
        let before = provider.asked();
        clock.advance(Duration::from_secs(60));
        nobodys(&server, &Signer::ec("other").token("me")).await;
        assert_eq!(provider.asked(), before + 1, "{status}");
        taken(&server, &signer.token("me")).await;
    }
    clock.advance(DAY);
    nobodys(&server, &signer.token("me")).await;
    provider.publish("/keys", 200, keys(&[&signer]));
    clock.advance(Duration::from_secs(60));
    taken(&server, &signer.token("me")).await;
}

#[tokio::test]
async fn an_issuer_that_is_not_there_does_not_stop_the_start() {
    let provider = Provider::new().await;
    let signer = Signer::ec("one");
    let (server, clock) = trusting("me", KeySource::Url(provider.url("/keys"))).await;
    nobodys(&server, &signer.token("me")).await;
    provider.publish("/keys", 200, keys(&[&signer]));
    clock.advance(Duration::from_secs(60));
    taken(&server, &signer.token("me")).await;
}

#[tokio::test]
async fn an_issuer_that_never_answers_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", silent.local_addr().unwrap());
    let (server, _) = trusting("me", KeySource::Url(url)).await;
    nobodys(&server, &Signer::ec("one").token("me")).await;
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_gives_no_keys() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![made.cert.der().clone()],
            made.signing_key.serialize_der().try_into().unwrap(),
        )
        .unwrap();
    let provider = Provider::behind(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let signer = Signer::ec("one");
    provider.publish("/keys", 200, keys(&[&signer]));
    let url = format!("https://localhost:{}/keys", provider.address.port());
    let (server, _) = trusting("me", KeySource::Url(url)).await;
    nobodys(&server, &signer.token("me")).await;
    assert!(provider.asked() > 0);
}

#[tokio::test]
async fn a_file_of_keys_that_changes_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let (one, two) = (Signer::ec("one"), Signer::ec("two"));
    std::fs::write(&file, keys(&[&one])).unwrap();
    let (server, clock) = trusting("me", KeySource::File(file.clone())).await;
    taken(&server, &one.token("me")).await;
    std::fs::write(&file, keys(&[&one, &two])).unwrap();
    clock.advance(Duration::from_secs(60));
    taken(&server, &two.token("me")).await;
    taken(&server, &one.token("me")).await;
    // What cannot be read changes nothing.
    std::fs::write(&file, "half of a").unwrap();
    clock.advance(Duration::from_secs(60));
    nobodys(&server, &Signer::ec("three").token("me")).await;
    taken(&server, &two.token("me")).await;
}

#[tokio::test]
async fn keys_from_elsewhere_without_tls_stop_the_start() {
    let data = without_schema("memory:").unwrap();
    for (issuer, keys) in [
        ("me", KeySource::Url("http://id.example/keys".to_owned())),
        ("me", KeySource::Discovered),
        ("http://id.example", KeySource::Discovered),
    ] {
        let config = Config { issuer: Some(Issuer::new(issuer, "keyward", keys)), ..configured() };
        let refused = Server::bind(&config, &data).await;
        assert!(matches!(refused, Err(StartError::IssuerKeys { .. })), "{refused:?}");
        assert!(matches!(config.check(), Err(StartError::IssuerKeys { .. })));
    }
}
