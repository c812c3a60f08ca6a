//! Who accessed entries: counted in memory, written where the document has it.

use std::time::Duration;

use keyward_agents::Actor;
use keyward_testkit::Meaning;

use super::place::{InPlace, entry};
use crate::fixture::put;

on_documents!(
    accesses_are_written_into_the_document,
    accesses_of_several_processes_add_up,
    accesses_of_an_entry_that_was_made_anew_do_not_count,
    what_the_original_program_counts_stays,
    only_agents_are_counted,
);

const ID: &str = "ada:default:aw==";

async fn count(place: &InPlace) -> String {
    place.meaning(ID).await.member("accessCount").unwrap().to_json()
}

async fn accesses_are_written_into_the_document(place: InPlace) {
    let agents = place.agents().await;
    let notes = agents.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    put(&notes, "k", "1").await;
    agents.flush().await.unwrap();
    place.clock().advance(Duration::from_secs(5));
    let reader = agents.user("ada", Actor::agent("reader")).use_namespace("default").unwrap();
    for _ in 0..100 {
        assert!(reader.get("k").await.unwrap().is_some());
    }
    assert_eq!(count(&place).await, "0");
    assert_eq!(reader.entry("k").await.unwrap().unwrap().access.count, 101);
    agents.flush().await.unwrap();
    let document = place.meaning(ID).await;
    let text = |name: &str| document.member(name).and_then(|it| it.text()).map(str::to_owned);
    assert_eq!(document.member("accessCount"), Some(&Meaning::of("101")));
    assert_eq!(text("lastAccessedByAgent").as_deref(), Some("reader"));
    assert_eq!(text("lastAccessedAt").as_deref(), Some("2026-01-01T00:00:05Z"));
    assert_eq!(text("updatedAt").as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(agents.gathered().accesses, 0);
    agents.flush().await.unwrap();
    assert_eq!(count(&place).await, "101");
}

async fn accesses_of_several_processes_add_up(place: InPlace) {
    let fields = entry("ada", "default", "k", "1");
    place.load(&[(ID, &fields)]).await;
    let mut all = Vec::new();
    for n in 0..4 {
        all.push((place.agents().await, format!("agent-{n}")));
    }
    let mut tasks = tokio::task::JoinSet::new();
    for (agents, agent) in all {
        tasks.spawn(async move {
            let notes = agents.user("ada", Actor::agent(&agent)).use_namespace("default").unwrap();
            for _ in 0..25 {
                assert!(notes.get("k").await.unwrap().is_some());
                agents.flush().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    // One was there before.
    assert_eq!(count(&place).await, "101");
}

async fn accesses_of_an_entry_that_was_made_anew_do_not_count(place: InPlace) {
    let agents = place.agents().await;
    let notes = agents.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    put(&notes, "k", "1").await;
    assert!(notes.get("k").await.unwrap().is_some());
    let other = place.namespace("default").await;
    assert!(other.delete("k").await.unwrap());
    place.clock().advance(Duration::from_secs(2));
    put(&other, "k", "2").await;
    agents.flush().await.unwrap();
    assert_eq!(count(&place).await, "0");
    // Nor is an entry made by counting.
    assert!(notes.get("k").await.unwrap().is_some());
    assert!(other.delete("k").await.unwrap());
    agents.flush().await.unwrap();
    assert_eq!(place.document(ID).await, None);
    assert_eq!(agents.gathered().accesses, 0);
}

async fn what_the_original_program_counts_stays(place: InPlace) {
    let fields = entry("ada", "default", "k", "1");
    place.load(&[(ID, &fields)]).await;
    let agents = place.agents().await;
    let notes = agents.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    for round in 0..5 {
        assert!(notes.get("k").await.unwrap().is_some());
        // As the original program does: it reads, adds to its count, and writes.
        let client = place.documents().await;
        let before = place.document(ID).await.unwrap();
        let counted = Meaning::of(before.fields.as_str());
        let Meaning::Object(mut members) = counted else { panic!("no object") };
        let old: u64 = members["accessCount"].to_json().parse().unwrap();
        members.insert("accessCount".to_owned(), Meaning::of(&(old + 10).to_string()));
        let counted = Meaning::Object(members).to_json();
        let counted = keyward_engine::Json::parse(counted).unwrap();
        let swapped = client.put(ID, &counted, Some(&before)).await.unwrap();
        assert!(matches!(swapped, keyward_engine::Swapped::Applied { .. }));
        agents.flush().await.unwrap();
        assert_eq!(count(&place).await, (1 + 11 * (round + 1)).to_string());
    }
}

async fn only_agents_are_counted(place: InPlace) {
    let fields = entry("ada", "default", "k", "1");
    place.load(&[(ID, &fields)]).await;
    let before = place.document(ID).await;
    let agents = place.agents().await;
    let nobody = agents.user("ada", Actor::nobody()).use_namespace("default").unwrap();
    assert!(nobody.entry("k").await.unwrap().is_some());
    assert_eq!(nobody.get_all("", None, 10).await.unwrap().entries.len(), 1);
    agents.close().await.unwrap();
    assert_eq!(place.document(ID).await, before);
}
