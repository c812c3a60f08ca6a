use std::path::Path;
use std::time::Duration;

use jiff::fmt::serde::unsigned_duration::friendly::compact::required as time;
use serde::{Deserialize, Serialize};

use crate::{Error, Options, Price, Result, Secret};

/// Which model is asked, where, and how much.
///
/// Made by serde, from `[models]` of a configuration. Names that are not known are refused, and
/// [`Settings::check`] finds what serde cannot. The default says no provider, so nothing can be asked.
///
/// ```
/// use keyward_models::{ProviderKind, Secret, Settings};
///
/// let settings: Settings = serde_json::from_str(
///     r#"{ "provider": "anthropic", "model": "claude-opus-4-5", "api_key": { "env": "MODEL_KEY" } }"#,
/// )?;
/// assert_eq!(settings.provider, Some(ProviderKind::Anthropic));
/// assert_eq!((settings.concurrency_max, settings.output_tokens_max), (4, 8192));
/// assert!(settings.check().is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Whose wire is spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderKind>,
    /// The model, as the provider names it.
    pub model: String,
    /// Where the provider is, up to and with the version in the path; by default where it says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The key. Ollama, and what is at a `base_url` of its own, may do without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// The longest time that one request takes, with all of its answer.
    #[serde(with = "time")]
    pub timeout: Duration,
    /// The longest time between two pieces of an answer.
    #[serde(with = "time")]
    pub idle_timeout: Duration,
    /// The most requests at once.
    pub concurrency_max: usize,
    /// How often something is asked before it is given up.
    pub attempts_max: u32,
    /// The pause after the first failure, about; later ones are longer.
    #[serde(with = "time")]
    pub pause_min: Duration,
    /// The most tokens of an answer, where a request does not say.
    pub output_tokens_max: u32,
    /// The model's window, for Ollama, which by default has a small one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// What tokens cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// Whose wire is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI's chat completions, and what speaks like them.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's chat.
    Ollama,
}

impl Default for Settings {
    fn default() -> Self {
        let options = Options::default();
        Self {
            provider: None,
            model: String::new(),
            base_url: None,
            api_key: None,
            timeout: options.timeout,
            idle_timeout: Duration::from_secs(30),
            concurrency_max: options.concurrency_max,
            attempts_max: options.attempts_max,
            pause_min: options.pause_min,
            output_tokens_max: options.output_tokens_max,
            context_tokens: None,
            price: None,
        }
    }
}

const MODEL_BYTES_MAX: usize = 200;
const TIME_MAX: Duration = Duration::from_secs(3_600);
const TOKENS_MAX: u32 = 10_000_000;
const CONCURRENCY_MAX: usize = 256;
const ATTEMPTS_MAX: u32 = 20;

impl Settings {
    /// The same, with paths that are relative taken from a folder: that of the configuration.
    #[must_use]
    pub fn beside(mut self, folder: &Path) -> Self {
        if let Some(secret) = &mut self.api_key {
            secret.beside(folder);
        }
        self
    }

    /// Refuses what cannot be asked with, naming the first setting that is wrong. The key is not read.
    pub fn check(&self) -> Result<()> {
        let Some(provider) = self.provider else {
            return Err(Error::unset("provider", "one of openai, anthropic, gemini and ollama"));
        };
        let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
        if !is_word(&self.model) || self.model.len() > MODEL_BYTES_MAX {
            return Err(Error::unset("model", "the model's name, as the provider writes it"));
        }
        if self.api_key.is_none() && !provider.is_open(self.base_url.as_deref()) {
            return Err(Error::unset("api_key", "{ env = \"NAME\" } or { file = \"path\" }"));
        }
        let times = [
            ("timeout", self.timeout),
            ("idle_timeout", self.idle_timeout),
            ("pause_min", self.pause_min),
        ];
        for (setting, time) in times {
            if time < Duration::from_millis(1) || time > TIME_MAX {
                return Err(Error::unset(setting, "1 ms to 1 hour, such as \"60s\""));
            }
        }
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency_max) {
            return Err(Error::unset("concurrency_max", format!("1 to {CONCURRENCY_MAX}")));
        }
        if !(1..=ATTEMPTS_MAX).contains(&self.attempts_max) {
            return Err(Error::unset("attempts_max", format!("1 to {ATTEMPTS_MAX}")));
        }
        let tokens = [
            ("output_tokens_max", Some(self.output_tokens_max)),
            ("context_tokens", self.context_tokens),
        ];
        for (setting, tokens) in tokens {
            if tokens.is_some_and(|tokens| !(1..=TOKENS_MAX).contains(&tokens)) {
                return Err(Error::unset(setting, format!("1 to {TOKENS_MAX}")));
            }
        }
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        let priced = self.price.as_ref();
        if priced.is_some_and(|p| !is_price(p.input_per_million) || !is_price(p.output_per_million))
        {
            return Err(Error::unset("price", "what a million tokens cost, from 0"));
        }
        Ok(())
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            timeout: self.timeout,
            concurrency_max: self.concurrency_max,
            attempts_max: self.attempts_max,
            output_tokens_max: self.output_tokens_max,
            pause_min: self.pause_min,
            price: self.price.clone(),
        }
    }
}

