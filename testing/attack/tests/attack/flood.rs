//! Clients that send one request again and again, as fast as they are answered.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::client::Client;

/// Has clients send until the time is over, and counts the answers by status; zero stands for no
/// answer. `request` makes the request of a client for a round.
pub async fn flood(
    address: SocketAddr,
    sources: &[Ipv4Addr],
    clients: usize,
    time: Duration,
    request: impl Fn(usize, usize) -> Request<Full<Bytes>> + Clone + Send + 'static,
) -> BTreeMap<u16, u64> {
    let end = Instant::now() + time;
    let mut flooding = JoinSet::new();
    for n in 0..clients {
        let (mut client, request) =
            (Client::new(address, sources[n % sources.len()]), request.clone());
        flooding.spawn(async move {
            let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
            for round in 0.. {
                let answer = timeout_at(end, client.send(request(n, round), None)).await;
                let Ok(answer) = answer else { break };
                let status = answer.map_or(0, |answer| answer.status);
                *counts.entry(status).or_default() += 1;
            }
            counts
        });
    }
    let mut all: BTreeMap<u16, u64> = BTreeMap::new();
    for (status, count) in flooding.join_all().await.into_iter().flatten() {
        *all.entry(status).or_default() += count;
    }
    all
}

/// A request with the headers every request has.
pub fn request(method: &str, path: &str, key: Option<&str>, body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap()
}
