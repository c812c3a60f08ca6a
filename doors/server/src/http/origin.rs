//! Refuses what a browser sends from a page of another origin.
//!
//! Any page can make a browser send requests to a server that the browser reaches, also to one on its
//! own machine; it only cannot read the answers. Browsers say where such a request comes from, and pages
//! cannot change what they say.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use keyward::Code;

use crate::problem::{Problem, Result};

/// Whether the page that asks is one of the server asked. Old browsers do not send it, nor does any
/// to a server without TLS on another machine.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Where a page comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: String,
    pub host: String,
    pub port: u16,
}

impl Origin {
    pub fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let (host, port) = authority(uri.authority()?.as_str())?;
        let default = if scheme == "https" { 443 } else { 80 };
        Some(Self { scheme, host, port: port.unwrap_or(default) })
    }

    /// An origin exactly as browsers write one: without a path, a user or a wildcard.
    pub fn parse_exact(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let plain = matches!(scheme, "http" | "https")
            && !authority.contains(['/', '?', '#', '@', '*', ' ', '\\']);
        Self::parse(text).filter(|_| plain)
    }

    /// Whether it is a page of this machine.
    pub fn is_this_machine(&self) -> bool {
        is_this_machine(&self.host)
    }

    /// Whether it is where the request goes to. The scheme does not count: TLS may end at a proxy.
    fn is_asked(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let Some((host, port)) = host.to_str().ok().and_then(authority) else { return false };
        let default = if self.scheme == "https" { 443 } else { 80 };
        self.host == host && self.port == port.unwrap_or(default)
    }
}

/// Whether a host is this machine by its own names.
pub(crate) fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A host in lower case, without brackets, and a port.
pub(crate) fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let text = text.trim();
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let plain = !host.is_empty() && !host.contains(['/', '@', '?', '#']);
    let port = port.map(str::parse).transpose().ok()?;
    plain.then(|| (host.trim_end_matches('.').to_ascii_lowercase(), port))
}

/// Refuses a request that may change or cost something, and that a browser sends from another origin
/// than the server's, unless that origin is an allowed one.
pub(crate) fn refuse_cross_origin(
    method: &Method,
    headers: &HeaderMap,
    allowed: &[Origin],
) -> Result<()> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let origins = || {
        let sent = headers.get_all(header::ORIGIN).iter();
        sent.map(|origin| origin.to_str().ok().and_then(Origin::parse))
    };
    let is_allowed = |origin: Option<Origin>| origin.is_some_and(|one| allowed.contains(&one));
    if headers.contains_key(header::ORIGIN) && origins().all(is_allowed) {
        return Ok(());
    }
    // `none` is a person: an address typed, a bookmark. What sends neither header is no browser, or one
    // that no page asked.
    let is_own_site = |site: &[u8]| matches!(site, b"same-origin" | b"none");
    let own = headers.get_all(SEC_FETCH_SITE).iter().all(|site| is_own_site(site.as_bytes()))
        && origins().all(|origin| origin.is_some_and(|origin| origin.is_asked(headers)));
    match own {
        true => Ok(()),
        false => Err(Problem::new(
            Code::CrossOrigin,
            "the request comes from a page of another origin",
        )
        .hint(
            "Nothing was done. Send it from a page of this server, or from a program that is no \
                 browser, or allow the page's origin with --cors-origin, or with --mcp-origin for \
                 calls of tools alone.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(method: Method, headers: &[(&str, &str)], allowed: &[Origin]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::try_from(*name).unwrap(), value.parse().unwrap()));
        refuse_cross_origin(&method, &headers.collect(), allowed).is_ok()
    }

    #[test]
    fn what_browsers_say_of_the_page_decides() {
        for site in ["cross-site", "same-site", "other", ""] {
            assert!(!passes(Method::POST, &[("sec-fetch-site", site)], &[]), "{site}");
            assert!(passes(Method::GET, &[("sec-fetch-site", site)], &[]), "{site}");
        }
        for site in ["same-origin", "none"] {
            assert!(passes(Method::DELETE, &[("sec-fetch-site", site)], &[]), "{site}");
            // No browser says both; whoever does is no page of this server.
            let headers =
                [("sec-fetch-site", site), ("origin", "https://data.example"), ("host", "inside")];
            assert!(!passes(Method::DELETE, &headers, &[]), "{site}");
        }
        let twice = [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")];
        assert!(!passes(Method::POST, &twice, &[]));
        assert!(passes(Method::POST, &[("host", "localhost")], &[]));
    }

    #[test]
    fn the_origin_must_be_the_host() {
        for (origin, host) in [
            ("http://localhost:7480", "localhost:7480"),
            ("http://localhost", "localhost"),
            ("http://localhost", "localhost:80"),
            ("https://data.example", "DATA.example"),
            ("https://data.example:443", "data.example"),
            ("https://data.example", "data.example:443"),
            ("https://data.example:8443", "data.example:8443"),
            ("http://[::1]:7480", "[::1]:7480"),
        ] {
            assert!(passes(Method::PUT, &[("origin", origin), ("host", host)], &[]), "{origin}");
        }
        for (origin, host) in [
            ("http://localhost:3000", "localhost:7480"),
            ("http://localhost", "localhost:7480"),
            ("http://localhost:7480", "127.0.0.1:7480"),
            ("https://data.example", "data.example:80"),
            ("https://evil.example", "data.example"),
            ("https://data.example.evil.example", "data.example"),
            ("null", "localhost:7480"),
            ("", "localhost:7480"),
        ] {
            assert!(!passes(Method::PUT, &[("origin", origin), ("host", host)], &[]), "{origin}");
        }
        assert!(!passes(Method::PUT, &[("origin", "http://localhost")], &[]), "there is no host");
        let two = [("origin", "http://a"), ("origin", "http://b"), ("host", "a")];
        assert!(!passes(Method::PUT, &two, &[]));
    }

    #[test]
    fn an_allowed_origin_passes_whatever_it_is() {
        let allowed = [Origin::parse("https://app.example").unwrap()];
        let from = |origin| {
            let headers = [("sec-fetch-site", "cross-site"), ("origin", origin), ("host", "h")];
            passes(Method::POST, &headers, &allowed)
        };
        assert!(from("https://app.example") && from("https://app.example:443"));
        assert!(!from("http://app.example") && !from("https://app.example:8443") && !from("null"));
    }
}
