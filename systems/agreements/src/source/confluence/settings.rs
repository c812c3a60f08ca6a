use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::super::settings::SourceProblem;
use super::super::{Secret, SourceLimits};

/// Which pages of which Confluence, and how to get in.
///
/// ```toml
/// [source.confluence]
/// base_url = "https://example.atlassian.net"
/// email = "reader@example.com"
/// token = { env = "CONFLUENCE_TOKEN" }
/// space = "LEGAL"
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfluenceSettings {
    /// Where it is, such as `https://example.atlassian.net`, with or without `/wiki`; or, for tokens with
    /// scopes, `https://api.atlassian.com/ex/confluence/{cloudId}`.
    pub base_url: String,
    /// Whose API token it is. Without it, the token is a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Where the token is.
    pub token: Secret,
    /// The key of the space whose pages are meant; else those of all spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// The id of the page which is meant, with all below it; else all pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_page: Option<String>,
    /// Says that these credentials see every page there is, so that one which is not shown is gone. If
    /// they do not, a page that is hidden from them later counts as gone, and what is known of it is
    /// purged.
    #[serde(default)]
    pub missing_is_gone: bool,
}

impl ConfluenceSettings {
    pub(in super::super) fn beside(&mut self, folder: &Path) {
        self.token.beside(folder);
    }

    /// What serde cannot tell.
    pub(in super::super) fn check(&self, found: &mut Vec<SourceProblem>) {
        if let Err(reason) = self.base() {
            found.push(SourceProblem::new("confluence.base_url", reason));
        }
        let is_email = |text: &str| {
            text.contains('@') && !text.contains(|c: char| c.is_control() || c == ':' || c == ' ')
        };
        if self.email.as_deref().is_some_and(|email| !is_email(email)) {
            let reason = "write the address of the token's account, or leave it out";
            found.push(SourceProblem::new("confluence.email", reason));
        }
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '~' | '_' | '-' | '.');
        if self.space.as_deref().is_some_and(|key| key.is_empty() || !key.chars().all(is_key)) {
            let reason = "write the space's key, such as LEGAL";
            found.push(SourceProblem::new("confluence.space", reason));
        }
        let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        if self.root_page.as_deref().is_some_and(|id| !is_id(id)) {
            let reason = "write the page's id, a number that is part of its address";
            found.push(SourceProblem::new("confluence.root_page", reason));
        }
    }

    /// The address that all others begin with; its path ends with `wiki`.
    pub(super) fn base(&self) -> Result<Url, &'static str> {
        const FORM: &str = "write an address such as https://example.atlassian.net";
        let mut url = Url::parse(&self.base_url).map_err(|_| FORM)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("credentials do not belong into an address; write email and token");
        }
        if url.query().is_some() || url.fragment().is_some() || url.cannot_be_a_base() {
            return Err(FORM);
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&url) => {}
            "http" => return Err("write https: others could read the token"),
            _ => return Err(FORM),
        }
        let path = url.path().trim_end_matches('/').to_owned();
        let path = if path.ends_with("/wiki") { path } else { format!("{path}/wiki") };
        url.set_path(&path);
        Ok(url)
    }
}

/// Whether an address is this machine's own.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// How Confluence is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfluenceOptions {
    /// How much is taken.
    pub limits: SourceLimits,
    /// How long one answer may take.
    pub timeout: Duration,
    /// How long the download of an attachment may take.
    pub download_timeout: Duration,
    /// How often one thing is asked for, if Confluence is busy or cannot be reached.
    pub attempts: u32,
    /// The first pause between two attempts, unless Confluence asks for another; the next is twice as
    /// long.
    pub retry_wait_min: Duration,
    /// The longest pause; if Confluence asks for a longer one, there is no other attempt.
    pub retry_wait_max: Duration,
    /// Bytes of one answer, downloads apart.
    pub answer_bytes_max: usize,
}

impl Default for ConfluenceOptions {
    fn default() -> Self {
        Self {
            limits: SourceLimits::default(),
            timeout: Duration::from_secs(30),
            download_timeout: Duration::from_secs(300),
            attempts: 4,
            retry_wait_min: Duration::from_millis(500),
            retry_wait_max: Duration::from_secs(30),
            answer_bytes_max: 16 << 20,
        }
    }
}
