use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::error::told;

/// An answer of a provider that is no success.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    /// What it said, or as much as can be understood of it.
    message: String,
    /// Words for programs: what OpenAI calls `code` and `param`, Google `reason`.
    words: Vec<String>,
    retry_after: Option<Duration>,
}

/// All providers put an object, or a text, under `error`.
#[derive(Deserialize)]
struct Said {
    error: Value,
}

impl Refusal {
    pub fn read(
        status: u16,
        retry_after: Option<Duration>,
        body: &[u8],
        key: Option<&str>,
    ) -> Self {
        let mut refusal = Self { status, message: String::new(), words: Vec::new(), retry_after };
        match serde_json::from_slice::<Said>(body) {
            Ok(Said { error: Value::String(message) }) => refusal.message = message,
            Ok(Said { error }) => refusal.understand(&error),
            Err(_) => refusal.message = String::from_utf8_lossy(body).into_owned(),
        }
        if let Some(key) = key {
            refusal.message = refusal.message.replace(key, "…");
        }
        refusal.message = match told(&refusal.message) {
            empty if empty.is_empty() => "it does not say why".to_owned(),
            message => message,
        };
        refusal
    }

    fn understand(&mut self, error: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.message = text(&error["message"]).unwrap_or_default();
        self.words.extend([&error["code"], &error["param"]].into_iter().filter_map(text));
        for detail in error["details"].as_array().into_iter().flatten() {
            self.words.extend(text(&detail["reason"]));
            // Google says here what others say in a header.
            let delay = detail["retryDelay"].as_str().and_then(|delay| delay.strip_suffix('s'));
            let delay = delay.and_then(|seconds| seconds.parse().ok());
            let delay = delay.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            self.retry_after = self.retry_after.or(delay);
        }
    }

    /// Whether it is about a part of the request that has one of these names.
    pub fn is_about(&self, names: &[&str]) -> bool {
        let told = |name: &&str| {
            self.message.contains(*name) || self.words.iter().any(|word| word.contains(*name))
        };
        matches!(self.status, 400 | 422) && names.iter().any(told)
    }

    /// What the caller is told; `place` is where the key is.
    pub fn into_error(self, place: Option<String>) -> Error {
        let is = |word: &str| self.words.iter().any(|own| own == word);
        let (status, said) = (self.status, &self.message);
        let refused = |message: String| Error::Refused { status, message };
        match status {
            300..400 => Error::Invalid(format!(
                "the provider redirects ({status}), which is not followed: set [models] base_url \
                 to the last address"
            )),
            400 if is("API_KEY_INVALID") => refused(key_refused(place, status, said)),
            401 => refused(key_refused(place, status, said)),
            // Waiting does not help who has used up what they paid for.
            402 => refused(format!("the provider wants to be paid ({status}): {said}")),
            429 if is("insufficient_quota") => {
                refused(format!("the provider wants to be paid ({status}): {said}"))
            }
            403 => {
                refused(format!("the provider does not allow this to the key ({status}): {said}"))
            }
            404 => Error::Invalid(format!(
                "the provider knows no such model or address ({status}): check [models] model and \
                 base_url: {said}"
            )),
            408 | 429 | 500 | 502..=504 | 520..=529 => Error::Overloaded {
                attempts: 1,
                last: format!("{status}: {said}"),
                retry_after: self.retry_after,
            },
            _ => Error::Invalid(format!("the provider refuses the request ({status}): {said}")),
        }
    }
}

fn key_refused(place: Option<String>, status: u16, said: &str) -> String {
    match place {
        Some(place) => format!(
            "the provider refuses the API key ({status}): set [models] api_key, now {place}: {said}"
        ),
        None => format!("the provider wants an API key ({status}): set [models] api_key: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use keyward_engine::{Code, Coded};

    use super::*;

    fn read(status: u16, body: &str) -> Refusal {
        Refusal::read(status, None, body.as_bytes(), Some("k3y"))
    }

    #[test]
    fn the_message_is_found_wherever_providers_put_it_and_never_has_the_key() {
        for body in [
            r#"{"error":{"message":"bad k3y","type":"x"}}"#,
            r#"{"type":"error","error":{"type":"x","message":"bad k3y"}}"#,
            r#"{"error":"bad k3y"}"#,
            "bad\nk3y",
        ] {
            assert_eq!(read(401, body).message, "bad …");
        }
        for body in ["", "{\"error\":{}}", "\n"] {
            assert_eq!(read(500, body).message, "it does not say why");
        }
    }

    #[test]
    fn google_says_in_the_body_when_to_ask_again_and_that_a_key_is_wrong() {
        let body = r#"{"error":{"code":429,"message":"slow","details":[{"retryDelay":"34.5s"}]}}"#;
        assert_eq!(read(429, body).retry_after, Some(Duration::from_millis(34_500)));
        for odd in ["-1s", "s", "1e400s", "NaNs", "3"] {
            assert_eq!(read(429, &body.replace("34.5s", odd)).retry_after, None);
        }
        let body = r#"{"error":{"message":"not valid","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        let error = read(400, body).into_error(Some("the key in F".to_owned()));
        assert!(matches!(error, Error::Refused { status: 400, .. }), "{error}");
        assert!(error.to_string().contains("set [models] api_key, now the key in F"), "{error}");
    }

    #[test]
    fn only_passing_troubles_are_worth_another_try() {
        for status in [408, 429, 500, 502, 503, 504, 529] {
            assert!(read(status, "").into_error(None).retryable(), "{status}");
        }
        for status in [302, 400, 401, 402, 403, 404, 413, 422, 501] {
            assert!(!read(status, "").into_error(None).retryable(), "{status}");
        }
        let quota = r#"{"error":{"message":"m","code":"insufficient_quota"}}"#;
        assert_eq!(read(429, quota).into_error(None).code(), Code::ModelRefused);
    }
}
