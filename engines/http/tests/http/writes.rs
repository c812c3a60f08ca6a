//! Writes that must not be done twice.

use keyward_engine::ErrorKind;
use keyward_http::Effect;
use keyward_testkit::{HttpProxy, NetworkFault};

use crate::server::{OK, Server, nobody};
use crate::{PATIENT, SHORT, client, failed, read, write};

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_sent_again() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    let client = client(PATIENT);
    for fault in [
        NetworkFault::CutBefore,
        NetworkFault::CutAfter,
        NetworkFault::CutHalfway,
        NetworkFault::Answer(500),
        NetworkFault::Answer(503),
        NetworkFault::AnswerAfter(502),
        NetworkFault::AnswerAfter(504),
    ] {
        // Also over a connection that was used before: no layer below sends it again.
        client.send(write(proxy.address(), Effect::Writes)).await.unwrap();
        proxy.fail_next(fault);
        let sent = client.send(write(proxy.address(), Effect::Writes));
        let (result, requests) = proxy.count(sent).await;
        assert_eq!(failed(result).kind(), ErrorKind::OutcomeUnknown, "{fault:?}");
        assert_eq!(requests, 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_write_that_was_refused_is_sent_again() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    proxy.fail_next(NetworkFault::Answer(429));
    let sent = client(PATIENT).send(write(proxy.address(), Effect::Writes)).await.unwrap();
    assert_eq!((read(&sent), sent.resent, proxy.requests()), ((200, "fine"), false, 2));
}

#[tokio::test]
async fn a_write_that_reached_nobody_was_not_done() {
    for effect in [Effect::Reads, Effect::WritesOnce, Effect::Writes] {
        let error = failed(client(SHORT).send(write(nobody().await, effect)).await);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{effect:?}");
    }
}

#[tokio::test]
async fn a_write_lost_once_stays_unknown_whatever_comes_after() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    for after in [NetworkFault::Answer(429), NetworkFault::CutBefore] {
        proxy.heal();
        proxy.fail_next(NetworkFault::CutAfter);
        proxy.fail_always(after);
        let client = client(SHORT);
        let sent = client.send(write(proxy.address(), Effect::WritesOnce));
        let (result, requests) = proxy.count(sent).await;
        assert_eq!(failed(result).kind(), ErrorKind::OutcomeUnknown, "{after:?}");
        assert!(requests > 1, "{after:?}");
    }
}

#[tokio::test]
async fn a_write_lost_before_the_server_goes_away_stays_unknown() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    let address = proxy.address();
    proxy.fail_next(NetworkFault::CutAfter);
    let sent = async move { client(SHORT * 2).send(write(address, Effect::WritesOnce)).await };
    let sent = tokio::spawn(sent);
    while proxy.requests() == 0 {
        tokio::task::yield_now().await;
    }
    drop(proxy);
    assert_eq!(failed(sent.await.unwrap()).kind(), ErrorKind::OutcomeUnknown);
}
