//! One request and its answer, whoever the provider is.

use std::error::Error as _;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{HeaderValue, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::time::timeout;

use crate::anthropic::Anthropic;
use crate::error::told;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::openai::OpenAi;
use crate::provider::Asked;
use crate::refusal::Refusal;
use crate::retry_after::retry_after;
use crate::{Answer, Error, Provider, ProviderKind, Request, Result, Secret, Settings, tls};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// So much is read of an answer that is no success.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// How one provider writes requests and answers.
pub(crate) trait Dialect: Send + Sync + 'static {
    const NAME: &'static str;
    const BASE_URL: &'static str;

    /// What comes after the base URL.
    fn path(model: &str) -> Vec<String>;

    /// What is sent besides the body. All of it is taken for secret.
    fn headers(key: Option<&str>) -> Vec<(&'static str, String)>;

    /// The request.
    fn body(call: &Call<'_>) -> Value;

    /// Reads an answer, or says what is wrong with it.
    fn answer(body: &[u8]) -> Result<Answer, String>;
}

/// A request, and how it is put.
pub(crate) struct Call<'a> {
    pub model: &'a str,
    pub request: &'a Request,
    pub context_tokens: Option<u32>,
    pub form: Form,
}

impl Call<'_> {
    /// The most tokens of the answer.
    pub fn output_tokens_max(&self) -> u32 {
        self.request.output_tokens_max.unwrap_or(crate::Options::OUTPUT_TOKENS_MAX)
    }

    /// The schema, as far as it is sent in the provider's own form.
    pub fn schema(&self) -> Option<&Value> {
        self.request.schema.as_ref().filter(|_| self.form.schema)
    }
}

/// What is left out of a request because the model does not take it.
///
/// Models that think refuse a temperature, servers that speak like OpenAI know the older name of a
/// limit, and every provider takes other parts of JSON Schema; which is which changes by the month, so
/// no list of models is kept here. What a model refuses by name is left out, and asked again at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub temperature: bool,
    /// Besides its being in the request's text.
    pub schema: bool,
    pub newer_names: bool,
}

impl Form {
    /// The next simpler form, if that is what the provider wants.
    fn without_what(self, refusal: &Refusal) -> Option<Self> {
        if self.temperature && refusal.is_about(&["temperature"]) {
            return Some(Self { temperature: false, ..self });
        }
        if self.newer_names && refusal.is_about(&["max_completion_tokens"]) {
            return Some(Self { newer_names: false, ..self });
        }
        if self.schema && refusal.is_about(&["schema", "Schema", "format", "output_config"]) {
            return Some(Self { schema: false, ..self });
        }
        None
    }
}

/// A provider over HTTP.
pub(crate) struct Wire<D> {
    client: Client,
    url: Url,
    model: String,
    key: Option<Secret>,
    connect_timeout: Duration,
    idle_timeout: Duration,
    context_tokens: Option<u32>,
    takes_temperature: AtomicBool,
    takes_newer_names: AtomicBool,
    dialect: PhantomData<D>,
}

/// The provider that settings name.
pub(crate) fn open(settings: &Settings) -> Result<Box<dyn Provider>> {
    settings.check()?;
    Ok(match settings.provider {
        Some(ProviderKind::OpenAi) => Box::new(Wire::<OpenAi>::open(settings)?),
        Some(ProviderKind::Anthropic) => Box::new(Wire::<Anthropic>::open(settings)?),
        Some(ProviderKind::Gemini) => Box::new(Wire::<Gemini>::open(settings)?),
        Some(ProviderKind::Ollama) => Box::new(Wire::<Ollama>::open(settings)?),
        None => return Err(Error::unset("provider", "whose models are asked")),
    })
}

impl<D: Dialect> Wire<D> {
    fn open(settings: &Settings) -> Result<Self> {
        let base = settings.base_url.as_deref().unwrap_or(D::BASE_URL);
        let url = address(base, D::path(&settings.model))?;
        let connect_timeout = settings.timeout.min(CONNECT_TIME_MAX);
        tls::provide();
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .connect_timeout(connect_timeout);
        if url.scheme() == "http" {
            let none = tls::none().map_err(|error| Error::unreachable(error.to_string()))?;
            builder = builder.tls_backend_preconfigured(none);
        }
        let client = builder.build().map_err(|error| Error::unreachable(causes(error)))?;
        Ok(Self {
            client,
            url,
            model: settings.model.clone(),
            key: settings.api_key.clone(),
            connect_timeout,
            idle_timeout: settings.idle_timeout,
            context_tokens: settings.context_tokens,
            takes_temperature: AtomicBool::new(true),
            takes_newer_names: AtomicBool::new(true),
            dialect: PhantomData,
        })
    }

