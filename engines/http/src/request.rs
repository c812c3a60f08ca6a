use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};

/// What happens if a request is carried out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it only reads.
    Reads,
    /// It writes, and a second time changes nothing more. It is sent again after a lost answer; see
    /// [`Response::resent`].
    WritesOnce,
    /// It writes. Once it was sent, only an answer tells whether it was done.
    Writes,
}

/// A request to a database.
#[derive(Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) effect: Effect,
    pub(crate) within: Duration,
}

impl Request {
    /// A request without a body.
    pub fn new(method: Method, url: Url, effect: Effect) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            effect,
            within: Duration::MAX,
        }
    }

    /// A `GET`, which only reads.
    pub fn get(url: Url) -> Self {
        Self::new(Method::GET, url, Effect::Reads)
    }

    /// The same with a JSON body.
    #[must_use]
    pub fn json(self, body: impl Into<Bytes>) -> Self {
        self.body("application/json", body)
    }

    /// The same with a body of another media type.
    #[must_use]
    pub fn body(mut self, media_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header(CONTENT_TYPE, HeaderValue::from_static(media_type))
    }

    /// The same, but no attempt begins later than this from now: what it would do is then no longer right.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

/// Without headers and without what a URL may say before its host and after its path: those may hold
/// credentials.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &self.url.host_str().unwrap_or_default())
            .field("path", &self.url.path())
            .field("body_bytes", &self.body.len())
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}

/// The response of a database.
#[derive(Debug, Clone)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// Whether an earlier attempt at a write may have been carried out as well: its answer was lost.
    /// A precondition that failed may then have been made false by that attempt.
    pub resent: bool,
}
