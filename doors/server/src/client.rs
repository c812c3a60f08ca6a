//! Asking other servers for something small: issuers of tokens for their keys, a collector of traces.

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The largest answer.
pub(crate) const BYTES_MAX: usize = 1024 * 1024;
/// How long it may take, from the first packet to the last byte.
const TIME_MAX: Duration = Duration::from_secs(5);

/// What a URL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    tls: bool,
    host: String,
    port: u16,
    authority: String,
    path: String,
}

impl Address {
    /// Reads a URL; what is wrong with it is told as text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("{text:?} is no URL: {error}"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(format!("{text:?} is no URL with https or http")),
        };
        let authority = uri.authority().map_or("", |authority| authority.as_str()).to_owned();
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || authority.contains('@') {
            return Err("such a URL has a host, and neither user nor password".to_owned());
        }
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { tls, host, port, authority, path })
    }

    /// Reads a URL whose answers nobody else can give: with TLS, or on this machine.
    pub fn parse_guarded(text: &str) -> Result<Self, String> {
        let address = Self::parse(text)?;
        let loopback = address.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        match address.tls || loopback || address.host == "localhost" {
            true => Ok(address),
            false => Err(format!("{text:?} has no TLS, so that others could answer in its place")),
        }
    }
}

/// Gets a document, from this address alone: it is not followed elsewhere.
pub(crate) async fn fetch(address: &Address) -> Result<Bytes, String> {
    let mut request = Request::new(Bytes::new());
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(header::ACCEPT, json);
    let response = ask(address, request).await?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        status => Err(format!("{} answered with the status {status}", address.authority)),
    }
}

/// Sends a request to an address, whatever the request says itself about where it goes.
pub(crate) async fn ask(
    address: &Address,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, String> {
    let asked = timeout(TIME_MAX, connect_and_ask(address, request)).await;
    asked.map_err(|_| format!("{} took longer than {TIME_MAX:?}", address.authority))?
}

async fn connect_and_ask(
    address: &Address,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, String> {
    let unable = |error: &dyn Display| format!("cannot reach {}: {error}", address.authority);
    let stream = TcpStream::connect((address.host.as_str(), address.port));
    let stream = stream.await.map_err(|error| unable(&error))?;
    if !address.tls {
        return exchange(address, request, stream).await;
    }
    let trusted = tokio::task::spawn_blocking(trusted).await.map_err(|error| unable(&error))?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unable(&error))?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let name = ServerName::try_from(address.host.clone()).map_err(|error| unable(&error))?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
    exchange(address, request, stream.await.map_err(|error| unable(&error))?).await
}

/// The authorities that this machine trusts.
fn trusted() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Without any, no certificate is taken.
    let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

async fn exchange<S>(
    address: &Address,
    request: Request<Bytes>,
    stream: S,
) -> Result<Response<Bytes>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: &dyn Display| format!("{} did not answer: {error}", address.authority);
    let (mut parts, body) = request.into_parts();
    parts.uri = address.path.parse().map_err(|error| failed(&error))?;
    let host = HeaderValue::try_from(&address.authority).map_err(|error| failed(&error))?;
    parts.headers.insert(header::HOST, host);
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let request = Request::from_parts(parts, Full::new(body));
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let asked = async move {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    // The connection ends with the answer; how, the answer tells.
    let (answer, _) = tokio::join!(asked, connection);
    answer.map_err(|error: String| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_with_tls_or_from_this_machine() {
        for good in [
            "https://id.example/jwks",
            "http://127.0.0.1:8080/a?b",
            "http://[::1]/",
            "http://localhost/",
        ] {
            assert!(Address::parse_guarded(good).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example/jwks",
            "http://127.0.0.1.example/",
            "http://localhost.example/",
            "https://a:b@id.example/",
            "http://id.example@127.0.0.1/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "/jwks",
            "",
        ] {
            assert!(Address::parse_guarded(bad).is_err(), "{bad}");
        }
        let address = Address::parse("https://id.example/a/b?c=d").unwrap();
        assert_eq!((address.host.as_str(), address.port), ("id.example", 443));
        assert_eq!(address.path, "/a/b?c=d");
    }
}
