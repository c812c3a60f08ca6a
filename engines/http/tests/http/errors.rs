//! What errors say.

use keyward_engine::{Error, ErrorKind};
use keyward_http::{Effect, Method, Request, Url};
use keyward_testkit::{HttpProxy, NetworkFault};

use crate::server::{OK, Server, nobody};
use crate::{SHORT, client, failed, url, write};

const SECRET: &str = "swordfish";

#[tokio::test]
async fn a_read_without_an_answer_is_unavailable() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    for fault in NetworkFault::EACH {
        if let NetworkFault::Delay(_) = fault {
            continue;
        }
        proxy.fail_always(fault);
        let error = failed(client(SHORT).send(Request::get(url(proxy.address()))).await);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}: {error}");
        assert!(error.message().contains("TestDB"), "{error}");
    }
}

#[tokio::test]
async fn the_servers_own_words_are_told_and_cut_short() {
    const LONG: &str = "the disk is on fire; the disk is on fire; the disk is on fire; the disk is \
                        on fire; the disk is on fire; the disk is on fire; the disk is on fire; the \
                        disk is on fire; the disk is on fire; the disk is on fire; the disk is on";
    let server = Server::answering(&[(500, &[], LONG)]).await;
    let error = failed(client(SHORT).send(write(server.address, Effect::Writes)).await);
    assert!(error.message().contains("500"), "{error}");
    assert!(error.message().contains("the disk is on fire"), "{error}");
    assert!(error.message().len() < 260, "{error}");
}

/// A request with a secret in every part that may hold one.
fn secretive(scheme: &str, host: &str) -> Request {
    let url = format!("{scheme}://user:{SECRET}@{host}/path?token={SECRET}");
    let authorization = format!("Bearer {SECRET}").parse().unwrap();
    Request::new(Method::PUT, Url::parse(&url).unwrap(), Effect::WritesOnce)
        .header(keyward_http::header::AUTHORIZATION, authorization)
}

fn assert_silent(error: &Error) {
    for text in [error.to_string(), format!("{error:?}"), format!("{error:#?}")] {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[tokio::test]
async fn no_secret_is_told() {
    let server = Server::answering(&[OK]).await;
    let proxy = HttpProxy::start(server.address).await;
    let client = client(SHORT);
    for fault in NetworkFault::EACH {
        proxy.fail_always(fault);
        if let Err(error) = client.send(secretive("http", &proxy.address().to_string())).await {
            assert_silent(&error);
        }
    }
    let nobody = nobody().await.to_string();
    for (scheme, host) in [
        ("http", nobody.as_str()),
        ("http", "host.invalid"),
        // This client was set up without TLS, and the server speaks none.
        ("https", &server.address.to_string()),
        ("ftp", &nobody),
    ] {
        assert_silent(&failed(client.send(secretive(scheme, host)).await));
    }
    let request = secretive("http", &nobody);
    assert!(!format!("{request:?} {client:?}").contains(SECRET), "{request:?}");
}
