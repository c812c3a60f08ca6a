//! A registry whose entries are in a namespace that other programs read, while a coordinator has everything else.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use keyward_coordinated::{Coordinated, Options};
use keyward_engine::{Engine, Json, Put, Scan, Store, Tier};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use keyward_registry::{Registry, Run, RunStatus, SyncOptions, Synced, Trigger};
use keyward_testkit::{Call, Faults, FaultyEngine, TestClock, When};
use serde_json::{Value, json};

use crate::fixture::{Repository, counts, queued, settings, sync};

#[path = "../../../../engines/cloudflare-kv/tests/cloudflare_kv/server.rs"]
#[allow(dead_code, reason = "the adapter's own tests need more of it")]
mod server;

/// Reads of the namespace are late by so much at most.
const LAG: Duration = Duration::from_secs(60);
/// After so much, everything that a process left behind can be settled.
const SETTLED: Duration = Duration::from_secs(1_200);

/// A namespace, the coordinator beside it, and the repository.
struct Place {
    clock: TestClock,
    /// What other programs see.
    values: FaultyEngine,
    coordinator: FaultyEngine,
    repository: Arc<Repository>,
    /// On Cloudflare KV.
    namespace: Option<Arc<server::Namespace>>,
}

/// Where the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    /// In memory, late as a namespace of a service is.
    Memory,
    /// In a namespace of Cloudflare KV.
    CloudflareKv,
}

/// Makes a named test of each function, in memory and in Cloudflare KV.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(super::Values::Memory).await;
                }
            )+
        }
        mod cloudflare_kv {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(super::Values::CloudflareKv).await;
                }
            )+
        }
    };
}

on_both!(
    the_namespace_has_the_keys_and_values_of_the_document_and_no_others,
    a_namespace_that_the_original_filled_is_adopted_without_a_write,
    entries_of_version_1_move_and_unchanged_ones_are_not_written,
    names_with_colons_are_named_and_left_alone_in_a_namespace,
    a_policy_that_was_renamed_is_told_so_in_the_queue_and_not_in_a_namespace,
);

impl Place {
    /// A namespace on an engine where the last writer wins, with an empty coordinator.
    async fn new(values: Values) -> Self {
        let repository = Arc::new(Repository::new());
        Self::with(values, repository, Faults::none(), Faults::none()).await
    }

    async fn with(
        values: Values,
        repository: Arc<Repository>,
        faults: Faults,
        coordinator_faults: Faults,
    ) -> Self {
        let clock = TestClock::new();
        let memory = |tier| -> Arc<dyn Engine> {
            Arc::new(Memory::with(keyward_memory::Options::tier(tier), clock.clone()))
        };
        let namespace =
            (values == Values::CloudflareKv).then(|| Arc::new(server::Namespace::late()));
        let engine = match &namespace {
            None => memory(Tier::Advisory),
            Some(namespace) => {
                let options = namespace.options(server::address());
                Arc::new(namespace.engine(options, clock.clone()).await)
            }
        };
        assert_eq!(engine.capabilities().tier(), Tier::Advisory);
        let values = FaultyEngine::new(engine, faults);
        let coordinator = FaultyEngine::new(memory(Tier::Atomic), coordinator_faults);
        Self { clock, values, coordinator, repository, namespace }
    }

    /// The registry, as a process has it.
    async fn try_open(&self) -> keyward_engine::Result<Registry> {
        let (values, coordinator) =
            (Arc::new(self.values.clone()), Arc::new(self.coordinator.clone()));
        let engine =
            Coordinated::open(values, coordinator, Options::default(), self.clock.clone()).await?;
        Ok(self.registry(Store::new(engine)))
    }

    async fn open(&self) -> Registry {
        self.try_open().await.unwrap()
    }

    fn registry(&self, store: Store) -> Registry {
        let (settings, cache) = (settings(&self.repository), self.repository.beside("cache"));
        Registry::open("policies", store, settings, Path::new(&cache), self.clock.clone()).unwrap()
    }

    /// The same place for processes that live, after those before have died.
    fn revived(&self) -> (FaultyEngine, FaultyEngine) {
        (self.values.revive(), self.coordinator.revive())
    }

