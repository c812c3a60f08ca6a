//! Each fault of the network, as a client sees it and as the server does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::RETRY_AFTER;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use keyward_testkit::{HttpProxy, NetworkFault};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A server that answers with what it was sent, and notes it.
#[derive(Clone, Default)]
struct Echo(Arc<Mutex<Vec<String>>>);

impl Echo {
    async fn start(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let echo = self.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let echo = echo.clone();
                let service = service_fn(move |request| echo.clone().answer(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(client), service));
            }
        });
        address
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let line = format!("{} {} {}", head.method, head.uri, body.len());
        self.0.lock().unwrap().push(line);
        Ok(Response::new(Full::new(body)))
    }

    fn received(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

async fn start() -> (Echo, HttpProxy) {
    let echo = Echo::default();
    let upstream = echo.start().await;
    (echo, HttpProxy::start(upstream).await)
}

async fn connect(proxy: &HttpProxy) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(proxy.address()).await.unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn put(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::put(path).header("host", "database");
    request.body(Full::new(body.into())).unwrap()
}

/// The status, the body, and the seconds of `Retry-After`.
type Answer = (u16, Bytes, Option<String>);

async fn send(
    client: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> hyper::Result<Answer> {
    client.ready().await?;
    let (head, body) = client.send_request(request).await?.into_parts();
    let wait = head.headers.get(RETRY_AFTER).map(|wait| wait.to_str().unwrap().to_owned());
    Ok((head.status.as_u16(), body.collect().await?.to_bytes(), wait))
}

/// Sends one request over a connection of its own.
async fn send_alone(proxy: &HttpProxy, path: &str) -> hyper::Result<Answer> {
    send(&mut connect(proxy).await, put(path, "text")).await
}

fn answered(status: u16, body: &str) -> Answer {
    (status, Bytes::copy_from_slice(body.as_bytes()), None)
}

#[tokio::test]
async fn requests_go_through_unchanged_over_one_connection() {
    let (echo, proxy) = start().await;
    let mut client = connect(&proxy).await;
    let large = Bytes::from(vec![b'x'; 3 << 20]);
    let answer = send(&mut client, put("/large?a=%20b", large.clone())).await.unwrap();
    assert_eq!(answer, (200, large, None));
    assert_eq!(send(&mut client, put("/empty", "")).await.unwrap(), answered(200, ""));
    assert_eq!(echo.received(), ["PUT /large?a=%20b 3145728", "PUT /empty 0"]);
    assert_eq!(proxy.log(), ["PUT /large?a=%20b", "PUT /empty"]);
    assert_eq!(proxy.requests(), 2);
}

#[tokio::test]
async fn a_request_cut_before_does_not_reach_the_server() {
    let (echo, proxy) = start().await;
    proxy.fail_next(NetworkFault::CutBefore);
    send_alone(&proxy, "/a").await.unwrap_err();
    assert_eq!(echo.received(), Vec::<String>::new());
    assert_eq!(send_alone(&proxy, "/b").await.unwrap(), answered(200, "text"));
    assert_eq!(proxy.log(), ["PUT /a (CutBefore)", "PUT /b"]);
}

#[tokio::test]
async fn a_request_cut_after_reaches_the_server() {
    let (echo, proxy) = start().await;
    proxy.fail_next(NetworkFault::CutAfter);
    send_alone(&proxy, "/a").await.unwrap_err();
    assert_eq!(echo.received(), ["PUT /a 4"]);
}

#[tokio::test]
async fn of_an_answer_cut_halfway_a_part_arrives() {
    let (echo, proxy) = start().await;
    for length in [0, 1, 2, 1_000, 1 << 20] {
        proxy.fail_next(NetworkFault::CutHalfway);
        let mut client = connect(&proxy).await;
        let body = vec![b'x'; length];
        send(&mut client, put("/a", body)).await.unwrap_err();
    }
    // The head came whole before a part of a large body.
    proxy.fail_next(NetworkFault::CutHalfway);
    let mut client = connect(&proxy).await;
    let response = client.send_request(put("/a", vec![b'x'; 1 << 20])).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap_err();
    assert_eq!(echo.received().len(), 6);
}

#[tokio::test]
async fn a_delayed_request_arrives_even_if_its_client_gave_up() {
    let (echo, proxy) = start().await;
    let pause = Duration::from_millis(200);
    proxy.fail_next(NetworkFault::Delay(pause));
    timeout(pause / 4, send_alone(&proxy, "/late")).await.unwrap_err();
    assert_eq!(echo.received(), Vec::<String>::new());
    while echo.received().is_empty() {
        tokio::time::sleep(pause / 10).await;
    }
    assert_eq!(echo.received(), ["PUT /late 4"]);

    proxy.fail_next(NetworkFault::Delay(Duration::from_millis(1)));
    assert_eq!(send_alone(&proxy, "/b").await.unwrap(), answered(200, "text"));
}

#[tokio::test]
async fn a_false_answer_comes_before_or_after_the_server_did_its_work() {
    let (echo, proxy) = start().await;
    for (status, text, wait) in [
        (429, "Too Many Requests", Some("0")),
        (503, "Service Unavailable", Some("0")),
        (500, "Internal Server Error", None),
    ] {
        proxy.fail_next(NetworkFault::Answer(status));
        let (got, body, got_wait) = send_alone(&proxy, "/a").await.unwrap();
        assert_eq!((got, &body[..], got_wait.as_deref()), (status, text.as_bytes(), wait));
    }
    assert_eq!(echo.received(), Vec::<String>::new());
    proxy.fail_next(NetworkFault::AnswerAfter(502));
    assert_eq!(send_alone(&proxy, "/a").await.unwrap(), answered(502, "Bad Gateway"));
    assert_eq!(echo.received(), ["PUT /a 4"]);
}

#[tokio::test]
async fn a_fault_waits_for_the_request_it_is_meant_for() {
    let (_echo, proxy) = start().await;
    let meant = |method: &Method, path: &str| *method == Method::PUT && path.starts_with("/b");
    proxy.fail_next_matching(meant, NetworkFault::Answer(500));
    for (path, status) in [("/a", 200), ("/b?c", 500), ("/b", 200)] {
        assert_eq!(send_alone(&proxy, path).await.unwrap().0, status, "{path}");
    }
}

#[tokio::test]
async fn faults_go_on_until_the_network_heals() {
    let (_echo, proxy) = start().await;
    proxy.fail_always(NetworkFault::Answer(500));
    proxy.fail_next(NetworkFault::Answer(503));
    for status in [503, 500, 500] {
        assert_eq!(send_alone(&proxy, "/a").await.unwrap().0, status);
    }
    proxy.heal();
    let (answer, requests) = proxy.count(send_alone(&proxy, "/a")).await;
    assert_eq!((answer.unwrap(), requests), (answered(200, "text"), 1));
}

#[tokio::test]
async fn random_faults_are_the_same_for_the_same_seed() {
    let mut logs = Vec::new();
    for seed in [1, 1, 2] {
        let (_echo, proxy) = start().await;
        proxy.fail_randomly(seed, 0.5);
        for _ in 0..60 {
            // Whether it came through is seen in the log.
            let _ = send_alone(&proxy, "/a").await;
        }
        logs.push(proxy.log());
    }
    assert_eq!(logs[0], logs[1]);
    assert_ne!(logs[0], logs[2]);
    let faults = logs[0].iter().filter(|line| line.ends_with(')')).count();
    assert!((15..=45).contains(&faults), "{faults} of 60");
}
