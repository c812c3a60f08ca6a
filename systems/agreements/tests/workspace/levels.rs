//! The locks of a page, from coarse to fine.

use keyward_agreements::{Course, is_workspace, lock_tree};
use keyward_engine::{Code, Coded, Store, SystemClock};
use keyward_key::Key;
use keyward_locks::{LockPath, Locks, Mode, Options, Request, Tried};
use keyward_memory::Memory;

use crate::fixture::{Desk, page, source};

/// The table of the guide: a lock, its path, and what it keeps away.
const LEVELS: [(&str, &str, &[&str]); 8] = [
    (
        "page",
        "",
        &[
            "page",
            "policies",
            "policy:123",
            "policy:123:fr",
            "policy:123:de",
            "policy:12",
            "issues",
            "issue:7",
        ],
    ),
    (
        "policies",
        "policies",
        &["page", "policies", "policy:123", "policy:123:fr", "policy:123:de", "policy:12"],
    ),
    (
        "policy:123",
        "policies:123",
        &["page", "policies", "policy:123", "policy:123:fr", "policy:123:de"],
    ),
    ("policy:123:fr", "policies:123:fr", &["page", "policies", "policy:123", "policy:123:fr"]),
    ("policy:123:de", "policies:123:de", &["page", "policies", "policy:123", "policy:123:de"]),
    ("policy:12", "policies:12", &["page", "policies", "policy:12"]),
    ("issues", "issues", &["page", "issues", "issue:7"]),
    ("issue:7", "issues:7", &["page", "issues", "issue:7"]),
];

fn path(text: &str) -> LockPath {
    if text.is_empty() { LockPath::root() } else { LockPath::parse(text).unwrap() }
}

#[tokio::test]
async fn a_lock_conflicts_with_its_equal_its_ancestors_and_its_descendants_and_nothing_else() {
    let store = Store::new(Memory::new());
    let locks = Locks::new(store, SystemClock, Options::default()).unwrap();
    let root = locks.root(Key::parse("page1").unwrap()).unwrap();
    let request = Request::default();
    for (held, held_path, kept_away) in LEVELS {
        let guard = root.acquire(&[path(held_path)], Mode::Exclusive, &request).await.unwrap();
        for (asked, asked_path, _) in LEVELS {
            let tried = root.try_acquire(&[path(asked_path)], Mode::Exclusive, &request).await;
            let is_kept_away = match tried.unwrap() {
                Tried::Held(_) => true,
                Tried::Granted(granted) => {
                    granted.release().await.unwrap();
                    false
                }
            };
            assert_eq!(is_kept_away, kept_away.contains(&asked), "{held} held, {asked} asked for");
        }
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn names_of_the_guide_mean_the_locks_that_a_workspace_takes() {
    let store = Store::new(Memory::new());
    let desk = Desk::new(store.clone(), SystemClock, None).with_page("page1").await;
    assert!(!is_workspace(&store).await.unwrap());
    desk.policy("page1", None).await;
    assert!(is_workspace(&store).await.unwrap());
    let options = Options { trees: vec![lock_tree("main").unwrap()], ..Options::default() };
    let locks = Locks::new(store, SystemClock, options).unwrap();
    let root = locks.root(Key::parse("page1").unwrap()).unwrap();
    for (name, held_path, _) in LEVELS {
        let name = if name == "page" { "" } else { name };
        assert_eq!(root.path(name).unwrap(), path(held_path), "{name}");
    }
    // Whoever holds it by its name keeps the workspace away.
    let held = root.path("policy:leave").unwrap();
    let guard = root.acquire(&[held], Mode::Exclusive, &Request::default()).await.unwrap();
    let redo = async {
        let (page, source, course) = (page("page1"), source("leave"), Course::untold());
        desk.workspace.redo_policy(&page, &source, None, &course).await.unwrap();
    };
    let mut redo = std::pin::pin!(redo);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(200), &mut redo).await;
    assert!(waited.is_err(), "it was not kept away");
    guard.release().await.unwrap();
    redo.await;
    for outside in ["policy", "drafts", "policy:leave:fr:x", "issue:7:8"] {
        assert!(root.path(outside).is_err(), "{outside}");
        let path = path(outside);
        let refused = root.acquire(&[path], Mode::Exclusive, &Request::default()).await;
        assert_eq!(refused.unwrap_err().code(), Code::OutsideTree, "{outside}");
    }
}
