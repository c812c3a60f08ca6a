//! Tools for locks.

use serde_json::json;

use super::client::{Agent, Session};
use crate::fixture::{Running, answered, told};
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

/// Waits until so many wait for the lock.
async fn waiting(server: &Running, count: usize) {
    loop {
        let standing = told(200, server.get("/v1/stores/app/locks?root=page:7")).await;
        if standing["waiters"].as_array().unwrap().len() == count {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_the_line() {
    let server = served().await;
    let agent = Agent::new(&server);
    agent.call("lock_acquire", json!({ "root": "page:7", "ttl": 60 })).await;
    let params = json!({ "name": "lock_acquire", "arguments": { "root": "page:7", "wait": 25 } });

    // By hanging up.
    let call = tokio::spawn(agent.request("tools/call", params.clone()).send());
    waiting(&server, 1).await;
    call.abort();
    waiting(&server, 0).await;

    // By saying so.
    let session = Session::begin(&server, "2025-11-25", None).await;
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params });
    let stream = answered(200, session.request(&call)).await;
    waiting(&server, 1).await;
    let cancelled = json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": 5, "reason": "no longer wanted" },
    });
    answered(202, session.request(&cancelled)).await;
    waiting(&server, 0).await;
    drop(stream);
}
