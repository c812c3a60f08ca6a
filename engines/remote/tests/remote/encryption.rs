//! Servers that prove to be the one.

use keyward_engine::{ErrorKind, Json, Put, Store};
use keyward_key::Key;
use keyward_remote::{Address, Options, Remote};
use keyward_server::{Config, Tls, without_schema};

use crate::served::{Served, configured};

#[tokio::test]
async fn a_server_is_trusted_for_its_certificate_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(path("cert"), pair.cert.pem()).unwrap();
    keyward_testkit::write_secret(path("key"), pair.signing_key.serialize_pem()).unwrap();
    std::fs::write(path("other"), other.cert.pem()).unwrap();
    let tls = Some(Tls { cert: path("cert"), key: path("key") });
    let served =
        Served::start(&Config { tls, ..configured() }, &without_schema("memory:").unwrap()).await;
    let port = served.url.rsplit_once(':').unwrap().1;
    let open = |name: &str, roots: &str| {
        let address = Address::new(&format!("https://{name}:{port}"), Some("main")).unwrap();
        let options = Options { tls_roots: Some(path(roots)), ..Options::default() };
        async move { Remote::open(&address, &options).await }
    };
    let store = Store::new(open("localhost", "cert").await.unwrap());
    store.put(Key::parse("k").unwrap(), Put::new(Json::from_integer(1))).await.unwrap();
    for (name, roots) in [("localhost", "other"), ("127.0.0.1", "cert")] {
        let error = open(name, roots).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}
