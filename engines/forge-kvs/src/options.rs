use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, Error, ErrorKind, ExpirySupport, Limits,
    Result, ScanOrder, Sharing, StoreUrl, WatchSupport,
};
use keyward_http::Url;

use crate::name::KEY_BYTES_MAX;
use crate::value::Room;
use crate::wire::{OPERATIONS_MAX, QUERY_ROWS_MAX};
use crate::{Token, TokenFile, TokenSource};

/// The storage API of Forge Remote.
const API_DEFAULT: &str = "https://api.atlassian.com/forge/storage/kvs";
/// Where the token is, if the URL names no file.
const TOKEN_VARIABLE: &str = "FORGE_KVS_TOKEN";
/// Atlassian says that queries are late, and not by how much.
const LAG: Duration = Duration::from_secs(60);
/// A sidecar holds it as a text, which is at most twice as long.
const METADATA_BYTES_MAX: usize = 64 << 10;
/// The same in an attribute of an entity, which has room for it beside the value.
const ATTRIBUTE_METADATA_BYTES_MAX: usize = 8 << 10;
/// Keys whose values and sidecars are read in one request.
pub(crate) const BATCH_KEYS_MAX: usize = OPERATIONS_MAX / 2;
/// Keys in one read: several requests at once.
const GET_KEYS_MAX: usize = 100;

/// Which entries have a sidecar: a second row in Forge that holds what Forge has no place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sidecars {
    /// All that are written: each write has a version of its own.
    #[default]
    Always,
    /// Those with metadata or an end. The version of another entry is made of its value, and comes back with it.
    /// For a store whose versions somebody else keeps: a coordinator.
    Needed,
}

/// How a store in Forge's key-value store is opened.
#[derive(Clone)]
pub struct Options {
    /// What people call the store. A coordinator knows it by this name.
    pub name: String,
    /// The base of the storage API, without `/v1`.
    pub api: Url,
    /// Which entries have a sidecar.
    pub sidecars: Sidecars,
    /// The custom entity that the store is in, instead of the app's plain keys. Its writes can be conditional. The
    /// app's manifest must declare it: see the [crate].
    pub entity: Option<String>,
    /// How long to wait for Forge.
    pub http: keyward_http::Options,
    pub(crate) tokens: Option<Arc<dyn TokenSource>>,
}

impl Options {
    /// Reads a URL such as `forge-kvs://default?token_file=PATH`.
    ///
    /// The place is a name for people: the token decides which installation of which app it is. The token is in the
    /// file (see [`TokenFile`]), or in the environment variable `FORGE_KVS_TOKEN`, or handed in by
    /// [`Options::with_tokens`].
    pub fn from_url(mut url: StoreUrl) -> Result<Self> {
        let label = url.place().strip_prefix("//").unwrap_or(url.place());
        let is_label = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        if label.is_empty() || !label.chars().all(is_label) {
            return Err(invalid(format!(
                "a store in Forge needs a name for people of letters, digits, dots, dashes and underscores, \
                 as in forge-kvs://default?token_file=PATH, not {label:?}"
            )));
        }
        let name = label.to_owned();
        let api = url.take("api");
        let mut options = Self {
            name,
            api: parse_api(api.as_deref().unwrap_or(API_DEFAULT))?,
            sidecars: Sidecars::default(),
            entity: url.take("entity").map(parse_entity).transpose()?,
            http: keyward_http::Options::take_from(&mut url)?,
            tokens: None,
        };
        if let Some(sidecars) = url.take("sidecars") {
            options.sidecars = match sidecars.as_str() {
                "always" => Sidecars::Always,
                "needed" => Sidecars::Needed,
                _ => {
                    let message = format!("sidecars must be always or needed, not {sidecars:?}");
                    return Err(invalid(message));
                }
            };
        }
        if let Some(path) = url.take("token_file") {
            options = options.with_tokens(TokenFile::new(path));
        } else if let Ok(token) = std::env::var(TOKEN_VARIABLE) {
            options = options.with_tokens(Token::new(&token)?);
        }
        let mut known = vec!["api", "entity", "sidecars", "token_file"];
        known.extend(keyward_http::Options::NAMES);
        url.finish(&known)?;
        Ok(options)
    }

    /// The same with tokens from elsewhere.
    #[must_use]
    pub fn with_tokens(mut self, tokens: impl TokenSource) -> Self {
        self.tokens = Some(Arc::new(tokens));
        self
    }

