//! Processes that end at any call to the engine.

use std::time::Duration;

use keyward_engine::Store;
use keyward_testkit::{Faults, FaultyEngine, When};
use serde_json::{Value, json};

use crate::fixture::{Fixture, drained, read};
use crate::server::Server;

fn consumers(fixture: &Fixture, server: &Server) -> Value {
    json!({ "site": { "export": fixture.place("out") }, "hook": { "post": server.url } })
}

/// A registry with a change of each kind in its queue.
async fn prepared(server: &Server) -> Fixture {
    let fixture = Fixture::new();
    let registry = fixture.registry(consumers(&fixture, server));
    fixture.repository.write("changed.md", "# Old\n").write("gone.md", "# Gone\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(2, 0, 0));
    fixture.repository.write("changed.md", "# New\n").write("new.md", "# New\n").remove("gone.md");
    fixture.sync(&registry).await;
    fixture
}

/// Drains, and dies at a call; how many calls were made.
async fn dying(fixture: &Fixture, server: &Server, faults: Faults) -> u64 {
    let engine = FaultyEngine::new(fixture.engine.clone(), faults);
    let store = Store::new(engine.clone());
    let registry = fixture.registry_in(store, consumers(fixture, server));
    // Dead processes do not wait.
    let _ = tokio::time::timeout(Duration::from_secs(30), registry.drain()).await.unwrap();
    engine.calls()
}

#[tokio::test]
async fn what_a_process_that_died_anywhere_has_left_is_told_by_the_next() {
    let server = Server::start([]).await;
    let calls = dying(&prepared(&server).await, &server, Faults::none()).await;
    assert!(calls > 8, "{calls}");
    for call in 0..calls {
        for when in [When::Before, When::After] {
            let fixture = prepared(&server).await;
            let begun = server.seen().len();
            dying(&fixture, &server, Faults::crash_at(call, when)).await;
            fixture.clock.advance(Duration::from_secs(600));
            let registry = fixture.registry(consumers(&fixture, &server));
            let what = format!("{when:?} call {call}");
            let done = fixture.drain(&registry).await;
            assert_eq!((done.failed, done.left), (0, 0), "{what}");
            for name in ["changed", "new"] {
                let file = fixture.path("out/policies").join(name).join("policy.md");
                assert!(read(file).ends_with("# New\n"), "{what}");
            }
            assert!(!fixture.path("out/policies/gone").exists(), "{what}");
            assert!(fixture.keys("queue:").await.is_empty(), "{what}");
            assert!(fixture.keys("dead-letter:").await.is_empty(), "{what}");
            let accepted = fixture.accepted().await;
            let by_hook = ["hook:changed update", "hook:gone delete", "hook:new add"];
            let by_site = ["site:changed update", "site:gone delete", "site:new add"];
            assert_eq!(accepted, [by_hook, by_site].concat(), "{what}");
            // Each was told, and what was told twice was told under the same id.
            let mut told: Vec<String> = server.seen()[begun..]
                .iter()
                .map(|seen| seen.header("webhook-id").unwrap().to_owned())
                .collect();
            assert!((3..=6).contains(&told.len()), "{what}: {told:?}");
            told.sort();
            told.dedup();
            assert_eq!(told.len(), 3, "{what}");
        }
    }
}
