//! Accepting connections, each with a bound on how slow it may be.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use crate::app::App;
use crate::config::Limits;

/// The largest head of a request, about: what is read at once may be more.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How many headers a request may have.
const HEADERS_MAX: usize = 100;
/// The pause after a connection could not be accepted, for want of file descriptors.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Serves connections until the server stops, and waits for those that are open.
pub(crate) async fn serve(listener: TcpListener, router: Router, app: App) {
    let limits = *app.limits();
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let stopping = app.lifecycle().stopping();
    tokio::pin!(stopping);
    loop {
        let accepted = tokio::select! {
            () = &mut stopping => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let (router, app) = (router.clone(), app.clone());
        tokio::spawn(async move {
            app.metrics().connections_total.inc();
            app.metrics().connections.inc();
            serve_one(stream, router, &app, &limits).await;
            app.metrics().connections.dec();
            drop(permit);
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
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let permit = permits.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn serve_one(stream: TcpStream, router: Router, app: &App, limits: &Limits) {
    // Answers are small: waiting for more of them only makes them late.
    let _ = stream.set_nodelay(true);
    let service =
        router.map_request(|request: Request<Incoming>| request.map(axum::body::Body::new));
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time_max)
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
