//! A raw client of HTTP: reqwest, with the settings of `engines/http`, so that connections are kept
//! and used again in the same way.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, retry};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use crate::Result;

/// How long an unused connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(4);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// A client of a server without TLS.
pub fn client() -> Result<reqwest::Client> {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .retry(retry::never())
        .no_proxy()
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE_MAX)
        .connect_timeout(CONNECT_TIME_MAX)
        .tls_backend_preconfigured(tls);
    Ok(builder.build()?)
}

/// Sends a request, and reads all of the answer. Anything but success is an error.
pub async fn answer(request: RequestBuilder) -> Result<Bytes> {
    let response = request.send().await?;
    let status = response.status();
    let body = response.bytes().await?;
    if status.is_success() {
        return Ok(body);
    }
    Err(format!("a request was answered {status}: {}", String::from_utf8_lossy(&body)).into())
}
