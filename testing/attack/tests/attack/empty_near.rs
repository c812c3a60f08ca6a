//! Searches near a place, with a filter that matches nothing: each reads all it may.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use keyward_attack::Scale;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{ATTACKER, Client};
use crate::sandbox::Sandbox;
use crate::scene::Scene;

/// A station near the centre: all of them are in the circle.
fn station(n: usize) -> (String, Value) {
    let (lat, lon) = (50.0 + (n / 200) as f64 * 0.0005, 8.0 + (n % 200) as f64 * 0.0005);
    let value = json!({"name": format!("station {n}"), "position": {"lat": lat, "lon": lon}});
    (format!("shared:stations:s{n:06}"), value)
}

#[test]
fn searches_that_match_nothing_do_not_delay_others() {
    let scale = Scale::from_env();
    let searchers = scale.choose(60, 100);
    let time = scale.choose(Duration::from_secs(2), Duration::from_secs(20));
    let sandbox = Sandbox::new();
    sandbox.seed((0..scale.choose(4_000, 40_000)).map(station));
    let scene = Scene::set_in(sandbox, 1, &["--tenant-rate", "none"]);
    let (address, key) = (scene.server.address, scene.attackers[0].clone());
    let search = json!({
        "lat": 50.0, "lon": 8.0, "radius_m": 100_000.0, "filter": {"name": "nowhere"}, "limit": 1_000,
    });
    let body = Bytes::from(search.to_string());
    scene.attack("empty_near", async move {
        let end = Instant::now() + time;
        let (searched, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut searching = JoinSet::new();
        for _ in 0..searchers {
            let (key, body) = (key.clone(), body.clone());
            let (searched, refused) = (Arc::clone(&searched), Arc::clone(&refused));
            searching.spawn(async move {
                let mut client = Client::new(address, ATTACKER);
                while Instant::now() < end {
                    let request = Request::post("/v1/spaces/stations/near")
                        .header("host", "localhost")
                        .header("authorization", format!("Bearer {key}"))
                        .header("content-type", "application/json")
                        .body(Full::new(body.clone()))
                        .unwrap();
                    // When the attack ends, whoever still waits hangs up.
                    let answer = tokio::time::timeout_at(end, client.send(request, None)).await;
                    let Ok(answer) = answer else { break };
                    let counted = match answer {
                        Ok(answer) if answer.status == 200 => &searched,
                        _ => &refused,
                    };
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        searching.join_all().await;
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        vec![("searched", count(&searched)), ("refused", count(&refused))]
    });
}
