//! Servers that others can reach, and connections that nobody reads along.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use keyward::SystemClock;
use keyward_server::{Config, Keys, NewKey, Server, StartError, Tls, without_schema};
use rcgen::CertifiedKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::fixture::{Running, configured};

#[tokio::test]
async fn a_server_that_others_reach_needs_a_key_and_a_word_about_tls() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("control").display());
    let data = without_schema("memory:").unwrap();
    let everywhere = Config { listen: "0.0.0.0:0".parse().unwrap(), ..Config::default() };
    let refused = Server::bind(&everywhere, &data).await;
    assert!(matches!(refused, Err(StartError::ReadAlong(_))), "{refused:?}");
    let plain = Config { plaintext: true, control: Some(url.clone()), ..everywhere.clone() };
    let refused = Server::bind(&plain, &data).await;
    assert!(matches!(refused, Err(StartError::Unguarded(_))), "{refused:?}");

    let keys = Keys::new(keyward::open(&url).await.unwrap(), Arc::new(SystemClock));
    keys.create(NewKey { name: "first".to_owned(), ..NewKey::default() }).await.unwrap();
    let refused = Server::bind(&Config { plaintext: false, ..plain.clone() }, &data).await;
    assert!(matches!(refused, Err(StartError::ReadAlong(_))), "{refused:?}");
    let server = Server::bind(&plain, &data).await.unwrap();
    assert!(!server.is_local() && server.url().starts_with("http://"));

    let tls = Some(Tls { cert: folder.path().join("none.pem"), key: folder.path().join("none") });
    let refused = Server::bind(&Config { tls, ..configured() }, &data).await;
    assert!(matches!(refused, Err(StartError::Tls { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_private_key_that_every_account_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    std::fs::write(&tls.cert, cert.pem()).unwrap();
    std::fs::write(&tls.key, signing_key.serialize_pem()).unwrap();
    let mode = |mode| {
        std::fs::set_permissions(&tls.key, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let config = Config { tls: Some(tls.clone()), ..configured() };
    mode(0o644);
    let checked = config.check().unwrap_err().to_string();
    assert!(checked.contains("0644") && checked.contains("chmod 600"), "{checked}");
    let refused = Server::bind(&config, &without_schema("memory:").unwrap()).await;
    assert!(matches!(refused, Err(StartError::Tls { .. })), "{refused:?}");
    // Debian's group ssl-cert.
    mode(0o640);
    config.check().unwrap();
    Server::bind(&config, &without_schema("memory:").unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_certificate_makes_connections_private() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    std::fs::write(&tls.cert, cert.pem()).unwrap();
    keyward_testkit::write_secret(&tls.key, signing_key.serialize_pem()).unwrap();
    let config = Config { tls: Some(tls), ..configured() };
    let server = Server::bind(&config, &without_schema("memory:").unwrap()).await.unwrap();
    let address = server.address();
    assert_eq!(server.url(), format!("https://{address}"));
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));

    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions().unwrap();
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(client)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let request = b"GET /v1/stores HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""name":"main""#), "{answer}");

    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    drop(stop);
    running.await.unwrap();
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    std::fs::write(&tls.cert, cert.pem()).unwrap();
    keyward_testkit::write_secret(&tls.key, signing_key.serialize_pem()).unwrap();
    let mut config = Config { tls: Some(tls), ..configured() };
    config.limits.header_time_max = std::time::Duration::from_millis(200);
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let address = server.url.strip_prefix("http://").unwrap();
    // Nothing; the beginning of a handshake, and no more.
    for begun in [&b""[..], &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(begun).await.unwrap();
        let mut told = Vec::new();
        // Without the bound it would wait for ever, and the test with it.
        let _ = connection.read_to_end(&mut told).await;
        assert!(told.len() < 64, "{told:?}");
    }
}
