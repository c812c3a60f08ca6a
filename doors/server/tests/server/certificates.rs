//! Certificates: replaced while the server runs, and what is wrong with them in words.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use keyward_server::{Config, Server, StartError, Tls, without_schema};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, SignatureScheme, crypto};

use crate::fixture::{Running, configured};

struct Pair {
    cert: String,
    der: Vec<u8>,
    key: String,
}

/// A certificate that expires in a year.
fn pair(year: i32) -> Pair {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(year, 1, 1);
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    Pair { cert: cert.pem(), der: cert.der().to_vec(), key: key.serialize_pem() }
}

/// Replaces a file at once, as tools that renew certificates do.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    let _ = std::fs::remove_file(&new);
    keyward_testkit::write_secret(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}

fn files(folder: &Path) -> Tls {
    Tls { cert: folder.join("cert.pem"), key: folder.join("key.pem") }
}

fn write(tls: &Tls, pair: &Pair) {
    replace(&tls.key, &pair.key);
    replace(&tls.cert, &pair.cert);
}

/// Takes any certificate: which one it is, is what is looked at.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

async fn connect(server: &Running) -> TlsStream<TcpStream> {
    let provider = Arc::new(crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions().unwrap();
    let client = client.dangerous().with_custom_certificate_verifier(Arc::new(Anyone));
    let client = Arc::new(client.with_no_client_auth());
    let address = server.url.strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(client).connect(name, stream).await.unwrap()
}

async fn shown(server: &Running) -> Vec<u8> {
    connect(server).await.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

async fn ask(stream: &mut TlsStream<TcpStream>, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("\r\n\r\n") {
        let mut bytes = [0; 64 * 1024];
        let read = stream.read(&mut bytes).await.unwrap();
        assert!(read > 0, "the connection ended");
        answer.extend_from_slice(&bytes[..read]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// All metrics, over a connection of its own.
async fn metrics_text(server: &Running) -> String {
    let mut stream = connect(server).await;
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Waits until new connections are shown a certificate.
async fn until_shown(server: &Running, pair: &Pair) {
    for _ in 0..600 {
        if shown(server).await == pair.der {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the new certificate was not shown within a minute");
}

#[tokio::test]
async fn a_certificate_is_replaced_without_a_restart_and_a_broken_one_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let tls = files(folder.path());
    let (first, second, third) = (pair(2090), pair(2091), pair(2092));
    write(&tls, &first);
    let tls_reload_interval = Duration::from_millis(100);
    let config = Config { tls: Some(tls.clone()), tls_reload_interval, ..configured() };
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let mut open = connect(&server).await;
    assert_eq!(shown(&server).await, first.der);

    write(&tls, &second);
    until_shown(&server, &second).await;
    // Whoever is connected stays so.
    let metrics = ask(&mut open, "/metrics").await;
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    // The metric follows: the first moment of 2091. It is set right after the certificate.
    let sample = "\nkeyward_tls_certificate_not_after_seconds 3818448000\n";
    let mut text = String::new();
    for _ in 0..600 {
        text = metrics_text(&server).await;
        if text.contains(sample) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(text.contains(sample), "{text}");

    // A certificate without its key, for several looks at the files.
    replace(&tls.cert, &third.cert);
    let until = tokio::time::Instant::now() + Duration::from_secs(1);
    while tokio::time::Instant::now() < until {
        assert_eq!(shown(&server).await, second.der);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    replace(&tls.key, &third.key);
    until_shown(&server, &third).await;
}

/// Why a server does not start with these files.
fn refused(tls: &Tls) -> (String, &'static str) {
    match (Config { tls: Some(tls.clone()), ..configured() }).check() {
        Err(error @ StartError::Tls { hint, .. }) => (error.to_string(), hint),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_files_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let tls = files(folder.path());
    let (one, other) = (pair(2090), pair(2090));
    let says = |told: (String, &str), reason: &str, advice: &str| {
        assert!(told.0.contains(reason) && told.1.contains(advice), "{told:?}");
        assert!(!told.0.contains("os error"), "{told:?}");
    };
    says(refused(&tls), "cert.pem cannot be used for TLS: the file does not exist", "--tls-cert");
    replace(&tls.cert, &one.cert);
    says(refused(&tls), "key.pem cannot be used for TLS: the file does not exist", "--tls-key");
    replace(&tls.key, &other.key);
    says(refused(&tls), "it is not the key of the certificate in", "openssl x509");
    replace(&tls.cert, &one.key);
    says(refused(&tls), "holds a private key, and no certificate", "swapped");
    replace(&tls.cert, &one.cert);
    replace(&tls.key, &one.cert);
    says(refused(&tls), "holds a certificate, and no private key", "swapped");
    replace(&tls.key, "hello");
    says(refused(&tls), "holds no private key in PEM form", "BEGIN PRIVATE KEY");
    let body = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    replace(&tls.key, body);
    says(refused(&tls), "encrypted with a passphrase", "openssl pkey");
    replace(&tls.key, &one.key);
    replace(&tls.cert, "hello");
    says(refused(&tls), "holds no certificate in PEM form", "openssl x509 -inform der");
    replace(&tls.cert, &format!("{}{}", other.cert, one.cert));
    says(refused(&tls), "is not the first one in it", "first");
    replace(&tls.cert, &format!("{}{}", one.cert, other.cert));
    Config { tls: Some(tls), ..configured() }.check().unwrap();
}

#[tokio::test]
async fn when_a_certificate_expires_is_a_metric_and_an_expired_one_does_not_keep_it_from_starting()
{
    let folder = tempfile::tempdir().unwrap();
    let tls = files(folder.path());
    write(&tls, &pair(2021));
    let config = Config { tls: Some(tls), ..configured() };
    Server::bind(&config, &without_schema("memory:").unwrap()).await.unwrap();
    let server = Running::start(&config, &without_schema("memory:").unwrap()).await;
    let text = metrics_text(&server).await;
    // The first moment of 2021.
    let sample = "\nkeyward_tls_certificate_not_after_seconds 1609459200\n";
    assert!(text.contains(sample), "{text}");
}
