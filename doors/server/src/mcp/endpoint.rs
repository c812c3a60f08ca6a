//! MCP over HTTP: `/mcp`.
//!
//! A request passes, in this order: the check of host and origin, the gate (credential, rates), the
//! check whose session it is, and the protocol's library, which hands messages to the handler. Calls of
//! tools in their plain form need no library.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{any, get};
use futures_util::StreamExt;
use keyward::Code;
use keyward::records::Caller;
use memchr::memmem;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;

use super::arguments::Sent;
use super::handler::{Handler, Shared};
use super::hosts::Hosts;
use super::plain::Plain;
use super::sessions::Sessions;
use super::skim::{PassedOver, Skim, refusal_over_http};
use super::{LocalUser, McpOptions, local};
use crate::app::App;
use crate::auth::{Identity, LOCAL, StartToken};
use crate::http::answer::json as json_answer;
use crate::http::problem::{Answered, Refused, respond};
use crate::http::request::{self, message_bytes_max};
use crate::http::watch::{Open, over};
use crate::problem::{Problem, Result};

pub(crate) const PATH: &str = "/mcp";
const METADATA: &str = "/.well-known/oauth-protected-resource";
const METADATA_OF_PATH: &str = "/.well-known/oauth-protected-resource/mcp";
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What is said of a message that the protocol's library cannot read.
pub(super) const UNREADABLE: &str = "this is no message of the protocol, or its JSON is nested too deep or \
    has numbers that are too large; nothing was done";

/// Whether a path is one of the endpoint's.
pub(crate) fn is_endpoint(path: &str) -> bool {
    [PATH, METADATA, METADATA_OF_PATH].contains(&path)
}

type Service = StreamableHttpService<Handler, LocalSessionManager>;

/// Where agents reach a server. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint(Arc<Inner>);

struct Inner {
    app: App,
    /// None, if there is no randomness.
    tools: Option<(Arc<Shared>, Service)>,
    /// As whom agents ask for records while the server has no keys.
    local: Caller,
    sessions: Sessions,
    hosts: Hosts,
    public_url: Option<String>,
    scheme: &'static str,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// One for a server that is told this, and answers over TLS or not.
    pub fn new(app: App, options: &McpOptions, tls: bool) -> Self {
        let sessions = Sessions::new(options);
        // Hosts and origins are checked before the credential, and bodies at the gate, where they are read.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_json_response(true)
            .with_max_request_body_bytes(message_bytes_max(&app));
        // The name of the default user is a valid one.
        let local = local::caller(&app, &LocalUser::default()).unwrap_or_else(|problem| {
            tracing::error!(detail = problem.detail(), "agents without keys have no roles");
            Caller::user(LOCAL)
        });
        let tools = match Shared::new(app.clone(), options.fixtures) {
            Ok(shared) => {
                let handled = shared.clone();
                let handler = move || Ok(Handler::new(&handled));
                Some((shared, Service::new(handler, sessions.manager(), config)))
            }
            Err(problem) => {
                tracing::error!(detail = problem.detail(), "there are no tools for agents");
                None
            }
        };
        let public_url = options.public_url.as_deref();
        let hosts = Hosts::new(options, app.cors().origins());
        Self(Arc::new(Inner {
            app,
            tools,
            local,
            sessions,
            hosts,
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            scheme: if tls { "https" } else { "http" },
        }))
    }

    /// What needs a credential.
    pub fn routes(&self) -> Router<App> {
        let endpoint = self.clone();
        let answer = move |State(app): State<App>, request: Request| {
            let endpoint = endpoint.clone();
            async move { endpoint.answer(&app, request).await.map_err(Refused) }
        };
        Router::new().route(PATH, any(answer))
    }

    /// The same with what needs none, behind the check of host and origin.
    pub fn guarded(&self, routes: Router<App>) -> Router<App> {
        let endpoint = self.clone();
        let metadata = move |request: Request| {
            let endpoint = endpoint.clone();
            async move { endpoint.metadata(&request) }
        };
        routes
            .route(METADATA, get(metadata.clone()))
            .route(METADATA_OF_PATH, get(metadata))
            .layer(from_fn_with_state(self.clone(), admit))
    }

    /// Ends all sessions.
    pub async fn close(&self) {
        self.0.sessions.close().await;
    }

