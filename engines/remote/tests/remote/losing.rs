//! Answers that are lost, and what is asked again: seen through a proxy that cuts connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyward_engine::{Commit, ErrorKind, Json, Put};
use keyward_key::Key;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::served::{Served, opened};

/// Something between a client and a server that takes what is asked, and sometimes no answer back.
struct Proxy {
    url: String,
    /// How many answers are lost from now on.
    losing: Arc<AtomicUsize>,
    /// How many requests came.
    asked: Arc<AtomicUsize>,
}

impl Proxy {
    async fn before(served: &Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = served.url.strip_prefix("http://").unwrap().to_owned();
        let (losing, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (lose, count) = (losing.clone(), asked.clone());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass(client, server, lose.clone(), count.clone()));
            }
        });
        Self { url, losing, asked }
    }
}

/// Passes on what is asked and answered, until an answer is to be lost. A request and an answer of
/// these tests fit into one read.
async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    losing: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(1..) = client.read(&mut buffer).await.inspect(|&read| buffer.truncate(read)) else {
            return;
        };
        asked.fetch_add(1, Ordering::SeqCst);
        if server.write_all(&buffer).await.is_err() {
            return;
        }
        buffer.resize(64 * 1024, 0);
        let Ok(read @ 1..) = server.read(&mut buffer).await else { return };
        let lost =
            losing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if lost.is_ok() || client.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_done_once_and_its_outcome_is_unknown() {
    let served = Served::on("memory:").await;
    let proxy = Proxy::before(&served).await;
    let store = keyward_engine::Store::new(opened(&proxy.url, None).await.unwrap());
    let count = Key::parse("count").unwrap();
    proxy.losing.store(1, Ordering::SeqCst);
    let error = store.commit(Commit::new().add(count.clone(), 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(store.get(&count).await.unwrap().unwrap().value.as_str(), "1");
}

#[tokio::test]
async fn a_read_whose_answer_is_lost_is_asked_again() {
    let served = Served::on("memory:").await;
    let proxy = Proxy::before(&served).await;
    let store = keyward_engine::Store::new(opened(&proxy.url, None).await.unwrap());
    let key = Key::parse("k").unwrap();
    store.put(key.clone(), Put::new(Json::from_integer(7))).await.unwrap();
    let before = proxy.asked.load(Ordering::SeqCst);
    proxy.losing.store(2, Ordering::SeqCst);
    assert_eq!(store.get(&key).await.unwrap().unwrap().value.as_str(), "7");
    assert_eq!(proxy.asked.load(Ordering::SeqCst) - before, 3);
    // Not for ever.
    proxy.losing.store(usize::MAX, Ordering::SeqCst);
    assert_eq!(store.get(&key).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn where_nobody_listens_nothing_was_done() {
    let served = Served::on("memory:").await;
    let store = served.store().await;
    served.stop().await;
    let put = store.put(Key::parse("k").unwrap(), Put::new(Json::from_integer(7))).await;
    let error = put.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("cannot reach http://127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn what_is_no_keyward_server_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let _ = client.read(&mut [0; 4096]).await;
            let page = "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nhi";
            let _ = client.write_all(page.as_bytes()).await;
        }
    });
    let error = opened(&url, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misplaced);
    assert!(error.to_string().contains("no Keyward server"), "{error}");
}
