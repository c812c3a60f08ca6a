use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, Error, ErrorKind, ExpirySupport, Limits,
    Result, ScanOrder, Sharing, StoreUrl, WatchSupport, read_secret_file,
};
use keyward_http::Url;
use keyward_http::header::HeaderValue;

use crate::name::NAME_BYTES_MAX;

/// The environment variable with the API token, if neither the program nor a file has one.
pub const TOKEN_VARIABLE: &str = "CLOUDFLARE_API_TOKEN";

/// Cloudflare's own API.
const API_DEFAULT: &str = "https://api.cloudflare.com/client/v4";
const TOKEN_FILE_BYTES_MAX: usize = 4_096;
const VALUE_BYTES_MAX: usize = 25 << 20;
const METADATA_BYTES_MAX: usize = 1_024;

/// The most keys that one request reads.
pub(crate) const GET_KEYS_MAX: usize = 100;
/// The most names on one page of a listing.
pub(crate) const LIST_NAMES_MAX: usize = 1_000;
/// How late a read may be.
pub(crate) const LAG: Duration = Duration::from_secs(60);
/// The shortest life of an entry.
pub(crate) const TTL_MIN: Duration = Duration::from_secs(60);

/// A namespace of Workers KV, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The account's id.
    pub account: String,
    /// The namespace's id.
    pub namespace: String,
    /// The base URL of the API: https, since requests carry the token, or an address of this machine.
    pub api: String,
    /// The API token. Without one, the file below; without that, [`TOKEN_VARIABLE`].
    pub token: Option<Token>,
    /// A file that holds the API token and nothing else. It is refused if every account of the machine may read it.
    pub token_file: Option<PathBuf>,
    /// How long to wait for the API.
    pub http: keyward_http::Options,
}

/// An API token. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(HeaderValue);

impl Token {
    /// A token as Cloudflare's dashboard shows it.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        match HeaderValue::try_from(format!("Bearer {text}")) {
            Ok(mut bearer) if !text.is_empty() => {
                bearer.set_sensitive(true);
                Ok(Self(bearer))
            }
            _ => Err(invalid("the API token must be one line of text".to_owned())),
        }
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Options {
    /// A namespace by its account's id and its own, with Cloudflare's API.
    pub fn new(account: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            account: account.into(),
            namespace: namespace.into(),
            api: API_DEFAULT.to_owned(),
            token: None,
            token_file: None,
            http: keyward_http::Options::default(),
        }
    }

    /// Reads a URL such as `cloudflare-kv://ACCOUNT/NAMESPACE?api=URL&token_file=PATH`. No file is opened.
    pub fn from_url(mut url: StoreUrl) -> Result<Self> {
        let place = url.place().strip_prefix("//").and_then(|place| place.split_once('/'));
        let Some((account, namespace)) = place.filter(|(one, other)| is_id(one) && is_id(other))
        else {
            let message = format!(
                "a store in Workers KV must be cloudflare-kv://ACCOUNT/NAMESPACE with the ids of both, not {url}"
            );
            return Err(invalid(message).advise(
                "wrangler whoami shows the account's id, and wrangler kv namespace list the namespaces'.",
            ));
        };
        let mut options = Self::new(account, namespace);
        if let Some(api) = url.take("api") {
            options.api = api;
        }
        base_url(&options.api)?;
        options.token_file = url.take("token_file").map(PathBuf::from);
        options.http = keyward_http::Options::take_from(&mut url)?;
        let [connect, answer, budget] = keyward_http::Options::NAMES;
        url.finish(&["api", "token_file", connect, answer, budget])?;
        Ok(options)
    }

    /// What such a store can do. Nothing is opened to tell it.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            engine: "cloudflare-kv",
            scan_order: ScanOrder::Unordered,
            consistency: Consistency::Eventual { lag: LAG },
            compare: false,
            add: false,
            watch: WatchSupport::Unsupported,
            expiry: ExpirySupport::Supported {
                granularity: Duration::from_secs(1),
                ttl_min: TTL_MIN,
            },
            clock: ClockSource::Process,
            durability: Durability::Synced,
            sharing: Sharing::Network,
            limits: Limits {
                key_bytes_max: NAME_BYTES_MAX,
                value_bytes_max: VALUE_BYTES_MAX,
                metadata_bytes_max: METADATA_BYTES_MAX,
                commit_keys_max: 1,
                commit_bytes_max: NAME_BYTES_MAX + VALUE_BYTES_MAX + METADATA_BYTES_MAX,
                get_keys_max: GET_KEYS_MAX,
                scan_rows_max: LIST_NAMES_MAX,
            },
        }
    }

    /// The token to send.
    pub(crate) fn find_token(&self) -> Result<Token> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        if let Some(file) = &self.token_file {
            let unreadable = |error: std::io::Error| {
                let message = format!("cannot read the API token from {}", file.display());
                Error::new(ErrorKind::Misplaced, message).caused_by(error)
            };
            return Token::new(&read_secret_file(file, TOKEN_FILE_BYTES_MAX).map_err(unreadable)?);
        }
        match std::env::var(TOKEN_VARIABLE) {
            Ok(text) if !text.trim().is_empty() => Token::new(&text),
            _ => {
                let message = format!("no Cloudflare API token: {TOKEN_VARIABLE} is not set");
                Err(Error::new(ErrorKind::Misplaced, message).advise(format!(
                    "Set {TOKEN_VARIABLE}, or name a file with the token as token_file=PATH in the store's URL."
                )))
            }
        }
    }

    /// The URL of the namespace, and whether connections to it are encrypted.
    pub(crate) fn namespace_url(&self) -> Result<(String, bool)> {
        for (what, id) in [("account", &self.account), ("namespace", &self.namespace)] {
            if !is_id(id) {
                return Err(invalid(format!(
                    "the {what} must be an id of letters, digits, - and _, not {id:?}"
                )));
            }
        }
        let base = base_url(&self.api)?;
        let (account, namespace) = (&self.account, &self.namespace);
        let api = self.api.trim_end_matches('/');
        let url = format!("{api}/accounts/{account}/storage/kv/namespaces/{namespace}");
        Ok((url, base.scheme() == "https"))
    }
}

