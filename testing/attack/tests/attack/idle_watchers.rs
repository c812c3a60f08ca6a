//! Watchers of one prefix that do not read what they are sent, while commits go on.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use keyward_attack::Scale;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{ATTACKER, Client, connect};
use crate::http;
use crate::scene::Scene;
use crate::server::allow_open_files;

const KEY_BYTES: usize = 400;

/// A commit that makes a large event.
fn commit(keys: usize, round: u64) -> Value {
    let filler = "x".repeat(KEY_BYTES);
    let put = |n| json!({"put": {"key": format!("user:eve0:w:{filler}:{n:04}"), "value": round}});
    json!({"writes": (0..keys).map(put).collect::<Vec<_>>()})
}

#[test]
fn watchers_that_do_not_read_take_no_memory_without_end() {
    let scale = Scale::from_env();
    let watchers = scale.choose(200, 2_000);
    // In the deep form an event has about 40 KiB.
    let keys = scale.choose(50, 100);
    let time = scale.choose(Duration::from_secs(3), Duration::from_secs(30));
    allow_open_files(watchers as u64 + 1_000);
    let scene = Scene::set(1, &[]);
    let (address, key) = (scene.server.address, scene.attackers[0].clone());
    let watch = http::head("GET", "/v1/stores/main/watch?prefix=user:eve0", Some(&key));
    scene.attack("idle_watchers", async move {
        let mut opening = JoinSet::new();
        for _ in 0..watchers {
            let watch = format!("{watch}\r\n");
            opening.spawn(async move {
                let mut connection = connect(address, ATTACKER, Some(4 * 1024)).await?;
                connection.write_all(watch.as_bytes()).await?;
                std::io::Result::Ok(connection)
            });
        }
        let opened = opening.join_all().await;
        let held: Vec<TcpStream> = opened.into_iter().filter_map(Result::ok).collect();
        let end = Instant::now() + time;
        let mut writer = Client::new(address, ATTACKER);
        let mut commits = 0;
        while Instant::now() < end {
            let request = Request::post("/v1/stores/main/commit")
                .header("host", "localhost")
                .header("authorization", format!("Bearer {key}"))
                .header("content-type", "application/json")
                .body(Full::new(Bytes::from(commit(keys, commits).to_string())))
                .unwrap();
            let answer = writer.send(request, None).await;
            let status = answer.as_ref().map(|answer| answer.status);
            assert!(matches!(status, Ok(200 | 429 | 503)), "{status:?}");
            commits += 1;
        }
        vec![("watchers", held.len() as u64), ("commits", commits)]
    });
}
