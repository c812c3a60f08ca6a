//! Requests whose body never comes.

use std::time::Duration;

use keyward_attack::Scale;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::{ATTACKER, connect};
use crate::http;
use crate::scene::Scene;
use crate::server::allow_open_files;

const ANNOUNCED: &str = "content-type: application/json\r\ncontent-length: 100\r\n\r\n";

/// Sends heads that announce a body, and waits with it.
fn withhold_bodies(name: &'static str, method: &'static str, path: &'static str, keys: bool) {
    let scale = Scale::from_env();
    // More than the requests that a server works on at a time, also in the short form.
    let requests = 1_100;
    let time = scale.choose(Duration::from_secs(2), Duration::from_secs(30));
    allow_open_files(requests as u64 + 1_000);
    let scene = Scene::set(3, &[]);
    let address = scene.server.address;
    let heads: Vec<String> = scene
        .attackers
        .iter()
        .map(|key| format!("{}{ANNOUNCED}", http::head(method, path, keys.then_some(key))))
        .collect();
    scene.attack(name, async move {
        let mut opening = JoinSet::new();
        for n in 0..requests {
            let head = heads[n % heads.len()].clone();
            opening.spawn(async move {
                let mut connection = connect(address, ATTACKER, None).await?;
                connection.write_all(head.as_bytes()).await?;
                std::io::Result::Ok(connection)
            });
        }
        let opened = opening.join_all().await;
        let held: Vec<TcpStream> = opened.into_iter().filter_map(Result::ok).collect();
        sleep(time).await;
        vec![("held", held.len() as u64)]
    });
}

#[test]
fn puts_without_their_body_take_no_slots_from_others() {
    withhold_bodies("missing_bodies", "PUT", "/v1/stores/main/entries/user:eve0:x", true);
}

#[test]
fn strangers_take_no_slots_through_a_webhook() {
    withhold_bodies("missing_webhook_bodies", "POST", "/v1/registries/x/webhook", false);
}
