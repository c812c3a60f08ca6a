use std::env::VarError;
use std::fmt;
use std::time::Duration;

use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, Error, ErrorKind, ExpirySupport, Limits,
    Result, ScanOrder, Sharing, StoreUrl, WatchSupport,
};
use keyward_http::Url;

/// The port of `couchdb:` URLs that name none.
const PORT: u16 = 5984;
/// The longest name of a database that CouchDB takes.
const NAME_BYTES_MAX: usize = 238;
const USER: &str = "KEYWARD_COUCHDB_USER";
const PASSWORD: &str = "KEYWARD_COUCHDB_PASSWORD";

/// How a database in CouchDB is opened.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// The server: scheme, host and port.
    pub(crate) server: Url,
    /// The database's name.
    pub(crate) database: String,
    /// A user and a password.
    pub(crate) credentials: Option<(String, String)>,
    /// How long to wait for the server.
    pub http: keyward_http::Options,
}

impl Options {
    /// Reads `couchdb://USER:PASSWORD@HOST:PORT/DATABASE`, and the same with `couchdb+http:` or, encrypted,
    /// `couchdb+https:`. The port is 5984, encrypted 443, unless the URL says another one. User, password and
    /// database are percent-decoded.
    ///
    /// What the URL leaves out of user and password is read from the environment, from `KEYWARD_COUCHDB_USER` and
    /// `KEYWARD_COUCHDB_PASSWORD`.
    pub fn from_url(url: StoreUrl) -> Result<Self> {
        Self::from_url_and(url, |name| match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => Err(invalid(format!("{name} must be UTF-8"))),
        })
    }

    fn from_url_and(
        mut url: StoreUrl,
        variable: impl Fn(&str) -> Result<Option<String>>,
    ) -> Result<Self> {
        let is_encrypted = url.engine() == "couchdb+https";
        let shape = || {
            let shape = format!("{}://USER:PASSWORD@HOST:PORT/DATABASE", url.engine());
            invalid(format!("a store in CouchDB is named by a URL such as {shape}, not {url}"))
        };
        let place = url.place().strip_prefix("//").ok_or_else(shape)?;
        let (authority, database) = place.split_once('/').ok_or_else(shape)?;
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, authority),
        };
        let scheme = if is_encrypted { "https" } else { "http" };
        let mut server = Url::parse(&format!("{scheme}://{host}/")).map_err(|_| shape())?;
        let is_server = server.path() == "/" && server.query().is_none() && !host.is_empty();
        if !is_server || server.fragment().is_some() {
            return Err(shape());
        }
        let names_port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
        if !names_port && !is_encrypted {
            server.set_port(Some(PORT)).map_err(|()| shape())?;
        }
        let database = database_name(database.strip_suffix('/').unwrap_or(database))?;
        let (user, password) = match login.map(|login| login.split_once(':').ok_or(login)) {
            None => (None, None),
            Some(Ok((user, password))) => (Some(decoded(user)?), Some(decoded(password)?)),
            Some(Err(user)) => (Some(decoded(user)?), None),
        };
        let user = user.map_or_else(|| variable(USER), |user| Ok(Some(user)))?;
        let credentials = match user {
            None => None,
            Some(user) if user.is_empty() || user.contains(':') => {
                return Err(invalid(format!(
                    "the user of CouchDB must have at least one character and no colon, not {user:?}"
                )));
            }
            Some(user) => {
                let password =
                    password.map_or_else(|| variable(PASSWORD), |password| Ok(Some(password)))?;
                let missing = || {
                    invalid(format!("the password of the CouchDB user {user:?} is missing"))
                        .advise(format!("Set {PASSWORD}, or write USER:PASSWORD@ into the URL."))
                };
                let password = password.ok_or_else(missing)?;
                Some((user, password))
            }
        };
        let http = keyward_http::Options::take_from(&mut url)?;
        url.finish(&keyward_http::Options::NAMES)?;
        Ok(Self { server, database, credentials, http })
    }

    /// What such a store can do if CouchDB keeps the database in one copy, as servers that are no cluster do. Nothing
    /// is opened to tell it.
    ///
    /// A cluster that keeps several copies can acknowledge a write and let another one win later. There, the opened
    /// store has no compare-and-swap.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            engine: "couchdb",
            scan_order: ScanOrder::Ordered,
            consistency: Consistency::Strong,
            compare: true,
            add: false,
            watch: WatchSupport::Live,
            expiry: ExpirySupport::Supported {
                granularity: Duration::from_millis(1),
                ttl_min: Duration::from_millis(1),
            },
            clock: ClockSource::Process,
            durability: Durability::Synced,
            sharing: Sharing::Network,
            limits: Limits {
                // The id is in the path of a request, where a byte takes up to six; CouchDB reads 8 KiB.
                key_bytes_max: 1_024,
                // As text in a string it takes up to twice as much, and a page of a scan has a hundred.
                value_bytes_max: 2 << 20,
                metadata_bytes_max: 64 << 10,
                commit_keys_max: 1,
                commit_bytes_max: (2 << 20) + (64 << 10) + 1_024,
                get_keys_max: 100,
                scan_rows_max: 1_000,
            },
        }
    }

    /// The database, as it may stand in a message.
    pub(crate) fn shown(&self) -> String {
        let host = self.server.host_str().unwrap_or_default();
        match self.server.port() {
            Some(port) => format!("{} at {host}:{port}", self.database),
            None => format!("{} at {host}", self.database),
        }
    }
}

/// Without the password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("server", &self.server.as_str())
            .field("database", &self.database)
            .field("user", &self.credentials.as_ref().map(|(user, _)| user))
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

