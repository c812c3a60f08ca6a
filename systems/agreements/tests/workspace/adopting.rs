//! Agreements that a Forge app wrote, opened as a workspace.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use keyward_agreements::{Course, Filter, Issue, IssueId, Precision, Severity, Sort, State};
use keyward_coordinated::Coordinated;
use keyward_engine::{Engine, Json, Put, Scan, Store, Tier};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use keyward_stores::{Place, on_engines, on_every_engine};
use keyward_testkit::{Faults, FaultyEngine, TestClock, When};
use serde_json::{Value, json};

use crate::fixture::{Desk, language, page, source};

on_every_engine!(
    what_the_app_wrote_opens_as_a_workspace,
    an_export_comes_to_the_same_as_the_app_s_own_keys,
    what_cannot_be_taken_over_is_told_and_stays,
    a_page_that_the_app_works_on_is_left_alone,
    what_only_looks_like_a_lock_catalog_is_left_alone,
    an_export_of_a_workspace_is_written_where_nothing_is,
    hundreds_of_entries_are_taken_over,
);

on_engines!(
    forge_kvs: ForgeKvs;
    what_the_app_wrote_opens_as_a_workspace,
    what_the_app_wrote_in_forge_opens_with_a_coordinator,
);

const V1: &str = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
const V2: &str = "0b9ff2a0-3f5a-4a0e-9a51-6a5c2f6b8d11";
const CONTENT: &str = "# Study leave\n\nÉvery candidate may take a leave of one year.";

/// What the app keeps: documents, issues of its two versions, jobs, locks, and when it purged.
fn written() -> Vec<(String, Value)> {
    let entries = json!({
        "abc123:policy:leave": {
            "original": true, "language": "en", "source": "leave", "created": "2026-01-02T10:00:00.000",
            "title": "Study leave", "content": CONTENT,
        },
        "abc123:policy:leave:fr": {
            "original": false, "language": "fr", "source": "leave", "created": "2026-01-02T10:05:00.000",
            "title": "Congé", "content": "# Congé", "model": { "tokens": 1.5 },
        },
        (format!("abc123:issue:{V1}")): {
            "id": V1, "created": "2026-01-02T11:00:00", "resolved": "2026-01-03T11:00:00",
            "severity": 3, "title": "Who pays?", "annotations": "asked",
            "description": ["See ", {
                "source": "leave", "title": "Study leave", "excerpt": "a leave of one year",
                "offset": 5, "length": 19,
            }],
        },
        (format!("abc123:issue:{V2}")): {
            "id": V2, "created": "2026-01-02T12:00:00Z", "updated": "2026-01-04T12:00:00Z",
            "state": "blocked", "severity": 1, "title": "Term", "description": "A text.", "annotations": "",
        },
        "job:task456": 7,
        "job:task457": { "code": 500, "text": "no answer" },
        "abc123": {
            "version": 12,
            "locks": { "policy:leave:fr": { "owner": "7", "created": "2025-12-31T10:00:00" } },
        },
        "system:purged": "2026-01-01T22:00:00",
        "notes:7": { "somebody": "else" },
    });
    let Value::Object(entries) = entries else { panic!("they are members") };
    entries.into_iter().collect()
}

async fn fill(store: &Store) {
    for (key, value) in written() {
        let put = Put::new(Json::from_value(&value).unwrap());
        store.put(Key::parse(&key).unwrap(), put).await.unwrap();
    }
}

async fn what_the_app_wrote_in_forge_opens_with_a_coordinator(place: Place) {
    for (name, value) in written() {
        place.write_as_app(&name, value).await;
    }
    let store = place.store().await;
    let desk = desk(store.clone(), place.clock()).await;
    let told = desk.workspace.adopt(true).await.unwrap();
    assert_eq!((told.policies, told.issues, told.jobs, told.locks), (2, 2, 2, 1));
    assert_eq!((told.purged, told.unknown, told.left, told.total()), (true, 1, 0, 8));
    assert_adopted(&desk).await;
    let again = desk.workspace.adopt(true).await.unwrap();
    assert_eq!((again.total(), again.already, again.left), (0, 5, 0));
}

/// The page with its attachment, as the wiki has it.
async fn desk(store: Store, clock: &TestClock) -> Desk {
    let desk = Desk::new(store, clock.clone(), None);
    desk.put_page("abc123").await;
    desk.attach("abc123", "leave", "whatever it says").await;
    clock.advance(Duration::from_secs(3 * 86_400));
    desk
}

