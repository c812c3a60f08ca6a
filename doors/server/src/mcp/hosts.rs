//! Which names a server answers to, and which pages may speak to it from a browser.
//!
//! A page of another site can make a browser send requests here, and can have its own name point at
//! this machine. A request must name this server as a client of it would, and must not come from
//! somebody else's page.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, header};

use super::McpOptions;
use crate::http::origin::{Origin, authority, is_this_machine, refuse_cross_origin};
use crate::problem::{Problem, Result};

/// The names and origins that are known.
#[derive(Debug, Clone, Default)]
pub(super) struct Hosts {
    hosts: Vec<String>,
    origins: Vec<Origin>,
}

impl Hosts {
    /// `cors_origins` may call everything, tools as well.
    pub fn new(options: &McpOptions, cors_origins: &[Origin]) -> Self {
        let public = options.public_url.as_deref().and_then(Origin::parse);
        let named = options.hosts.iter().filter_map(|host| Some(authority(host)?.0));
        let hosts = public.iter().map(|public| public.host.clone()).chain(named).collect();
        let origins = options.origins.iter().filter_map(|origin| Origin::parse(origin));
        let origins = public.clone().into_iter().chain(origins).chain(cors_origins.iter().cloned());
        Self { hosts, origins: origins.collect() }
    }

    /// Refuses requests that name another server, or come from a page of another site; and what may
    /// change something from a page of another origin, which a page on this machine can be, too.
    pub fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<()> {
        let mut named = headers.get_all(header::HOST).iter();
        let host = match (named.next(), named.next()) {
            (Some(host), None) => host.to_str().ok().and_then(authority),
            _ => None,
        };
        let Some((host, port)) = host else {
            return Err(Problem::invalid(
                "the request says in no readable way which host it is for",
            )
            .hint("Send one header Host."));
        };
        // An address is nobody's name: nobody can have it point elsewhere.
        let known =
            is_this_machine(&host) || host.parse::<IpAddr>().is_ok() || self.hosts.contains(&host);
        if !known {
            return Err(Problem::forbidden(format!("this server is not known as {host:?}"))
                .hint("Use the name it is known by, or have it configured: --public-url."));
        }
        refuse_cross_origin(method, headers, &self.origins)?;
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().ok().and_then(Origin::parse);
            let own = |origin: &Origin| {
                is_this_machine(&origin.host)
                    || (origin.host == host && port.is_none_or(|port| origin.port == port))
            };
            if !origin.is_some_and(|origin| own(&origin) || self.origins.contains(&origin)) {
                return Err(Problem::forbidden("this page may not call tools here").hint(
                    "Allow its origin: --mcp-origin for tools, --cors-origin for everything.",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(hosts: &Hosts, host: &str, origin: Option<&str>) -> bool {
        admitted_to(Method::GET, hosts, host, origin)
    }

    fn admitted_to(method: Method, hosts: &Hosts, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        hosts.admit(&method, &headers).is_ok()
    }

    #[test]
    fn this_machine_and_addresses_are_known_and_other_names_are_not() {
        let hosts = Hosts::new(&McpOptions::default(), &[]);
        for host in ["localhost", "LOCALHOST:7480", "127.0.0.1:1", "[::1]:7480", "10.0.0.5:7480"] {
            assert!(admitted(&hosts, host, None), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "a@b", ":1"]
        {
            assert!(!admitted(&hosts, host, None), "{host}");
        }
        assert!(hosts.admit(&Method::GET, &HeaderMap::new()).is_err());
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let hosts = Hosts::new(&McpOptions::default(), &[]);
        for origin in ["http://localhost:3000", "http://127.0.0.1:7480", "http://[::1]:9"] {
            assert!(admitted(&hosts, "localhost:7480", Some(origin)), "{origin}");
        }
        for origin in ["http://localhost:3000", "http://127.0.0.1:7480"] {
            let page = admitted_to(Method::POST, &hosts, "localhost:7480", Some(origin));
            assert!(!page, "{origin} changes something");
        }
        let own = Some("http://localhost:7480");
        assert!(admitted_to(Method::POST, &hosts, "localhost:7480", own));
        assert!(admitted(&hosts, "10.0.0.5:7480", Some("http://10.0.0.5:7480")));
        for origin in ["https://evil.example", "null", "localhost", "http://10.0.0.5:99", ""] {
            assert!(!admitted(&hosts, "10.0.0.5:7480", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn what_is_configured_is_known() {
        let options = McpOptions {
            public_url: Some("https://data.example.com".to_owned()),
            hosts: vec!["inside.example".to_owned()],
            origins: vec!["https://app.example.com".to_owned()],
            ..McpOptions::default()
        };
        let hosts = Hosts::new(&options, &[]);
        assert!(admitted(&hosts, "data.example.com", None));
        assert!(admitted(&hosts, "data.example.com", Some("https://data.example.com")));
        assert!(admitted(&hosts, "inside.example:7480", Some("https://app.example.com:443")));
        let page = Some("https://app.example.com");
        assert!(admitted_to(Method::POST, &hosts, "inside.example:7480", page));
        assert!(!admitted(&hosts, "data.example.com", Some("https://app.example.com:8443")));
        assert!(!admitted(&hosts, "data.example.com", Some("http://app.example.com")));
    }
}
