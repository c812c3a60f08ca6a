//! Requests to DynamoDB: how they are sent, when again, and what a lost answer means.

use std::sync::Arc;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::ProvideCredentials;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use jiff::SignedDuration;
use keyward_engine::{Clock, Error, ErrorKind, Result};
use tokio::time::{Instant, sleep};

use crate::error::{Cause, Failure, Refusal, innermost, no_credentials};
use crate::options::RESENT_MAX;
use crate::{Options, credentials, version};

/// The first pause before a request is sent again; twice as long each time.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A table, and connections to it. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) sdk: aws_sdk_dynamodb::Client,
    /// The same connections, for the table's stream.
    pub(crate) streams: aws_sdk_dynamodbstreams::Client,
    pub(crate) options: Arc<Options>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What became of a transaction.
pub(crate) enum Sent {
    Applied,
    /// A condition did not hold.
    Canceled {
        /// What was found, item by item.
        reasons: Vec<CancellationReason>,
        /// Whether an earlier attempt of it may still arrive. It would be judged anew.
        doubtful: bool,
    },
}

impl Client {
    /// Finds credentials, and sets up connections. Nothing is sent to DynamoDB yet.
    pub(crate) async fn new(options: Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let provider = credentials::provider(&options, &http);
        provider.provide_credentials().await.map_err(|error| no_credentials(innermost(&error)))?;
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(options.connect_timeout)
            .operation_attempt_timeout(options.answer_timeout);
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .region(Region::new(options.region.clone()))
            .credentials_provider(provider)
            // What may be sent again is decided here.
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .timeout_config(timeouts.build());
        if let Some(endpoint) = &options.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        let config = loader.load().await;
        let sdk = aws_sdk_dynamodb::Client::new(&config);
        let streams = aws_sdk_dynamodbstreams::Client::new(&config);
        Ok(Self { sdk, streams, options: Arc::new(options), clock })
    }

    /// The time by the process's clock, as whole milliseconds: as fine as ends of entries are stored.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().as_microsecond().div_euclid(1_000)
    }

    /// Sends a request that changes nothing, or that may be done twice, until it is answered or the time is up.
    pub(crate) async fn send<T, E, F>(
        &self,
        doing: &str,
        request: impl Fn() -> F,
    ) -> Result<T, Failure>
    where
        E: Refusal,
        F: Future<Output = Result<T, SdkError<E>>>,
    {
        let mut pace = Pace::new(self.options.retry_budget);
        loop {
            let failure = match request().await {
                Ok(answer) => return Ok(answer),
                Err(error) => Failure::of(doing, &error),
            };
            let is_final = matches!(failure.cause, Cause::Refused | Cause::Checked(_));
            if is_final || !pace.again().await {
                return Err(failure);
            }
        }
    }

    /// Sends a transaction. It is sent again under the same token, by which DynamoDB recognises it, until its
    /// outcome is known or the time is up.
    pub(crate) async fn transact(&self, items: Vec<TransactWriteItem>) -> Result<Sent> {
        let token = version::unused()?;
        let mut pace = Pace::new(self.options.retry_budget);
        let began = self.clock.now();
        let mut doubtful = false;
        loop {
            let request = self.sdk.transact_write_items();
            let request =
                request.client_request_token(&token).set_transact_items(Some(items.clone()));
            let failure = match request.send().await {
                Ok(_) => return Ok(Sent::Applied),
                Err(error) => Failure::of("cannot commit", &error),
            };
            match failure.cause {
                Cause::Checked(reasons) => return Ok(Sent::Canceled { reasons, doubtful }),
                Cause::Refused => return Err(settled(failure.error, doubtful)),
                Cause::Unanswered => doubtful = true,
                Cause::Postponed => {}
            }
            // The pace stands still while a machine sleeps, and DynamoDB forgets tokens meanwhile.
            let slept = self.clock.now().duration_since(began);
            let is_recognised = slept < SignedDuration::try_from(RESENT_MAX).unwrap_or_default();
            if (doubtful && !is_recognised) || !pace.again().await {
                return Err(settled(failure.error, doubtful));
            }
        }
    }
}

/// The error of a transaction, whatever came last: an attempt before it may have been carried out.
fn settled(error: Error, doubtful: bool) -> Error {
    if doubtful { unknown(error.message()) } else { error }
}

pub(crate) fn unknown(message: &str) -> Error {
    Error::new(ErrorKind::OutcomeUnknown, message)
}

/// When a request is sent again.
pub(crate) struct Pace {
    started: Instant,
    budget: Duration,
    pause: Duration,
}

impl Pace {
    pub(crate) fn new(budget: Duration) -> Self {
        Self { started: Instant::now(), budget, pause: PAUSE_FIRST }
    }

    /// Waits, unless the time is up: then false.
    pub(crate) async fn again(&mut self) -> bool {
        // At another moment than others that wait for the same.
        let wait = self.pause.mul_f64(0.5 + fastrand::f64());
        if self.started.elapsed().saturating_add(wait) >= self.budget {
            return false;
        }
        sleep(wait).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}