/// The rule is CouchDB's own. It leaves out the server's databases, such as `_users`.
fn database_name(encoded: &str) -> Result<String> {
    let name = decoded(encoded)?;
    let is_allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_$()+-/".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if begins && name.chars().all(is_allowed) && name.len() <= NAME_BYTES_MAX {
        // A slash that is not escaped is more likely a mistake, such as the path of a proxy.
        if encoded.contains('/') {
            let escaped = name.replace('/', "%2F");
            return Err(invalid(format!(
                "the database {encoded:?} has a slash; write {escaped} if it is part of its name"
            )));
        }
        return Ok(name);
    }
    let rule = format!(
        "the name of a CouchDB database must begin with a lowercase letter and have at most {NAME_BYTES_MAX} lowercase letters, digits and characters of _$()+-/"
    );
    // Before an @ stands a password whose slash is not escaped.
    Err(match name.contains('@') {
        true => invalid(rule).advise(
            "Percent-encode the user and the password in the URL: / is %2F, @ is %40, : is %3A.",
        ),
        false => invalid(format!("{rule}, not {name:?}")),
    })
}

fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value =
                    digit().zip(digit()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                // Not naming the text: it may be a password.
                value.ok_or_else(|| {
                    invalid("a % in the URL of a CouchDB store must be followed by two hexadecimal digits; write %25 for % itself".to_owned())
                })?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| {
        invalid("the escaped bytes in the URL of a CouchDB store must be UTF-8".to_owned())
    })
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> Result<Options> {
        Options::from_url_and(url.parse().unwrap(), |_| Ok(None))
    }

    fn credentials(user: &str, password: &str) -> Option<(String, String)> {
        Some((user.to_owned(), password.to_owned()))
    }

    #[test]
    fn a_url_names_server_database_and_credentials() {
        let read =
            options("couchdb://ann%40x:p%40ss%2Fword%25@db.example:5985/a%2Fb?answer_timeout=2s")
                .unwrap();
        assert_eq!(read.server.as_str(), "http://db.example:5985/");
        assert_eq!(read.database, "a/b");
        assert_eq!(read.credentials, credentials("ann@x", "p@ss/word%"));
        assert_eq!(read.http.answer_timeout, Duration::from_secs(2));
        for (url, server) in [
            ("couchdb://h/db", "http://h:5984/"),
            ("couchdb+http://h/db/", "http://h:5984/"),
            ("couchdb://h:80/db", "http://h/"),
            ("couchdb://[::1]/db", "http://[::1]:5984/"),
            ("couchdb+https://h/db", "https://h/"),
            ("couchdb+https://h:6984/db", "https://h:6984/"),
        ] {
            let read = options(url).unwrap();
            assert_eq!((read.server.as_str(), read.database.as_str()), (server, "db"), "{url}");
            assert_eq!(read.credentials, None);
        }
    }

    #[test]
    fn the_environment_has_the_credentials_that_the_url_leaves_out() {
        let variable = |name: &str| Ok(Some(format!("{}'s", name.to_lowercase())));
        let read =
            |url: &str| Options::from_url_and(url.parse().unwrap(), variable).unwrap().credentials;
        let (user, password) = ("keyward_couchdb_user's", "keyward_couchdb_password's");
        assert_eq!(read("couchdb://h/db"), credentials(user, password));
        assert_eq!(read("couchdb://ann@h/db"), credentials("ann", password));
        assert_eq!(read("couchdb://ann:p@h/db"), credentials("ann", "p"));
        assert_eq!(read("couchdb://ann:@h/db"), credentials("ann", ""));
    }

    #[test]
    fn nothing_shows_a_password() {
        let url = "couchdb://ann:s3cret%2F@h/db?retry_budget=1s";
        assert!(!format!("{:?}", options(url).unwrap()).contains("s3cret"));
        for wrong in [
            "couchdb://ann:s3cret@h",
            "couchdb://ann:s3cret%2@h/db",
            "couchdb://ann:s3cret%2@h/DB",
            "couchdb://ann:/s3cret@h/db",
            "couchdb://ann:1/s3cret@h/db",
            "couchdb://ann:s3cret@h:port/db",
            "couchdb://ann:s3cret@h/db?x=1",
        ] {
            let error = options(wrong).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
    }

    #[test]
    fn a_bad_url_says_what_would_be_right() {
        for (url, says) in [
            ("couchdb:db", "couchdb://USER:PASSWORD@HOST:PORT/DATABASE"),
            ("couchdb+https://h", "couchdb+https://USER:PASSWORD@HOST:PORT/DATABASE"),
            ("couchdb:///db", "HOST"),
            ("couchdb://h:x/db", "HOST"),
            ("couchdb://h#x/db", "HOST"),
            ("couchdb://h/", "lowercase letter"),
            ("couchdb://h/DB", "lowercase letter"),
            ("couchdb://h/_users", "lowercase letter"),
            ("couchdb://h/7", "lowercase letter"),
            ("couchdb://h/a/b", "a%2Fb"),
            ("couchdb://h/a%2", "hexadecimal"),
            ("couchdb://h/a%FF", "UTF-8"),
            ("couchdb://ann@h/db", "the password of the CouchDB user \"ann\" is missing"),
            ("couchdb://:x@h/db", "at least one character"),
            ("couchdb://a%3Ab:x@h/db", "no colon"),
            ("couchdb://h/db?store=x", "connect_timeout, answer_timeout, retry_budget"),
        ] {
            let error = options(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(says), "{url}: {error}");
        }
        let long = format!("couchdb://h/{}", "x".repeat(NAME_BYTES_MAX + 1));
        assert!(options(&long).unwrap_err().message().contains("at most 238"));
    }
}