/// Everything in a store, uploads apart.
async fn content(store: &Store) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut scan = Scan::new(KeyRange::all());
    loop {
        let page = store.scan(&scan).await.unwrap();
        for row in page.rows {
            let entry = row.entry.unwrap();
            let metadata = entry.metadata.map_or_else(String::new, |metadata| metadata.to_string());
            rows.push((row.key.to_string(), format!("{} {metadata}", entry.value)));
        }
        match page.next {
            Some(next) => scan = scan.after(Some(next)),
            None => break,
        }
    }
    rows.retain(|(key, _)| !key.starts_with("upload:"));
    rows
}

fn id(text: &str) -> IssueId {
    IssueId::parse(text).unwrap()
}

/// That everything the app knew is there, and can be worked with.
async fn assert_adopted(desk: &Desk) {
    let (workspace, at, leave) = (&desk.workspace, page("abc123"), source("leave"));
    let original = workspace.cached_policy(&at, &leave, None).await.unwrap().unwrap();
    assert_eq!((&*original.title, &*original.content), ("Study leave", CONTENT));
    assert_eq!(original.created.to_string(), "2026-01-02T10:00:00Z");
    let french = workspace.cached_policy(&at, &leave, Some(language("fr"))).await.unwrap().unwrap();
    assert_eq!((french.original, &*french.title), (false, "Congé"));
    let listed = workspace.listed_policies(&at).await.unwrap();
    assert!(listed[&leave].extracted && listed[&leave].translations == ["fr"]);

    let issues = workspace.issues().of(&at).unwrap();
    let all = issues.list(&Filter::default(), Sort::default(), None, 10).await.unwrap();
    assert_eq!(all.total, 2);
    let first: Issue = issues.get(id(V1)).await.unwrap().issue;
    assert_eq!((first.state, first.severity), (State::Resolved, Severity::High));
    assert_eq!((first.annotations.as_str(), first.stale), ("asked", false));
    let found = first.references().next().unwrap();
    assert_eq!((found.offset, found.length, found.located), (40, 19, Precision::Exact));
    let second = issues.get(id(V2)).await.unwrap().issue;
    assert_eq!((second.state, second.description.len()), (State::Blocked, 1));
    // Under the locks of the page, whose catalog was the app's.
    let ada = keyward_agreements::By::new("ada");
    let moved = issues.transition(id(V2), State::Active, &ada).await.unwrap().issue;
    assert_eq!((moved.state, moved.history.len()), (State::Active, 2));
    issues.transition(id(V1), State::Active, &ada).await.unwrap();
    workspace.policies(&at, &Course::untold()).await.unwrap();
    assert!(workspace.cached_policy(&at, &leave, None).await.unwrap().is_some());
}

