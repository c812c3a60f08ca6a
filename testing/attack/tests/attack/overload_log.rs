//! More requests than the server works on: it refuses them, and its log stays short.

use std::time::Duration;

use keyward_attack::Scale;
use serde_json::json;

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
    let scene = Scene::set_in(sandbox, 0, &["--tenant-rate", "none"]);
    let worker = scene.key(json!({"name": "worker", "scopes": ["write:store/main"]}));
    let address = scene.server.address;
    let before = scene.server.log_bytes();
    let figures = scene.attack("overload_log", async move {
        // A few claims wait for messages that never come; all others are refused at once.
        let counts = flood(address, &[ATTACKER], 64, time, move |_, _| {
            let path = "/v1/stores/main/queues/empty/claim";
            request("POST", path, Some(&worker), r#"{"max": 1, "wait_ms": 20000}"#)
        });
        let counts = counts.await;
        let count = |status| counts.get(&status).copied().unwrap_or_default();
        let refused = count(503) + count(429);
        vec![("refused", refused), ("other", counts.values().sum::<u64>() - refused)]
    });
    let logged = scene.server.log_bytes() - before;
    assert!(logged < LOG_BYTES_MAX, "{logged} bytes of log: {figures}");
}
