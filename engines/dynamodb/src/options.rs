use std::time::Duration;

use jiff::SignedDuration;
use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, Error, ErrorKind, ExpirySupport, Limits,
    Result, ScanOrder, Sharing, StoreUrl, WatchSupport,
};

use crate::Credentials;
use crate::layout::KEY_BYTES_MAX;

/// How long DynamoDB recognises a commit that is sent again, less a safe margin.
pub(crate) const RESENT_MAX: Duration = Duration::from_secs(5 * 60);
/// How many segments can name a partition.
const PARTITION_SEGMENTS_MAX: usize = 8;

/// Where a table is and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The AWS region, such as `eu-west-1`.
    pub region: String,
    /// The table's name. A table holds one store.
    pub table: String,
    /// Where DynamoDB is, such as `http://127.0.0.1:8000`; the region's own endpoint if it is left out.
    pub endpoint: Option<String>,
    /// Fixed credentials. If they are left out, they come from the environment as in every AWS SDK: variables,
    /// the profile, a web identity, or the container's.
    pub credentials: Option<Credentials>,
    /// Whether the metadata service of EC2 is asked for credentials if nothing else has them.
    pub instance_credentials: bool,
    /// Whether to create the table if it does not exist, with a stream to watch it by. It costs by use: nothing at rest
    /// but its storage.
    pub create: bool,
    /// How many leading segments of a key name its partition: 1 unless a new store says otherwise. It is fixed when the
    /// store is made.
    pub partition_segments: Option<usize>,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for the answer to one attempt.
    pub answer_timeout: Duration,
    /// How long a request may take with all its attempts and the pauses between them. No attempt begins after it.
    /// At most 5 minutes: DynamoDB recognises a commit that is sent again for ten.
    pub retry_budget: Duration,
}

impl Options {
    const NAMES: [&'static str; 7] = [
        "endpoint",
        "create",
        "imds",
        "partition_segments",
        "connect_timeout",
        "answer_timeout",
        "retry_budget",
    ];

    /// The options for a table, with credentials from the environment.
    pub fn new(region: impl Into<String>, table: impl Into<String>) -> Self {
        Self {
            region: region.into(),
            table: table.into(),
            endpoint: None,
            credentials: None,
            instance_credentials: false,
            create: false,
            partition_segments: None,
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(10),
            retry_budget: Duration::from_secs(20),
        }
    }

    /// Reads a `dynamodb:` URL: `dynamodb://REGION/TABLE`.
    pub fn from_url(mut url: StoreUrl) -> Result<Self> {
        let place = url.place().strip_prefix("//").and_then(|place| place.split_once('/'));
        let Some((region, table)) = place.filter(|(region, _)| is_region(region)) else {
            return Err(invalid(format!(
                "a DynamoDB store needs a region and a table, as in dynamodb://eu-west-1/TABLE, not {:?}",
                url.place()
            )));
        };
        if !is_table(table) {
            return Err(invalid(format!(
                "a table's name must be 3 to 255 characters long, of a-z, A-Z, 0-9, '_', '-' and '.', not {table:?}"
            )));
        }
        let mut options = Self::new(region, table);
        if let Some(endpoint) = url.take("endpoint") {
            if !["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme)) {
                // It is not repeated: it may hold a password.
                return Err(invalid(
                    "the endpoint must be a URL such as http://127.0.0.1:8000".to_owned(),
                ));
            }
            options.endpoint = Some(endpoint);
        }
        options.create = take_flag(&mut url, "create")?;
        options.instance_credentials = take_flag(&mut url, "imds")?;
        if let Some(text) = url.take("partition_segments") {
            let segments = text.parse().ok();
            let segments =
                segments.filter(|segments| (1..=PARTITION_SEGMENTS_MAX).contains(segments));
            options.partition_segments = Some(segments.ok_or_else(|| {
                let most = PARTITION_SEGMENTS_MAX;
                invalid(format!(
                    "partition_segments must be a number from 1 to {most}, not {text:?}"
                ))
            })?);
        }
        for (name, field) in [
            ("connect_timeout", &mut options.connect_timeout),
            ("answer_timeout", &mut options.answer_timeout),
            ("retry_budget", &mut options.retry_budget),
        ] {
            let Some(text) = url.take(name) else { continue };
            let time = text.parse::<SignedDuration>().ok();
            let time = time.and_then(|time| Duration::try_from(time).ok());
            *field = time.filter(|time| !time.is_zero()).ok_or_else(|| {
                invalid(format!("{name} must be a time such as 10s or 500ms, not {text:?}"))
            })?;
        }
        if options.retry_budget > RESENT_MAX {
            return Err(invalid(format!(
                "retry_budget must be at most {}s, since DynamoDB recognises a commit that is sent again for a few \
                 minutes only",
                RESENT_MAX.as_secs()
            )));
        }
        url.finish(&Self::NAMES)?;
        Ok(options)
    }

