//! Entries that fulfil conditions.

use keyward_agents::{Agents, Found, Namespace, Search};
use keyward_engine::{Code, Coded};
use keyward_records::Filter;
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, declared, json, put, set};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded, postgres: Postgres;
    entries_are_found_by_fields_with_and_without_an_index,
    pages_end_after_so_many_bytes_and_the_next_one_goes_on,
);

const INDEXED: &str = r#"
[stores.app]
[spaces.agent_data_store]
key = "agents:{user}:{namespace}:{key}"
ownership = "user"
indexes.by_status = { field = "value.status", type = "text" }
indexes.by_priority = { field = "metadata.priority", type = "integer" }
"#;

fn search(filter: &str) -> Search {
    Search::new().filter(Filter::parse(filter).unwrap())
}

async fn all(namespace: &Namespace, mut search: Search) -> (Vec<String>, Option<String>) {
    let mut keys = Vec::new();
    loop {
        let Found { entries, next, index, .. } = namespace.search(&search).await.unwrap();
        keys.extend(entries.into_iter().map(|entry| entry.key));
        match next {
            Some(next) => search = search.after(Some(next)),
            None => {
                keys.sort();
                return (keys, index);
            }
        }
    }
}

async fn fill(agents: &Agents) {
    for user in ["ada", "bob"] {
        let user = agents.user(user, keyward_agents::Actor::agent("filler"));
        for namespace in ["tasks", "tasks:old"] {
            let namespace = user.use_namespace(namespace).unwrap();
            let entries = (0..30).map(|n| {
                let status = ["open", "done", "Open"][n % 3];
                let value = format!(r#"{{"status":"{status}","n":{n}}}"#);
                let metadata = json(&format!(r#"{{"priority":{}}}"#, n % 5));
                (format!("t/{n:02}"), set(&value).metadata(metadata))
            });
            for written in namespace.set_many(entries.collect()).await.unwrap() {
                assert!(written.is_accepted());
            }
        }
    }
    put(
        &agents.user("ada", keyward_agents::Actor::nobody()).use_namespace("tasks").unwrap(),
        "x",
        "7",
    )
    .await;
}

async fn entries_are_found_by_fields_with_and_without_an_index(place: Place) {
    let indexed = declared(place.store().await, &place, INDEXED);
    fill(&indexed).await;
    let plain_place = Place::new(place.kind());
    let plain = Fixture::new(plain_place).await;
    fill(&plain.agents).await;
    for (filter, prefix, found, index) in [
        (r#"{"value.status":"open"}"#, "", 10, Some("by_status")),
        (r#"{"value.status":"open"}"#, "t/0", 4, Some("by_status")),
        (r#"{"value.status":"open","metadata.priority":{"gte":3}}"#, "", 4, Some("by_status")),
        (r#"{"metadata.priority":{"gte":3}}"#, "", 12, Some("by_priority")),
        (r#"{"metadata.priority":{"gt":3,"lt":9}}"#, "", 6, Some("by_priority")),
        (r#"{"value.n":{"lt":5}}"#, "", 5, None),
        (r#"{"createdByAgent":"filler"}"#, "", 30, None),
        (r#"{}"#, "", 31, None),
        (r#"{}"#, "t/2", 10, None),
        (r#"{"value":7}"#, "", 1, None),
    ] {
        for limit in [3, 100] {
            let search = search(filter).starting(prefix).limit(limit);
            let ada = |agents: &Agents| {
                let ada = agents.user("ada", keyward_agents::Actor::agent("finder"));
                ada.use_namespace("tasks").unwrap()
            };
            let with = all(&ada(&indexed), search.clone()).await;
            let without = all(&ada(&plain.agents), search).await;
            assert_eq!(with.0.len(), found, "{filter} {prefix}: {with:?}");
            assert_eq!(with.0, without.0, "{filter}");
            assert_eq!(with.1.as_deref(), index, "{filter}");
            assert_eq!(without.1, None);
        }
    }
    let ada = indexed.user("ada", keyward_agents::Actor::agent("finder"));
    let everywhere = ada.search(&search(r#"{"value.status":"done"}"#)).await.unwrap();
    assert_eq!(everywhere.entries.len(), 20);
    assert!(everywhere.entries.iter().all(|entry| entry.user == "ada"));
    assert_eq!(everywhere.entries[19].namespace, "tasks:old");
    let wrong = ada.search(&search(r#"{"status":"done"}"#)).await.unwrap_err();
    assert_eq!(wrong.code(), Code::Invalid);
    // A page that ends for its budget goes on.
    let few = search(r#"{"value.n":29}"#).budget(10);
    let first = plain.namespace("tasks").search(&few).await.unwrap();
    assert!(first.entries.is_empty() && first.next.is_some() && first.read.entries <= 10);
    assert_eq!(all(&plain.namespace("tasks"), few).await.0, ["t/29"]);
    // Searching is no access.
    assert_eq!(indexed.gathered().accesses, 0);
}

#[tokio::test]
async fn a_search_goes_on_as_it_began_although_an_index_is_built_meanwhile() {
    for everywhere in [false, true] {
        let place = Place::new(keyward_stores::Kind::Memory);
        fill(&crate::fixture::open(place.store().await, &place)).await;
        let agents = declared(place.store().await, &place, INDEXED);
        let ada = agents.user("ada", keyward_agents::Actor::agent("finder"));
        let tasks = ada.use_namespace("tasks").unwrap();
        let mut question = search(r#"{"value.status":"open"}"#).limit(4);
        let (mut found, mut pages) = (Vec::new(), 0);
        loop {
            let page = match everywhere {
                false => tasks.search(&question).await.unwrap(),
                true => ada.search(&question).await.unwrap(),
            };
            assert_eq!(page.index, None);
            found.extend(page.entries.into_iter().map(|entry| (entry.namespace, entry.key)));
            pages += 1;
            // The first write builds the index.
            put(&tasks, "x", "8").await;
            match page.next {
                Some(next) => question = question.after(Some(next)),
                None => break,
            }
        }
        assert!(pages > 2);
        assert_eq!(found.len(), if everywhere { 20 } else { 10 });
        found.dedup();
        assert_eq!(found.len(), if everywhere { 20 } else { 10 });
        let anew = tasks.search(&question.after(None)).await.unwrap();
        assert_eq!(anew.index.as_deref(), Some("by_status"));
    }
}

async fn pages_end_after_so_many_bytes_and_the_next_one_goes_on(place: Place) {
    const MANY: usize = 40;
    const PAGE_BYTES: usize = 10_000;
    let agents = declared(place.store().await, &place, INDEXED);
    let notes = agents.user("ada", keyward_agents::Actor::agent("a")).use_namespace("n").unwrap();
    let value = format!(r#"{{"status":"open","text":"{}"}}"#, "x".repeat(2_000));
    let entries = (0..MANY).map(|n| (format!("k{n:02}"), set(&value)));
    notes.set_many(entries.collect()).await.unwrap();
    let expected: Vec<String> = (0..MANY).map(|n| format!("k{n:02}")).collect();
    for filter in [r#"{"value.status":"open"}"#, r#"{"value.status":{"ne":"shut"}}"#, "{}"] {
        let mut search = search(filter).limit(1_000).bytes_max(PAGE_BYTES);
        let (mut keys, mut pages) = (Vec::new(), 0);
        loop {
            let found = notes.search(&search).await.unwrap();
            // Where rows have no order, what was read together comes together.
            assert!(found.entries.len() <= 32, "{filter}: {} entries", found.entries.len());
            keys.extend(found.entries.into_iter().map(|entry| entry.key));
            pages += 1;
            let Some(next) = found.next else { break };
            search = search.after(Some(next));
        }
        assert!(pages > 1, "{filter}: everything on one page");
        keys.sort();
        assert_eq!(keys, expected, "{filter}");
    }
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = notes.get_all_up_to("", after, 1_000, PAGE_BYTES).await.unwrap();
        assert!(page.entries.len() <= 32);
        keys.extend(page.entries.into_iter().map(|entry| entry.key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    keys.sort();
    assert_eq!(keys, expected);
    // Of what was confirmed, no more is removed.
    assert_eq!(notes.clear_up_to("", 25).await.unwrap(), 25);
    assert_eq!(notes.count("").await.unwrap(), MANY - 25);
    agents.close().await.unwrap();
}
