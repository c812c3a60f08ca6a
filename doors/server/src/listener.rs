//! Accepting connections, each with a bound on how slow it may read and write, and so many per address.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::app::App;
use crate::log_summary::Refusal;
use crate::shares::{Holder, Shares};

/// The largest head of a request, about: what is read at once may be more.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How many bytes that were not sent yet the system holds for a connection, about.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 128 * 1024;
/// How many headers a request may have.
const HEADERS_MAX: usize = 100;
/// The pause after a connection could not be accepted, for want of file descriptors.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// The address that a request comes from: a client's, or a proxy's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub IpAddr);

/// What is logged summed up.
const OF_ONE_ADDRESS: Refusal = Refusal { what: "connection", why: "too many from one address" };
const UNACCEPTED: Refusal = Refusal { what: "connection", why: "cannot be accepted" };

/// Serves connections until the server stops, and waits for those that are open.
///
/// One address has only its share of them. What comes beyond it is accepted and closed at once, so that it
/// does not wait in line before others.
pub(crate) async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    app: App,
) {
    let limits = *app.limits();
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let of_one = limits.connections_of_one_address();
    let shares = Shares::with_part(limits.connections_max, of_one);
    let stopping = app.lifecycle().stopping();
    tokio::pin!(stopping);
    loop {
        let accepted = tokio::select! {
            () = &mut stopping => break,
            accepted = accept(&listener, &permits, &app) => accepted,
        };
        let Some((stream, peer, permit)) = accepted else { continue };
        let Ok(place) = shares.take(&Holder::at(peer.0)) else {
            app.metrics().connections_refused.inc();
            if app.refusals().has_line(OF_ONE_ADDRESS) {
                tracing::warn!(address = %peer.0, of_one, "too many connections from one address");
            }
            continue;
        };
        let (acceptor, router, app) = (acceptor.clone(), router.clone(), app.clone());
        tokio::spawn(async move {
            app.metrics().connections_total.inc();
            app.metrics().connections.inc();
            serve_stream(stream, peer, acceptor, router, &app).await;
            app.metrics().connections.dec();
            drop((place, permit));
        });
    }
    drop(listener);
    let all = u32::try_from(limits.connections_max).unwrap_or(u32::MAX);
    if timeout(limits.drain_time_max, permits.acquire_many(all)).await.is_err() {
        let open = app.metrics().connections.get();
        tracing::warn!(open, "stopped while connections were still open");
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    app: &App,
) -> Option<(TcpStream, Peer, tokio::sync::OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let permit = permits.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, Peer(peer.ip()), permit)),
        Err(error) => {
            if app.refusals().has_line(UNACCEPTED) {
                tracing::warn!(%error, "a connection could not be accepted");
            }
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn serve_stream(
    stream: TcpStream,
    peer: Peer,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    app: &App,
) {
    // Answers are small: waiting for more of them only makes them late.
    let _ = stream.set_nodelay(true);
    bound_unsent(&stream);
    // Below TLS, so that what counts is what the client takes.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(app.limits().write_time_max));
    let stream = Box::pin(stream);
    let Some(acceptor) = acceptor else { return serve_one(stream, peer, router, app).await };
    match timeout(app.limits().header_time_max, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => serve_one(stream, peer, router, app).await,
        Ok(Err(error)) => tracing::debug!(%error, "a handshake failed"),
        Err(_) => tracing::debug!("a handshake took too long"),
    }
}

/// Bounds what the system buffers for a client that does not read. Without it that grows to several
/// megabytes for each connection. What is under way to a client that reads is not bounded by it.
fn bound_unsent(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "the unsent bytes of a connection cannot be bounded");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

async fn serve_one<S>(stream: S, peer: Peer, router: Router, app: &App)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = router.map_request(move |request: Request<Incoming>| {
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(peer);
        request
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(app.limits().header_time_max)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let connection =
        builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = app.lifecycle().stopping() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
