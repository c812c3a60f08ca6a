//! A coordinator belongs to one namespace.

use std::path::Path;
use std::sync::Arc;

use keyward_embedded::{Embedded, Options};
use keyward_engine::{Error, ErrorKind, Store};
use keyward_testkit::TestClock;

use super::server::{LAG, Namespace, address};
use crate::setup::{GRACE, json, key, put, value};

async fn refusal(namespace: &Arc<Namespace>, directory: &Path, clock: &TestClock) -> Error {
    super::try_open(namespace, address(), directory, clock).await.unwrap_err()
}

fn is_about(error: &Error, namespaces: [&Namespace; 2]) {
    assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
    for namespace in namespaces {
        assert!(error.message().contains(&namespace.id), "{error}");
    }
    assert!(
        error.advice().is_some_and(|hint| hint.contains("new, empty coordinator")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_coordinator_of_another_namespace_is_refused_and_nothing_is_pushed_or_dropped() {
    let clock = TestClock::new();
    let (own, other) = (Arc::new(Namespace::late()), Arc::new(Namespace::late()));
    own.write("policy:theirs", "1");
    other.write("policy:kept", "2");
    clock.advance(LAG);
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(super::open(&own, address(), directory.path(), &clock).await);
    // One value and one delete that opening would push again, and a key that another namespace does not show.
    store.put(key("policy:ours"), put("3")).await.unwrap();
    store.delete(key("policy:kept")).await.unwrap();
    store.put(key("policy:kept"), put("4")).await.unwrap();
    store.delete(key("policy:kept")).await.unwrap();
    drop(store);
    clock.advance(GRACE + LAG);

    is_about(&refusal(&other, directory.path(), &clock).await, [&own, &other]);
    clock.advance(LAG);
    other.tell(&clock);
    assert_eq!(other.names(), ["policy:kept"]);
    let store = Store::new(super::open(&own, address(), directory.path(), &clock).await);
    for (name, text) in [("policy:theirs", Some("1")), ("policy:ours", Some("3"))] {
        assert_eq!(value(&store, &key(name)).await.as_deref(), text, "{name}");
    }
}

#[tokio::test]
async fn a_coordinator_of_an_older_version_belongs_to_the_namespace_that_it_is_opened_with() {
    let clock = TestClock::new();
    let (own, other) = (Arc::new(Namespace::prompt()), Arc::new(Namespace::prompt()));
    let directory = tempfile::tempdir().unwrap();
    drop(super::open(&own, address(), directory.path(), &clock).await);
    {
        let open = Embedded::open_with(directory.path(), Options::default(), clock.clone());
        let coordinator = Store::new(open.unwrap());
        let row = key("system:coordinator:store");
        let written = coordinator.get(&row).await.unwrap().unwrap().value.to_string();
        let id = format!(r#""values":"cloudflare-kv://test/{}","#, own.id);
        assert!(written.contains(&id), "{written}");
        let older = json(&written.replace(&id, ""));
        coordinator.put(row, keyward_engine::Put::new(older)).await.unwrap();
    }
    drop(super::open(&own, address(), directory.path(), &clock).await);
    is_about(&refusal(&other, directory.path(), &clock).await, [&own, &other]);
    drop(super::open(&own, address(), directory.path(), &clock).await);
}
