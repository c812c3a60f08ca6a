//! More requests than the server works on: it refuses them, and its log stays short.

use std::time::Duration;

use keyward_attack::Scale;

use crate::client::ATTACKER;
use crate::flood::{flood, request};
use crate::sandbox::Sandbox;
use crate::scene::Scene;

/// What the log may grow by, however many requests are refused.
const LOG_BYTES_MAX: u64 = 64 * 1024;

#[test]
fn refusals_under_overload_are_summed_up_in_the_log() {
    let scale = Scale::from_env();
    let time = scale.choose(Duration::from_secs(2), Duration::from_secs(25));
    let sandbox = Sandbox::new();
    sandbox.write("keyward.toml", "[server]\nlimits.requests_max = 16\n");
    sandbox.seed((0..1_000).map(|n| (format!("shared:list:{n:04}"), "x".repeat(200).into())));
    let scene = Scene::set_in(sandbox, 4, &["--tenant-rate", "none"]);
    let (address, keys) = (scene.server.address, scene.attackers.clone());
    let before = scene.server.log_bytes();
    let figures = scene.attack("overload_log", async move {
        let counts = flood(address, &[ATTACKER], 128, time, move |client, _| {
            let key = &keys[client % keys.len()];
            let path = "/v1/stores/main/entries?prefix=shared:list&values=true&limit=1000";
            request("GET", path, Some(key), "")
        });
        let counts = counts.await;
        let count = |status| counts.get(&status).copied().unwrap_or_default();
        let refused = count(503) + count(429);
        vec![("refused", refused), ("other", counts.values().sum::<u64>() - refused)]
    });
    let logged = scene.server.log_bytes() - before;
    assert!(logged < LOG_BYTES_MAX, "{logged} bytes of log for {}", figures);
}