async fn what_the_app_wrote_opens_as_a_workspace(place: Place) {
    let store = place.store().await;
    fill(&store).await;
    let desk = desk(store.clone(), place.clock()).await;
    let before = content(&store).await;
    let told = desk.workspace.adopt(false).await.unwrap();
    assert_eq!(content(&store).await, before, "a plan writes nothing");
    assert_eq!((told.policies, told.issues, told.jobs, told.locks), (2, 2, 2, 1));
    assert_eq!((told.purged, told.unknown, told.left, told.total()), (true, 1, 0, 8));
    let done = desk.workspace.adopt(true).await.unwrap();
    assert_eq!(done, told);
    // What is not taken over in its place is kept beside.
    let after = content(&store).await;
    let aside: Vec<&(String, String)> =
        after.iter().filter(|(key, _)| key.starts_with("system:adopted:")).collect();
    let keys: Vec<&str> = aside.iter().map(|(key, _)| &**key).collect();
    let expected = [
        "system:adopted:abc123",
        "system:adopted:job:task456",
        "system:adopted:job:task457",
        "system:adopted:system:purged",
    ];
    assert_eq!(keys, expected);
    for (key, value) in aside {
        let original = key.strip_prefix("system:adopted:").unwrap();
        assert!(before.contains(&(original.to_owned(), value.clone())), "{key}");
    }
    assert!(after.contains(&before.iter().find(|(key, _)| key == "notes:7").unwrap().clone()));
    let french = after.iter().find(|(key, _)| key == "abc123:policy:leave:fr").unwrap();
    assert!(french.1.contains(r#""model":{"tokens":1.5}"#), "{}", french.1);

    assert_adopted(&desk).await;
    let again = desk.workspace.adopt(true).await.unwrap();
    assert_eq!((again.total(), again.already, again.left), (0, 5, 0));
    assert_eq!(desk.workspace.jobs().get("task456").await.unwrap(), None);
}

fn export() -> String {
    // A line for each entry, in an order that helps nobody, with an empty one at the end.
    let lines = written().into_iter().rev();
    let lines: Vec<String> =
        lines.map(|(key, value)| json!({ "key": key, "value": value }).to_string()).collect();
    format!("{}\n\n", lines.join("\n"))
}

async fn an_export_comes_to_the_same_as_the_app_s_own_keys(place: Place) {
    let store = place.store().await;
    let desk = desk(store.clone(), place.clock()).await;
    let open = || Ok(Cursor::new(export()));
    let told = desk.workspace.adopt_export(open, false).await.unwrap();
    assert_eq!(content(&store).await, []);
    assert_eq!((told.total(), told.unknown, told.left), (8, 1, 0));
    assert_eq!(desk.workspace.adopt_export(open, true).await.unwrap(), told);

    let clock = TestClock::new();
    let other = Store::new(Memory::with(keyward_memory::Options::default(), clock.clone()));
    fill(&other).await;
    let theirs = self::desk(other.clone(), &clock).await;
    theirs.workspace.adopt(true).await.unwrap();
    let mut expected = content(&other).await;
    expected.retain(|(key, _)| key != "notes:7");
    assert_eq!(content(&store).await, expected);
    assert_adopted(&desk).await;
    // What was changed since is not brought back.
    let before = content(&store).await;
    let again = desk.workspace.adopt_export(open, true).await.unwrap();
    assert_eq!((again.total(), again.left, again.already), (0, 0, 8));
    assert_eq!(content(&store).await, before);
}

async fn what_cannot_be_taken_over_is_told_and_stays(place: Place) {
    let store = place.store().await;
    for (key, value) in [
        ("abc123:policy:leave", r#"{"created":"2026-01-02T10:00:00","text":"no content"}"#),
        ("abc123:policy:leave:tlh", r#"{"created":1,"content":"x"}"#),
        ("abc123:issue:7", r#"{"created":1,"severity":1,"title":"T"}"#),
        ("abc123:issue:f47ac10b-58cc-4372-a567-0e02b2c3d479", r#"{"severity":9}"#),
        ("system:purged", "true"),
    ] {
        store.put(Key::parse(key).unwrap(), Put::new(Json::parse(value).unwrap())).await.unwrap();
    }
    let desk = desk(store.clone(), place.clock()).await;
    let before = content(&store).await;
    let done = desk.workspace.adopt(true).await.unwrap();
    assert_eq!((done.total(), done.left, done.problems.len()), (0, 5, 5));
    assert_eq!(content(&store).await, before);
    let reasons: Vec<&str> = done.problems.iter().map(|problem| &*problem.reason).collect();
    assert!(reasons.iter().any(|reason| reason.contains("tlh")), "{reasons:?}");

    // Lines that are none are named by their number, and what is there is not overwritten.
    let lines = concat!(
        "{\"key\":\"abc123:policy:leave\",\"value\":{\"created\":1,\"content\":\"x\"}}\n",
        "nonsense\n",
        "{\"key\":\"abc123:policy:other\",\"value\":{\"created\":1,\"content\":\"x\"}}\n",
    );
    let done = desk.workspace.adopt_export(|| Ok(Cursor::new(lines)), true).await.unwrap();
    assert_eq!((done.policies, done.left), (1, 2));
    assert_eq!(done.problems[0].key, "abc123:policy:leave");
    assert_eq!(done.problems[1].key, "line 2");
    let after = content(&store).await;
    assert!(before.iter().all(|entry| after.contains(entry)));
}

async fn a_page_that_the_app_works_on_is_left_alone(place: Place) {
    let store = place.store().await;
    let desk = desk(store.clone(), place.clock()).await;
    let key = Key::parse("abc123").unwrap();
    let catalog = json!({ "locks": [{ "id": "issues", "at": "2026-01-03T23:59:30" }] });
    let put = Put::new(Json::from_value(&catalog).unwrap());
    store.put(key.clone(), put).await.unwrap();
    let done = desk.workspace.adopt(true).await.unwrap();
    assert_eq!((done.locks, done.left), (0, 1));
    assert!(done.problems[0].reason.contains("two minutes"), "{:?}", done.problems);
    assert!(store.get(&key).await.unwrap().is_some());
    place.clock().advance(Duration::from_secs(120));
    assert_eq!(desk.workspace.adopt(true).await.unwrap().locks, 1);
    assert!(store.get(&key).await.unwrap().is_none());
}

async fn what_only_looks_like_a_lock_catalog_is_left_alone(place: Place) {
    let catalog = json!({ "version": 3, "locks": {} });
    let document = json!({ "created": "2026-01-02T10:00:00", "content": "text" });
    let entries = [
        ("config", json!({ "version": 2, "theme": "dark" })),
        ("empty", json!({})),
        ("lonely", catalog.clone()),
        ("paged", catalog),
        ("paged:policy:leave", document.clone()),
        ("theme", json!({ "version": 2, "locks": { "door": true }, "color": "red" })),
        ("theme:policy:leave", document),
    ];
    let store = place.store().await;
    for (key, value) in &entries {
        let put = Put::new(Json::from_value(value).unwrap());
        store.put(Key::parse(key).unwrap(), put).await.unwrap();
    }
    let lines: Vec<String> = entries
        .iter()
        .map(|(key, value)| json!({ "key": key, "value": value }).to_string())
        .collect();
    let desk = desk(store.clone(), place.clock()).await;
    let before = content(&store).await;
    let done = desk.workspace.adopt(true).await.unwrap();
    assert_eq!((done.locks, done.policies, done.left), (1, 2, 4));
    let named: Vec<&str> = done.problems.iter().map(|problem| &*problem.key).collect();
    assert!(done.problems.iter().all(|problem| problem.reason.contains("not recognized")));
    let mut sorted = named.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["config", "empty", "lonely", "theme"]);
    let after = content(&store).await;
    for (key, value) in before.iter().filter(|(key, _)| named.contains(&&**key)) {
        assert!(after.contains(&(key.clone(), value.clone())), "{key}");
    }
    // An export that has the same comes to the same, in whichever order its lines are.
    let clock = TestClock::new();
    let other = Store::new(Memory::with(keyward_memory::Options::default(), clock.clone()));
    let theirs = self::desk(other, &clock).await;
    let open = || Ok(Cursor::new(lines.join("\n")));
    let told = theirs.workspace.adopt_export(open, true).await.unwrap();
    assert_eq!((told.locks, told.policies, told.left), (1, 2, 4));
}

async fn an_export_of_a_workspace_is_written_where_nothing_is(place: Place) {
    // What a workspace keeps after it has taken over the app's entries, as somebody exports it.
    let clock = TestClock::new();
    let first = Store::new(Memory::with(keyward_memory::Options::default(), clock.clone()));
    fill(&first).await;
    let theirs = desk(first.clone(), &clock).await;
    theirs.workspace.adopt(true).await.unwrap();
    let mut lines = Vec::new();
    for row in first.scan(&Scan::new(KeyRange::all()).limit(100)).await.unwrap().rows {
        let value = row.entry.unwrap().value;
        let key = row.key.to_string();
        if key.starts_with("abc123:") {
            // Byte for byte.
            lines.push(format!(r#"{{"key":"{key}","value":{value}}}"#));
        }
    }
    assert_eq!(lines.len(), 4);
    let purged = json!({ "at": "2026-01-03T22:00:00Z", "by": "x" });
    lines.push(json!({ "key": "system:purged", "value": purged }).to_string());
    let store = place.store().await;
    let desk = desk(store.clone(), place.clock()).await;
    let open = || Ok(Cursor::new(lines.join("\n")));
    let told = desk.workspace.adopt_export(open, false).await.unwrap();
    assert_eq!((told.policies, told.issues, told.purged, told.left), (2, 2, true, 0));
    assert_eq!(desk.workspace.adopt_export(open, true).await.unwrap(), told);
    let again = desk.workspace.adopt_export(open, true).await.unwrap();
    assert_eq!((again.policies, again.issues, again.left), (0, 0, 0));
    // By a server's own clock, the mark of the last purge has ended, and is taken over again.
    assert_eq!(again.already + u64::from(again.purged), 5);
    let issue = |rows: Vec<(String, String)>| {
        rows.into_iter().find(|(key, _)| key.ends_with(V2)).unwrap().1
    };
    assert_eq!(issue(content(&store).await), issue(content(&first).await));
    assert_adopted(&desk).await;
}

async fn hundreds_of_entries_are_taken_over(place: Place) {
    let store = place.store().await;
    for n in 0..250 {
        let key = Key::parse(&format!("page{}:policy:p{n:03}", n % 3)).unwrap();
        let document = json!({ "created": "2026-01-02T10:00:00", "content": format!("text {n}") });
        store.put(key, Put::new(Json::from_value(&document).unwrap())).await.unwrap();
    }
    let desk = desk(store.clone(), place.clock()).await;
    assert_eq!(desk.workspace.adopt(true).await.unwrap().policies, 250);
    assert_eq!(desk.workspace.adopt(true).await.unwrap().already, 250);
}

/// An engine with the app's entries, and the workspace in it.
async fn crashing(faults: Faults) -> (Arc<dyn Engine>, FaultyEngine, TestClock) {
    let clock = TestClock::new();
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::default(), clock.clone()));
    let store = Store::from_arc(memory.clone());
    fill(&store).await;
    drop(desk(store, &clock).await);
    let engine = FaultyEngine::new(memory.clone(), faults);
    (memory, engine, clock)
}

#[tokio::test]
async fn nothing_is_lost_wherever_taking_over_crashed() {
    for export_too in [false, true] {
        let adopt = async |store: Store, clock: &TestClock| {
            let desk = Desk::new(store, clock.clone(), None);
            match export_too {
                true => desk.workspace.adopt_export(|| Ok(Cursor::new(export())), true).await,
                false => desk.workspace.adopt(true).await,
            }
        };
        let prepared = async |faults: Faults| {
            let (memory, engine, clock) = crashing(faults).await;
            if export_too {
                let store = Store::from_arc(memory.clone());
                for (key, _) in written() {
                    store.delete(Key::parse(&key).unwrap()).await.unwrap();
                }
            }
            (memory, engine, clock)
        };
        let (memory, engine, clock) = prepared(Faults::none()).await;
        adopt(Store::new(engine.clone()), &clock).await.unwrap();
        let expected = content(&Store::from_arc(memory)).await;
        let calls = engine.calls();
        assert!(calls > 8, "{calls}");
        for call in 0..calls {
            for when in [When::Before, When::After] {
                let (memory, engine, clock) = prepared(Faults::crash_at(call, when)).await;
                let told = format!("{export_too} {when:?} call {call}");
                let died = adopt(Store::new(engine.clone()), &clock).await;
                assert!(died.is_err(), "{told}");
                let store = Store::from_arc(memory);
                let done = adopt(store.clone(), &clock).await.unwrap();
                assert_eq!(done.left, 0, "{told}: {:?}", done.problems);
                assert_eq!(content(&store).await, expected, "{told}");
            }
        }
    }
}

#[tokio::test]
async fn what_the_app_wrote_into_a_store_without_promises_opens_with_a_coordinator() {
    let clock = TestClock::new();
    let memory = |tier| Memory::with(keyward_memory::Options::tier(tier), clock.clone());
    let (values, coordinator) = (memory(Tier::Advisory), memory(Tier::Atomic));
    fill(&Store::new(values.clone())).await;
    clock.advance(Duration::from_secs(60));
    let engine = Coordinated::open(
        Arc::new(values.clone()),
        Arc::new(coordinator),
        keyward_coordinated::Options::default(),
        clock.clone(),
    );
    let store = Store::new(engine.await.unwrap());
    let desk = desk(store, &clock).await;
    assert_eq!(desk.workspace.adopt(true).await.unwrap().total(), 8);
    assert_adopted(&desk).await;
    // Documents and issues are where the app had them; what is set aside is not.
    clock.advance(Duration::from_secs(60));
    let shown = content(&Store::new(values)).await;
    assert!(shown.iter().any(|(key, _)| key == "abc123:policy:leave:fr"));
    assert!(!shown.iter().any(|(key, _)| key.starts_with("system:adopted")));
}
