//! What every request passes through, on its way in and out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::Next;
use futures_util::FutureExt;
use keyward::Code;
use tokio::time::{Instant, timeout};
use tracing::Instrument;
use tracing::field::Empty;

use super::headers::Answer;
use super::origin::refuse_cross_origin;
use super::work_time::WorkTime;
use super::{body, head, unread};
use crate::app::App;
use crate::audit::Asked;
use crate::auth::{Identity, Refusal, unauthenticated};
use crate::http::problem::{Answered, respond, status};
use crate::limits::Standing;
use crate::listener::Peer;
use crate::log_summary;
use crate::metrics::{Counted, Ended, Refused, Route, RouteName, Untaken};
use crate::problem::{Problem, Result};
use crate::traces::{self, TRACED};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id of a client's own that is taken over.
const REQUEST_ID_BYTES_MAX: usize = 64;

/// How long it may take to find out who sends a request that needs no credential.
const IDENTIFY_TIME_MAX: Duration = Duration::from_secs(2);

/// What a request is called in answers and logs.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub Arc<str>);

/// Lets those pass whose credential is good and who do not ask too often, and tells the audit log
/// what they change.
pub(super) async fn admit(State(app): State<App>, request: Request, next: Next) -> Answered {
    refuse_cross_origin(request.method(), request.headers(), app.cors().origins())?;
    let_in(app, request, next, Acts::AreRequests).await
}

/// The same for requests whose acts are told by what does them: a call of a tool may go on after its
/// request was answered. Which origins may send them was checked before.
pub(super) async fn admit_calls(State(app): State<App>, request: Request, next: Next) -> Answered {
    let_in(app, request, next, Acts::AreInside).await
}

/// What is told to the audit log and counted for quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acts {
    AreRequests,
    AreInside,
}

async fn let_in(app: App, mut request: Request, next: Next, acts: Acts) -> Answered {
    unread::check(&app, request.extensions())?;
    let peer = request.extensions().get::<Peer>().copied();
    let too_many = || peer.is_some_and(|peer| app.throttle().stranger_is_over(peer.0, app.now()));
    let who = match app.auth().identify_unless(request.headers(), too_many).await? {
        Ok(who) => who,
        Err(refusal) => return Ok(turned_away(&app, peer, refusal)),
    };
    let standing = match app.auth().is_local() {
        true => None,
        false => app.throttle().tenant(who.tenant(), app.now()),
    };
    let mut response = match standing.as_ref().map_or(Ok(()), Standing::check) {
        Ok(()) => {
            request.extensions_mut().insert(who.clone());
            match arrived(&app, &who, request).await? {
                Ok((request, _held)) => match acts {
                    Acts::AreRequests => done(&app, &who, request, next).await?,
                    Acts::AreInside => next.run(request).await,
                },
                Err(problem) => respond(problem),
            }
        }
        Err(problem) => respond(problem),
    };
    if let Some(standing) = standing {
        standing.tell(response.headers_mut());
    }
    response.extensions_mut().insert(who);
    Ok(response)
}

/// Who sends a request that needs no credential, if it has one. Without it, that is the local user of a
/// server without keys, or nobody. A credential that is not valid is refused as everywhere.
pub(super) async fn identify_if_given(
    app: &App,
    request: &Parts,
) -> Result<Result<Option<Identity>, Response<Body>>> {
    let peer = request.extensions.get::<Peer>().copied();
    let too_many = || peer.is_some_and(|peer| app.throttle().stranger_is_over(peer.0, app.now()));
    let is_given = request.headers.contains_key(header::AUTHORIZATION);
    let identified = app.auth().identify_unless(&request.headers, too_many);
    // A store that hangs must not hold up what is asked for when something is wrong.
    let identified = timeout(IDENTIFY_TIME_MAX, identified).await.unwrap_or_else(|_| {
        Err(Problem::new(Code::Unavailable, "the control store took too long to answer")
            .retryable())
    });
    match identified {
        Ok(Ok(who)) => Ok(Ok(Some(who))),
        Ok(Err(refusal)) if is_given => Ok(Err(turned_away(app, peer, refusal))),
        Err(problem) if is_given => Err(problem),
        _ => Ok(Ok(None)),
    }
}

/// A request whose body is there, with what it holds from now on. What its head shows to be impossible is
/// refused before the body is read, and goes into the audit log as other refusals do.
async fn arrived(
    app: &App,
    who: &Identity,
    mut request: Request,
) -> Result<Result<(Request, body::Held)>> {
    let bytes_max = match request.body().is_end_stream() {
        true => Ok(0),
        false => head::body_bytes_max(app, who, &mut request).await,
    };
    match bytes_max {
        Ok(bytes_max) => Ok(body::arrive(app, request, bytes_max).await),
        Err(problem) => {
            if who.act().is_some() {
                let status = problem.status();
                app.audit().begin(who, asked(&request)).await?.end(status);
            }
            Ok(Err(problem))
        }
    }
}

fn asked(request: &Request) -> Asked {
    Asked {
        request: request.extensions().get::<RequestId>().map_or(Arc::from(""), |id| id.0.clone()),
        method: known(request.method()),
        route: RouteName::of(request),
        uri: request.uri().clone(),
    }
}

