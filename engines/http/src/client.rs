use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use keyward_engine::{Error, ErrorKind, Result};
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use tokio::time::{Instant, sleep, timeout};

use crate::retry_after::retry_after;
use crate::{Effect, Options, Request, Response, tls};

/// The first pause before a request is sent again; twice as long each time.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long an unused connection is kept. Many servers close theirs after five seconds or more, and
/// one that is closed while a write is sent leaves its outcome unknown.
const IDLE_MAX: Duration = Duration::from_secs(4);

/// Sends requests to one database. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    client: reqwest::Client,
    options: Options,
    /// The database's name, for messages.
    database: &'static str,
}

/// Why there is no response.
enum Lost {
    /// No connection: nothing was sent.
    Unreached(String),
    /// The request was under way.
    Unanswered(String),
    /// There is an answer, which is too large to read.
    TooLarge,
}

impl Client {
    /// A client for a database at `http:` or `https:`. Nothing is sent yet.
    pub fn new(database: &'static str, options: Options, is_encrypted: bool) -> Result<Self> {
        let failed = |error: String| {
            let message = format!("cannot set up connections to {database}: {error}");
            Error::new(ErrorKind::Misplaced, message)
        };
        tls::provide();
        let mut builder = reqwest::Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE_MAX)
            .connect_timeout(options.connect_timeout);
        if !is_encrypted {
            let none = tls::none().map_err(|error| failed(error.to_string()))?;
            builder = builder.tls_backend_preconfigured(none);
        }
        let client = builder.build().map_err(|error| failed(causes(&error)))?;
        Ok(Self { client, options, database })
    }

    /// Sends a request.
    ///
    /// It is sent again, within [`Options::retry_budget`], if nothing was sent, if the server asks to
    /// slow down (429), and, unless its effect is [`Effect::Writes`], if the answer was lost or the
    /// server failed (5xx). Every other status comes back as a response. A read whose response is too large is an error
    /// of the kind [`ErrorKind::LimitExceeded`].
    pub async fn send(&self, request: Request) -> Result<Response> {
        let started = Instant::now();
        let mut pause = PAUSE_FIRST;
        let mut resent = false;
        loop {
            let attempt = timeout(self.options.answer_timeout, self.attempt(&request)).await;
            let late = || Err(Lost::Unanswered(format!("after {:?}", self.options.answer_timeout)));
            let (error, wait) = match attempt.unwrap_or_else(|_| late()) {
                Ok(response) => match self.refusal(&request, &response) {
                    None => return Ok(Response { resent, ..response }),
                    Some(error) => (error, retry_after(&response.headers)),
                },
                Err(Lost::Unreached(reason)) => {
                    let message = format!("cannot reach {}: {reason}", self.database);
                    (Error::new(ErrorKind::Unavailable, message), None)
                }
                Err(Lost::TooLarge) => {
                    let bytes_max = self.options.answer_bytes_max;
                    let message =
                        format!("{} answered with more than {bytes_max} bytes", self.database);
                    let kind = match request.effect {
                        Effect::Reads => ErrorKind::LimitExceeded,
                        Effect::WritesOnce | Effect::Writes => ErrorKind::OutcomeUnknown,
                    };
                    return Err(Error::new(kind, message));
                }
                Err(Lost::Unanswered(reason)) => {
                    let message = format!("{} did not answer: {reason}", self.database);
                    (Error::new(unanswered(request.effect), message), None)
                }
            };
            let is_under_way = error.kind() == ErrorKind::OutcomeUnknown;
            resent |= is_under_way;
            // Not sooner than this client would by itself: "at once" from a server that refuses
            // everything would keep both of them busy with nothing else.
            let wait = wait.unwrap_or_default().max(pause.mul_f64(0.5 + fastrand::f64() / 2.0));
            let is_final = is_under_way && request.effect == Effect::Writes;
            let begins = started.elapsed().saturating_add(wait);
            if is_final || begins >= self.options.retry_budget.min(request.within) {
                // Whatever came last, an attempt before it may have been carried out.
                return Err(if resent && !is_under_way { unclear(error) } else { error });
            }
            sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Why a response counts as none, if it does.
    fn refusal(&self, request: &Request, response: &Response) -> Option<Error> {
        let status = response.status;
        let kind = match status {
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::Unavailable,
            status if status.is_server_error() => unanswered(request.effect),
            _ => return None,
        };
        let said = String::from_utf8_lossy(&response.body);
        let said: String = said.chars().take(200).collect();
        Some(Error::new(kind, format!("{} answered {status}: {}", self.database, said.trim())))
    }

    async fn attempt(&self, request: &Request) -> Result<Response, Lost> {
        let mut sent = self.client.request(request.method.clone(), request.url.clone());
        sent = sent.headers(request.headers.clone());
        if !request.body.is_empty() {
            sent = sent.body(request.body.clone());
        }
        let mut response = sent.send().await.map_err(lost)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = body(&mut response, self.options.answer_bytes_max).await?;
        Ok(Response { status, headers, body, resent: false })
    }
}

async fn body(response: &mut reqwest::Response, bytes_max: usize) -> Result<Bytes, Lost> {
    if response.content_length().is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(Lost::TooLarge);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(Lost::TooLarge);
        }
        if body.is_empty() && response.content_length() == Some(chunk.len() as u64) {
            return Ok(chunk);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn lost(error: reqwest::Error) -> Lost {
    match error.is_connect() {
        true => Lost::Unreached(causes(&error)),
        false => Lost::Unanswered(causes(&error)),
    }
}

fn unanswered(effect: Effect) -> ErrorKind {
    match effect {
        Effect::Reads => ErrorKind::Unavailable,
        Effect::WritesOnce | Effect::Writes => ErrorKind::OutcomeUnknown,
    }
}

fn unclear(error: Error) -> Error {
    Error::new(ErrorKind::OutcomeUnknown, error.message())
}

/// The innermost cause: the others repeat the URL, which may hold a secret.
fn causes(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    match error.source() {
        Some(_) => innermost.to_string(),
        None => "the request failed".to_owned(),
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("database", &self.database).finish_non_exhaustive()
    }
}