    /// What such a store can do. Nothing is opened to tell it.
    pub fn capabilities(&self) -> Capabilities {
        let is_entity = self.entity.is_some();
        let value_bytes_max = if is_entity { Room::ATTRIBUTE.bytes } else { Room::WHOLE.bytes };
        let metadata_bytes_max =
            if is_entity { ATTRIBUTE_METADATA_BYTES_MAX } else { METADATA_BYTES_MAX };
        Capabilities {
            engine: "forge-kvs",
            scan_order: ScanOrder::Unordered,
            consistency: match is_entity {
                // Forge promises that a read of one entity is current, and that of nothing else.
                true => Consistency::LateScans { lag: LAG },
                false => Consistency::Eventual { lag: LAG },
            },
            compare: is_entity,
            add: false,
            watch: WatchSupport::Unsupported,
            expiry: ExpirySupport::Supported {
                granularity: Duration::from_millis(1),
                ttl_min: Duration::from_millis(1),
            },
            clock: ClockSource::Process,
            durability: Durability::Synced,
            sharing: Sharing::Network,
            limits: Limits {
                key_bytes_max: KEY_BYTES_MAX,
                value_bytes_max,
                metadata_bytes_max,
                // A transaction takes more, but no read shows several keys at one moment.
                commit_keys_max: 1,
                commit_bytes_max: KEY_BYTES_MAX + value_bytes_max + metadata_bytes_max,
                get_keys_max: GET_KEYS_MAX,
                scan_rows_max: QUERY_ROWS_MAX,
            },
        }
    }

    pub(crate) fn tokens(&self) -> Result<Arc<dyn TokenSource>> {
        self.tokens.clone().ok_or_else(|| {
            let message = "no token for Forge: the URL names no token_file";
            let hint = format!("Pass token_file=PATH in the URL, or set {TOKEN_VARIABLE}.");
            Error::new(ErrorKind::Misplaced, message).advise(hint)
        })
    }
}

/// Without the token.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("name", &self.name)
            .field("api", &self.api.as_str())
            .field("sidecars", &self.sidecars)
            .field("entity", &self.entity)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// The name of a custom entity, by the rules of Forge.
fn parse_entity(name: String) -> Result<String> {
    let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ":-.".contains(c);
    let is_name = (3..=60).contains(&name.len())
        && name.chars().all(is_right)
        && !name.starts_with(['.', '-'])
        && !name.ends_with('.')
        && !name.contains("..");
    match is_name {
        true => Ok(name),
        false => Err(invalid(format!(
            "entity must be the name of a custom entity of 3 to 60 characters a-z 0-9 : - . as in entity=keyward, not {name:?}"
        ))),
    }
}

/// The base of an API: encrypted, unless it is on this machine, since every request carries the token.
fn parse_api(text: &str) -> Result<Url> {
    let parsed = Url::parse(text).ok().filter(|url| {
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

#[cfg(test)]
mod tests {
    use keyward_engine::Tier;

    use super::*;

    fn options(url: &str) -> Result<Options> {
        Options::from_url(url.parse()?)
    }

    #[test]
    fn a_url_names_the_api_and_where_the_token_is() {
        let read =
            options("forge-kvs://acme-production?token_file=/run/token&retry_budget=2s").unwrap();
        assert_eq!(read.api.as_str(), API_DEFAULT);
        assert_eq!(read.http.retry_budget, Duration::from_secs(2));
        assert_eq!(read.sidecars, Sidecars::Always);
        assert!(read.tokens.is_some());
        let local = options("forge-kvs:x?api=http://127.0.0.1:8080/kvs/&sidecars=needed").unwrap();
        assert_eq!(local.api.as_str(), "http://127.0.0.1:8080/kvs/");
        assert_eq!(local.sidecars, Sidecars::Needed);
    }

    #[test]
    fn what_is_wrong_in_a_url_is_named() {
        for (url, named) in [
            ("forge-kvs:", "forge-kvs://default"),
            ("forge-kvs://a/b", "\"a/b\""),
            ("forge-kvs://default?api=http://example.com/kvs", "unencrypted"),
            ("forge-kvs://default?api=ftp://example.com", "base URL"),
            ("forge-kvs://default?api=nothing", "base URL"),
            ("forge-kvs://default?sidecars=some", "\"some\""),
            ("forge-kvs://default?entity=x", "\"x\""),
            ("forge-kvs://default?entity=a..b", "\"a..b\""),
            ("forge-kvs://default?prefix=x", "\"prefix\""),
        ] {
            let error = options(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            assert!(error.message().contains(named), "{url}: {error}");
        }
    }

    #[test]
    fn an_api_with_a_login_is_refused_and_not_repeated() {
        for api in [
            "https://me@example.com",
            "https://me:s3cret@example.com",
            "https://:s3cret@example.com",
            "ftp://me:s3cret@example.com",
            "http://example.com/s3cret",
            "s3cret",
        ] {
            let error = options(&format!("forge-kvs://default?api={api}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{api}");
            let shown = format!("{error} {error:?} {:?}", error.advice());
            assert!(!shown.contains("s3cret") && !shown.contains("me@"), "{shown}");
        }
    }

    #[test]
    fn nothing_shows_the_token() {
        let options = options("forge-kvs://default").unwrap();
        let options = options.with_tokens(Token::new("s3cret").unwrap());
        assert!(!format!("{options:?}").contains("s3cret"));
        assert!(!format!("{:?}", Token::new("s3cret").unwrap()).contains("s3cret"));
    }

    #[test]
    fn the_tier_is_advisory_on_plain_keys_and_recoverable_in_an_entity() {
        let plain = options("forge-kvs://default").unwrap();
        assert_eq!(plain.capabilities().tier(), Tier::Advisory);
        let entity = options("forge-kvs://default?entity=keyward").unwrap();
        assert_eq!(entity.capabilities().tier(), Tier::Recoverable);
    }
}
