use std::time::Duration;

use keyward_engine::{Error, ErrorKind, Result, StoreUrl};

/// How a coordinated store behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// First segments whose keys stay in the coordinator and never reach the value store; several segments with
    /// colons between them (`team:queue`) keep what begins with all of them. A store keeps the list it was first
    /// opened with.
    pub keep: Vec<String>,
    /// The longest time for which a write that was sent to the value store can still be on its way, and by which the
    /// clocks of processes may differ. The coordinator holds every value at least this long.
    pub grace: Duration,
    /// Whether opening lists the value store again, to find keys that other programs added or removed. The first
    /// time it is always listed, and once more after its lag.
    pub rescan: bool,
}

/// First segments of what Keyward writes beside the data: indexes, locks, queues, and its own state.
const KEEP_DEFAULT: [&str; 5] = ["dead-letter", "index", "lock", "queue", "system"];
/// More than any HTTP client or proxy waits.
const GRACE_DEFAULT: Duration = Duration::from_secs(600);

impl Default for Options {
    fn default() -> Self {
        Self { keep: KEEP_DEFAULT.map(str::to_owned).to_vec(), grace: GRACE_DEFAULT, rescan: false }
    }
}

impl Options {
    /// The names of the URL options that [`Options::take_from`] takes.
    pub const NAMES: [&'static str; 3] = ["keep", "grace", "rescan"];

    /// Takes the options out of a value store's URL: `keep=job,session` adds first segments to the default ones,
    /// `grace=600` is in seconds, `rescan=true`.
    pub fn take_from(url: &mut StoreUrl) -> Result<Self> {
        let invalid = |message: String| Error::new(ErrorKind::Invalid, message);
        let mut options = Self::default();
        if let Some(keep) = url.take("keep") {
            for segment in keep.split(',') {
                if segment.is_empty() {
                    let message = format!(
                        "keep must be first segments separated by commas, for example job,session, not {keep:?}"
                    );
                    return Err(invalid(message));
                }
                options.keep.push(segment.to_owned());
            }
            options.keep.sort();
            options.keep.dedup();
        }
        if let Some(grace) = url.take("grace") {
            let seconds = grace.parse().map_err(|_| {
                invalid(format!("grace must be whole seconds, for example 600, not {grace:?}"))
            })?;
            options.grace = Duration::from_secs(seconds);
        }
        if let Some(rescan) = url.take("rescan") {
            options.rescan = match rescan.as_str() {
                "true" => true,
                "false" => false,
                _ => return Err(invalid(format!("rescan must be true or false, not {rescan:?}"))),
            };
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str) -> Result<Options> {
        let mut url: StoreUrl = format!("cloudflare-kv://account/namespace?{query}").parse()?;
        let options = Options::take_from(&mut url)?;
        url.finish(&Options::NAMES)?;
        Ok(options)
    }

    #[test]
    fn options_are_read_from_the_url_of_the_value_store() {
        assert_eq!(options("").unwrap(), Options::default());
        let read = options("keep=session,job,lock&grace=30&rescan=true").unwrap();
        assert_eq!(
            read.keep,
            ["dead-letter", "index", "job", "lock", "queue", "session", "system"]
        );
        assert_eq!((read.grace, read.rescan), (Duration::from_secs(30), true));
    }

    #[test]
    fn an_option_that_cannot_be_read_names_its_value() {
        for (query, named) in [("keep=a,,b", "a,,b"), ("grace=soon", "soon"), ("rescan=1", "\"1\"")]
        {
            let error = options(query).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(named), "{error}");
        }
    }
}
