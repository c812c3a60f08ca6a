//! Questions to Confluence, and its answers.

use std::collections::HashSet;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode, Url};
use serde::de::DeserializeOwned;

use super::shapes::Listed;
use super::{ConfluenceOptions, ConfluenceSettings, failed, refused, tls};
use crate::source::Secret;
use crate::{Error, Result};

/// Longer lists are no lists.
const PARTS_MAX: usize = 2_000;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// A connection to one Confluence.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    pub base: Url,
    email: Option<String>,
    token: Secret,
    pub options: ConfluenceOptions,
}

/// What was answered.
#[derive(Debug)]
pub(super) enum Answer<T> {
    Found(T),
    /// Confluence said, in its own way, that there is no such thing, or that it must not be seen.
    Missing,
}

impl<T> Answer<T> {
    /// What cannot be missing.
    pub fn expected(self, what: &str) -> Result<T> {
        match self {
            Self::Found(found) => Ok(found),
            Self::Missing => Err(failed(format!("Confluence does not show {what}"))),
        }
    }
}

impl Client {
    pub fn new(settings: &ConfluenceSettings, options: ConfluenceOptions) -> Result<Self> {
        tls::provide();
        let base = settings.base().map_err(|reason| refused(format!("base_url: {reason}")))?;
        let mut builder = reqwest::Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT_TIME_MAX.min(options.timeout));
        if base.scheme() == "http" {
            let none = tls::none().map_err(|error| refused(error.to_string()))?;
            builder = builder.tls_backend_preconfigured(none).no_proxy();
        }
        let http = builder.build().map_err(|error| refused(said(&error)))?;
        let (email, token) = (settings.email.clone(), settings.token.clone());
        Ok(Self { http, base, email, token, options })
    }

    /// The address of something.
    pub fn address(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url> {
        let mut url = self.base.clone();
        let mut segments = url.path_segments_mut().map_err(|()| refused("base_url has no path"))?;
        segments.extend(path);
        drop(segments);
        url.query_pairs_mut().extend_pairs(query);
        Ok(url)
    }

    /// Asks for something.
    pub async fn json<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Answer<T>> {
        let url = self.address(path, query)?;
        let answer = self.send(&url, "application/json", self.options.timeout).await?;
        let status = answer.status();
        if !status.is_success() && status != StatusCode::NOT_FOUND {
            return Err(unwanted(status));
        }
        // Login pages and the like are answers of somebody else.
        if !is_json(answer.headers()) {
            return Err(refused(format!(
                "{status}: the answer is not JSON, so that it may be a login page or another \
                 server's; look at base_url and the credentials"
            )));
        }
        let bytes = read(answer, self.options.answer_bytes_max as u64).await?;
        if status == StatusCode::NOT_FOUND {
            let said: Result<serde_json::Map<_, _>, _> = serde_json::from_slice(&bytes);
            return said.map(|_| Answer::Missing).map_err(|error| malformed(&error));
        }
        serde_json::from_slice(&bytes).map(Answer::Found).map_err(|error| malformed(&error))
    }

    /// Asks for a list, to its end. Of the address of a next part only the cursor is taken, so that it
    /// leads nowhere else.
    pub async fn all<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        items_max: usize,
    ) -> Result<Answer<Vec<T>>> {
        let mut items = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PARTS_MAX {
            let mut query = query.to_vec();
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let part = match self.json::<Listed<T>>(path, &query).await? {
                Answer::Found(part) => part,
                Answer::Missing if cursor.is_none() => return Ok(Answer::Missing),
                Answer::Missing => return Err(failed("Confluence broke off in a list")),
            };
            items.extend(part.results);
            if items.len() > items_max {
                return Err(refused(format!("Confluence has more than the {items_max} that fit")));
            }
            let Some(next) = part.links.next else { return Ok(Answer::Found(items)) };
            let next = self.base.join(&next).ok().and_then(|url| {
                let mut pairs = url.query_pairs();
                pairs.find_map(|(name, value)| (name == "cursor").then(|| value.into_owned()))
            });
            let next = next.ok_or_else(|| failed("Confluence's next part has no cursor"))?;
            if !seen.insert(next.clone()) {
                return Err(failed("Confluence's list goes round in a circle"));
            }
            cursor = Some(next);
        }
        Err(failed("Confluence's list has no end"))
    }

    /// Sends a question, again if Confluence is busy or was not reached.
    pub async fn send(&self, url: &Url, accept: &str, timeout: Duration) -> Result<Response> {
        let ConfluenceOptions { attempts, retry_wait_min, retry_wait_max, .. } = self.options;
        let mut wait = retry_wait_min;
        let mut attempt = 1;
        loop {
            let mut request = self
                .http
                .get(url.clone())
                .timeout(timeout)
                .header(ACCEPT, accept)
                .header(USER_AGENT, concat!("keyward/", env!("CARGO_PKG_VERSION")));
            // Whoever we are sent to is not told who we are.
            if url.origin() == self.base.origin() {
                let token = self.token.read()?;
                request = match &self.email {
                    Some(email) => request.basic_auth(email, Some(token)),
                    None => request.bearer_auth(token),
                };
            }
            let (error, asked) = match request.send().await {
                Ok(answer) if is_passing(answer.status()) => {
                    (unwanted(answer.status()), retry_after(answer.headers()))
                }
                Ok(answer) => return Ok(answer),
                Err(error) => (failed(said(&error.without_url())), None),
            };
            let pause = asked.unwrap_or(wait);
            if attempt >= attempts || pause > retry_wait_max {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            wait = (wait * 2).min(retry_wait_max);
            attempt += 1;
        }
    }
}

/// Reads an answer to its end.
pub(super) async fn read(mut answer: Response, bytes_max: u64) -> Result<Vec<u8>> {
    let too_large = || refused(format!("Confluence's answer has more than {bytes_max} bytes"));
    if answer.content_length().is_some_and(|length| length > bytes_max) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    loop {
        let chunk = answer.chunk().await;
        match chunk.map_err(|error| failed(said(&error.without_url())))? {
            Some(chunk) if (bytes.len() + chunk.len()) as u64 > bytes_max => {
                return Err(too_large());
            }
            Some(chunk) => bytes.extend_from_slice(&chunk),
            None => return Ok(bytes),
        }
    }
}

/// What an answer that is none means.
pub(super) fn unwanted(status: StatusCode) -> Error {
    match status.as_u16() {
        401 => refused("Confluence does not know the credentials (401); look at email and token"),
        403 => refused("Confluence does not let the credentials see this (403)"),
        300..=399 => refused(format!(
            "Confluence leads elsewhere ({status}), to a login page perhaps; look at base_url"
        )),
        _ if is_passing(status) => failed(format!("Confluence cannot answer now ({status})")),
        _ => refused(format!("Confluence answered {status}")),
    }
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
}

fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let said = said.and_then(|said| said.split(';').next()).unwrap_or_default().trim();
    said.eq_ignore_ascii_case("application/json")
        || (said.starts_with("application/") && said.ends_with("+json"))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let said = headers.get(RETRY_AFTER)?.to_str().ok()?;
    said.trim().parse().ok().map(Duration::from_secs)
}

fn malformed(error: &serde_json::Error) -> Error {
    failed(format!("Confluence's answer is not what it should be: {error}"))
}

/// An error with what caused it.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = format!("Confluence cannot be reached: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
