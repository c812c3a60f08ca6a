//! What is sent again.

use std::time::Duration;

use keyward_http::{Effect, Options, Request};
use keyward_testkit::{HttpProxy, NetworkFault};

use crate::server::{OK, Server};
use crate::{PATIENT, client, client_with, read, url, write};

#[tokio::test]
async fn a_read_goes_on_through_every_fault() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    let client = client(PATIENT);
    for fault in NetworkFault::EACH {
        proxy.fail_next(fault);
        proxy.fail_next(fault);
        let response = client.send(Request::get(url(proxy.address()))).await.unwrap();
        assert_eq!(read(&response), (200, "fine"), "{fault:?}");
        assert!(!response.resent, "a read changes nothing: {fault:?}");
    }
}

#[tokio::test]
async fn a_write_that_may_be_repeated_goes_on_through_every_fault() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    let client = client(PATIENT);
    for fault in NetworkFault::EACH {
        proxy.fail_next(fault);
        let response = client.send(write(proxy.address(), Effect::WritesOnce)).await.unwrap();
        assert_eq!(read(&response), (200, "fine"), "{fault:?}");
        // After 429 it was not done, and a delayed answer is an answer.
        let is_sure = matches!(fault, NetworkFault::Answer(429) | NetworkFault::Delay(_));
        assert_eq!(response.resent, !is_sure, "{fault:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_late_is_lost() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    let answer_timeout = Duration::from_secs(1);
    let options = Options { answer_timeout, retry_budget: PATIENT, ..Options::default() };
    proxy.fail_next(NetworkFault::Delay(answer_timeout * 3));
    let request = write(proxy.address(), Effect::WritesOnce);
    let response = client_with(options).send(request).await.unwrap();
    assert!(response.resent);
    proxy.quiet().await;
    assert_eq!(server.received(), 2, "the first one landed late");
}

#[tokio::test]
async fn a_server_that_asks_for_a_pause_gets_it() {
    let server = Server::answering(&[(429, &[("Retry-After", "1")], "slow down"), OK]).await;
    let started = tokio::time::Instant::now();
    let response = client(PATIENT).send(write(server.address, Effect::Writes)).await.unwrap();
    assert_eq!(read(&response), (200, "fine"));
    assert!(!response.resent);
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn statuses_that_are_answers_are_not_sent_again() {
    for status in [200, 201, 204, 301, 304, 400, 401, 403, 404, 409, 412, 413] {
        let answers: &'static [_] = Vec::leak(vec![(status, &[] as &[_], "")]);
        let server = Server::answering(answers).await;
        let response = client(PATIENT).send(write(server.address, Effect::Writes)).await.unwrap();
        assert_eq!((response.status.as_u16(), server.received()), (status, 1));
    }
}
