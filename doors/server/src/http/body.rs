//! Bodies of requests, as they arrive: bounded in size, in time, and in memory.
//!
//! A request holds a slot from the moment its body is there, and its body counts against the budget of all
//! bodies byte by byte, so that a body that never comes holds nothing. This is the only place that reads
//! bodies from connections.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use keyward::Code;
use tokio::time::{Instant, timeout};

use super::slots;
use super::work_time::WorkTime;
use crate::app::App;
use crate::auth::Identity;
use crate::mcp::{PATH as MESSAGES, PassedOver, Skim};
use crate::metrics::RouteName;
use crate::problem::{Problem, Result};
use crate::shares::{Full, Place};

/// What is worked on while its body arrives, since that has no bound but the time it takes.
const STREAMED: (Method, &str) = (Method::POST, "/v1/agents/import");

/// How much of an agent's message that is too large is passed over before its connection is closed instead.
const PASSED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a request holds while it is worked on.
#[derive(Debug)]
pub(crate) struct Held {
    _slot: Place,
    _room: Option<Place>,
}

/// Waits for the whole body of a request, and takes a slot then; at once, if there is no body. What is
/// worked on while its body arrives is let through with a place of its own kind.
pub(super) async fn arrive(
    app: &App,
    request: Request,
    bytes_max: usize,
) -> Result<(Request, Held)> {
    let holder = || slots::holder(request.extensions());
    if request.body().is_end_stream() {
        let slot = slots::take(app, &holder())?;
        return Ok((request, Held { _slot: slot, _room: None }));
    }
    let (method, route) = STREAMED;
    if *request.method() == method && RouteName::of(&request).as_str() == route {
        let slot = slots::take_streaming(app, &holder())?;
        return Ok((request, Held { _slot: slot, _room: None }));
    }
    let is_message = RouteName::of(&request).as_str() == MESSAGES;
    let (mut parts, body) = request.into_parts();
    let (bytes, held) = match is_message {
        true => receive_message(app, &mut parts, body, bytes_max).await?,
        false => receive(app, &parts, body, bytes_max).await?,
    };
    Ok((Request::from_parts(parts, Body::from(bytes)), held))
}

/// Reads a whole body of at most so many bytes, and takes a slot for its request then.
pub(super) async fn receive(
    app: &App,
    parts: &Parts,
    body: Body,
    bytes_max: usize,
) -> Result<(Bytes, Held)> {
    if announced_bytes(parts) > bytes_max {
        return Err(too_large(bytes_max));
    }
    let mut arriving = Arriving::new(app, parts, body);
    match arriving.whole(bytes_max).await? {
        Ok(bytes) => held(app, parts, arriving, bytes),
        Err(_begun) => Err(too_large(bytes_max)),
    }
}

/// The same for an agent's message. One that is too large is looked through to its end for what the agent waits
/// for an answer to, and nothing of it is kept: the request has [`PassedOver`] and no body then.
async fn receive_message(
    app: &App,
    parts: &mut Parts,
    body: Body,
    bytes_max: usize,
) -> Result<(Bytes, Held)> {
    let announced = announced_bytes(parts);
    if announced > bytes_max.max(PASSED_BYTES_MAX) {
        return Err(too_large(bytes_max));
    }
    let mut arriving = Arriving::new(app, parts, body);
    let kept_max = if announced > bytes_max { 0 } else { bytes_max };
    let begun = match arriving.whole(kept_max).await? {
        Ok(bytes) => return held(app, parts, arriving, bytes),
        Err(begun) => begun,
    };
    let mut skim = Skim::default();
    skim.push(&begun);
    let mut passed_bytes = begun.len();
    drop(begun);
    arriving.keep_only(0);
    while let Some(chunk) = arriving.chunk().await? {
        passed_bytes += chunk.len();
        if passed_bytes > bytes_max.max(PASSED_BYTES_MAX) {
            return Err(too_large(bytes_max));
        }
        skim.push(&chunk);
        arriving.keep_only(0);
    }
    parts.extensions.insert(PassedOver::new(skim, bytes_max));
    held(app, parts, arriving, Bytes::new())
}

/// How many bytes a body has, as far as its head says; 0, if it says nothing.
fn announced_bytes(parts: &Parts) -> usize {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    length.and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0)
}

