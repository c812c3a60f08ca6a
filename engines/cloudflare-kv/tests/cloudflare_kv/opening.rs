//! Opening namespaces that are there, and those that are not.

use std::sync::Arc;

use keyward_cloudflare_kv::{CloudflareKv, Options, Token};
use keyward_engine::{ErrorKind, Json, Put, Store};
use keyward_key::Key;
use keyward_testkit::write_secret;

use crate::server::{Namespace, TOKEN, address};

#[tokio::test]
async fn a_namespace_that_is_not_there_is_told_with_what_to_do() {
    let namespace = Namespace::prompt();
    let options = Options { namespace: "nowhere".to_owned(), ..namespace.options(address()) };
    assert!(CloudflareKv::open_existing(options.clone()).await.unwrap().is_none());
    let error = CloudflareKv::open(options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misplaced);
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert!(error.advice().unwrap().contains("wrangler kv namespace create"));
    assert!(CloudflareKv::open_existing(namespace.options(address())).await.unwrap().is_some());
}

#[tokio::test]
async fn a_token_that_is_refused_is_not_shown() {
    let namespace = Namespace::prompt();
    let token = Some(Token::new("wr0ng-t0ken").unwrap());
    let options = Options { token, ..namespace.options(address()) };
    let error = CloudflareKv::open(options.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    assert!(error.advice().unwrap().contains("Workers KV Storage"));
    assert!(!format!("{error:?} {options:?}").contains("wr0ng"));
}

#[tokio::test]
async fn a_store_is_opened_by_its_url_with_the_token_in_a_file() {
    let namespace = Arc::new(Namespace::prompt());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    write_secret(&file, format!("{TOKEN}\n")).unwrap();
    let url = format!(
        "cloudflare-kv://test/{}?api=http://{}/client/v4/&token_file={}",
        namespace.id,
        address(),
        file.display()
    );
    let options = Options::from_url(url.parse().unwrap()).unwrap();
    let engine = CloudflareKv::open(options).await.unwrap();
    assert!(!format!("{engine:?}").contains(TOKEN));
    let store = Store::new(engine);
    let slot = Key::parse("sync:foo").unwrap();
    store.put(slot.clone(), Put::new(Json::from_integer(1))).await.unwrap();
    assert!(store.get(&slot).await.unwrap().is_some());
}
