//! Stores in Forge's key-value store, by URL, with and without a coordinator.

use crate::database::{address, first_steps, is_sound, name};
use crate::sandbox::Sandbox;

/// An installation on the test server that no other test uses, and a command with its token.
fn installation() -> (Sandbox, String) {
    let api = address("KEYWARD_TEST_FORGE_KVS");
    let kw = Sandbox::new().with("FORGE_KVS_TOKEN", &format!("{}.1", name()));
    (kw, format!("forge-kvs://default?api={api}"))
}

#[test]
fn without_a_coordinator_what_needs_a_promise_is_refused() {
    let (kw, url) = installation();
    first_steps(&kw, &url);
    assert_eq!(kw.json(&["-s", &url, "stats", "--json"])["tier"], "advisory");
    let told = kw.fails(4, &["-s", &url, "lock", "exec", "page:7", "--", "true"]);
    assert!(told.contains("name a coordinator"), "{told}");
}

#[test]
fn in_an_entity_locks_work_and_late_listings_are_not_called_broken() {
    let (kw, url) = installation();
    let url = format!("{url}&entity=keyward");
    first_steps(&kw, &url);
    let stats = kw.json(&["-s", &url, "stats", "--json"]);
    assert_eq!(stats["tier"], "recoverable");
    let lags = (&stats["capabilities"]["lag_ms"], &stats["capabilities"]["get_lag_ms"]);
    assert_eq!(lags, (&60_000.into(), &0.into()));
    kw.ok(&["-s", &url, "lock", "exec", "page:7", "--", "true"]);
    let probed = kw.json(&["-s", &url, "doctor", "--probe", "--json"]);
    assert_eq!(probed["probe"], "sound", "{probed}");
    assert!(probed["not_probed"].to_string().contains("they may be 60 s late"), "{probed}");
}

#[test]
fn a_coordinator_makes_it_atomic() {
    let (kw, url) = installation();
    let url = format!("{url}&coordinator=embedded:./coord");
    first_steps(&kw, &url);
    is_sound(&kw, &url, "atomic");
    kw.ok(&["-s", &url, "lock", "exec", "page:7", "--", "true"]);
}
