//! Tools for locks.

use serde_json::json;

use super::client::Agent;
use crate::spaces::served;

#[tokio::test]
async fn a_lock_is_taken_renewed_and_released() {
    let server = served().await;
    let agent = Agent::new(&server);
    let asked = json!({ "root": "page:7", "paths": ["policies"], "ttl": 30, "purpose": "a test" });
    let held = agent.call("lock_acquire", asked.clone()).await;
    assert_eq!((&held["root"], &held["mode"]), (&json!("page:7"), &json!("exclusive")));
    let said = agent.refused("lock_acquire", asked.clone()).await;
    assert!(said.starts_with("locked") && said.contains("wait: 25"), "{said}");
    assert!(said.contains("a test"), "who holds it, and what for: {said}");
    let renewed = agent.call("lock_renew", json!({ "ticket": held["ticket"] })).await;
    assert_eq!((&renewed["token"], &renewed["ttl"]), (&held["token"], &json!(30)));
    let outrun = json!({ "ticket": held["ticket"], "outrun": true });
    let outrun = agent.call("lock_renew", outrun).await;
    assert_ne!(outrun["ticket"], held["ticket"]);
    let release = json!({ "ticket": outrun["ticket"] });
    assert_eq!(agent.call("lock_release", release.clone()).await["released"], true);
    assert_eq!(agent.call("lock_release", release.clone()).await["released"], true);
    let said = agent.refused("lock_renew", release).await;
    assert!(said.starts_with("lock-lost") && said.contains("lock_acquire"), "{said}");
    agent.call("lock_acquire", asked).await;
}

#[tokio::test]
async fn what_is_no_lock_is_refused() {
    let server = served().await;
    let agent = Agent::new(&server);
    for (tool, arguments, code) in [
        ("lock_acquire", json!({}), "invalid"),
        ("lock_acquire", json!({ "root": "system:x" }), "reserved"),
        ("lock_acquire", json!({ "root": "page:7", "ttl": -1 }), "invalid"),
        ("lock_acquire", json!({ "root": "page:7", "store": "none" }), "unknown-store"),
        ("lock_renew", json!({ "ticket": "none" }), "invalid"),
        ("lock_release", json!({ "ticket": "none" }), "invalid"),
    ] {
        let said = agent.refused(tool, arguments.clone()).await;
        assert!(said.starts_with(code), "{tool} {arguments}: {said}");
    }
}
