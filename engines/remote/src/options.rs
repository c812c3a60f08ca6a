use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderValue;
use keyward_engine::{Error, ErrorKind, Result, StoreUrl, read_secret_file};

/// The environment variable that holds the API key, if neither the program nor a file does.
pub const KEY_VARIABLE: &str = "KEYWARD_KEY";

/// The largest file that is taken for one with an API key.
const KEY_FILE_BYTES_MAX: usize = 4_096;

/// Where a store is: a server, and the store's name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The engine's name, as in its URLs.
    pub(crate) engine: &'static str,
    /// The server's address, as in `http://127.0.0.1:7480`.
    pub(crate) server: String,
    /// The store's name; the server's only one or the one called `main`, if it is left out.
    pub(crate) store: Option<String>,
}

impl Address {
    /// The store of a server, `http://HOST:PORT` or `https://HOST:PORT`; its only one or the one
    /// called `main`, if none is named. Nothing is opened.
    pub fn new(server: &str, store: Option<&str>) -> Result<Self> {
        let invalid = |reason: &str| {
            Err(Error::new(
                ErrorKind::Invalid,
                format!("a server is an address such as http://127.0.0.1:7480; {reason}"),
            ))
        };
        let Some((scheme, rest)) = server.split_once("://") else {
            return invalid("this one has no http:// or https:// in front");
        };
        let engine = match scheme {
            "http" => "keyward+http",
            "https" => "keyward+https",
            _ => return invalid("this one begins with something else"),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        // It is not repeated: it may be a secret.
        if authority.contains('@') {
            return invalid(
                "the API key does not belong there: it comes from KEYWARD_KEY, or from a file",
            );
        }
        let server = format!("{scheme}://{authority}");
        let read =
            server.parse::<Uri>().ok().filter(|uri| uri.path() == "/" && uri.query().is_none());
        if authority.is_empty() || authority.contains(['/', '?', '#']) || read.is_none() {
            return invalid("this one is something else");
        }
        if store.is_some_and(|store| store.is_empty() || store.contains(['/', ':'])) {
            let message = "a store of a server has a name without slashes and colons, as main";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(Self { engine, server, store: store.map(str::to_owned) })
    }

    /// The server's address, as in `http://127.0.0.1:7480`.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The store's name, if one was given.
    pub fn store(&self) -> Option<&str> {
        self.store.as_deref()
    }
}

/// An API key. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(HeaderValue);

impl ApiKey {
    /// A key, as the server showed it once: `kw_…`. What it is is not looked at.
    pub fn new(text: &str) -> Result<Self> {
        let bearer = HeaderValue::try_from(format!("Bearer {}", text.trim()));
        match bearer {
            Ok(mut bearer) if !text.trim().is_empty() => {
                bearer.set_sensitive(true);
                Ok(Self(bearer))
            }
            _ => {
                Err(Error::new(ErrorKind::Invalid, "the API key is empty, or no text in one line"))
            }
        }
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The API key. Without one, the file below; without that, the environment; else none is sent.
    pub key: Option<ApiKey>,
    /// A file that holds the API key and nothing else; refused if every account may access it.
    pub key_file: Option<PathBuf>,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for an answer. Servers give up after half a minute by themselves.
    pub answer_timeout: Duration,
    /// A file with the certificates of the authorities to trust, as PEM, instead of those that this
    /// machine trusts.
    pub tls_roots: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            key: None,
            key_file: None,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(40),
            tls_roots: None,
        }
    }
}

impl Options {
    /// Reads address and options of a URL such as `keyward+http://127.0.0.1:7480/main`. No file is
    /// opened.
    pub fn from_url(mut url: StoreUrl) -> Result<(Address, Self)> {
        let scheme = if url.engine() == "keyward+https" { "https" } else { "http" };
        let Some(place) = url.place().strip_prefix("//") else {
            let message = "a store behind a server needs its address, as in \
                           keyward+http://127.0.0.1:7480/main";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let (authority, store) = place.split_once('/').unwrap_or((place, ""));
        let store = Some(store).filter(|store| !store.is_empty());
        let address = Address::new(&format!("{scheme}://{authority}"), store)?;
        let mut options = Self {
            key_file: url.take("key_file").map(PathBuf::from),
            tls_roots: url.take("tls_roots").map(PathBuf::from),
            ..Self::default()
        };
        for (name, field) in [
            ("connect_timeout", &mut options.connect_timeout),
            ("answer_timeout", &mut options.answer_timeout),
        ] {
            if let Some(text) = url.take(name) {
                let time = text.parse::<jiff::SignedDuration>().ok();
                let time = time.and_then(|time| Duration::try_from(time).ok());
                *field = time.filter(|time| !time.is_zero()).ok_or_else(|| {
                    let message = format!("{name} is a time such as 10s or 500ms, not {text:?}");
                    Error::new(ErrorKind::Invalid, message)
                })?;
            }
        }
        url.finish(&["key_file", "tls_roots", "connect_timeout", "answer_timeout"])?;
        Ok((address, options))
    }

    /// The key to send, if there is one.
    pub(crate) fn find_key(&self) -> Result<Option<ApiKey>> {
        if let Some(key) = &self.key {
            return Ok(Some(key.clone()));
        }
        if let Some(file) = &self.key_file {
            let unreadable = |error: std::io::Error| {
                let message = format!("the file with the API key, {}", file.display());
                Error::new(ErrorKind::Misplaced, message).caused_by(error)
            };
            let text = read_secret_file(file, KEY_FILE_BYTES_MAX).map_err(unreadable)?;
            return ApiKey::new(&text).map(Some);
        }
        match std::env::var(KEY_VARIABLE) {
            Ok(text) if !text.trim().is_empty() => ApiKey::new(&text).map(Some),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_address_and_options() {
        let url = "keyward+https://db.example:7480/notes?key_file=/run/key&tls_roots=/etc/ca.pem\
                   &connect_timeout=2s&answer_timeout=1500ms";
        let (address, options) = Options::from_url(url.parse().unwrap()).unwrap();
        let expected = Address {
            engine: "keyward+https",
            server: "https://db.example:7480".to_owned(),
            store: Some("notes".to_owned()),
        };
        assert_eq!(address, expected);
        let expected = Options {
            key: None,
            key_file: Some("/run/key".into()),
            connect_timeout: Duration::from_secs(2),
            answer_timeout: Duration::from_millis(1_500),
            tls_roots: Some("/etc/ca.pem".into()),
        };
        assert_eq!(options, expected);
        let (address, _) = Options::from_url("keyward+http://[::1]:7480".parse().unwrap()).unwrap();
        assert_eq!((address.server(), address.store.clone()), ("http://[::1]:7480", None));
    }

    #[test]
    fn a_bad_url_says_what_would_be_right_and_repeats_no_secret() {
        for (url, says) in [
            ("keyward+http:", "keyward+http://127.0.0.1:7480/main"),
            ("keyward+http:main", "keyward+http://127.0.0.1:7480/main"),
            ("keyward+http:///main", "http://127.0.0.1:7480"),
            ("keyward+http://kw_1_hidden@h/main", "KEYWARD_KEY"),
            ("keyward+http://u:kw_1_hidden@h/main", "KEYWARD_KEY"),
            ("keyward+http://h/a/b", "without slashes"),
            ("keyward+http://h/main?key=kw_1_hidden", "key_file, tls_roots"),
            ("keyward+http://h/main?connect_timeout=0s", "such as 10s"),
        ] {
            let error = Options::from_url(url.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("hidden"), "{url}: {error}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let key = ApiKey::new("kw_1_hidden\n").unwrap();
        let options = Options { key: Some(key), ..Options::default() };
        let shown = format!("{options:?} {:?}", options.key.as_ref().unwrap().header());
        assert!(!shown.contains("hidden"), "{shown}");
        assert!(ApiKey::new(" \n").is_err() && ApiKey::new("a\nb").is_err());
    }
}
