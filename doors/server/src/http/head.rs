//! What the head of a request tells before its body is read: whether it is HTTP at all, whether it can be
//! done, and how large its body may be.

use axum::RequestExt;
use axum::extract::{RawPathParams, Request};
use axum::http::uri::Authority;
use axum::http::{Method, Version, header};
use keyward::Code;

use super::request::{message_bytes_max, roomy_bytes_max};
use crate::api::{agreements, registries, spaces};
use crate::app::App;
use crate::auth::{Identity, Need, Target};
use crate::listener::HEAD_BYTES_MAX;
use crate::mcp::PATH as MESSAGES;
use crate::metrics::RouteName;
use crate::problem::{Problem, Result};

const ATTACHMENT: &str = "/v1/agreements/{workspace}/pages/{page}/attachments/{source}";
const KEYS: &str = "/v1/keys";
/// Below which agents' entries are, whose bodies may be larger than others.
const AGENTS: &str = "/v1/agents/";

/// Refuses a head that is too large, or that does not say exactly once for whom the request is.
pub(super) fn check(request: &Request) -> Result<()> {
    if head_bytes(request) > HEAD_BYTES_MAX {
        let detail = format!("the headers of a request have at most {HEAD_BYTES_MAX} bytes");
        return Err(Problem::new(Code::HeadersTooLarge, detail).hint("Send fewer or shorter ones."));
    }
    check_host(request)
}

fn head_bytes(request: &Request) -> usize {
    let headers = request.headers().iter();
    headers.map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// A request of HTTP/1.1 has exactly one Host (RFC 9112, 3.2); one of HTTP/1.0 has at most one. What
/// proxies and servers understand differently is a way past the checks of one of them.
fn check_host(request: &Request) -> Result<()> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let detail = match (hosts.next(), hosts.next()) {
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (None, _) => "the request has no Host header",
        (Some(_), Some(_)) => "the request has more than one Host header",
        (Some(host), None) => match Authority::try_from(host.as_bytes()) {
            Ok(host) if !host.host().is_empty() && !host.as_str().contains('@') => return Ok(()),
            Ok(_) | Err(_) => "the Host header is not a host name with an optional port",
        },
    };
    Err(Problem::invalid(detail)
        .hint("Send exactly one Host header, such as Host: localhost:7480."))
}

/// How large the body of a request may be. Refuses what its path already shows to be impossible: an unknown
/// store, space, registry or workspace, and what the scopes of the credential do not reach.
pub(super) async fn body_bytes_max(
    app: &App,
    who: &Identity,
    request: &mut Request,
) -> Result<usize> {
    let route = RouteName::of(request);
    // What the other methods ask for is known from the body, or later.
    let need = match *request.method() {
        Method::PUT | Method::PATCH => Need::Write,
        _ => Need::Read,
    };
    let is_attachment = request.method() == Method::PUT && route.as_str() == ATTACHMENT;
    let mut bytes_max = match route.as_str() {
        route if route.starts_with(AGENTS) => roomy_bytes_max(app),
        MESSAGES => message_bytes_max(app),
        _ => app.limits().body_bytes_max,
    };
    if route.as_str() == KEYS && request.method() == Method::POST {
        who.require(Need::Admin, &Target::Server)?;
    }
    // A path that cannot be read is refused by the handler.
    let Ok(variables) = request.extract_parts::<RawPathParams>().await else {
        return Ok(bytes_max);
    };
    for (name, value) in &variables {
        match name {
            "store" => who.require(need, &Target::Store(&app.store(value)?.name))?,
            "space" => spaces::reach(who, app.stores(), value)?.require(who, need)?,
            "registry" => {
                registries::reach(who, app, value, need)?;
            }
            "workspace" if is_attachment => {
                bytes_max = agreements::pages::attachment_bytes_max(who, app, value)?;
            }
            "workspace" => {
                agreements::reach(who, app, value, need)?;
            }
            _ => {}
        }
    }
    Ok(bytes_max)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn checked(version: Version, hosts: &[&str]) -> bool {
        let builder = Request::builder().version(version);
        let builder = hosts.iter().fold(builder, |builder, host| builder.header("host", *host));
        check(&builder.body(Body::empty()).unwrap()).is_ok()
    }

    #[test]
    fn a_request_has_exactly_one_valid_host() {
        for host in ["localhost", "localhost:7480", "127.0.0.1:1", "[::1]:80", "data.example"] {
            assert!(
                checked(Version::HTTP_11, &[host]) && checked(Version::HTTP_10, &[host]),
                "{host}"
            );
        }
        for host in ["", "a b", "a/b", "user@host", "a,b:c:d", ":80"] {
            assert!(!checked(Version::HTTP_11, &[host]), "{host}");
        }
        assert!(!checked(Version::HTTP_11, &[]));
        assert!(!checked(Version::HTTP_11, &["a", "a"]));
        assert!(!checked(Version::HTTP_10, &["a", "b"]));
        assert!(checked(Version::HTTP_10, &[]));
    }
}
