use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, IF_MATCH};
use keyward_engine::Code;

use crate::error::{Asks, Problem};

const JSON: &str = "application/json";

/// What is sent to a server, for [`Connection::send`](crate::Connection::send).
#[derive(Debug, Clone)]
pub struct Sent {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Bytes,
    pub(crate) headers: Vec<(HeaderName, String)>,
}

/// What a server said to it.
#[derive(Debug, Clone)]
pub enum Reply {
    /// It was done, or is being done.
    Good {
        /// The status, from 200 to 299.
        status: u16,
        /// The body.
        body: Bytes,
    },
    /// It was not done.
    Refused(Refused),
}

/// Why a server did not do something, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The code. `None`, if this version does not know it.
    pub code: Option<Code>,
    /// What happened.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl Sent {
    pub(crate) fn new(method: Method, path: &str, body: Bytes) -> Self {
        let sent = Self { method, path: path.to_owned(), body, headers: Vec::new() };
        match sent.body.is_empty() {
            true => sent,
            false => sent.header(CONTENT_TYPE, JSON),
        }
    }

    /// Looks at what is at a path.
    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path, Bytes::new())
    }

    /// Has something done with JSON.
    pub fn post(path: &str, json: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, path, json.into())
    }

    /// Has something changed as JSON says.
    pub fn patch(path: &str, json: impl Into<Bytes>) -> Self {
        Self::new(Method::PATCH, path, json.into())
    }

    /// Puts something to a path.
    pub fn put(path: &str, media_type: &str, body: impl Into<Bytes>) -> Self {
        let sent = Self { body: body.into(), ..Self::new(Method::PUT, path, Bytes::new()) };
        sent.header(CONTENT_TYPE, media_type)
    }

    /// Has what is at a path removed.
    pub fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path, Bytes::new())
    }

    /// The same, done only if what is there is at a version.
    #[must_use]
    pub fn if_match(self, version: &str) -> Self {
        self.header(IF_MATCH, &format!("\"{version}\""))
    }

    /// The same, answered in a form.
    #[must_use]
    pub fn accept(self, media_type: &str) -> Self {
        self.header(ACCEPT, media_type)
    }

    fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn asks(&self) -> Asks {
        match self.method {
            Method::GET => Asks::Looks,
            _ => Asks::Changes,
        }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let code = problem.known_code();
        let Problem { detail, hint, retryable, .. } = problem;
        Self { code, message: detail, hint, retryable }
    }
}