    /// What such a store can do if its table has no stream. Nothing is opened to tell it. The opened store can be
    /// watched if there is one.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            engine: "dynamodb",
            scan_order: ScanOrder::Ordered,
            consistency: Consistency::Strong,
            compare: true,
            add: true,
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
                // With the largest key and metadata, and the attributes around them, an item of 400 KiB.
                value_bytes_max: 400_000,
                metadata_bytes_max: 8 << 10,
                commit_keys_max: 100,
                // A transaction takes 4 MiB, of which each of its items takes some for itself.
                commit_bytes_max: 3_800_000,
                get_keys_max: 100,
                scan_rows_max: 1_000,
            },
        }
    }
}

fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_table(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (3..=255).contains(&text.len()) && text.bytes().all(is_allowed)
}

fn take_flag(url: &mut StoreUrl, name: &str) -> Result<bool> {
    match url.take(name).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(invalid(format!("{name} must be true or false, not {other:?}"))),
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_the_table_and_the_options() {
        let url = "dynamodb://eu-west-1/notes_1?endpoint=http://127.0.0.1:8000&create=true&imds=true\
                   &partition_segments=2&connect_timeout=1s&answer_timeout=2s&retry_budget=300s";
        let options = Options::from_url(url.parse().unwrap()).unwrap();
        let expected = Options {
            endpoint: Some("http://127.0.0.1:8000".to_owned()),
            instance_credentials: true,
            create: true,
            partition_segments: Some(2),
            connect_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(2),
            retry_budget: Duration::from_secs(300),
            ..Options::new("eu-west-1", "notes_1")
        };
        assert_eq!(options, expected);
        let plain = Options::from_url("dynamodb://us-east-1/abc".parse().unwrap()).unwrap();
        assert_eq!(plain, Options::new("us-east-1", "abc"));
    }

    #[test]
    fn a_bad_url_says_what_would_be_right() {
        for (url, says) in [
            ("dynamodb:", "dynamodb://eu-west-1/TABLE"),
            ("dynamodb://notes", "dynamodb://eu-west-1/TABLE"),
            ("dynamodb:///notes", "dynamodb://eu-west-1/TABLE"),
            ("dynamodb://key:secret@x/notes", "dynamodb://eu-west-1/TABLE"),
            ("dynamodb://r/ab", "3 to 255"),
            ("dynamodb://r/a/b/c", "3 to 255"),
            ("dynamodb://r/abc?endpoint=127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("dynamodb://r/abc?create=yes", "true or false"),
            ("dynamodb://r/abc?partition_segments=0", "from 1 to 8"),
            ("dynamodb://r/abc?retry_budget=301s", "at most 300s"),
            ("dynamodb://r/abc?retry_budget=0s", "such as 10s"),
            ("dynamodb://r/abc?profile=x", "endpoint, create, imds"),
        ] {
            let error = Options::from_url(url.parse().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(says), "{url}: {error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut options = Options::new("r", "abc");
        options.credentials = Some(Credentials::new("id", "very-secret"));
        assert!(!format!("{options:?}").contains("very-secret"));
    }
}