    /// Writes as the original does.
    async fn put(&self, key: &str, value: &Value) {
        let put = Put::new(Json::from_value(value).unwrap());
        let store = Store::from_arc(self.values.inner());
        store.put(Key::parse(key).unwrap(), put).await.unwrap();
    }

    /// Everything that the original reads, once it is visible.
    async fn shown(&self) -> Vec<(String, Value)> {
        self.clock.advance(LAG);
        let scan = Scan::new(KeyRange::all()).limit(1_000);
        let rows = self.values.inner().scan(&scan).await.unwrap().rows.into_iter();
        let mut shown: Vec<(String, Value)> = rows
            .map(|row| {
                let value = serde_json::from_slice(row.entry.unwrap().value.as_bytes()).unwrap();
                (row.key.to_string(), value)
            })
            .collect();
        shown.sort_by(|one, other| one.0.cmp(&other.0));
        shown
    }

    /// How often the namespace was written to.
    fn writes(&self) -> usize {
        self.values.trace().iter().filter(|(call, _)| *call == Call::Commit).count()
    }

    /// Fills the namespace as the original does at the newest commit, and gives what it then shows.
    async fn fill(&self, policies: &[(&str, &str, &str)]) -> Vec<(String, Value)> {
        self.put_all(&as_the_original(&self.repository, policies)).await;
        self.shown().await
    }

    async fn put_all(&self, entries: &[(String, Value)]) {
        for (key, value) in entries {
            self.put(key, value).await;
        }
    }
}

/// What the original writes at the newest commit, of policies by name, title and path.
fn as_the_original(
    repository: &Repository,
    policies: &[(&str, &str, &str)],
) -> Vec<(String, Value)> {
    let commit = repository.commit("as the original found it");
    let policy = |(name, title, path): &(&str, &str, &str)| {
        let entry = json!({
            "policyName": name, "title": title, "status": "active",
            "lastUpdated": "2025-10-20T16:00:00Z", "sha": repository.id_of(path), "path": path,
            "fileNo": "868",
            "previewUrl": "https://www.knue.ac.kr/www/previewMenuCntFile.do?key=392&fileNo=868",
        });
        (format!("policy:{name}"), entry)
    };
    let mut entries: Vec<(String, Value)> = policies.iter().map(policy).collect();
    let last_run = json!({
        "timestamp": "2025-10-20T16:00:00Z", "totalProcessed": policies.len(), "added": policies.len(),
        "updated": 0, "deleted": 0, "status": "success", "errorCount": 0, "commitSHA": commit,
    });
    entries.push(("metadata:sync:lastRun".to_owned(), last_run));
    entries.push(("metadata:sync:lastCommit".to_owned(), json!(commit)));
    entries
}

