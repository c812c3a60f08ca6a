//! CORS: lets pages of configured origins call the API from a browser.
//!
//! Nothing is allowed by default. An allowed origin gets no rights of its own: its pages send a
//! credential as every client does, and cookies play no part, so credentials mode is never allowed.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use super::origin::Origin;
use crate::config::Config;
use crate::mcp;

/// The methods that the API has.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, PUT, POST, PATCH, DELETE");
/// The headers that pages may send, besides those that browsers let every page send.
const REQUEST_HEADERS: &str = "authorization, content-type, if-match, if-none-match, \
    idempotency-key, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, \
    traceparent, tracestate, x-request-id";
/// Headers with arguments of tools. Their names are the tools' own, so they are allowed one by one.
const ARGUMENT_HEADERS: &str = "mcp-param-";
/// The headers of a response that pages may read, besides those that browsers let every page read.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "etag, idempotency-replayed, location, mcp-session-id, ratelimit, ratelimit-policy, \
     retry-after, www-authenticate, x-request-id",
);
/// How many seconds a browser may remember the answer to a preflight.
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("600");
const ORIGIN: HeaderValue = HeaderValue::from_static("origin");

/// The origins whose pages may call the server from a browser.
#[derive(Debug, Default)]
pub(crate) struct Cors {
    /// Those that may call everything.
    origins: Vec<Origin>,
    /// Those that may call the MCP endpoint only.
    mcp_origins: Vec<Origin>,
}

impl Cors {
    /// Texts that are no origins are left out: [`Config::check`] refuses them.
    pub fn new(config: &Config) -> Self {
        let parsed =
            |texts: &[String]| texts.iter().filter_map(|text| Origin::parse(text)).collect();
        Self { origins: parsed(&config.cors_origins), mcp_origins: parsed(&config.mcp.origins) }
    }

    /// The origins that may call everything.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// The grant for a request, if it comes from a page of an allowed origin.
    pub fn grant(&self, request: &Request) -> Grant {
        if self.origins.is_empty() && self.mcp_origins.is_empty() {
            return Grant::Unconfigured;
        }
        let mut sent = request.headers().get_all(header::ORIGIN).iter();
        let (Some(value), None) = (sent.next(), sent.next()) else { return Grant::Refused };
        let Some(origin) = value.to_str().ok().and_then(Origin::parse_exact) else {
            return Grant::Refused;
        };
        let of_mcp =
            || mcp::is_endpoint(request.uri().path()) && self.mcp_origins.contains(&origin);
        match self.origins.contains(&origin) || of_mcp() {
            true => Grant::Allowed(value.clone()),
            false => Grant::Refused,
        }
    }
}

/// What a response tells a browser about the page that asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grant {
    /// No origin is configured: responses are the same for all.
    Unconfigured,
    /// The request is from no page of an allowed origin.
    Refused,
    /// The page may read the response. The value is the page's origin as its browser wrote it.
    Allowed(HeaderValue),
}

impl Grant {
    /// The answer to a browser that asks whether a page may send a request. It depends on the origin
    /// alone: it needs no credential, and tells nothing about what is at the path. Other origins get
    /// what any `OPTIONS` request gets.
    pub fn preflight(&self, request: &Request) -> Option<Response<Body>> {
        let asks = *request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || !matches!(self, Self::Allowed(_)) {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        // Else the router would tell the methods of the path.
        headers.insert(header::ALLOW, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(request.headers()));
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS);
        headers.append(header::VARY, HeaderValue::from_static("access-control-request-headers"));
        Some(response)
    }

    /// Lets the page read a response, whatever it tells, also an error.
    pub fn complete(self, headers: &mut HeaderMap) {
        if self != Self::Unconfigured {
            headers.append(header::VARY, ORIGIN);
        }
        if let Self::Allowed(origin) = self {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
        }
    }
}

