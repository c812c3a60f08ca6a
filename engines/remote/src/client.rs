use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header;
use hyper::{Method, Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use keyward_engine::{Code, Error, ErrorKind, Result};
use tokio::time::{sleep, timeout};

use crate::error::{Asks, Problem, Refusal};
use crate::handshake::Untrusted;
use crate::{ApiKey, Options, Reply, Sent, tls};

/// How often something is asked that may be asked again.
const TRIES_MAX: u32 = 4;
/// The pause before something is asked again; four times as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause that a server may ask for; one that asks for more is not asked again.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long an unused connection is kept. Servers close them after ten seconds, and one that is closed
/// while something is sent leaves it unclear whether that was done.
const IDLE_MAX: Duration = Duration::from_secs(5);
const IDLE_CONNECTIONS_MAX: usize = 32;
/// The largest answer that is taken.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// A server that can be asked. Clones share its connections.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    server: String,
    key: Option<ApiKey>,
    answer_timeout: Duration,
}

/// What a server said, and with which status.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
    retry_after: Option<Duration>,
}

/// Why there is no answer.
enum Lost {
    /// The server was not reached, so that nothing was done.
    Unreached(String),
    /// TLS failed before the request was sent: asking again does not help.
    Untrusted(Untrusted),
    /// What came back on a connection without TLS is not HTTP.
    Garbled(Untrusted),
    /// The request was under way.
    Unanswered(String),
    /// It took longer than is waited.
    Late,
}

impl Connection {
    /// What speaks to a server, `http://HOST:PORT` or `https://HOST:PORT`. The key is looked for; the
    /// server is not asked anything yet.
    ///
    /// Needs a Tokio runtime, which must go on as long as this is used.
    pub fn new(server: &str, options: &Options) -> Result<Self> {
        let tls = tls::config(options, server.starts_with("https:"))?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(options.connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self(Arc::new(Shared {
            client,
            server: server.to_owned(),
            key: options.find_key()?,
            answer_timeout: options.answer_timeout,
        })))
    }

    /// The text at a path. Asked again, a few times, if the server is busy or cannot be reached.
    pub async fn get(&self, path: &str) -> Result<Bytes> {
        self.expect(Method::GET, path, Bytes::new(), Asks::Looks).await
    }

    /// Has something done: what is sent is JSON. If the answer is lost, it may or may not have been
    /// done ([`ErrorKind::OutcomeUnknown`]); what the server says was not done is asked again.
    pub async fn post(&self, path: &str, body: impl Into<Bytes>) -> Result<Bytes> {
        self.expect(Method::POST, path, body.into(), Asks::Changes).await
    }

    /// Has what is at a path removed, as [`Connection::post`] has things done.
    pub async fn delete(&self, path: &str) -> Result<Bytes> {
        self.expect(Method::DELETE, path, Bytes::new(), Asks::Changes).await
    }

    /// Sends something that may be refused for reasons of its own: such a refusal comes back as the
    /// server says it. One that has to do with the key, or that does not come from Keyward, is an error
    /// as everywhere.
    pub async fn send(&self, sent: Sent) -> Result<Reply> {
        let asks = sent.asks();
        let answer = self.ask_for(&sent, asks).await?;
        if answer.status.is_success() {
            return Ok(Reply::Good { status: answer.status.as_u16(), body: answer.body });
        }
        match answer.problem() {
            Some(problem) if problem.known_code() != Some(Code::Unauthenticated) => {
                Ok(Reply::Refused(problem.into()))
            }
            _ => Err(self.refused(answer, asks)),
        }
    }

    /// The body of an answer that must be a good one.
    pub(crate) async fn expect(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        asks: Asks,
    ) -> Result<Bytes> {
        let answer = self.ask(method, path, body, asks).await?;
        match answer.status.is_success() {
            true => Ok(answer.body),
            false => Err(self.refused(answer, asks)),
        }
    }

    /// What the caller is told of a refusal.
    pub(crate) fn refused(&self, answer: Answer, asks: Asks) -> Error {
        answer.refusal().told(asks, self.0.key.is_some())
    }

