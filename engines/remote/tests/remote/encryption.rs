//! Servers that prove to be the one.

use keyward_engine::{Error, ErrorKind, Json, Put, Store};
use keyward_key::Key;
use keyward_remote::{Address, Options, Remote};
use keyward_server::{Config, Tls, without_schema};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

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
    for (name, roots, reason, hint) in [
        ("localhost", "other", "not from an authority that this machine trusts", "SSL_CERT_FILE"),
        ("127.0.0.1", "cert", "is for localhost, not for 127.0.0.1", "one of the names"),
    ] {
        let error = open(name, roots).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
        told(&error, reason, hint);
    }
}

/// That an error says what is wrong, and what to do.
#[track_caller]
fn told(error: &Error, reason: &str, hint: &str) {
    assert!(error.message().contains(reason), "{error}");
    assert!(error.advice().unwrap_or_default().contains(hint), "{:?}", error.advice());
}

/// A server with a certificate of this kind, and what comes of trusting that.
async fn refused(params: CertificateParams) -> Error {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    std::fs::write(path("cert"), cert.pem()).unwrap();
    keyward_testkit::write_secret(path("key"), key.serialize_pem()).unwrap();
    let tls = Some(Tls { cert: path("cert"), key: path("key") });
    let served =
        Served::start(&Config { tls, ..configured() }, &without_schema("memory:").unwrap()).await;
    let port = served.url.rsplit_once(':').unwrap().1;
    let address = Address::new(&format!("https://localhost:{port}"), Some("main")).unwrap();
    let options = Options { tls_roots: Some(path("cert")), ..Options::default() };
    Remote::open(&address, &options).await.unwrap_err()
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_told_with_what_to_do() {
    let named = || CertificateParams::new(["localhost".to_owned()]).unwrap();
    let mut expired = named();
    expired.not_before = date_time_ymd(2020, 1, 1);
    expired.not_after = date_time_ymd(2021, 2, 3);
    told(&refused(expired).await, "certificate expired on 2021-02-03", "Renew");
    let mut early = named();
    early.not_before = date_time_ymd(2900, 1, 1);
    early.not_after = date_time_ymd(2901, 1, 1);
    told(&refused(early).await, "certificate is not valid before 2900-01-01", "clock");
    let mut authority = named();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    told(&refused(authority).await, "is one of an authority", "CA:FALSE");
}

#[tokio::test]
async fn http_and_https_taken_for_each_other_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(path("cert"), pair.cert.pem()).unwrap();
    keyward_testkit::write_secret(path("key"), pair.signing_key.serialize_pem()).unwrap();
    let data = without_schema("memory:").unwrap();
    let plain = Served::start(&configured(), &data).await;
    let tls = Some(Tls { cert: path("cert"), key: path("key") });
    let private = Served::start(&Config { tls, ..configured() }, &data).await;
    for (served, scheme, reason, right) in [
        (&plain, "https", "does not speak TLS", "http"),
        (&private, "http", "is not HTTP", "https"),
    ] {
        let port = served.url.rsplit_once(':').unwrap().1;
        let address = Address::new(&format!("{scheme}://localhost:{port}"), Some("main")).unwrap();
        let options = Options { tls_roots: Some(path("cert")), ..Options::default() };
        let error = Remote::open(&address, &options).await.unwrap_err();
        told(&error, reason, &format!("Use {right}://localhost:{port} "));
    }
}