/// The headers that a request may have, with those arguments of tools that it asks for.
fn allowed_headers(headers: &HeaderMap) -> HeaderValue {
    let asked = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = asked.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let names = names.filter_map(|name| HeaderName::try_from(name.trim()).ok());
    let mut allowed = REQUEST_HEADERS.to_owned();
    for name in names.filter(|name| name.as_str().starts_with(ARGUMENT_HEADERS)) {
        allowed.push_str(", ");
        allowed.push_str(name.as_str());
    }
    HeaderValue::try_from(allowed).unwrap_or(HeaderValue::from_static(REQUEST_HEADERS))
}

/// Refuses a text that is no origin as a browser writes one, with what would be right.
pub(crate) fn check_origin(text: &str) -> Result<(), &'static str> {
    match text {
        "*" => Err("every site could call the server; name the origins one by one"),
        "null" => Err("null stands for pages of any site; name an origin"),
        _ if Origin::parse_exact(text).is_some() => Ok(()),
        _ => Err("expected scheme://host[:port] without a path, for example https://app.example"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors() -> Cors {
        let mut config =
            Config { cors_origins: vec!["https://app.example".into()], ..Config::default() };
        config.mcp.origins = vec!["https://agent.example".into()];
        Cors::new(&config)
    }

    fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request {
        let request = axum::http::Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
        request.body(Body::empty()).unwrap()
    }

    fn is_allowed(path: &str, origin: &str) -> bool {
        let grant = cors().grant(&request(Method::GET, path, &[("origin", origin)]));
        matches!(grant, Grant::Allowed(_))
    }

    #[test]
    fn an_origin_is_allowed_exactly_and_those_of_agents_at_their_endpoint_only() {
        for path in ["/v1/stores", "/mcp", "/nothing/here"] {
            assert!(is_allowed(path, "https://app.example"), "{path}");
            for other in [
                "http://app.example",
                "https://app.example:8443",
                "https://app.example.evil.example",
                "https://evil.example/?https://app.example",
                "https://app.example/",
                "https://app.example@evil.example",
                "null",
                "*",
                "",
            ] {
                assert!(!is_allowed(path, other), "{path} {other}");
            }
        }
        assert!(is_allowed("/mcp", "https://agent.example"));
        assert!(!is_allowed("/v1/stores", "https://agent.example"));
        let two = [("origin", "https://app.example"), ("origin", "https://evil.example")];
        assert_eq!(cors().grant(&request(Method::GET, "/", &two)), Grant::Refused);
        let none = Cors::default().grant(&request(Method::GET, "/", &two));
        assert_eq!(none, Grant::Unconfigured);
    }

    #[test]
    fn a_preflight_allows_arguments_of_tools_and_no_other_unknown_headers() {
        let asked = request(
            Method::OPTIONS,
            "/mcp",
            &[
                ("origin", "https://app.example"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "Mcp-Param-Key, x-other,mcp-param-b c"),
            ],
        );
        let answer = cors().grant(&asked).preflight(&asked).unwrap();
        let allowed = answer.headers()["access-control-allow-headers"].to_str().unwrap();
        assert!(allowed.ends_with(", x-request-id, mcp-param-key"), "{allowed}");
        let plain = request(Method::OPTIONS, "/mcp", &[("origin", "https://app.example")]);
        assert!(cors().grant(&plain).preflight(&plain).is_none(), "no preflight");
    }

    #[test]
    fn only_origins_are_taken_for_origins() {
        for good in ["https://app.example", "http://localhost:5173", "http://[::1]:8080"] {
            assert_eq!(check_origin(good), Ok(()), "{good}");
        }
        for bad in [
            "*",
            "null",
            "",
            "app.example",
            "https://",
            "https://*.example",
            "https://app.example/",
            "https://app.example/path",
            "https://app.example?x",
            "https://ada@app.example",
            "https://app.example:port",
            "ftp://app.example",
            "https://bücher.example",
        ] {
            assert!(check_origin(bad).is_err(), "{bad}");
        }
    }
}
