use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, Error, ErrorKind, ExpirySupport, Limits,
    Result, ScanOrder, Sharing, StoreUrl, WatchSupport,
};

/// How a store in PostgreSQL is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The store's name in the database.
    pub store: String,
    /// How many connections are opened at most, besides one that listens while anyone watches.
    pub pool_max: usize,
    /// After how long the server gives up on a statement.
    pub statement_timeout: Duration,
    /// How long to wait for a connection: to be made, or to become free.
    pub connect_timeout: Duration,
    /// How far back in time a watch can resume.
    pub history: Duration,
    /// Whether connections are encrypted.
    pub tls: Tls,
    /// A file with the certificates of the authorities to trust, as PEM, instead of those that this
    /// machine trusts. Only with [`Tls::VerifyFull`]: without a check it would promise too much.
    pub tls_roots: Option<PathBuf>,
}

/// Whether connections are encrypted, and the server's certificate is checked: PostgreSQL's
/// `sslmode`, with PostgreSQL's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tls {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can; its certificate is not checked.
    #[default]
    Prefer,
    /// Encrypted; the certificate is not checked, which does not help against one who can stand in
    /// for the server.
    Require,
    /// Encrypted, with a certificate for the host's name by an authority that is trusted: one in the
    /// file of [`Options::tls_roots`], or without it one that this machine trusts (or that the file
    /// in `SSL_CERT_FILE` names).
    VerifyFull,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: "default".to_owned(),
            pool_max: 16,
            statement_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            history: Duration::from_secs(24 * 3_600),
            tls: Tls::default(),
            tls_roots: None,
        }
    }
}

impl Options {
    /// Reads the server's address and the options of a `postgres:` URL. The address is what
    /// PostgreSQL itself would take: `postgres://user:password@host:port/database`.
    pub fn from_url(mut url: StoreUrl) -> Result<(String, Self)> {
        if !url.place().starts_with("//") {
            return Err(invalid(
                "a store in PostgreSQL needs a server, as in postgres://user@host/database"
                    .to_owned(),
            ));
        }
        let server = format!("postgres:{}", url.place());
        let mut options = Self::default();
        if let Some(store) = url.take("store") {
            if store.is_empty() {
                return Err(invalid("the store's name is empty".to_owned()));
            }
            options.store = store;
        }
        if let Some(pool_max) = url.take("pool_max") {
            options.pool_max = pool_max.parse().ok().filter(|&max| max > 0).ok_or_else(|| {
                invalid(format!("pool_max is a number above zero, not {pool_max:?}"))
            })?;
        }
        for (name, field) in [
            ("statement_timeout", &mut options.statement_timeout),
            ("connect_timeout", &mut options.connect_timeout),
            ("history", &mut options.history),
        ] {
            if let Some(text) = url.take(name) {
                *field = parse_duration(&text).ok_or_else(|| {
                    invalid(format!(
                        "{name} is a time of at least a millisecond such as 24h or 500ms, not {text:?}"
                    ))
                })?;
            }
        }
        if let Some(mode) = url.take("sslmode") {
            options.tls = match mode.as_str() {
                "disable" => Tls::Disable,
                "prefer" => Tls::Prefer,
                "require" => Tls::Require,
                "verify-full" => Tls::VerifyFull,
                other => {
                    return Err(invalid(format!(
                        "sslmode is disable, prefer, require or verify-full, not {other:?}"
                    )));
                }
            };
        }
        options.tls_roots = url.take("sslrootcert").map(PathBuf::from);
        url.finish(&[
            "store",
            "pool_max",
            "statement_timeout",
            "connect_timeout",
            "history",
            "sslmode",
            "sslrootcert",
        ])?;
        Ok((server, options))
    }

    /// What such a store can do. Nothing is opened to tell it.
    pub fn capabilities() -> Capabilities {
        Capabilities {
            engine: "postgres",
            scan_order: ScanOrder::Ordered,
            consistency: Consistency::Strong,
            compare: true,
            add: true,
            watch: WatchSupport::Resumable,
            expiry: ExpirySupport::Supported {
                granularity: Duration::from_millis(1),
                ttl_min: Duration::from_millis(1),
            },
            clock: ClockSource::Server,
            durability: Durability::Synced,
            sharing: Sharing::Network,
            limits: Limits {
                // A row of an index takes a third of a page of 8 KiB, less its own headers.
                key_bytes_max: 2_000,
                value_bytes_max: 16 << 20,
                metadata_bytes_max: 64 << 10,
                commit_keys_max: 10_000,
                commit_bytes_max: 64 << 20,
                get_keys_max: 1_000,
                scan_rows_max: 10_000,
            },
        }
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let duration = text.parse::<SignedDuration>().ok()?;
    Duration::try_from(duration).ok().filter(|&duration| duration >= Duration::from_millis(1))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_server_and_options() {
        let url = "postgres://me:se%20cret@db.example:5433/app?store=notes&pool_max=3\
                   &statement_timeout=1500ms&connect_timeout=2s&history=48h&sslmode=verify-full\
                   &sslrootcert=/etc/ca.pem";
        let (server, options) = Options::from_url(url.parse().unwrap()).unwrap();
        assert_eq!(server, "postgres://me:se%20cret@db.example:5433/app");
        let expected = Options {
            store: "notes".to_owned(),
            pool_max: 3,
            statement_timeout: Duration::from_millis(1_500),
            connect_timeout: Duration::from_secs(2),
            history: Duration::from_secs(48 * 3_600),
            tls: Tls::VerifyFull,
            tls_roots: Some("/etc/ca.pem".into()),
        };
        assert_eq!(options, expected);
        let (server, options) = Options::from_url("postgresql://h/d".parse().unwrap()).unwrap();
        assert_eq!((server.as_str(), options), ("postgres://h/d", Options::default()));
    }

    #[test]
    fn a_bad_url_says_what_would_be_right() {
        for (url, says) in [
            ("postgres:", "postgres://user@host/database"),
            ("postgres:app", "postgres://user@host/database"),
            ("postgres://h/d?store=", "name is empty"),
            ("postgres://h/d?pool_max=0", "above zero"),
            ("postgres://h/d?history=7", "such as 24h"),
            ("postgres://h/d?history=0s", "such as 24h"),
            ("postgres://h/d?connect_timeout=-2s", "such as 24h"),
            ("postgres://h/d?sslmode=on", "verify-full"),
            ("postgres://h/d?host=x", "store, pool_max, statement_timeout"),
        ] {
            let error = Options::from_url(url.parse().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(says), "{url}: {error}");
        }
    }
}
