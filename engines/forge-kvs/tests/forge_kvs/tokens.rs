//! Tokens: they expire after an hour, and each invocation of an app brings a new one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use keyward_engine::{ErrorKind, Store};
use keyward_forge_kvs::{ForgeKvs, Options, Token, TokenFile};
use keyward_testkit::HttpProxy;
use serde_json::json;

use crate::installation::{Installation, key, put};

fn write(path: &Path, token: &str) {
    fs::write(path, token).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test]
async fn a_file_is_read_again_when_its_token_was_replaced() {
    let installation = Installation::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    write(&path, &format!("{}\n", installation.token(1)));
    let options = installation.options().with_tokens(TokenFile::new(&path));
    let store = Store::new(ForgeKvs::open(options).await.unwrap());
    store.put(key("slot"), put("1")).await.unwrap();

    installation.control(json!({"expireToken": installation.token(1)})).await;
    let error = store.get(&key("slot")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    assert!(!error.to_string().contains(&installation.token(1)), "{error}");
    assert!(error.advice().unwrap().contains("storage:app"), "{error:?}");

    write(&path, &installation.token(2));
    assert!(store.get(&key("slot")).await.unwrap().is_some());
    fs::remove_file(&path).unwrap();
    let error = store.get(&key("slot")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
}

/// Gives the next token when one was refused.
struct Renewing(Installation);

impl keyward_forge_kvs::TokenSource for Renewing {
    fn token<'a>(
        &'a self,
        refused: Option<&'a Token>,
    ) -> keyward_engine::BoxFuture<'a, keyward_engine::Result<Token>> {
        let number = if refused.is_some() { 2 } else { 1 };
        Box::pin(async move { Token::new(&self.0.token(number)) })
    }
}

#[tokio::test]
async fn a_source_is_asked_again_with_the_token_that_was_refused() {
    let installation = Installation::new();
    let proxy = HttpProxy::start(installation.address()).await;
    let options = installation.options_through(proxy.address());
    let options = options.with_tokens(Renewing(installation.clone()));
    let store = Store::new(ForgeKvs::open(options).await.unwrap());
    installation.control(json!({"expireToken": installation.token(1)})).await;
    let (version, requests) = proxy.count(store.put(key("slot"), put("1"))).await;
    version.unwrap();
    assert_eq!(requests, 2);
    installation.control(json!({"expireToken": installation.token(2)})).await;
    let error = store.get(&key("slot")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
}

#[tokio::test]
async fn a_call_with_its_own_token_reaches_its_own_installation() {
    let (one, other) = (Installation::new(), Installation::new());
    let engine = one.open().await;
    let for_call = |installation: &Installation| {
        Store::new(engine.with_token(Token::new(&installation.token(9)).unwrap()))
    };
    for_call(&one).put(key("slot"), put("1")).await.unwrap();
    assert_eq!(for_call(&other).get(&key("slot")).await.unwrap(), None);
    for_call(&other).put(key("slot"), put("2")).await.unwrap();
    let value = for_call(&one).get(&key("slot")).await.unwrap().unwrap().value;
    assert_eq!(value.as_str(), "1");
}

#[tokio::test]
async fn without_a_token_that_can_be_read_nothing_opens() {
    let installation = Installation::new();
    let url = format!("forge-kvs://test?api={}&token_file=/nowhere/token", installation.base());
    let options = Options::from_url(url.parse().unwrap()).unwrap();
    let error = ForgeKvs::open(options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
    assert!(error.message().contains("/nowhere/token"), "{error}");
    for wrong in ["", "  \n", "a\u{0}b", "a\nb"] {
        assert_eq!(Token::new(wrong).unwrap_err().kind(), ErrorKind::Invalid, "{wrong:?}");
    }
}
