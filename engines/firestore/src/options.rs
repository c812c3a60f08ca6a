use std::time::Duration;

use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, Error, ErrorKind, ExpirySupport, Limits,
    Result, ScanOrder, Sharing, StoreUrl, WatchSupport,
};
use keyward_http::Url;

use crate::collection::Collection;

/// Names the address of an emulator, as Google's own libraries read it.
const EMULATOR_HOST: &str = "FIRESTORE_EMULATOR_HOST";

/// Which collection to open, and how.
///
/// Credentials are none of the options: they are looked for where Google's libraries look for them
/// (`GOOGLE_APPLICATION_CREDENTIALS`, the credentials of `gcloud`, the metadata server). An emulator needs none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The project's id.
    pub project: String,
    /// The database's id; that of most projects is `(default)`.
    pub database: String,
    /// The ids on the path of the collection: one, or three for a collection in a document, and so on.
    pub collection: Vec<String>,
    /// `HOST:PORT` of an emulator, instead of Google's service.
    pub emulator: Option<String>,
    /// How long to wait for Firestore.
    pub http: keyward_http::Options,
}

impl Options {
    /// Reads a `firestore:` URL: `firestore://PROJECT/DATABASE/COLLECTION?emulator=HOST:PORT`. Parts of it may be
    /// percent-encoded, and the collection may be a path such as `apps/x/notes`. Without the option `emulator`, the
    /// environment variable `FIRESTORE_EMULATOR_HOST` is read.
    pub fn from_url(url: StoreUrl) -> Result<Self> {
        Self::read(url, std::env::var(EMULATOR_HOST).ok().filter(|host| !host.is_empty()))
    }

    fn read(mut url: StoreUrl, emulator_host: Option<String>) -> Result<Self> {
        const FORM: &str = "a store in Firestore needs a project, a database and a collection, as in \
                            firestore://my-project/(default)/notes";
        let place = url.place().strip_prefix("//").ok_or_else(|| invalid(FORM.to_owned()))?;
        let mut parts = place.trim_end_matches('/').split('/').map(decode);
        let mut part = || parts.next().unwrap_or_else(|| Err(invalid(FORM.to_owned())));
        let (project, database) = (part()?, part()?);
        let collection = parts.collect::<Result<Vec<_>>>()?;
        if collection.is_empty() {
            return Err(invalid(FORM.to_owned()));
        }
        Collection::new(&project, &database, &collection)?;
        let emulator = url.take("emulator").or(emulator_host);
        let http = keyward_http::Options::take_from(&mut url)?;
        let [connect, answer, budget] = keyward_http::Options::NAMES;
        url.finish(&["emulator", connect, answer, budget])?;
        let options = Self { project, database, collection, emulator, http };
        options.service()?;
        Ok(options)
    }

    pub(crate) fn collection(&self) -> Result<Collection> {
        Collection::new(&self.project, &self.database, &self.collection)
    }

    /// The address of the service.
    pub(crate) fn service(&self) -> Result<Url> {
        let Some(emulator) = &self.emulator else {
            return Url::parse("https://firestore.googleapis.com/")
                .map_err(|error| invalid(error.to_string()));
        };
        let url = Url::parse(&format!("http://{emulator}/")).ok();
        let url =
            url.filter(|url| url.path() == "/" && url.port().is_some() && url.query().is_none());
        url.ok_or_else(|| {
            invalid(format!("emulator must be HOST:PORT, such as 127.0.0.1:8080, not {emulator:?}"))
        })
    }

    /// What such a store can do. Nothing is opened to tell it.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            engine: "firestore",
            scan_order: ScanOrder::Ordered,
            consistency: Consistency::Strong,
            compare: true,
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
                // An id has 1,500 bytes: one before the key, and two for a byte of the key at most.
                key_bytes_max: 749,
                // A document has 1 MiB, with its name and all its fields.
                value_bytes_max: 956 << 10,
                metadata_bytes_max: 64 << 10,
                commit_keys_max: 500,
                // A request has 10 MiB, in which a byte may take two; the emulator's has 4 MiB of another encoding.
                commit_bytes_max: 5 << 19,
                get_keys_max: 300,
                scan_rows_max: 300,
            },
        }
    }
}

/// Takes back what percent-encoding made of a part of the URL.
fn decode(part: &str) -> Result<String> {
    let wrong = || invalid(format!("{part:?} in the store URL is not percent-encoded UTF-8"));
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Options> {
        Options::read(url.parse().unwrap(), None)
    }

    #[test]
    fn a_url_names_project_database_and_collection() {
        let options = read(
            "firestore://my-project/(default)/apps/a%20b/notes?emulator=localhost:8080&retry_budget=2s",
        )
        .unwrap();
        assert_eq!(
            (options.project.as_str(), options.database.as_str()),
            ("my-project", "(default)")
        );
        assert_eq!(options.collection, ["apps", "a b", "notes"]);
        assert_eq!(options.emulator.as_deref(), Some("localhost:8080"));
        assert_eq!(options.http.retry_budget, Duration::from_secs(2));
        let encoded = read("firestore://p/%28default%29/notes").unwrap();
        assert_eq!((encoded.database.as_str(), encoded.emulator), ("(default)", None));
    }

    #[test]
    fn the_url_comes_before_the_environment() {
        let host = || Some("127.0.0.1:1".to_owned());
        let read = |url: &str| Options::read(url.parse().unwrap(), host()).unwrap().emulator;
        assert_eq!(read("firestore://p/d/c"), host());
        assert_eq!(read("firestore://p/d/c?emulator=[::1]:2").as_deref(), Some("[::1]:2"));
    }

    #[test]
    fn a_bad_url_says_what_would_be_right() {
        for (url, says) in [
            ("firestore:", "firestore://my-project/(default)/notes"),
            ("firestore://p", "firestore://my-project/(default)/notes"),
            ("firestore://p/d", "firestore://my-project/(default)/notes"),
            ("firestore://p/d/", "firestore://my-project/(default)/notes"),
            ("firestore:///d/c", "such as my-project"),
            ("firestore://p//c", "such as (default)"),
            ("firestore://p/d/c/document", "odd number of parts"),
            ("firestore://p/d/a//c", "is empty"),
            ("firestore://p/d/__c__", "keeps for itself"),
            ("firestore://p/d/a%2Fb", "slash"),
            ("firestore://p/d/%f", "percent-encoded"),
            ("firestore://p/d/%ff", "percent-encoded"),
            ("firestore://p/d/c?emulator=here", "HOST:PORT"),
            ("firestore://p/d/c?emulator=http://h:1", "HOST:PORT"),
            ("firestore://p/d/c?emulator=h:1/x", "HOST:PORT"),
            ("firestore://p/d/c?database=x", "emulator, connect_timeout"),
        ] {
            let error = read(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            assert!(error.message().contains(says), "{url}: {error}");
        }
    }
}
