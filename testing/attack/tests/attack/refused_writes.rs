//! Writes of a key that may only read: the audit log has them, and must not fill the store.

use std::time::Duration;

use keyward_attack::Scale;
use serde_json::json;

use crate::client::ATTACKER;
use crate::flood::{flood, request};
use crate::scene::Scene;

/// What the store may grow by, whatever else happens: its pages are allocated ahead.
const GROWTH_ALLOWED: u64 = 2 * 1024 * 1024;
/// What one refused write may add on top. An audit line of its own would be 1,300 bytes.
const GROWTH_EACH: u64 = 100;

#[test]
fn refused_writes_do_not_fill_the_store() {
    let scale = Scale::from_env();
    let time = scale.choose(Duration::from_secs(3), Duration::from_secs(60));
    let scene = Scene::set(0, &["--tenant-rate", "none"]);
    let reader = scene.key(json!({"name": "reader", "user": "eve0", "scopes": ["read:*"]}));
    let address = scene.server.address;
    let before = scene.sandbox.store_bytes();
    let figures = scene.attack("refused_writes", async move {
        let counts = flood(address, &[ATTACKER], 16, time, move |client, round| {
            let path = format!("/v1/stores/main/entries/user:eve0:k{client}-{round}");
            request("PUT", &path, Some(&reader), "1")
        });
        let counts = counts.await;
        assert!(!counts.contains_key(&200), "a key that may only read has written: {counts:?}");
        let refused = counts.get(&403).copied().unwrap_or_default();
        vec![("refused", refused), ("other", counts.values().sum::<u64>() - refused)]
    });
    let grown = scene.sandbox.store_bytes().saturating_sub(before);
    let refused = figures.notes.iter().map(|(_, count)| count).sum::<u64>();
    let allowed = GROWTH_ALLOWED + refused * GROWTH_EACH;
    assert!(grown < allowed, "{refused} refused writes made the store {grown} bytes larger");
}
