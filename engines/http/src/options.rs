use std::time::Duration;

use keyward_engine::{Error, ErrorKind, Result, StoreUrl};

/// Who asks for many rows and gets more than this asks for fewer of them then.
const ANSWER_BYTES_MAX: usize = 128 << 20;

/// How long to wait for a server, and how much to read of its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for the response to one attempt.
    pub answer_timeout: Duration,
    /// How long a request may take with all its attempts and the pauses between them. No attempt
    /// begins after it.
    pub retry_budget: Duration,
    /// The largest answer that is read, in bytes. No URL sets it.
    pub answer_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            retry_budget: Duration::from_secs(10),
            answer_bytes_max: ANSWER_BYTES_MAX,
        }
    }
}

impl Options {
    /// The names of the URL options that [`Options::take_from`] reads.
    pub const NAMES: [&'static str; 3] = ["connect_timeout", "answer_timeout", "retry_budget"];

    /// Takes these options out of a store's URL; those that it does not have keep their defaults.
    pub fn take_from(url: &mut StoreUrl) -> Result<Self> {
        let mut options = Self::default();
        let fields =
            [&mut options.connect_timeout, &mut options.answer_timeout, &mut options.retry_budget];
        for (name, field) in Self::NAMES.into_iter().zip(fields) {
            let Some(text) = url.take(name) else { continue };
            let time = text.parse::<jiff::SignedDuration>().ok();
            let time = time.and_then(|time| Duration::try_from(time).ok());
            *field = time.filter(|time| !time.is_zero()).ok_or_else(|| {
                let message = format!("{name} must be a time such as 10s or 500ms, not {text:?}");
                Error::new(ErrorKind::Invalid, message)
            })?;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_sets_the_times_that_it_names() {
        let mut url: StoreUrl = "x://h/d?answer_timeout=500ms&retry_budget=2s".parse().unwrap();
        let options = Options::take_from(&mut url).unwrap();
        assert_eq!(options.answer_timeout, Duration::from_millis(500));
        assert_eq!(options.retry_budget, Duration::from_secs(2));
        assert_eq!(options.connect_timeout, Options::default().connect_timeout);
        url.finish(&[]).unwrap();
    }

    #[test]
    fn a_time_of_zero_or_none_is_refused() {
        for wrong in ["0s", "soon", "-1s"] {
            let mut url: StoreUrl = format!("x:?retry_budget={wrong}").parse().unwrap();
            let error = Options::take_from(&mut url).unwrap_err();
            assert!(error.message().contains("retry_budget"), "{error}");
        }
    }
}