/// Takes a slot for a request whose body has arrived.
fn held(app: &App, parts: &Parts, arriving: Arriving, bytes: Bytes) -> Result<(Bytes, Held)> {
    if let Some(who) = parts.extensions.get::<Identity>() {
        who.sends(bytes.len());
    }
    let slot = slots::take(app, arriving.room.holder())?;
    Ok((bytes, Held { _slot: slot, _room: Some(arriving.room) }))
}

/// What a body is told that is larger than it may be.
pub(crate) fn too_large(bytes_max: usize) -> Problem {
    Problem::new(Code::LimitExceeded, format!("the body must be at most {bytes_max} bytes long"))
        .hint("Make the request smaller, or split it; nothing was done.")
}

/// A body that is read in pieces. All waiting for it together has one bound, and what is held of it counts
/// against the budget of all bodies.
#[derive(Debug)]
pub(super) struct Arriving {
    body: Body,
    room: Place,
    held_bytes: usize,
    time_left: Duration,
    work_time: Option<WorkTime>,
}

impl Arriving {
    pub fn new(app: &App, parts: &Parts, body: Body) -> Self {
        Self {
            body,
            room: app.bodies().nothing(&slots::holder(&parts.extensions)),
            held_bytes: 0,
            time_left: app.limits().body_time_max,
            work_time: parts.extensions.get().cloned(),
        }
    }

    /// The next piece; nothing at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let _pause = self.work_time.as_ref().map(WorkTime::pause);
        let began = Instant::now();
        let next = timeout(self.time_left, data(&mut self.body)).await;
        self.time_left = self.time_left.saturating_sub(began.elapsed());
        let chunk = match next {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(error))) => return Err(Problem::invalid(error.to_string())),
            Err(_) => {
                return Err(Problem::new(Code::Timeout, "the body did not arrive in time")
                    .hint("Send the whole body faster; nothing was done.")
                    .retryable());
            }
        };
        self.room.grow(chunk.len()).map_err(|full| {
            slots::overloaded(match full {
                Full::All => "the server holds as many bytes of request bodies as it can",
                Full::Part => "this credential or address is sending too many bytes at a time",
            })
        })?;
        self.held_bytes += chunk.len();
        Ok(Some(chunk))
    }

    /// All pieces together, if they are at most so many bytes; else those that came until they were more.
    async fn whole(&mut self, bytes_max: usize) -> Result<Result<Bytes, Bytes>> {
        let mut bytes = Bytes::new();
        let mut joined = Vec::new();
        let mut fits = true;
        while fits && let Some(chunk) = self.chunk().await? {
            fits = bytes.len() + joined.len() + chunk.len() <= bytes_max;
            // Most bodies come in one piece, which need not be copied.
            match bytes.is_empty() && joined.is_empty() {
                true => bytes = chunk,
                false => {
                    joined.extend_from_slice(&std::mem::take(&mut bytes));
                    joined.extend_from_slice(&chunk);
                }
            }
        }
        if !joined.is_empty() {
            bytes = joined.into();
        }
        Ok(if fits { Ok(bytes) } else { Err(bytes) })
    }

    /// Says that of what has arrived only so many bytes are still in memory.
    pub fn keep_only(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.min(bytes);
        self.room.shrink_to(self.held_bytes);
    }
}

/// The next bytes of a body; what is no data is left out.
async fn data(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    loop {
        match body.frame().await? {
            Ok(frame) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Some(Ok(data)),
                Ok(_) | Err(_) => {}
            },
            Err(error) => return Some(Err(error)),
        }
    }
}

/// Whether a body was read to its end.
#[derive(Debug, Clone)]
pub(super) struct ReadToEnd(Arc<AtomicBool>);

/// The request with a body that remembers whether it was read to its end.
pub(super) fn watched(request: Request) -> (Request, ReadToEnd) {
    let end = ReadToEnd(Arc::new(AtomicBool::new(request.body().is_end_stream())));
    if end.0.load(Ordering::Relaxed) {
        return (request, end);
    }
    let watched = |body| Body::new(Watched { body, end: end.clone() });
    (request.map(watched), end)
}

impl ReadToEnd {
    /// Tells the client that the connection ends with this response, if the body was not read to its end:
    /// what is left of it cannot be told from the next request.
    pub fn close_unless_read(&self, response: &mut Response<Body>) {
        if !self.0.load(Ordering::Relaxed) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
    }
}

struct Watched {
    body: Body,
    end: ReadToEnd,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.end.0.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
