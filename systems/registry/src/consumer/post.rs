//! A change, posted to an address.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use super::{Change, said, shown, tls};
use crate::Secret;
use crate::signature::sign;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// So much of an answer is read, so that its connection can be used again.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// So much of a refusal is told.
const TOLD_BYTES_MAX: usize = 500;

/// An address that changes are posted to.
#[derive(Debug, Clone)]
pub(super) struct Post {
    client: Client,
    url: Url,
    secret: Option<Secret>,
}

impl Post {
    pub fn new(url: &str, secret: Option<Secret>, timeout: Duration) -> Result<Self, String> {
        tls::provide();
        let url =
            Url::parse(url).map_err(|error| format!("the address cannot be read: {error}"))?;
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .connect_timeout(timeout.min(CONNECT_TIME_MAX))
            .timeout(timeout);
        if url.scheme() == "http" {
            builder = builder.tls_backend_preconfigured(tls::none()?);
        }
        let client = builder.build().map_err(|error| said(&error.without_url()))?;
        Ok(Self { client, url, secret })
    }

    /// Posts a change. Any answer of success accepts it.
    pub async fn tell(&self, change: &Change, now: Timestamp) -> Result<(), String> {
        let body = serde_json::to_vec(change).map_err(|error| error.to_string())?;
        let id = change.id();
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("keyward/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &id)
            .header("webhook-timestamp", now.as_second());
        let secret = match &self.secret {
            Some(secret) => Some(secret.read().map_err(|error| error.to_string())?),
            None => None,
        };
        if let Some(secret) = &secret {
            request = request.header("webhook-signature", sign(secret, &id, now, &body)?);
        }
        let answer = request.body(body).send().await.map_err(|error| said(&error.without_url()))?;
        let status = answer.status();
        if status.is_success() {
            // Whatever it says; and whether it says it to the end.
            read(answer, ANSWER_BYTES_MAX).await;
            return Ok(());
        }
        if status.is_redirection() {
            return Err(format!("{status}: redirects are not followed; name the last address"));
        }
        let mut text = String::from_utf8_lossy(&read(answer, TOLD_BYTES_MAX).await).into_owned();
        if let Some(secret) = secret {
            text = text.replace(&secret, "…");
        }
        Err(format!("{status}: {}", shown(&text)))
    }
}

/// The beginning of an answer, as far as it comes.
async fn read(mut answer: Response, bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = answer.chunk().await {
        let room = bytes_max - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() >= room {
            break;
        }
    }
    bytes
}