/// What stands in a path as it is.
fn is_id(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.bytes().all(is_part)
}

/// The base of an API: encrypted, unless it is on this machine, since requests carry the token.
fn base_url(api: &str) -> Result<Url> {
    let parsed = Url::parse(api).ok().filter(|url| {
        ["http", "https"].contains(&url.scheme())
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    // It is not repeated: it may hold a secret.
    let url = parsed.ok_or_else(|| {
        invalid(format!(
            "api must be the base URL of an API, such as {API_DEFAULT}, without a login or a query"
        ))
    })?;
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() == "https" || is_local {
        true => Ok(url),
        false => Err(invalid(format!(
            "api must be an https URL, such as {API_DEFAULT}: http would send the token unencrypted"
        ))
        .advise("Use https. Plain http is allowed only to localhost, 127.0.0.1 and [::1].")),
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> Result<Options> {
        Options::from_url(url.parse().unwrap())
    }

    #[test]
    fn a_url_names_account_and_namespace_and_may_name_the_rest() {
        let read = options("cloudflare-kv://acc0/ns_1").unwrap();
        assert_eq!(read, Options::new("acc0", "ns_1"));
        let url = "cloudflare-kv://a/b?api=http://127.0.0.1:8787/client/v4&token_file=/run/token&answer_timeout=5s";
        let read = options(url).unwrap();
        assert_eq!(read.token_file, Some("/run/token".into()));
        assert_eq!(read.http.answer_timeout, Duration::from_secs(5));
        let namespace = "http://127.0.0.1:8787/client/v4/accounts/a/storage/kv/namespaces/b";
        assert_eq!(read.namespace_url().unwrap(), (namespace.to_owned(), false));
    }

    #[test]
    fn a_url_that_names_no_namespace_or_something_unknown_is_refused() {
        for (url, named) in [
            ("cloudflare-kv://a", "cloudflare-kv://a"),
            ("cloudflare-kv://a/b/c", "a/b/c"),
            ("cloudflare-kv://../b", "../b"),
            ("cloudflare-kv:a/b", "ACCOUNT/NAMESPACE"),
            ("cloudflare-kv://a/b?api=ftp://c", "api must be"),
            ("cloudflare-kv://a/b?api=http://me:secret@c", "api must be"),
            ("cloudflare-kv://a/b?token=x", "\"token\""),
        ] {
            let error = options(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(named), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_token_is_sent_unencrypted_only_to_this_machine() {
        for host in ["localhost:8787", "127.0.0.1:8787", "[::1]:8787"] {
            let url = format!("cloudflare-kv://a/b?api=http://{host}/client/v4");
            assert!(!options(&url).unwrap().namespace_url().unwrap().1, "{host}");
        }
        for host in ["kv.example.com", "10.0.0.1", "127.0.0.1.example.com", "localhost.example.com"]
        {
            let api = format!("http://{host}/client/v4");
            let error = options(&format!("cloudflare-kv://a/b?api={api}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{host}");
            assert!(error.to_string().contains("unencrypted"), "{error}");
            // Nor if a program sets it.
            let options = Options { api, ..Options::new("a", "b") };
            assert_eq!(options.namespace_url().unwrap_err().kind(), ErrorKind::Invalid, "{host}");
        }
    }

    #[test]
    fn a_token_is_read_from_a_file_and_shown_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        keyward_testkit::write_secret(&file, "t0ken\n").unwrap();
        let options = Options { token_file: Some(file), ..Options::new("a", "b") };
        let token = options.find_token().unwrap();
        assert_eq!(token, Token::new("t0ken").unwrap());
        assert_eq!(token.header(), "Bearer t0ken");
        let shown = format!("{:?}", Options { token: Some(token), ..options });
        assert!(!shown.contains("t0ken"), "{shown}");
        assert_eq!(Token::new(" \n").unwrap_err().kind(), ErrorKind::Invalid);
    }
}