impl ProviderKind {
    /// Whether a key can be left out.
    fn is_open(self, base_url: Option<&str>) -> bool {
        match self {
            Self::Ollama => true,
            Self::OpenAi => base_url.is_some(),
            Self::Anthropic | Self::Gemini => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, serde_json::Error> {
        serde_json::from_str(text)
    }

    fn refused(change: impl FnOnce(&mut Settings)) -> &'static str {
        let mut settings = parse(r#"{"provider":"ollama","model":"m"}"#).unwrap();
        settings.check().unwrap();
        change(&mut settings);
        match settings.check() {
            Err(Error::Unset { setting, .. }) => setting,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_left_out_is_as_documented() {
        let settings = parse("{}").unwrap();
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.idle_timeout, Duration::from_secs(30));
        assert_eq!((settings.concurrency_max, settings.attempts_max), (4, 5));
        let told = settings.check().unwrap_err().to_string();
        assert_eq!(told, "set [models] provider: one of openai, anthropic, gemini and ollama");
    }

    #[test]
    fn settings_are_written_as_they_are_read() {
        let text = r#"{"provider":"openai","model":"m","base_url":"http://localhost:1/v1",
            "api_key":{"file":"key"},"timeout":"1m 30s","idle_timeout":"500ms","context_tokens":4096,
            "price":{"input_per_million":1.5,"output_per_million":2}}"#;
        let settings = parse(text).unwrap();
        assert_eq!(settings.timeout, Duration::from_secs(90));
        let written = serde_json::to_string(&settings).unwrap();
        assert_eq!(parse(&written).unwrap(), settings, "{written}");
        let beside = settings.beside(Path::new("/etc/keyward"));
        assert_eq!(beside.api_key, Some(Secret::File("/etc/keyward/key".into())));
    }

    #[test]
    fn unknown_names_and_keys_in_plain_text_are_refused() {
        assert!(parse(r#"{"modle":"m"}"#).is_err());
        assert!(parse(r#"{"provider":"other"}"#).is_err());
        assert!(parse(r#"{"api_key":"sk-1"}"#).is_err());
        assert!(parse(r#"{"timeout":"soon"}"#).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        assert_eq!(refused(|s| s.model = "two words".to_owned()), "model");
        assert_eq!(refused(|s| s.provider = Some(ProviderKind::OpenAi)), "api_key");
        assert_eq!(refused(|s| s.timeout = Duration::ZERO), "timeout");
        assert_eq!(refused(|s| s.idle_timeout = Duration::MAX), "idle_timeout");
        assert_eq!(refused(|s| s.pause_min = Duration::ZERO), "pause_min");
        assert_eq!(refused(|s| s.concurrency_max = 0), "concurrency_max");
        assert_eq!(refused(|s| s.attempts_max = 21), "attempts_max");
        assert_eq!(refused(|s| s.output_tokens_max = 0), "output_tokens_max");
        assert_eq!(refused(|s| s.context_tokens = Some(0)), "context_tokens");
        let price =
            Price { input_per_million: -1.0, output_per_million: 0.0, currency: String::new() };
        assert_eq!(refused(|s| s.price = Some(price)), "price");
    }

    #[test]
    fn a_server_of_ones_own_needs_no_key() {
        let text = r#"{"provider":"openai","model":"m","base_url":"http://localhost:8000/v1"}"#;
        parse(text).unwrap().check().unwrap();
    }
}
