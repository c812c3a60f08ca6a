//! Several at the same time.

use keyward_records::Written;
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, json, set};

// Where the last writer wins, one of two may lose what it says: nothing can be promised.
on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded, postgres: Postgres;
    two_racing_sets_both_succeed_and_no_metadata_is_lost,
);

const ROUNDS: usize = 1_000;

async fn two_racing_sets_both_succeed_and_no_metadata_is_lost(place: Place) {
    let fixture = Fixture::new(place).await;
    // As two processes would.
    let other = fixture.again().await;
    let notes = fixture.namespace("default");
    let others = other.user("ada", keyward_agents::Actor::agent("rival"));
    let others = others.use_namespace("default").unwrap();
    for round in 0..ROUNDS {
        // New entries, and entries that are there.
        let key = format!("k{}", round / 2);
        let one = set(&round.to_string()).metadata(json(&format!(r#"{{"a{round}":1}}"#)));
        let two = set(&round.to_string()).metadata(json(&format!(r#"{{"b{round}":1}}"#)));
        let task = tokio::spawn({
            let (others, key) = (others.clone(), key.clone());
            async move { others.set(&key, two).await }
        });
        let one = notes.set(&key, one).await.unwrap();
        let two = task.await.unwrap().unwrap();
        assert!(one.is_accepted() && two.is_accepted());
        let made = |written: &Written| matches!(written, Written::Applied { created: true, .. });
        assert_eq!(usize::from(made(&one)) + usize::from(made(&two)), usize::from(round % 2 == 0));
        let metadata = notes.entry(&key).await.unwrap().unwrap().metadata.unwrap();
        for name in [format!(r#""a{round}""#), format!(r#""b{round}""#)] {
            assert!(metadata.as_str().contains(&name), "round {round}: {metadata}");
        }
    }
}
