use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use keyward_engine::{
    Capabilities, ClockSource, Consistency, Durability, Error, ErrorKind, ExpirySupport, Limits,
    Result, ScanOrder, Sharing, StoreUrl, WatchSupport,
};

/// How an embedded store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What an acknowledged commit survives: [`Durability::Synced`] or [`Durability::Relaxed`].
    pub durability: Durability,
    /// How much address space to reserve: the size the store can grow to while it is open. Costs
    /// nothing until it is used.
    pub map_bytes: usize,
    /// How many commits back a watch can resume.
    pub history: u64,
    /// How long a commit waits for its turn, and opening waits for other processes that open or
    /// compact the store. After that it fails as [`ErrorKind::Unavailable`]: nothing was written.
    pub write_timeout: Duration,
}

/// LMDB's longest key with `longer-keys` and pages of 4 KiB, less the eight bytes that the table of
/// ends puts before it.
pub(crate) const KEY_BYTES_MAX: usize = 1_982 - 8;

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Synced,
            map_bytes: 1 << 40,
            history: 100_000,
            write_timeout: Duration::from_secs(10),
        }
    }
}

impl Options {
    /// Reads the directory and the options of an `embedded:` URL.
    pub fn from_url(mut url: StoreUrl) -> Result<(PathBuf, Self)> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
        if url.place().is_empty() {
            return invalid(
                "an embedded store needs a directory, as in embedded:./data".to_owned(),
            );
        }
        let directory = PathBuf::from(url.place());
        let mut options = Self::default();
        if let Some(durability) = url.take("durability") {
            options.durability = match durability.as_str() {
                "synced" => Durability::Synced,
                "relaxed" => Durability::Relaxed,
                other => return invalid(format!("durability is synced or relaxed, not {other:?}")),
            };
        }
        if let Some(size) = url.take("map_size") {
            options.map_bytes = match parse_size(&size) {
                Some(bytes) => bytes,
                None => {
                    return invalid(format!(
                        "map_size is a size of at least 1MiB such as 64GiB, not {size:?}"
                    ));
                }
            };
        }
        if let Some(history) = url.take("history") {
            options.history = match history.parse() {
                Ok(history) if history > 0 => history,
                _ => return invalid(format!("history is a number above zero, not {history:?}")),
            };
        }
        if let Some(timeout) = url.take("write_timeout") {
            options.write_timeout = match parse_duration(&timeout) {
                Some(timeout) => timeout,
                None => {
                    return invalid(format!(
                        "write_timeout must be at least a millisecond, such as 10s or 500ms, not \
                         {timeout:?}"
                    ));
                }
            };
        }
        url.finish(&["durability", "map_size", "history", "write_timeout"])?;
        Ok((directory, options))
    }

    /// What such a store can do. Nothing is opened to tell it.
    pub fn capabilities(self) -> Capabilities {
        Capabilities {
            engine: "embedded",
            scan_order: ScanOrder::Ordered,
            consistency: Consistency::Strong,
            compare: true,
            add: true,
            watch: WatchSupport::Resumable,
            expiry: ExpirySupport::Supported {
                granularity: Duration::from_millis(1),
                ttl_min: Duration::from_millis(1),
            },
            clock: ClockSource::Machine,
            durability: self.durability,
            sharing: Sharing::Machine,
            limits: Limits {
                key_bytes_max: KEY_BYTES_MAX,
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

/// A size such as `64GiB`, rounded down to whole mebibytes.
fn parse_size(text: &str) -> Option<usize> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    let bytes = number.parse::<usize>().ok()?.checked_mul(1 << shift)?;
    let whole = bytes >> 20 << 20;
    (whole > 0).then_some(whole)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let duration = text.parse::<SignedDuration>().ok()?;
    Duration::try_from(duration).ok().filter(|&duration| duration >= Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_directory_and_options() {
        let url = "embedded:./data?durability=relaxed&map_size=64GiB&history=7&write_timeout=2s";
        let (directory, options) = Options::from_url(url.parse().unwrap()).unwrap();
        assert_eq!(directory, PathBuf::from("./data"));
        let expected = Options {
            durability: Durability::Relaxed,
            map_bytes: 64 << 30,
            history: 7,
            write_timeout: Duration::from_secs(2),
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn a_bad_url_says_what_would_be_right() {
        for (url, says) in [
            ("embedded:", "needs a directory"),
            ("embedded:x?durability=none", "synced or relaxed"),
            ("embedded:x?map_size=12XB", "64GiB"),
            ("embedded:x?map_size=1KiB", "at least 1MiB"),
            ("embedded:x?map_size=99999999TiB", "64GiB"),
            ("embedded:x?history=0", "above zero"),
            ("embedded:x?write_timeout=0s", "such as 10s"),
            ("embedded:x?sync=off", "durability, map_size, history, write_timeout"),
        ] {
            let error = Options::from_url(url.parse().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(says), "{url}: {error}");
        }
    }
}