    async fn ask_in_some_form(&self, request: &Request) -> Result<Answer> {
        let key = self.key.as_ref().map(Secret::read).transpose()?;
        let mut form = Form {
            temperature: self.takes_temperature.load(Ordering::Relaxed),
            schema: request.schema.is_some(),
            newer_names: self.takes_newer_names.load(Ordering::Relaxed),
        };
        // Each round leaves something out, so there are few.
        loop {
            let call =
                Call { model: &self.model, request, context_tokens: self.context_tokens, form };
            let refusal = match self.send(&D::body(&call), key.as_deref()).await? {
                Ok(body) => {
                    self.takes_temperature.store(form.temperature, Ordering::Relaxed);
                    self.takes_newer_names.store(form.newer_names, Ordering::Relaxed);
                    return D::answer(&body).map_err(|why| {
                        // A wire that makes no sense may say anything, even what it was sent.
                        let key = key.as_deref().unwrap_or("\0");
                        Error::malformed(told(&why.replace(key, "…")))
                    });
                }
                Err(refusal) => refusal,
            };
            form = match form.without_what(&refusal) {
                Some(simpler) => simpler,
                None => return Err(refusal.into_error(self.key.as_ref().map(Secret::place))),
            };
        }
    }

    async fn send(&self, body: &Value, key: Option<&str>) -> Result<Result<Vec<u8>, Refusal>> {
        let agent = concat!("keyward/", env!("CARGO_PKG_VERSION"));
        let mut post = self.client.post(self.url.clone()).header(USER_AGENT, agent).json(body);
        for (name, value) in D::headers(key) {
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| Error::unset("api_key", "a key that can be sent"))?;
            value.set_sensitive(true);
            post = post.header(name, value);
        }
        let answer = post.send().await.map_err(|error| match error.is_timeout() {
            true => Error::TimedOut { attempts: 1, limit: self.connect_timeout },
            false => Error::unreachable(causes(error)),
        })?;
        let status = answer.status();
        if status.is_success() {
            return self.read(answer).await.map(Ok);
        }
        let retry_after = retry_after(answer.headers());
        let body = self.read_some(answer).await;
        Ok(Err(Refusal::read(status.as_u16(), retry_after, &body, key)))
    }

    async fn read(&self, mut answer: Response) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let piece = timeout(self.idle_timeout, answer.chunk()).await;
            let piece =
                piece.map_err(|_| Error::TimedOut { attempts: 1, limit: self.idle_timeout })?;
            let Some(piece) = piece.map_err(|error| Error::unreachable(causes(error)))? else {
                return Ok(bytes);
            };
            if piece.len() > ANSWER_BYTES_MAX - bytes.len() {
                return Err(Error::TooLarge { bytes_max: ANSWER_BYTES_MAX });
            }
            bytes.extend_from_slice(&piece);
        }
    }

    /// The beginning of an answer, as far as it comes: its status has said the most.
    async fn read_some(&self, mut answer: Response) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Ok(Ok(Some(piece))) = timeout(self.idle_timeout, answer.chunk()).await {
            let room = REFUSAL_BYTES_MAX - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() >= room {
                break;
            }
        }
        bytes
    }
}

impl<D: Dialect> Provider for Wire<D> {
    fn name(&self) -> &str {
        D::NAME
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Asked<'a> {
        Box::pin(self.ask_in_some_form(request))
    }
}

fn address(base: &str, path: Vec<String>) -> Result<Url> {
    let refused = |reason: &str| Error::unset("base_url", reason);
    let mut url = Url::parse(base).map_err(|_| refused("an address such as https://host/v1"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("an address with http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("an address without user and password; the key is in api_key"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("an address without ? and #"));
    }
    let segments = url.path_segments_mut();
    segments.map_err(|()| refused("an address with a path"))?.pop_if_empty().extend(path);
    Ok(url)
}

/// What went wrong, with all that led to it, and without the address.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    told(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_joined_and_those_with_secrets_refused() {
        let path = || vec!["models".to_owned(), "a/b:go".to_owned()];
        for base in ["http://host:1/v1", "http://host:1/v1/"] {
            assert_eq!(address(base, path()).unwrap().as_str(), "http://host:1/v1/models/a%2Fb:go");
        }
        for base in ["ftp://h/", "h", "https://me@h/", "https://h/?key=1", "https://h/#x", "data:x"]
        {
            assert!(address(base, path()).is_err(), "{base}");
        }
    }
}
