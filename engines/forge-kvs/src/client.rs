//! Requests to the storage API.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::header::AUTHORIZATION;
use keyward_http::{Effect, Method, Request, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::error::{Refusal, refused, unreadable};
use crate::wire::{BatchGet, EntityQuery, Failure, Get, GetItem, Listed, Query, Row, Transaction};
use crate::{Options, Token, TokenSource};

/// The first pause before what Forge refused for a moment is sent again; twice as long each time.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The storage API of one installation. Clones share connections.
#[derive(Clone)]
pub(crate) struct Client {
    http: keyward_http::Client,
    options: Options,
    tokens: Arc<dyn TokenSource>,
}

impl Client {
    pub fn new(options: Options, tokens: Arc<dyn TokenSource>) -> Result<Self> {
        let is_encrypted = options.api.scheme() == "https";
        let http = keyward_http::Client::new("Forge", options.http, is_encrypted)?;
        Ok(Self { http, options, tokens })
    }

    /// The same with other tokens.
    pub fn with_tokens(&self, tokens: Arc<dyn TokenSource>) -> Self {
        Self { tokens, ..self.clone() }
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The rows of some names: at most 25.
    pub async fn rows(&self, names: &[&str], entity: Option<&str>) -> Result<HashMap<String, Row>> {
        let mut rows = HashMap::with_capacity(names.len());
        let mut left = names.to_vec();
        let mut pauses = Pauses::of(&self.options);
        loop {
            let items: Vec<GetItem<'_>> =
                left.iter().map(|name| GetItem::new(name, entity)).collect();
            let batch: BatchGet = self.read("batch/get", &items).await?;
            rows.extend(batch.successful_keys.into_iter().map(|row| (row.key.clone(), row)));
            let failed = batch.failed_keys.into_iter().filter(|failure| !failure.error.is_absent());
            let failed: Vec<Failure> = failed.collect();
            let Some(failure) = failed.first() else { return Ok(rows) };
            // The others could be read, so the request as a whole is right.
            let is_temporary = failed.iter().all(|failure| failure.error.is_temporary());
            if !is_temporary || !pauses.pause().await {
                let message = format!("Forge could not read {}", failure.key);
                let cause = refused(StatusCode::BAD_REQUEST, &failure.error);
                return Err(Error::new(ErrorKind::Unavailable, message).caused_by(cause));
            }
            left.retain(|name| failed.iter().any(|failure| failure.key == *name));
        }
    }

    /// The entity of a name. Forge promises that it is the current one, which it does not of batches.
    pub async fn entity(&self, name: &str, entity: &str) -> Result<Option<Row>> {
        let path = "entity/get";
        let request = body(path, &Get::new(name, Some(entity)))?;
        let mut pauses = Pauses::of(&self.options);
        loop {
            let response = self.post(path, request.clone(), Effect::Reads, Duration::MAX).await?;
            if response.status.is_success() {
                let row = serde_json::from_slice(&response.body);
                return row.map(Some).map_err(|error| unreadable(path, error));
            }
            let refusal = Refusal::of(&response);
            if refusal.is_absent() {
                return Ok(None);
            }
            if !refusal.is_temporary() || !pauses.pause().await {
                return Err(refused(response.status, &refusal));
            }
        }
    }

    /// One page of the names that begin with a prefix.
    pub async fn list(&self, prefix: &str, limit: usize, after: Option<&str>) -> Result<Listed> {
        match &self.options.entity {
            None => self.read("query", &Query::new(prefix, limit, after)).await,
            Some(entity) => {
                let query = EntityQuery::new(entity, prefix, limit, after);
                self.read("entity/query", &query).await
            }
        }
    }

    /// Writes and deletes rows, all or none. Carried out twice, it changes nothing more, so it is sent again after a
    /// lost answer.
    pub async fn transact(&self, transaction: &Transaction<'_>) -> Result<()> {
        let mut pauses = Pauses::of(&self.options);
        let mut resent = false;
        loop {
            let Sent { refusal, resent: again } = self
                .write("transaction", transaction)
                .await
                .map_err(|error| if resent { unclear(error) } else { error })?;
            resent |= again;
            let Some((status, refusal)) = refusal else { return Ok(()) };
            if !refusal.is_temporary() || !pauses.pause().await {
                let error = refused(status, &refusal);
                // An attempt before this one may have been carried out.
                return Err(if resent { unclear(error) } else { error });
            }
        }
    }

    /// Sends one write, and again after a lost answer.
    pub async fn write(&self, path: &str, request: &impl Serialize) -> Result<Sent> {
        self.write_within(path, request, Duration::MAX).await
    }

    /// Sends one write once, for callers that decide themselves what to send after a lost answer or a 429.
    pub async fn write_once(&self, path: &str, request: &impl Serialize) -> Result<Sent> {
        self.write_within(path, request, Duration::ZERO).await
    }

    async fn write_within(
        &self,
        path: &str,
        request: &impl Serialize,
        within: Duration,
    ) -> Result<Sent> {
        let response = self.post(path, body(path, request)?, Effect::WritesOnce, within).await?;
        let is_done = response.status.is_success();
        let refusal = (!is_done).then(|| (response.status, Refusal::of(&response)));
        Ok(Sent { refusal, resent: response.resent })
    }

    pub fn pauses(&self) -> Pauses {
        Pauses::of(&self.options)
    }

    async fn read<T: DeserializeOwned>(&self, path: &str, request: &impl Serialize) -> Result<T> {
        let response = self.post(path, body(path, request)?, Effect::Reads, Duration::MAX).await?;
        if !response.status.is_success() {
            return Err(refused(response.status, &Refusal::of(&response)));
        }
        serde_json::from_slice(&response.body).map_err(|error| unreadable(path, error))
    }

    /// Sends a request; once more with another token, if there is one, when the first was refused.
    /// No attempt begins later than `within` after the first.
    async fn post(
        &self,
        path: &str,
        body: Vec<u8>,
        effect: Effect,
        within: Duration,
    ) -> Result<Response> {
        let token = self.tokens.token(None).await?;
        let request = self.request(path, body, effect)?.within(within);
        let response = self.send(request.clone(), &token).await?;
        if response.status != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let other = self.tokens.token(Some(&token)).await?;
        if other == token {
            return Ok(response);
        }
        let resent = response.resent;
        let response = self.send(request, &other).await;
        let response = response.map_err(|error| if resent { unclear(error) } else { error })?;
        Ok(Response { resent: resent || response.resent, ..response })
    }

    fn request(&self, path: &str, body: Vec<u8>, effect: Effect) -> Result<Request> {
        Ok(Request::new(Method::POST, self.url(path)?, effect).json(body))
    }

    async fn send(&self, request: Request, token: &Token) -> Result<Response> {
        self.http.send(request.header(AUTHORIZATION, token.header())).await
    }

    fn url(&self, path: &str) -> Result<Url> {
        let base = self.options.api.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}/v1/{path}")).map_err(|error| {
            let message = format!("{base}/v1/{path} is no URL: {error}");
            Error::new(ErrorKind::Internal, message)
        })
    }
}

/// How a write ended that was answered.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Why it was not carried out, if it was not.
    pub refusal: Option<(StatusCode, Refusal)>,
    /// Whether an earlier attempt may have been carried out: its answer was lost.
    pub resent: bool,
}

/// The pauses between the attempts at one request.
pub(crate) struct Pauses {
    started: Instant,
    budget: Duration,
    next: Duration,
}

impl Pauses {
    fn of(options: &Options) -> Self {
        let budget = options.http.retry_budget;
        Self { started: Instant::now(), budget, next: PAUSE_FIRST }
    }

    /// Waits, unless the time for attempts is used up.
    pub async fn pause(&mut self) -> bool {
        if self.started.elapsed().saturating_add(self.next) >= self.budget {
            return false;
        }
        sleep(self.next.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        self.next = (self.next * 2).min(PAUSE_MAX);
        true
    }
}

fn body(path: &str, request: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(request).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("a request to {path} cannot be written"))
            .caused_by(error)
    })
}

/// What is known after an attempt whose answer was lost.
pub(crate) fn unclear(error: Error) -> Error {
    match error.kind() {
        ErrorKind::OutcomeUnknown => error,
        _ => Error::new(ErrorKind::OutcomeUnknown, error.message()),
    }
}
