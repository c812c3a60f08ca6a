//! The local user of a server without credentials.

use axum::http::HeaderMap;

use crate::problem::{Problem, Result};

/// Without credentials, whoever can make a browser on this machine send a request would be the
/// local user: names that other sites let point at this machine, and other sites' scripts, are
/// refused.
pub(super) fn refuse_other_sites(headers: &HeaderMap) -> Result<()> {
    use axum::http::header::{HOST, ORIGIN};
    let foreign = |text: &str| {
        let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
        };
        let loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        !(loopback || host == "localhost")
    };
    for name in [HOST, ORIGIN] {
        for value in headers.get_all(&name) {
            if value.to_str().map_or(true, foreign) {
                let detail = format!(
                    "without credentials this server answers only to this machine, and the header \
                     {name} names another one"
                );
                return Err(
                    Problem::forbidden(detail).hint("Configure API keys, or use localhost.")
                );
            }
        }
    }
    Ok(())
}