fn members(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

async fn unchanged(registry: &Registry) -> bool {
    let synced = registry.sync(Trigger::Hand, &SyncOptions::default(), |_| ()).await.unwrap();
    matches!(synced, Synced::Unchanged { .. })
}

async fn try_sync(place: &Place) -> Option<Run> {
    let registry = place.try_open().await.ok()?;
    match registry.sync(Trigger::Hand, &SyncOptions::default(), |_| ()).await {
        Ok(Synced::Done(run)) => Some(run),
        _ => None,
    }
}

async fn the_namespace_has_the_keys_and_values_of_the_document_and_no_others(values: Values) {
    let place = Place::new(values).await;
    place
        .repository
        .write("policies/학칙.md", "# 한국교원대학교 학칙\n")
        .write("policies/b.md", "# B\n");
    let first = place.repository.commit("first");
    let registry = place.open().await;
    sync(&registry).await;
    // Consumers work on the queue: one message is taken, one fails for good.
    let claimed = registry.queue().claim(2).await.unwrap().attempts;
    claimed[0].complete(None).await.unwrap();
    claimed[1].fail(keyward_queue::Failure::permanent("no")).await.unwrap();
    assert_eq!(registry.dead_letters(None, 10).await.unwrap().items.len(), 1);

    let sha = place.repository.id_of("policies/학칙.md");
    let shown = place.shown().await;
    let keys: Vec<&str> = shown.iter().map(|(key, _)| &**key).collect();
    let expected = ["metadata:sync:lastCommit", "metadata:sync:lastRun", "policy:b", "policy:학칙"];
    assert_eq!(keys, expected);
    assert_eq!(shown[0].1, json!(first));
    assert_eq!(
        shown[1].1,
        json!({
            "timestamp": shown[1].1["timestamp"], "totalProcessed": 2, "added": 2, "updated": 0,
            "deleted": 0, "status": "success", "errorCount": 0, "commitSHA": first,
        })
    );
    assert_eq!(
        shown[3].1,
        json!({
            "policyName": "학칙", "title": "한국교원대학교 학칙", "status": "active",
            "lastUpdated": shown[3].1["lastUpdated"], "sha": sha, "path": "policies/학칙.md",
        })
    );
    let updated = shown[3].1["lastUpdated"].as_str().unwrap();
    assert!(updated.parse::<jiff::Timestamp>().is_ok() && updated.ends_with('Z'), "{updated}");

    place
        .repository
        .write("policies/학칙.md", "# 한국교원대학교 학칙\n\n개정\n")
        .remove("policies/b.md");
    place.repository.write("policies/c.md", "# C\n").write("policies/d.md", "# D\n");
    let second = place.repository.commit("second");
    let run = sync(&registry).await;
    assert_eq!(counts(&run), (2, 1, 1));
    let shown = place.shown().await;
    let keys: Vec<&str> = shown.iter().map(|(key, _)| &**key).collect();
    let expected = [
        "metadata:sync:lastCommit",
        "metadata:sync:lastRun",
        "policy:c",
        "policy:d",
        "policy:학칙",
    ];
    assert_eq!(keys, expected);
    assert_eq!(shown[1].1["previousCommitSHA"], json!(first));
    assert_eq!((&shown[0].1, &shown[1].1["commitSHA"]), (&json!(second), &json!(second)));
    assert_eq!(shown[4].1["sha"], json!(place.repository.id_of("policies/학칙.md")));
    assert_eq!(
        members(&shown[4].1),
        members(&json!({
            "lastUpdated": 0, "path": 0, "policyName": 0, "sha": 0, "status": 0, "title": 0,
        }))
    );
    // Nothing is left to do, also for a process that comes later.
    let writes = place.writes();
    place.clock.advance(SETTLED);
    assert!(unchanged(&place.open().await).await);
    assert_eq!(place.writes(), writes);
}

async fn a_namespace_that_the_original_filled_is_adopted_without_a_write(values: Values) {
    let place = Place::new(values).await;
    place.repository.write("학칙.md", "# 한국교원대학교 학칙\n").write("b.md", "# B\n");
    let row = json!({
        "policyName": "b", "sha": "0", "operation": "add", "retryCount": 1,
        "createdAt": "2025-10-20T16:00:00Z", "errorMessage": "too late",
    });
    place.put("queue:b", &row).await;
    let filled =
        place.fill(&[("학칙", "한국교원대학교 학칙", "학칙.md"), ("b", "B", "b.md")]).await;
    assert_eq!(filled.len(), 5);
    let registry = place.open().await;
    assert_eq!(registry.policies(None, 10).await.unwrap().items.len(), 2);
    let run = sync(&registry).await;
    assert_eq!((run.status, run.scanned, counts(&run)), (RunStatus::Success, 2, (0, 0, 0)));
    assert_eq!(queued(&registry).await, ["add b"]);
    assert!(unchanged(&registry).await);
    place.clock.advance(SETTLED);
    let later = place.open().await;
    assert!(unchanged(&later).await);
    let status = later.status().await.unwrap();
    assert_eq!(status.entries, Some(2));
    assert_eq!(status.last_run.unwrap().timestamp, "2025-10-20T16:00:00Z");
    assert_eq!(place.writes(), 0, "nothing was written");
    assert_eq!(place.shown().await, filled);

    // What the original had left in its queue is told to consumers like everything else.
    let claimed = later.queue().claim(10).await.unwrap().attempts;
    assert_eq!(claimed.iter().map(|attempt| attempt.id()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(place.writes(), 0);
}

async fn entries_of_version_1_move_and_unchanged_ones_are_not_written(values: Values) {
    let place = Place::new(values).await;
    for name in ["a", "b", "c"] {
        place.repository.write(&format!("{name}.md"), format!("# Title {name}\n"));
    }
    place.fill(&[("a", "Title a", "a.md"), ("b", "Title b", "b.md")]).await;
    let old = json!({ "title": "Title c", "fileNo": "868", "status": "active", "own": [1, 2] });
    place.put("policy:Title c", &old).await;
    let before = place.shown().await;
    let registry = place.open().await;
    let run = sync(&registry).await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (0, 1, 0)));
    let after = place.shown().await;
    let value = |shown: &[(String, Value)], key: &str| -> Option<Value> {
        shown.iter().find(|(shown, _)| shown == key).map(|(_, value)| value.clone())
    };
    for key in ["policy:a", "policy:b"] {
        assert_eq!(value(&before, key), value(&after, key));
    }
    assert_eq!(value(&after, "policy:Title c"), None);
    let moved = value(&after, "policy:c").unwrap();
    assert_eq!(
        (&moved["policyName"], &moved["fileNo"], &moved["own"]),
        (&json!("c"), &json!("868"), &json!([1, 2]))
    );
    // The new key, the old one, and what is said of the run.
    assert_eq!(place.writes(), 4);
    assert_eq!(after.len(), 5);
}

async fn names_with_colons_are_named_and_left_alone_in_a_namespace(values: Values) {
    let place = Place::new(values).await;
    place.repository.write("a.md", "# A\n").write("a:b.md", "# AB\n");
    // The original joins the parts of its keys with colons, and knows no others.
    let before = place.fill(&[("a", "A", "a.md"), ("a:b", "AB", "a:b.md")]).await;
    let foreign = before.iter().find(|(key, _)| key == "policy:a:b").unwrap();
    let registry = place.open().await;
    let run = sync(&registry).await;
    let shown = place.shown().await;
    assert!(shown.contains(foreign));
    let escaped = shown.iter().any(|(key, _)| key == "policy:a%3Ab");
    if values == Values::Memory {
        // In a layout of our own, names have colons, and what lies deeper is nobody's.
        assert_eq!((run.status, counts(&run), escaped), (RunStatus::Success, (1, 0, 0), true));
        return;
    }
    assert_eq!((run.status, counts(&run), escaped), (RunStatus::Partial, (0, 0, 0), false));
    let told: Vec<(&str, bool)> = run
        .errors
        .iter()
        .map(|problem| (&*problem.path, problem.reason.contains("colon")))
        .collect();
    assert_eq!(told, [("a:b", true), ("a:b.md", true)]);
    // It stays so while others change.
    place.repository.write("c.md", "# C\n");
    place.repository.commit("another");
    let run = sync(&registry).await;
    assert_eq!((run.status, counts(&run), run.error_count), (RunStatus::Partial, (1, 0, 0), 2));
    assert!(place.shown().await.contains(foreign));
}

async fn a_policy_that_was_renamed_is_told_so_in_the_queue_and_not_in_a_namespace(values: Values) {
    let place = Place::new(values).await;
    place.repository.write("old.md", "# A policy of some length\n\nIts text.\n");
    place.fill(&[("old", "A policy of some length", "old.md")]).await;
    let registry = place.open().await;
    sync(&registry).await;
    place.repository.remove("old.md");
    place.repository.write("new.md", "# A policy of some length\n\nIts text.\n");
    place.repository.commit("renamed");
    assert_eq!(counts(&sync(&registry).await), (1, 0, 1));
    let shown = place.shown().await;
    let (_, entry) = shown.iter().find(|(key, _)| key == "policy:new").unwrap();
    let is_told = entry.get("renamedFrom") == Some(&json!("old"));
    assert_eq!(is_told, values == Values::Memory, "{entry}");
    let claimed = registry.queue().claim(10).await.unwrap().attempts;
    let told = claimed.iter().find(|attempt| attempt.id() == "new").unwrap();
    assert!(told.payload().as_str().contains(r#""renamedFrom":"old""#));
}

#[tokio::test]
async fn a_last_commit_without_quotes_stays_without_quotes() {
    let place = Place::new(Values::CloudflareKv).await;
    let namespace = place.namespace.clone().unwrap();
    place.repository.write("a.md", "# A\n");
    place.fill(&[("a", "A", "a.md")]).await;
    let name = "metadata:sync:lastCommit";
    let first = namespace.value(name).unwrap();
    namespace.write(name, first.trim_matches('"'));
    place.clock.advance(LAG);
    assert!(place.open().await.status().await.unwrap().last_commit.is_some());
    // Also in a process that finds the value in the coordinator, and in one that finds it in the namespace.
    for (n, pause) in [Duration::ZERO, LAG, SETTLED].into_iter().enumerate() {
        place.clock.advance(pause);
        place.repository.write(&format!("b{n}.md"), format!("# B {n}\n"));
        let commit = place.repository.commit("more");
        let registry = place.open().await;
        assert_eq!(counts(&sync(&registry).await), (1, 0, 0));
        place.clock.advance(LAG);
        namespace.tell(&place.clock);
        assert_eq!(namespace.value(name), Some(commit));
    }
}

/// Adopts and syncs with a crash at every call to one of the engines, then goes on as another process.
async fn crashing(values: bool) {
    let repository = Arc::new(Repository::new());
    repository.write("a.md", "# A\n").write("b.md", "# B\n").write("gone.md", "# Gone\n");
    let mut entries = as_the_original(
        &repository,
        &[("a", "A", "a.md"), ("b", "B", "b.md"), ("gone", "Gone", "gone.md")],
    );
    entries.push(("policy:Title d".to_owned(), json!({ "title": "Title d", "fileNo": "4" })));
    repository.write("a.md", "# A 2\n").write("d.md", "# Title d\n").remove("gone.md");
    repository.commit("changes");
    let filled = async |faults: Faults| {
        let (faults, coordinator_faults) = match values {
            true => (faults, Faults::none()),
            false => (Faults::none(), faults),
        };
        let repository = repository.clone();
        let place = Place::with(Values::Memory, repository, faults, coordinator_faults).await;
        place.put_all(&entries).await;
        place.clock.advance(LAG);
        place
    };
    let calls_of = |place: &Place| match values {
        true => place.values.calls(),
        false => place.coordinator.calls(),
    };
    let stable = |shown: Vec<(String, Value)>| -> Vec<(String, Value)> {
        let mut shown = shown;
        for (_, value) in &mut shown {
            if let Some(members) = value.as_object_mut() {
                for varying in [
                    "lastUpdated",
                    "timestamp",
                    "added",
                    "updated",
                    "deleted",
                    "totalProcessed",
                    "previousCommitSHA",
                ] {
                    members.remove(varying);
                }
            }
        }
        shown
    };
    let whole = filled(Faults::none()).await;
    assert_eq!(counts(&try_sync(&whole).await.unwrap()), (0, 2, 1));
    let calls = calls_of(&whole);
    let expected = stable(whole.shown().await);
    assert!(calls > 5, "{calls}");
    for call in 0..calls {
        for when in [When::Before, When::After] {
            let mut place = filled(Faults::crash_at(call, when)).await;
            let told = format!("{when:?} call {call} of {calls}");
            let _ = try_sync(&place).await;
            (place.values, place.coordinator) = place.revived();
            place.clock.advance(SETTLED);
            let registry = place.open().await;
            let synced = registry.sync(Trigger::Hand, &SyncOptions::default(), |_| ()).await;
            assert!(synced.is_ok(), "{told}: {synced:?}");
            // What could not be pushed is pushed when it is settled.
            for _ in 0..2 {
                place.clock.advance(SETTLED);
                drop(place.open().await);
            }
            assert_eq!(stable(place.shown().await), expected, "{told}");
            let names: Vec<String> = queued(&place.open().await).await;
            assert_eq!(names, ["update a", "update d", "delete gone"].map(str::to_owned), "{told}");
        }
    }
}

#[tokio::test]
async fn a_sync_that_died_at_any_call_to_the_coordinator_is_finished_by_the_next() {
    crashing(false).await;
}

#[tokio::test]
async fn a_sync_that_died_at_any_call_to_the_namespace_is_finished_by_the_next() {
    crashing(true).await;
}
