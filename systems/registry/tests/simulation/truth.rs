//! What must be true, at every moment and in the end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use keyward_engine::Store;
use keyward_key::Key;
use keyward_queue::Listing;
use keyward_registry::{Policy, Registry};

use crate::pool::{Pool, Wanted};

/// Something that a consumer is told, or is going to be.
#[derive(Debug, Clone)]
pub struct Telling {
    pub operation: String,
    pub sha: String,
    pub path: String,
    /// The run that told it.
    pub run: String,
}

impl Telling {
    pub fn of(payload: &str, version: Option<&str>) -> Self {
        let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
        let text = |name: &str| payload[name].as_str().unwrap().to_owned();
        let run = version.unwrap().split_once('/').unwrap().1.to_owned();
        Self { operation: text("operation"), sha: text("sha"), path: text("path"), run }
    }
}

/// What consumers have accepted, by name, the last of each; and every deletion.
#[derive(Debug, Default)]
pub struct Truth {
    pub told: RefCell<BTreeMap<String, Telling>>,
    pub deletions: RefCell<Vec<(String, Telling)>>,
}

impl Truth {
    pub fn accept(&self, name: &str, telling: Telling) {
        if telling.operation == "delete" {
            self.deletions.borrow_mut().push((name.to_owned(), telling.clone()));
        }
        self.told.borrow_mut().insert(name.to_owned(), telling);
    }
}

async fn text(store: &Store, key: &str) -> Option<serde_json::Value> {
    let entry = store.get(&Key::parse(key).unwrap()).await.unwrap();
    entry.map(|entry| serde_json::from_str(entry.value.as_str()).unwrap())
}

async fn entries(registry: &Registry) -> BTreeMap<String, Policy> {
    let page = registry.policies(None, 1_000).await.unwrap();
    assert_eq!(page.next, None);
    page.items.into_iter().map(|policy| (policy.policy_name.clone(), policy)).collect()
}

/// Whatever has happened: a registry that says that it is exactly as a commit is exactly as it, and
/// `lastCommit` says the same. Whether it said so.
pub async fn check_now(pool: &Pool, registry: &Registry) -> bool {
    let store = registry.store();
    let last_commit = text(store, "metadata:sync:lastCommit").await;
    let Some(state) = text(store, "system:registry:policies:state").await else {
        assert_eq!(last_commit, None, "nothing was synced, and lastCommit is there");
        return false;
    };
    assert_eq!(state.get("commit"), last_commit.as_ref());
    if state["clean"] != true {
        return false;
    }
    let commit = pool.commit(last_commit.unwrap().as_str().unwrap());
    let entries = entries(registry).await;
    assert_eq!(entries.keys().map(String::as_str).collect::<BTreeSet<_>>(), commit.names());
    for (name, entry) in &entries {
        let (sha, path) = (entry.sha.clone(), entry.path.clone());
        assert_eq!(pool.wanted(commit, name), Wanted::Entry { sha, path }, "{name}");
    }
    true
}

/// When all is quiet and a run has ended: the registry is as the commit but for what is left alone, every
/// change was told or waits to be, and nothing was deleted that was there.
pub async fn check_end(pool: &Pool, registry: &Registry, truth: &Truth, commit: &str) {
    let status = registry.status().await.unwrap();
    assert_eq!(status.last_commit.as_deref(), Some(commit));
    check_now(pool, registry).await;
    let (commit, entries) = (pool.commit(commit), entries(registry).await);
    let mut names = commit.names();
    names.extend(entries.keys().map(String::as_str));
    for name in names {
        let found = entries.get(name);
        match pool.wanted(commit, name) {
            Wanted::LeftAlone => {}
            Wanted::Nothing => assert_eq!(found, None),
            Wanted::Entry { sha, path } => {
                let found = found.unwrap_or_else(|| panic!("{name} is missing"));
                assert_eq!((&found.sha, &found.path), (&sha, &path), "{name}");
            }
        }
    }
    let listing = Listing { limit: 1_000, ..Listing::default() };
    for message in registry.queue().list(&listing).await.unwrap() {
        let telling = Telling::of(message.payload.as_str(), message.version.as_deref());
        truth.accept(&message.id, telling);
    }
    let told = truth.told.borrow().clone();
    for (name, entry) in &entries {
        let last = told.get(name).unwrap_or_else(|| panic!("nobody was told of {name}"));
        assert_ne!(last.operation, "delete", "{name}");
        assert_eq!((&last.sha, &last.path), (&entry.sha, &entry.path), "{name}");
    }
    for (name, last) in told.iter().filter(|(name, _)| !entries.contains_key(*name)) {
        assert_eq!(last.operation, "delete", "nobody was told that {name} is gone");
    }
    let deletions = truth.deletions.borrow().clone();
    for (name, deletion) in &deletions {
        let run = registry.run(&deletion.run).await.unwrap();
        let run = run.unwrap_or_else(|| panic!("{} is in no history", deletion.run));
        let commit = pool.commit(&run.commit.unwrap());
        assert_eq!(pool.wanted(commit, name), Wanted::Nothing, "{name} was deleted");
    }
}
