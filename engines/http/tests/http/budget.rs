//! How long a request may take.

use std::time::Duration;

use keyward_engine::ErrorKind;
use keyward_http::{Effect, Options, Request};
use keyward_testkit::{HttpProxy, NetworkFault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::server::{OK, Server, nobody};
use crate::{PATIENT, SHORT, client, client_with, failed, url, write};

/// Far more than a loaded machine loses, and far less than what must not be waited for.
const SLACK: Duration = Duration::from_secs(10);

#[tokio::test]
async fn no_attempt_begins_after_the_budget() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    for fault in [NetworkFault::CutBefore, NetworkFault::Answer(429), NetworkFault::Answer(503)] {
        proxy.fail_always(fault);
        let started = Instant::now();
        let client = client(SHORT);
        let sent = client.send(Request::get(url(proxy.address())));
        let (result, requests) = proxy.count(sent).await;
        assert_eq!(failed(result).kind(), ErrorKind::Unavailable, "{fault:?}");
        assert!(started.elapsed() < SHORT + SLACK, "{fault:?}");
        // With pauses of 25 ms and more that double: also where the server says "at once".
        assert!((2..=6).contains(&requests), "{requests} attempts with {fault:?}");
    }
    let error = failed(client(SHORT).send(Request::get(url(nobody().await))).await);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_pause_beyond_the_budget_ends_the_attempts_at_once() {
    // The last one is more than any clock can hold.
    for seconds in ["31", "86400", "18446744073709551615"] {
        let headers: &'static [_] = Vec::leak(vec![("Retry-After", &*seconds.to_owned().leak())]);
        let answers: &'static [_] = Vec::leak(vec![(429, headers, "later"), OK]);
        let server = Server::answering(answers).await;
        let started = Instant::now();
        let error = failed(client(PATIENT).send(write(server.address, Effect::WritesOnce)).await);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{seconds}");
        assert!(started.elapsed() < SLACK, "{seconds}");
        assert_eq!(server.received(), 1, "{seconds}");
    }
}

#[tokio::test]
async fn no_attempt_begins_after_the_time_of_its_request() {
    let server = Server::answering(&[(429, &[], "later")]).await;
    let started = Instant::now();
    let request = write(server.address, Effect::WritesOnce).within(SHORT);
    let error = failed(client(PATIENT).send(request).await);
    assert_eq!(error.kind(), ErrorKind::Unavailable, "nothing was done: {error}");
    assert!(started.elapsed() < SHORT + SLACK);
    assert!(server.received() >= 1);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_neither_read_nor_asked_for_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let mut accepted = 0;
        while let Ok((mut connection, _)) = listener.accept().await {
            accepted += 1;
            assert!(accepted <= 2, "asked again");
            let mut request = [0; 1_024];
            assert!(connection.read(&mut request).await.unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
            connection.write_all(head.as_bytes()).await.unwrap();
        }
    });
    let error = failed(client(PATIENT).send(Request::get(url(address))).await);
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    let error = failed(client(PATIENT).send(write(address, Effect::WritesOnce)).await);
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert!(!answering.is_finished());
}

#[tokio::test]
async fn a_budget_without_end_is_none() {
    let server = Server::answering(&[(429, &[], "later"), OK]).await;
    let all = Duration::MAX;
    let options = Options {
        retry_budget: all,
        answer_timeout: all,
        connect_timeout: all,
        ..Options::default()
    };
    client_with(options).send(write(server.address, Effect::Writes)).await.unwrap();
    assert_eq!(server.received(), 2);
}

#[tokio::test]
async fn a_request_that_gets_an_answer_late_is_given_up_after_the_timeout() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    proxy.fail_always(NetworkFault::Delay(SLACK * 6));
    let answer_timeout = Duration::from_millis(100);
    let options = Options { answer_timeout, retry_budget: SHORT, ..Options::default() };
    let started = Instant::now();
    for (effect, kind) in [
        (Effect::Reads, ErrorKind::Unavailable),
        (Effect::WritesOnce, ErrorKind::OutcomeUnknown),
        (Effect::Writes, ErrorKind::OutcomeUnknown),
    ] {
        let error = failed(client_with(options).send(write(proxy.address(), effect)).await);
        assert_eq!(error.kind(), kind, "{effect:?}");
        assert!(error.message().contains("100ms"), "{error}");
    }
    assert!(started.elapsed() < SLACK * 3);
}
