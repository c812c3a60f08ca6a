//! A database that keeps several copies of each document, and so cannot compare and swap.

use keyward_agents::Actor;
use keyward_engine::{Commit, Consistency, ErrorKind, Expect, Put, Tier};
use keyward_key::Key;
use keyward_records::Precondition;

use super::place::{InPlace, run};
use crate::fixture::{keys, put, set};

#[test]
fn a_couchdb_cluster_promises_no_compare_and_swap() {
    run(keyward_stores::Documents::couchdb_cluster(), promises_no_compare_and_swap);
}

async fn promises_no_compare_and_swap(place: InPlace) {
    let agents = place.agents().await;
    let capabilities = agents.records().store().capabilities().clone();
    assert_eq!(capabilities.tier(), Tier::Advisory);
    assert!(matches!(capabilities.consistency, Consistency::Eventual { .. }), "{capabilities:?}");
    let notes = agents.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    put(&notes, "k", "1").await;
    let version = notes.entry("k").await.unwrap().unwrap().version;
    // The database is asked for no comparison that it does not make. What was just read is compared, for what that is worth.
    let key = Key::parse("agents:ada:default:k").unwrap();
    let value = agents.records().store().get(&key).await.unwrap().unwrap().value;
    let checked =
        Commit::new().check(key.clone(), Expect::Version(version)).put(key, Put::new(value));
    let refused = agents.records().store().commit(checked).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    let absent = set("2").expecting(Precondition::Absent);
    assert!(!notes.set("k", absent).await.unwrap().is_accepted());
    put(&notes, "k", "3").await;
    assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), "3");
    assert_eq!(keys(&notes, "", 10).await, ["k"]);
    agents.close().await.unwrap();
    let document = place.meaning("ada:default:aw==").await;
    assert_eq!(document.member("value").unwrap().to_json(), "3");
    assert_eq!(document.member("accessCount").unwrap().to_json(), "2");
    assert!(notes.delete("k").await.unwrap());
    assert_eq!(place.document("ada:default:aw==").await, None);
}
