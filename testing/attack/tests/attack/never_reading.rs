//! Connections that pipeline requests for a large entry and never read an answer.

use std::time::Duration;

use keyward_attack::Scale;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::client::{ATTACKER, connect};
use crate::http;
use crate::scene::Scene;
use crate::server::allow_open_files;

/// Requests on each connection.
const PIPELINED: usize = 32;
/// As small as the kernel allows: nearly everything has to wait in the server.
const RECEIVE_BUFFER: u32 = 4 * 1024;
/// Connections that are being opened at a time.
const OPENING_MAX: usize = 256;

#[test]
fn connections_that_never_read_do_not_shut_others_out() {
    let scale = Scale::from_env();
    let connections = scale.choose(100, 10_050);
    // In the deep form as large as a request body may make it.
    let value_bytes = scale.choose(100 * 1024, 900 * 1024);
    let time = scale.choose(Duration::from_secs(2), Duration::from_secs(40));
    allow_open_files(connections as u64 + 1_000);
    let scene = Scene::set(scale.choose(2, 12), &[]);
    scene.put("shared:large", &json!("x".repeat(value_bytes)));
    let address = scene.server.address;
    let pipelines: Vec<String> = scene
        .attackers
        .iter()
        .map(|key| {
            let get = http::head("GET", "/v1/stores/main/entries/shared:large", Some(key));
            format!("{get}\r\n").repeat(PIPELINED)
        })
        .collect();
    scene.attack("never_reading", async move {
        let end = Instant::now() + time;
        let mut opening = JoinSet::new();
        let mut held: Vec<TcpStream> = Vec::new();
        let mut refused = 0;
        for n in 0..connections {
            let pipeline = pipelines[n % pipelines.len()].clone();
            opening.spawn(async move {
                let mut connection = connect(address, ATTACKER, Some(RECEIVE_BUFFER)).await?;
                connection.write_all(pipeline.as_bytes()).await?;
                std::io::Result::Ok(connection)
            });
            if opening.len() >= OPENING_MAX || n + 1 == connections {
                while let Some(opened) = opening.join_next().await {
                    match opened.unwrap() {
                        Ok(connection) => held.push(connection),
                        Err(_) => refused += 1,
                    }
                }
            }
        }
        sleep_until(end).await;
        vec![("held", held.len() as u64), ("refused", refused)]
    });
}
