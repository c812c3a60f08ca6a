//! A server that answers as a test says.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, Full};
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// An answer: its status, headers and body.
pub type Answer = (u16, &'static [(&'static str, &'static str)], &'static str);

pub const OK: Answer = (200, &[], "fine");

/// Runs until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    received: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Gives these answers one after the other, and then the last one again and again.
    pub async fn answering(answers: &'static [Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(AtomicUsize::new(0));
        let counter = received.clone();
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let counter = counter.clone();
                let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    let at = counter.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
                    async move {
                        let _ = request.into_body().collect().await;
                        Ok::<_, Infallible>(response(answers[at]))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(client), service));
            }
        });
        Self { address, received, serving }
    }

    /// How many requests arrived.
    pub fn received(&self) -> usize {
        self.received.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn response((status, headers, body): Answer) -> Response<Full<hyper::body::Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::from(body)).unwrap()
}

/// An address that nobody listens on.
pub async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