    /// Asks, and asks again where that is safe.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        asks: Asks,
    ) -> Result<Answer> {
        self.ask_for(&Sent::new(method, path, body), asks).await
    }

    async fn ask_for(&self, sent: &Sent, asks: Asks) -> Result<Answer> {
        let mut pause = PAUSE_MIN;
        for last in (0..TRIES_MAX).map(|tried| tried + 1 == TRIES_MAX) {
            let once = self.once(sent);
            let wait = match timeout(self.0.answer_timeout, once).await.unwrap_or(Err(Lost::Late)) {
                Ok(answer) if answer.status.is_success() || last => return Ok(answer),
                Ok(answer) => {
                    let refusal = answer.refusal();
                    let wait = refusal.retry_after.unwrap_or(pause);
                    if !refusal.may_be_repeated() || wait > PAUSE_MAX {
                        return Ok(answer);
                    }
                    wait
                }
                Err(lost) if !last && lost.may_be_repeated(asks) => pause,
                Err(lost) => return Err(self.lost(lost, asks)),
            };
            sleep(wait).await;
            pause *= 4;
        }
        Err(Error::new(ErrorKind::Internal, "nothing was asked"))
    }

    /// Asks for something that goes on, and gives it once it has begun.
    pub(crate) async fn listen(&self, path: &str) -> Result<Incoming> {
        let begun = async {
            let request = self.request(&Sent::get(path))?;
            let response = self.sent(request).await?;
            match response.status().is_success() {
                true => Ok(Ok(response.into_body())),
                false => whole(response).await.map(Err),
            }
        };
        let begun = timeout(self.0.answer_timeout, begun).await.unwrap_or(Err(Lost::Late));
        match begun.map_err(|lost| self.lost(lost, Asks::Looks))? {
            Ok(body) => Ok(body),
            Err(answer) => Err(self.refused(answer, Asks::Looks)),
        }
    }

    async fn once(&self, sent: &Sent) -> Result<Answer, Lost> {
        let request = self.request(sent)?;
        whole(self.sent(request).await?).await
    }

    async fn sent(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Lost> {
        let response = self.0.client.request(request).await;
        response.map_err(|error| from_client(&error, &self.0.server))
    }

    fn request(&self, sent: &Sent) -> Result<Request<Full<Bytes>>, Lost> {
        let Sent { method, path, body, headers } = sent;
        let uri = format!("{}{path}", self.0.server);
        let mut request = Request::builder().method(method.clone()).uri(uri);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(key) = &self.0.key {
            request = request.header(header::AUTHORIZATION, key.header());
        }
        request.body(Full::new(body.clone())).map_err(|error| Lost::Unreached(error.to_string()))
    }

    fn lost(&self, lost: Lost, asks: Asks) -> Error {
        let server = &self.0.server;
        let (kind, message) = match (lost, asks) {
            (Lost::Untrusted(untrusted) | Lost::Garbled(untrusted), Asks::Looks)
            | (Lost::Untrusted(untrusted), Asks::Changes) => {
                let message = format!("cannot use {server}: {}", untrusted.reason);
                return Error::new(ErrorKind::Unavailable, message).advise(untrusted.hint);
            }
            (Lost::Garbled(untrusted), Asks::Changes) => {
                let message = format!("the answer of {server} was lost: {}", untrusted.reason);
                (ErrorKind::OutcomeUnknown, message)
            }
            (Lost::Unreached(reason), _) => {
                (ErrorKind::Unavailable, format!("cannot reach {server}: {reason}"))
            }
            (Lost::Unanswered(reason), Asks::Looks) => {
                (ErrorKind::Unavailable, format!("{server} did not answer: {reason}"))
            }
            (Lost::Unanswered(reason), Asks::Changes) => {
                (ErrorKind::OutcomeUnknown, format!("the answer of {server} was lost: {reason}"))
            }
            (Lost::Late, asks) => {
                let kind = match asks {
                    Asks::Looks => ErrorKind::Unavailable,
                    Asks::Changes => ErrorKind::OutcomeUnknown,
                };
                let waited = self.0.answer_timeout;
                (kind, format!("{server} did not answer within {waited:?}"))
            }
        };
        Error::new(kind, message)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("server", &self.0.server).finish_non_exhaustive()
    }
}

impl Lost {
    fn may_be_repeated(&self, asks: Asks) -> bool {
        match self {
            Self::Unreached(_) => true,
            Self::Unanswered(_) => asks == Asks::Looks,
            Self::Untrusted(_) | Self::Garbled(_) | Self::Late => false,
        }
    }
}

impl Answer {
    fn refusal(&self) -> Refusal {
        let problem = serde_json::from_slice::<Problem>(&self.body).ok();
        Refusal {
            status: self.status,
            problem: problem.filter(|problem| !problem.code.is_empty()),
            retry_after: self.retry_after,
        }
    }

    /// What the server says did not work.
    pub fn problem(&self) -> Option<Problem> {
        self.refusal().problem
    }
}

fn from_client(error: &hyper_util::client::legacy::Error, server: &str) -> Lost {
    if let Some(untrusted) = Untrusted::explain(error, server) {
        return match error.is_connect() {
            true => Lost::Untrusted(untrusted),
            false => Lost::Garbled(untrusted),
        };
    }
    let reason = reason(error);
    match error.is_connect() {
        true => Lost::Unreached(reason),
        false => Lost::Unanswered(reason),
    }
}

/// The deepest cause, which says most.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}

async fn whole(response: Response<Incoming>) -> Result<Answer, Lost> {
    let (parts, body) = response.into_parts();
    let seconds = parts.headers.get(header::RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| Lost::Unanswered(error.to_string()))?.to_bytes();
    Ok(Answer { status: parts.status, body, retry_after: seconds.map(Duration::from_secs) })
}
