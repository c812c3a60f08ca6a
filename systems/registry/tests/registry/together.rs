//! Runs side by side, and registries side by side.

use std::sync::mpsc;

use keyward_registry::{Error, Progress, RunStatus, SyncOptions, Synced, Trigger};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, Repository, counts, names, open, queued, settings, sync};

on_every_engine!(
    of_two_runs_at_once_one_works_and_the_other_says_so,
    registries_with_prefixes_share_a_store,
    registries_without_prefixes_do_not,
    other_settings_are_compared_with_the_whole_tree,
);
async fn of_two_runs_at_once_one_works_and_the_other_says_so(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n");
    f.repository.commit("first");
    let other = f.reopened(|_| ()).await;
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, may_go_on) = mpsc::channel();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let registry = f.registry.clone();
    let first = tokio::spawn(async move {
        let seen = move |progress| {
            if progress == Progress::Fetching {
                begun.send(()).unwrap();
                // Others of the runtime go on meanwhile.
                tokio::task::block_in_place(|| may_go_on.lock().unwrap().recv().unwrap());
            }
        };
        registry.sync(Trigger::Hand, &SyncOptions::default(), seen).await
    });
    has_begun.recv().await.unwrap();
    let busy = other.sync(Trigger::Schedule, &SyncOptions::default(), |_| ()).await.unwrap();
    let Synced::Busy { holder, since } = busy else { panic!("{busy:?}") };
    assert!(holder.contains("sync policies"), "{holder}");
    let running = other.status().await.unwrap().running.unwrap();
    assert_eq!((running.holder, running.since), (holder, since));
    assert_eq!(other.metrics().busy.get(), 1);
    go_on.send(()).unwrap();
    let Synced::Done(run) = first.await.unwrap().unwrap() else { panic!() };
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (1, 0, 0)));
    // The lock is free again.
    assert_eq!(other.status().await.unwrap().running, None);
    let after = other.sync(Trigger::Hand, &SyncOptions::default(), |_| ()).await.unwrap();
    assert!(matches!(after, Synced::Unchanged { .. }));
}

async fn registries_with_prefixes_share_a_store(place: Place) {
    let (korean, german) = (Repository::new(), Repository::new());
    korean.write("학칙.md", "# 학칙\n").write("same.md", "# 1\n");
    german.write("Ordnung.md", "# Ordnung\n").write("same.md", "# 2\n");
    korean.commit("1");
    german.commit("1");
    let store = place.store().await;
    let mut prefixed = settings(&korean);
    prefixed.prefix = Some("kr".to_owned());
    let kr = open("kr-policies", store.clone(), prefixed, &korean, &place);
    let mut prefixed = settings(&german);
    prefixed.prefix = Some("de".to_owned());
    let de = open("de-policies", store.clone(), prefixed, &german, &place);
    assert_eq!(counts(&sync(&kr).await), (2, 0, 0));
    assert_eq!(counts(&sync(&de).await), (2, 0, 0));
    assert_eq!(names(&kr).await, ["same", "학칙"]);
    assert_eq!(names(&de).await, ["Ordnung", "same"]);
    assert_eq!(queued(&de).await, ["add Ordnung", "add same"]);
    assert!(crate::fixture::get(&store, "kr:policy:학칙").await.is_some());
    assert!(crate::fixture::get(&store, "de:metadata:sync:lastCommit").await.is_some());
    german.remove("same.md");
    german.commit("2");
    assert_eq!(counts(&sync(&de).await), (0, 0, 1));
    assert_eq!(names(&kr).await, ["same", "학칙"]);
}

async fn registries_without_prefixes_do_not(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n");
    f.push().await;
    let others = Repository::new();
    others.write("b.md", "# B\n");
    others.commit("1");
    let store = f.place.store().await;
    let other = open("others", store, settings(&others), &others, &f.place);
    let error = crate::fixture::fails(&other, &SyncOptions::default()).await;
    assert!(matches!(&error, Error::Occupied { other } if other == "policies"), "{error}");
    assert_eq!(f.names().await, ["a"]);
    // Nor does it say anything of the registry that is there.
    assert_eq!(f.registry.status().await.unwrap().last_run.unwrap().status, RunStatus::Success);
}

async fn other_settings_are_compared_with_the_whole_tree(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("docs/a.md", "# A\n").write("docs/b.md", "# B\n");
    f.repository.write("more/c.md", "# C\n").write("docs/d.txt", "D\n");
    f.push().await;
    assert_eq!(f.names().await, ["a", "b", "c"]);
    // The same commit, and another choice of files.
    let folder = f.reopened(|settings| settings.folder = "docs".to_owned()).await;
    let run = sync(&folder).await;
    assert_eq!((run.whole, counts(&run)), (true, (0, 0, 1)));
    assert_eq!(names(&folder).await, ["a", "b"]);
    let globs = f
        .reopened(|settings| {
            settings.folder = "docs".to_owned();
            settings.include = vec!["a.*".to_owned(), "**/*.txt".to_owned()];
        })
        .await;
    let run = sync(&globs).await;
    assert_eq!((run.whole, counts(&run)), (true, (1, 0, 1)));
    assert_eq!(names(&globs).await, ["a", "d.txt"]);
    let back = f.reopened(|_| ()).await;
    assert_eq!(counts(&sync(&back).await), (2, 0, 1));
}