/// Has a request done, with its place in the audit log.
async fn done(app: &App, who: &Identity, request: Request, next: Next) -> Answered {
    let asked = asked(&request);
    let looks = matches!(asked.method, "GET" | "HEAD");
    if looks {
        let response = next.run(request).await;
        // Some of what only admins may look at is of interest, too.
        if who.act().is_some() {
            app.audit().begin(who, asked).await?.end(response.status().as_u16());
        }
        return Ok(response);
    }
    let meter = match app.usage().filter(|_| !app.auth().is_local()) {
        Some(usage) => Some(usage.meter(who).await?),
        None => None,
    };
    let slip = app.audit().begin(who, asked).await?;
    let response = next.run(request).await;
    slip.end(response.status().as_u16());
    if let Some(meter) = meter {
        meter.end(response.status().is_success());
    }
    Ok(response)
}

/// What those are told who have no valid credential.
fn turned_away(app: &App, peer: Option<Peer>, refusal: Refusal) -> Response<Body> {
    let reason = refusal.name();
    app.metrics().credentials_refused.get_or_create(&Untaken { reason }).inc();
    let standing = peer.and_then(|peer| app.throttle().stranger(peer.0, app.now()));
    // What was not looked up is not called invalid, even if the address may ask again by now.
    let standing = match refusal {
        Refusal::Throttled => standing.map(Standing::refused),
        _ => standing,
    };
    let problem = match standing.as_ref().map_or(Ok(()), Standing::check) {
        Ok(()) => unauthenticated(),
        Err(problem) => problem,
    };
    let mut response = respond(problem);
    if let Some(standing) = standing {
        standing.tell(response.headers_mut());
    }
    response
}

/// Counts, logs and bounds all requests, and turns faults into answers. Who needs a slot takes it further
/// in, so that the health of the server can be asked for at any time.
pub(super) async fn watch_over(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let (mut request, read_to_end) = body::watched(request);
    let began = Instant::now();
    let method = known(request.method());
    let name = RouteName::of(&request);
    let route = name.as_str();
    let kind = Answer::at(request.uri().path());
    let unread = unread::Count::of(request.extensions());
    let grant = app.cors().grant(&request);
    let id = request_id(&app, &request);
    request.extensions_mut().insert(RequestId(id.clone()));
    let id = &*id;
    let metrics = app.metrics();
    let span = tracing::info_span!(
        target: TRACED,
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        request.id = id,
        error.code = Empty,
    );
    traces::adopt(&span, request.headers());

    let checked = head::check(&request).map(|()| grant.preflight(&request));
    let mut response = match checked {
        Ok(Some(preflight)) => preflight,
        Ok(None) => {
            let _under_way = Counted::new(&metrics.under_way);
            let work_time = WorkTime::new(app.limits().answer_time_max);
            request.extensions_mut().insert(work_time.clone());
            let answer =
                AssertUnwindSafe(next.run(request).instrument(span.clone())).catch_unwind();
            tokio::select! {
                biased;
                answer = answer => answer.unwrap_or_else(|_panic| {
                    respond(
                        Problem::new(Code::Internal, "the server made a mistake")
                            .hint("It may or may not have been done. Please report this."),
                    )
                }),
                () = work_time.over() => respond(too_late(method)),
            }
        }
        Err(problem) => respond(problem),
    };

    read_to_end.close_unless_read(&mut response);
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    kind.complete(response.headers_mut());
    grant.complete(response.headers_mut());
    let response = unread.response(&app, response);
    let (status, took) = (response.status().as_u16(), began.elapsed());
    let problem = response.extensions().get::<Problem>();
    let tenant = response.extensions().get::<Identity>().map(|who| who.tenant().name());
    if let Some(problem) = problem {
        metrics.refused.get_or_create(&Refused { code: problem.code().name() }).inc();
    }
    let code = problem.map(|problem| problem.code().name());
    // Not wider: the log has what is wider than 64 bits as text.
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    span.record("http.response.status_code", status);
    if let Some(code) = code {
        span.record("error.code", code);
    }
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
    match problem.filter(|problem| problem.status() >= 500) {
        _ if !has_line(&app, problem) => {}
        Some(problem) => tracing::error!(
            id,
            method,
            route,
            status,
            code,
            tenant,
            detail = problem.detail(),
            took_us,
            "a request failed"
        ),
        None => tracing::info!(id, method, route, status, code, tenant, took_us, "answered"),
    }
    let named = Route { method, route: name };
    metrics.seconds.get_or_create(&named).observe(took.as_secs_f64());
    let Route { method, route } = named;
    metrics.requests.get_or_create(&Ended { method, route, status }).inc();
    response
}

/// What is told when an answer takes too long: a change may have been made by then.
fn too_late(method: &str) -> Problem {
    match method {
        "GET" | "HEAD" => Problem::new(Code::Unavailable, "the store took too long to answer")
            .hint("Try again in a moment.")
            .retryable(),
        _ => Problem::new(Code::OutcomeUnknown, "the store took too long to answer").hint(
            "It may or may not have been done: read before trying again, or send the same \
                   request with the same Idempotency-Key.",
        ),
    }
}

/// Whether a request has a log line of its own. Failures and refusals that one client can cause thousands
/// of times a second are summed up after the first of them.
fn has_line(app: &App, problem: Option<&Problem>) -> bool {
    let summed_up = |problem: &&Problem| {
        let status = status(problem);
        status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
    };
    problem.filter(summed_up).is_none_or(|problem| {
        app.refusals()
            .has_line(log_summary::Refusal { what: "request", why: problem.code().name() })
    })
}

/// Methods as labels; what a client makes up is not one.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The client's own id, if it is one that can stand in a log, else a new one.
fn request_id(app: &App, request: &Request) -> Arc<str> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let plain = |id: &&str| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(plain);
    match given {
        Some(id) => id.into(),
        None => format!("{}-{:x}", app.run(), NEXT.fetch_add(1, Ordering::Relaxed)).into(),
    }
}
