use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use keyward_engine::Coded;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::Backoff;
use crate::error::told;
use crate::json::{self, Expected};
use crate::{
    Answer, Error, Finish, Price, Provider, Receipt, Request, Result, Settings, Usage, wire,
};

/// How much is asked, and how patiently.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The longest time that one attempt takes, with all of its answer.
    pub timeout: Duration,
    /// The most attempts at once; at least one, at most 256.
    pub concurrency_max: usize,
    /// How often something is asked before it is given up; at least once.
    pub attempts_max: u32,
    /// The most tokens of an answer, where a request does not say.
    pub output_tokens_max: u32,
    /// The pause after the first failure, about; later ones are longer.
    pub pause_min: Duration,
    /// What tokens cost.
    pub price: Option<Price>,
}

impl Options {
    /// The most tokens of an answer, by default.
    pub const OUTPUT_TOKENS_MAX: u32 = 8192;
    const CONCURRENCY_MAX: usize = 256;
}

impl Default for Options {
    /// Five minutes, four at once, five attempts, 8192 tokens, half a second, no price.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            concurrency_max: 4,
            attempts_max: 5,
            output_tokens_max: Self::OUTPUT_TOKENS_MAX,
            pause_min: Duration::from_millis(500),
            price: None,
        }
    }
}

/// A model that is asked, whoever provides it.
///
/// Asks are made at temperature 0, as long as the model takes one. An attempt that fails for the moment
/// is made again, after a pause during which others have the turn. Dropping the future of an ask ends
/// it; nothing goes on behind it.
pub struct Models {
    provider: Box<dyn Provider>,
    options: Options,
    turns: Semaphore,
    backoff: Backoff,
    spent: Mutex<Usage>,
}

/// What one ask has taken so far.
struct Tally {
    began: Instant,
    attempts: u32,
    usage: Usage,
}

impl Models {
    /// Asks this provider. The seed is for the pauses, which differ by chance.
    pub fn new(provider: impl Provider + 'static, options: Options, seed: u64) -> Self {
        Self::over(Box::new(provider), options, seed)
    }

    /// Asks the provider that settings name. Nothing is sent, and the key is not read, before
    /// something is asked. Settings that [`Settings::check`] refuses are refused.
    pub fn open(settings: &Settings, seed: u64) -> Result<Self> {
        Ok(Self::over(wire::open(settings)?, settings.options(), seed))
    }

    fn over(provider: Box<dyn Provider>, options: Options, seed: u64) -> Self {
        let turns = Semaphore::new(options.concurrency_max.clamp(1, Options::CONCURRENCY_MAX));
        let backoff = Backoff::new(options.pause_min, seed);
        Self { provider, options, turns, backoff, spent: Mutex::default() }
    }

    /// The provider, in a word.
    pub fn provider(&self) -> &str {
        self.provider.name()
    }

    /// The model, as settings name it.
    pub fn model(&self) -> &str {
        self.provider.model()
    }

    /// The tokens of all answers so far, also of those that could not be used.
    pub fn spent(&self) -> Usage {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a text. One that was cut is [`Error::Truncated`], never a result.
    pub async fn text(&self, request: &Request) -> Result<(String, Receipt)> {
        let mut tally = Tally::begin();
        let answer = self.whole_answer(&self.prepared(request)?, &mut tally).await?;
        let receipt = self.receipt(&tally, answer.model);
        Ok((answer.text, receipt))
    }

    /// Asks for JSON that fits the request's schema, and reads it.
    ///
    /// If the answer is no JSON, does not fit or cannot be read, the model is shown its answer and what
    /// is wrong with it, once; if that does not help, it is [`Error::Malformed`].
    pub async fn json<T: DeserializeOwned>(&self, request: &Request) -> Result<(T, Receipt)> {
        self.checked_json(request, 1, |_| Ok(())).await
    }

    /// The same, with an answer that must also pass a check, which says what is wrong with it. What cannot
    /// be used is shown to the model with what is wrong, at most `retries_max` times.
    pub async fn checked_json<T: DeserializeOwned>(
        &self,
        request: &Request,
        retries_max: u32,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Result<(T, Receipt)> {
        let expected = Expected::new(request.schema.as_ref())?;
        let mut tally = Tally::begin();
        let first = self.prepared(request)?;
        let mut request = first.clone();
        let mut retries = 0;
        loop {
            let answer = self.whole_answer(&request, &mut tally).await?;
            let read = expected.read::<T>(&answer.text);
            let why = match read.and_then(|value| check(&value).map(|()| value)) {
                Ok(value) => return Ok((value, self.receipt(&tally, answer.model))),
                Err(why) => why,
            };
            if retries == retries_max {
                return Err(Error::malformed(why));
            }
            retries += 1;
            request.prompt = json::again(&first.prompt, &answer.text, &why);
        }
    }

    /// The request as it goes to the provider.
    fn prepared(&self, request: &Request) -> Result<Request> {
        if request.system.len().saturating_add(request.prompt.len()) > Request::BYTES_MAX {
            let most = Request::BYTES_MAX;
            return Err(Error::Invalid(format!("a request has at most {most} bytes: split it")));
        }
        let mut prepared = request.clone();
        prepared.output_tokens_max.get_or_insert(self.options.output_tokens_max);
        if let Some(schema) = &request.schema {
            prepared.system = json::with_schema(&request.system, schema);
        }
        Ok(prepared)
    }

    async fn whole_answer(&self, request: &Request, tally: &mut Tally) -> Result<Answer> {
        let answer = self.answer(request, tally).await?;
        tally.usage += answer.usage;
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += answer.usage;
        match answer.finish {
            Finish::Complete => Ok(answer),
            Finish::Truncated => Err(Error::Truncated {
                output_tokens_max: request
                    .output_tokens_max
                    .unwrap_or(self.options.output_tokens_max),
            }),
            Finish::Refused => Err(Error::Declined { why: told(&answer.text) }),
        }
    }

    /// Any answer, however many attempts it takes.
    async fn answer(&self, request: &Request, tally: &mut Tally) -> Result<Answer> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            tally.attempts += 1;
            let error = match self.attempt(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !error.retryable() || attempts >= self.options.attempts_max {
                return Err(error.after(attempts));
            }
            let asked = match error {
                Error::Overloaded { retry_after, .. } => retry_after,
                _ => None,
            };
            sleep(self.backoff.pause(attempts, asked)).await;
        }
    }

    /// One attempt, when it is its turn.
    async fn attempt(&self, request: &Request) -> Result<Answer> {
        let turn = self.turns.acquire().await;
        let _turn = turn.map_err(|_| Error::unreachable("nothing is asked any more"))?;
        let limit = self.options.timeout;
        let answer = timeout(limit, self.provider.ask(request)).await;
        answer.unwrap_or(Err(Error::TimedOut { attempts: 1, limit }))
    }

    fn receipt(&self, tally: &Tally, model: String) -> Receipt {
        let price = self.options.price.as_ref();
        let model = if model.is_empty() { self.model().to_owned() } else { model };
        Receipt {
            provider: self.provider().to_owned(),
            model,
            input_tokens: tally.usage.input_tokens,
            output_tokens: tally.usage.output_tokens,
            cost: price.map(|price| price.of(tally.usage)),
            currency: price.map(|price| price.currency.clone()),
            attempts: tally.attempts,
            duration_ms: u64::try_from(tally.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Tally {
    fn begin() -> Self {
        Self { began: Instant::now(), attempts: 0, usage: Usage::default() }
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models")
            .field("provider", &self.provider())
            .field("model", &self.model())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
