//! What is told of stores, keys and refusals.

use std::os::unix::fs::PermissionsExt;

use keyward_engine::{Commit, Durability, Engine, ErrorKind, Json, Put, Sharing, Tier};
use keyward_key::Key;
use keyward_remote::{Address, ApiKey, Connection, Options, Remote};
use serde_json::Value;

use crate::served::{Served, opened};

const TWO: &str =
    "[stores.main]\nurl = \"memory:\"\n[stores.other]\nurl = \"memory:?tier=advisory\"\n";

async fn key(served: &Served, body: &str) -> String {
    let key = served.start_token.as_deref().map(|token| ApiKey::new(token).unwrap());
    let connection = Connection::new(&served.url, &Options { key, ..Options::default() }).unwrap();
    let made: Value =
        serde_json::from_slice(&connection.post("/v1/keys", body.to_owned()).await.unwrap())
            .unwrap();
    made["secret"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_a_store_can_do_is_what_the_server_tells() {
    let served = Served::with_schema(TWO).await;
    let open = |store: &'static str| {
        let address = Address::new(&served.url, Some(store)).unwrap();
        async move { Remote::open(&address, &Options::default()).await }
    };
    let main = open("main").await.unwrap();
    let able = main.capabilities();
    assert_eq!((able.engine, able.tier()), ("keyward+http", Tier::Atomic));
    assert_eq!((able.durability, able.sharing), (Durability::Volatile, Sharing::Network));
    assert_eq!(open("other").await.unwrap().capabilities().tier(), Tier::Advisory);
    let error = open("nothing").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misplaced);
    assert!(error.to_string().contains("no store called \"nothing\""), "{error}");
}

#[tokio::test]
async fn without_a_name_the_first_store_is_meant() {
    let several = Served::with_schema(TWO).await;
    let address = Address::new(&several.url, None).unwrap();
    let first = Remote::open(&address, &Options::default()).await.unwrap();
    assert!(format!("{first:?}").contains("/v1/stores/main/raw"), "{first:?}");
    // The first that the key reaches.
    let secret = key(&several, r#"{"name":"a","scopes":["read:store/other"]}"#).await;
    let options = Options { key: Some(ApiKey::new(&secret).unwrap()), ..Options::default() };
    let reached = Remote::open(&address, &options).await.unwrap();
    assert!(format!("{reached:?}").contains("/v1/stores/other/raw"), "{reached:?}");
}

#[tokio::test]
async fn no_key_and_a_wrong_key_are_told_apart_and_never_shown() {
    let served = Served::on("memory:").await;
    let secret = key(&served, r#"{"name":"a","scopes":["read:store/main"]}"#).await;
    let none = opened(&served.url, None).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Forbidden);
    assert!(none.to_string().contains("set KEYWARD_KEY"), "{none}");

    let wrong = format!("{}x", &secret[..secret.len() - 1]);
    let error = opened(&served.url, Some(&wrong)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.to_string().contains("wrong, has ended or was revoked"), "{error}");

    let engine = opened(&served.url, Some(&secret)).await.unwrap();
    let put = Commit::new().put(Key::parse("k").unwrap(), Put::new(Json::from_integer(1)));
    let refused = engine.commit(put).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    assert!(refused.to_string().contains("may not write store/main"), "{refused}");
    for shown in [format!("{error:?} {error} {refused:?} {refused}"), format!("{engine:?}")] {
        assert!(!shown.contains(&secret) && !shown.contains(&wrong), "{shown}");
    }
}

#[tokio::test]
async fn a_key_may_come_from_a_file() {
    let served = Served::on("memory:").await;
    let secret = key(&served, r#"{"name":"a","scopes":["write:store/main"]}"#).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    keyward_testkit::write_secret(&file, format!("{secret}\n")).unwrap();
    let url = format!(
        "{}/main?key_file={}",
        served.url.replacen("http", "keyward+http", 1),
        file.display()
    );
    let store = keyward::open(&url).await.unwrap();
    store.put(Key::parse("k").unwrap(), Put::new(Json::from_integer(1))).await.unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let shown = keyward::open(&url).await.unwrap_err();
    assert_eq!(shown.kind(), ErrorKind::Misplaced, "{shown}");
    let shown = format!("{shown:?}");
    assert!(shown.contains("0644") && shown.contains("chmod 600"), "{shown}");
    let missing = keyward::open(&format!("{url}x")).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Misplaced, "{missing}");
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_sent() {
    let served = Served::on("memory:").await;
    let store = served.store().await;
    let most = store.limits().value_bytes_max;
    assert!(most > 500_000, "{most}");
    let value = Json::from_value(&"x".repeat(most)).unwrap();
    let error = store.put(Key::parse("k").unwrap(), Put::new(value)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}
