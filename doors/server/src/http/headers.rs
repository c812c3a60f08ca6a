//! The headers that tell browsers what they may do with an answer.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// What an answer is, as far as browsers are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Data, for programs.
    Data,
    /// A page of our own, or a part of one.
    Page,
    /// Swagger UI.
    Docs,
}

/// What our own pages may load and do.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                           connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";
/// The same for Swagger UI: it styles elements inline, and has pictures in its style sheet.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'self'; \
                           style-src 'self' 'unsafe-inline'; connect-src 'self'; \
                           img-src 'self' data:; base-uri 'none'; form-action 'self'; \
                           frame-ancestors 'none'";

/// Nothing takes an answer for another type than it says.
const NO_SNIFFING: (HeaderName, &str) = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");
/// Neither browsers nor proxies keep data.
const NO_STORING: (HeaderName, &str) = (header::CACHE_CONTROL, "no-store");
/// Nothing shows a page inside another, and nobody is told which page somebody comes from.
const ALONE: [(HeaderName, &str); 3] = [
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

impl Answer {
    /// What is at a path.
    pub fn at(path: &str) -> Self {
        match path {
            "/docs" => Self::Docs,
            path if path.starts_with("/docs/") => Self::Docs,
            "/" | "/home.js" | "/style.css" | "/problems" => Self::Page,
            _ => Self::Data,
        }
    }

    /// Adds what is missing: what a handler has set stays.
    pub fn complete(self, headers: &mut HeaderMap) {
        let mut add = |(name, value): (HeaderName, &'static str)| {
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        };
        add(NO_SNIFFING);
        let policy = match self {
            Self::Data => return add(NO_STORING),
            Self::Page => PAGE_POLICY,
            Self::Docs => DOCS_POLICY,
        };
        add((header::CONTENT_SECURITY_POLICY, policy));
        ALONE.into_iter().for_each(add);
    }
}
