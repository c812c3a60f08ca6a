//! What is refused, one by one.

use keyward_engine::Limits;
use keyward_registry::{Error, Registry, RunStatus};
use keyward_stores::{Kind, Place, on_engines, on_every_engine};

use crate::fixture::{Repository, counts, names, open, queued, settings, sync};

on_every_engine!(
    a_policy_that_the_store_does_not_take_is_named_and_others_go_on,
    settings_that_make_no_sense_are_refused,
);
on_engines!(recoverable: Recoverable, advisory: Advisory; engines_without_commits_are_refused);

async fn a_policy_that_the_store_does_not_take_is_named_and_others_go_on(place: Place) {
    let repository = Repository::new();
    // A title of 500 characters is in the entry and in the message, which has to have room to grow.
    repository.write("p/long.md", format!("# {}\n", "학".repeat(500)));
    for n in 0..60 {
        repository.write(&format!("p/{n}.md"), format!("# {n}\n"));
    }
    let commit = repository.commit("all");
    let store = place.store().await;
    let narrow = Limits { value_bytes_max: 2_400, ..*store.limits() };
    let registry = open(
        "policies",
        store.clone().with_limits(narrow),
        settings(&repository),
        &repository,
        &place,
    );
    let run = sync(&registry).await;
    assert_eq!((run.status, counts(&run), run.error_count), (RunStatus::Partial, (60, 0, 0), 1));
    assert_eq!(run.errors[0].path, "p/long.md");
    assert!(run.errors[0].reason.contains("at most"), "{}", run.errors[0].reason);
    assert_eq!((names(&registry).await.len(), queued(&registry).await.len()), (60, 60));
    assert_eq!(registry.status().await.unwrap().last_commit, Some(commit));
    // The next run tries again: here in one commit with all that is said of it, then alone.
    let again = sync(&registry).await;
    assert_eq!((again.status, counts(&again)), (RunStatus::Partial, (0, 0, 0)));
    let wide = open("policies", store, settings(&repository), &repository, &place);
    let run = sync(&wide).await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (1, 0, 0)));
}

async fn settings_that_make_no_sense_are_refused(place: Place) {
    let repository = Repository::new();
    let mut wrong = settings(&repository);
    (wrong.folder, wrong.retries) = ("../..".to_owned(), 0);
    let (store, cache) = (place.store().await, repository.beside("cache"));
    let clock = place.clock().clone();
    let error = Registry::open("policies", store.clone(), wrong, &cache, clock).unwrap_err();
    let Error::Settings { problems, .. } = &error else { panic!("{error}") };
    let wrong: Vec<&str> = problems.iter().map(|problem| &*problem.setting).collect();
    assert_eq!(wrong, ["folder", "retries"]);
    for name in ["", "a b", "../x", "a:b"] {
        let clock = place.clock().clone();
        let opened = Registry::open(name, store.clone(), settings(&repository), &cache, clock);
        assert!(opened.is_err(), "{name}");
    }
}

async fn engines_without_commits_are_refused(place: Place) {
    assert!(matches!(place.kind(), Kind::Recoverable | Kind::Advisory));
    let repository = Repository::new();
    let (store, cache) = (place.store().await, repository.beside("cache"));
    let opened =
        Registry::open("policies", store, settings(&repository), &cache, place.clock().clone());
    assert!(matches!(opened.unwrap_err(), Error::NeedsAtomic { .. }));
}
