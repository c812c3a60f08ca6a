//! How agents reach a server.

use std::time::Duration;

use crate::auth::LOCAL;

/// How agents reach a server (MCP): sensible as it stands, on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpOptions {
    /// Where clients find the server, if that is not where it listens: `https://data.example.com`. It
    /// is the resource that tokens are made for, and its host is one the server answers to.
    pub public_url: Option<String>,
    /// The names that the server answers to, besides this machine's own and those of addresses.
    pub hosts: Vec<String>,
    /// The origins of pages that may call tools from a browser, besides this server's and this
    /// machine's: `https://app.example.com`.
    pub origins: Vec<String>,
    /// How many sessions of clients before the revision 2026-07-28 are held at a time.
    pub sessions_max: usize,
    /// How long a session lives in which nothing happens.
    pub session_time_max: Duration,
    /// Whether the tools, prompts and resources of the protocol's conformance suite are there.
    #[doc(hidden)]
    pub fixtures: bool,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            sessions_max: 1_024,
            session_time_max: Duration::from_secs(10 * 60),
            fixtures: false,
        }
    }
}

/// Whom an agent over standard input and output works for. Of records and agents' entries it reaches what is
/// this user's and what is shared; what is no user's, such as locks and jobs, it uses as the store's owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalUser {
    /// The user's id.
    pub name: String,
    /// The roles that the user has; all that the schema names, if this is none: whoever opens a store's files
    /// owns them.
    pub roles: Option<Vec<String>>,
}

impl Default for LocalUser {
    fn default() -> Self {
        Self { name: LOCAL.to_owned(), roles: None }
    }
}