    async fn answer(&self, app: &App, mut request: Request) -> Result<Response<Body>> {
        let Some((shared, service)) = &self.0.tools else {
            return Err(Problem::new(Code::Internal, "there is no randomness for agents' states"));
        };
        let mut who = request.extensions().get::<Identity>().cloned().ok_or_else(|| {
            Problem::new(Code::Internal, "this route is not behind the check of credentials")
        })?;
        // Without keys, an agent reaches one user's data, as over standard input and output: whatever model
        // it is, it must not read what is every user's.
        if who.is_local() {
            who = who.asking_as(self.0.local.clone());
            request.extensions_mut().insert(who.clone());
        }
        let session = request.headers().get(SESSION).cloned();
        let session = session.as_ref().map(|id| id.to_str().unwrap_or_default());
        if let Some(id) = session {
            self.0.sessions.admit(id, &who).await?;
        }
        if let Some(passed_over) = request.extensions().get::<PassedOver>() {
            return passed_over.answer();
        }
        let (request, method) = whole(app, request).await?;
        if let Some(call) = Plain::of(shared, &who, &request) {
            return call.answer(shared).await;
        }
        // Given back, if no session comes of it.
        let place = match method == Waits::Initialize && session.is_none() {
            true => Some(self.0.sessions.reserve(&who).await?),
            false => None,
        };
        let is_delete = request.method() == Method::DELETE;
        // Held until the last event was sent.
        let open = match method {
            Waits::Stream => Some((Open::new(app, &who)?, request.headers().clone())),
            _ => None,
        };
        let sent = request.extensions().get::<Sent>().cloned();
        let mut response = service.handle(request).await;
        // The library answers what it cannot read as if its type were wrong, and to nobody.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
            && let Some(id) = sent.and_then(|Sent(message)| Skim::id_of(&message))
        {
            return refusal_over_http(UNREADABLE, &id);
        }
        // Older clients take any other success for a failure.
        if is_delete && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        let begun = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
        if let (Some(id), Some(place)) = (begun, place) {
            self.0.sessions.begin(id, place).await;
        }
        if let (true, Some(id)) = (is_delete && response.status().is_success(), session) {
            self.0.sessions.end(id).await;
        }
        let (parts, body) = response.into_parts();
        let body = match open {
            None => Body::new(body),
            Some((open, headers)) => {
                let events = Body::new(body).into_data_stream().map(move |event| {
                    let _held = &open;
                    event
                });
                Body::from_stream(events.take_until(Box::pin(over(app.clone(), headers))))
            }
        };
        Ok(Response::from_parts(parts, body))
    }

    /// Where clients find the server, as the request or the configuration says.
    fn base(&self, request: &Request) -> String {
        let Inner { public_url, scheme, .. } = &*self.0;
        match public_url {
            Some(url) => url.clone(),
            None => {
                let host = request.headers().get(header::HOST);
                let host = host.and_then(|host| host.to_str().ok()).unwrap_or("localhost");
                format!("{scheme}://{host}")
            }
        }
    }

    /// What a client needs to know to get a token (RFC 9728).
    fn metadata(&self, request: &Request) -> Response<Body> {
        let auth = self.0.app.auth();
        let asks = auth.start_token().is_some_and(StartToken::is_required);
        if auth.is_local() && !asks {
            return respond(Problem::not_found("this server asks for no credential"));
        }
        let base = self.base(request);
        let mut told = json!({
            "resource": format!("{base}{PATH}"),
            "resource_name": "Keyward",
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["read:*", "write:*"],
            "resource_documentation": format!("{base}/docs/"),
        });
        if let Some(issuer) = auth.issuer() {
            told["authorization_servers"] = json!([issuer]);
        }
        json_answer(StatusCode::OK, told.to_string())
    }
}

/// Refuses other hosts and other sites' pages, and tells those without a credential where to get one.
async fn admit(State(endpoint): State<Endpoint>, request: Request, next: Next) -> Answered {
    endpoint.0.hosts.admit(request.method(), request.headers())?;
    let metadata = format!("{}{METADATA_OF_PATH}", endpoint.base(&request));
    let mut response = next.run(request).await;
    if response.status() == StatusCode::UNAUTHORIZED
        && let Ok(challenge) =
            HeaderValue::try_from(format!("Bearer resource_metadata=\"{metadata}\""))
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    Ok(response)
}

/// What is asked for, as far as it matters for how it is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// A new session.
    Initialize,
    /// What the server tells of its own accord, for as long as the client listens.
    Stream,
    /// Anything else.
    Answer,
}

#[derive(Deserialize)]
struct Peek<'b> {
    #[serde(borrow)]
    method: Option<Cow<'b, str>>,
}

/// Whether a message asks for a new session. Most are told from such by a look at their bytes: only those
/// are read that have the word somewhere, or an escape that may stand for a letter of it.
fn begins_session(message: &[u8]) -> bool {
    let may = memmem::find(message, b"initialize").is_some() || message.contains(&b'\\');
    may && serde_json::from_slice::<Peek<'_>>(message)
        .is_ok_and(|peeked| peeked.method.as_deref() == Some("initialize"))
}

/// The request with its whole body at hand, so that arguments can be read as they were written.
async fn whole(app: &App, request: Request) -> Result<(Request, Waits)> {
    if request.method() != Method::POST {
        let waits = if request.method() == Method::GET { Waits::Stream } else { Waits::Answer };
        return Ok((request, waits));
    }
    let (mut parts, body) = request.into_parts();
    let bytes = request::whole(body, message_bytes_max(app)).await?;
    let waits = if begins_session(&bytes) { Waits::Initialize } else { Waits::Answer };
    parts.extensions.insert(Sent(bytes.clone()));
    Ok((Request::from_parts(parts, Body::from(bytes)), waits))
}
