//! The four scenarios of the document, and what is like them.

use keyward_registry::{Registry, Repository as Address, RunStatus, Settings, SyncOptions};
use keyward_stores::{Place, on_databases, on_every_engine};

use crate::fixture::{Fixture, Repository, counts, names, queued, sync, told};

on_every_engine!(
    a_new_policy_is_added,
    a_revised_policy_is_updated,
    a_removed_policy_is_deleted,
    a_renamed_policy_is_deleted_and_added_and_the_rename_is_noted,
    the_scenarios_over_git_daemon,
    the_scenarios_over_smart_http,
    a_moved_folder_changes_paths_and_nothing_else,
    what_comes_back_is_told_again,
    odd_names_are_names,
);
on_databases!(
    a_new_policy_is_added,
    a_revised_policy_is_updated,
    a_removed_policy_is_deleted,
    what_comes_back_is_told_again,
);

async fn a_new_policy_is_added(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("policies/신규규정.md", "# 신규 규정\n\n제1조\n");
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (1, 0, 0)));

    let policy = f.policy("신규규정").await.unwrap();
    assert_eq!((&*policy.title, &*policy.status), ("신규 규정", "active"));
    assert_eq!(policy.sha, f.repository.id_of("policies/신규규정.md"));
    assert_eq!(policy.path, "policies/신규규정.md");
    let (sha, now) = (&policy.sha, "2026-01-01T00:00:00.000000Z");
    assert_eq!(
        f.get("policy:신규규정").await.unwrap(),
        format!(
            r#"{{"policyName":"신규규정","title":"신규 규정","status":"active","lastUpdated":"{now}","sha":"{sha}","path":"policies/신규규정.md"}}"#
        )
    );
    let row = f.get("queue:신규규정").await.unwrap();
    let start = format!(
        r#"{{"policyName":"신규규정","sha":"{sha}","operation":"add","title":"신규 규정","path":"policies/신규규정.md","version":"{sha}/{}","state":"ready","retryCount":0,"createdAt":"{now}","errorMessage":null"#,
        run.id
    );
    assert!(row.starts_with(&start), "{row}");
    let commit = f.repository.head();
    assert_eq!(f.get("metadata:sync:lastCommit").await.unwrap(), format!("{commit:?}"));
    assert_eq!(
        f.get("metadata:sync:lastRun").await.unwrap(),
        format!(
            r#"{{"timestamp":"{now}","totalProcessed":1,"added":1,"updated":0,"deleted":0,"status":"success","errorCount":0,"commitSHA":"{commit}"}}"#
        )
    );
}

async fn a_revised_policy_is_updated(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("학칙.md", "# 한국교원대학교 학칙\n");
    f.push().await;
    let (before, commit) = (f.policy("학칙").await.unwrap(), f.repository.head());
    f.place.clock().advance(std::time::Duration::from_secs(60));
    f.repository.write("학칙.md", "# 한국교원대학교 학칙\n\n개정\n");
    let run = f.push().await;
    assert_eq!(counts(&run), (0, 1, 0));
    assert_eq!(run.previous_commit.as_deref(), Some(&*commit));
    let after = f.policy("학칙").await.unwrap();
    assert_ne!(after.sha, before.sha);
    assert_eq!(after.last_updated, "2026-01-01T00:01:00.000000Z");
    // One row, with the newest content.
    assert_eq!(f.queued().await, ["update 학칙"]);
    assert!(f.get("queue:학칙").await.unwrap().contains(&after.sha));
}

async fn a_removed_policy_is_deleted(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("폐기된규정.md", "# 폐기된 규정\n").write("남은규정.md", "# 남은\n");
    f.push().await;
    f.consume().await;
    let gone = f.policy("폐기된규정").await.unwrap();
    f.repository.remove("폐기된규정.md");
    let run = f.push().await;
    assert_eq!(counts(&run), (0, 0, 1));
    assert_eq!(f.names().await, ["남은규정"]);
    assert_eq!(f.get("policy:폐기된규정").await, None);
    // Consumers are told, with what it was last.
    assert_eq!(f.queued().await, ["delete 폐기된규정"]);
    assert!(f.get("queue:폐기된규정").await.unwrap().contains(&gone.sha));
}

async fn a_renamed_policy_is_deleted_and_added_and_the_rename_is_noted(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("old-name.md", "# 규정\n");
    f.push().await;
    f.repository.rename("old-name.md", "new-name.md");
    let run = f.push().await;
    assert_eq!(counts(&run), (1, 0, 1));
    assert_eq!(f.names().await, ["new-name"]);
    let policy = f.policy("new-name").await.unwrap();
    assert_eq!(policy.renamed_from.as_deref(), Some("old-name"));
    assert!(f.get("queue:new-name").await.unwrap().contains(r#""renamedFrom":"old-name""#));
    assert_eq!(f.queued().await, ["add new-name", "delete old-name"]);
    // It stays on record when the content changes.
    f.repository.write("new-name.md", "# 규정\n\n개정\n");
    f.push().await;
    assert_eq!(f.policy("new-name").await.unwrap().renamed_from.as_deref(), Some("old-name"));
}

async fn the_scenarios_over_git_daemon(place: Place) {
    let repository = Repository::new();
    let daemon = repository.daemon();
    over(place, &repository, &daemon.url()).await;
}

async fn the_scenarios_over_smart_http(place: Place) {
    let repository = Repository::new();
    let server = repository.http();
    over(place, &repository, &server.url()).await;
}

/// All four, one after the other, from wherever the repository is.
async fn over(place: Place, repository: &Repository, url: &str) {
    let settings = Settings::new(Address::parse(url).unwrap());
    let cache = repository.beside("cache");
    let store = place.store().await;
    let registry =
        Registry::open("policies", store, settings, &cache, place.clock().clone()).unwrap();
    repository.write("학칙.md", "# 학칙\n").write("폐기.md", "# 폐기\n").write("옛.md", "# 옛\n");
    repository.commit("first");
    let run = sync(&registry).await;
    assert_eq!((counts(&run), run.whole), ((3, 0, 0), true));

    repository.write("신규.md", "# 신규\n").write("학칙.md", "# 학칙\n\n개정\n").remove("폐기.md");
    repository.rename("옛.md", "새.md");
    repository.commit("second");
    let plan = registry.plan(&SyncOptions::default()).await.unwrap();
    assert_eq!(
        told(&plan.steps),
        ["add 새", "add 신규", "delete 옛", "delete 폐기", "update 학칙"]
    );
    let run = sync(&registry).await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (2, 1, 2)));
    assert_eq!(run.commit.as_deref(), Some(&*repository.head()));
    assert_eq!(names(&registry).await, ["새", "신규", "학칙"]);
    assert_eq!(
        queued(&registry).await,
        ["add 새", "add 신규", "delete 옛", "delete 폐기", "update 학칙"]
    );
    let content = registry.content("학칙").await.unwrap().unwrap();
    assert_eq!(&content.bytes[..], "# 학칙\n\n개정\n".as_bytes());
}

async fn a_moved_folder_changes_paths_and_nothing_else(place: Place) {
    let f = Fixture::new(place).await;
    for name in ["가", "나", "다"] {
        f.repository.write(&format!("old/{name}.md"), format!("# {name}\n"));
    }
    f.push().await;
    f.repository.rename("old", "new/place");
    let run = f.push().await;
    assert_eq!((counts(&run), run.blobs_read), ((0, 3, 0), 0));
    let policy = f.policy("가").await.unwrap();
    assert_eq!((&*policy.path, &*policy.title), ("new/place/가.md", "가"));
    assert_eq!(f.queued().await, ["update 가", "update 나", "update 다"]);
}

async fn what_comes_back_is_told_again(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n");
    f.push().await;
    f.consume().await;
    f.repository.remove("a.md").write("b.md", "# B\n");
    f.push().await;
    f.consume().await;
    f.repository.write("a.md", "# A\n");
    let run = f.push().await;
    assert_eq!(counts(&run), (1, 0, 0));
    // The content was told before, and the deletion since.
    assert_eq!(f.queued().await, ["add a"]);
}

async fn odd_names_are_names(place: Place) {
    let f = Fixture::new(place).await;
    let odd = ["a:b", "50%", "\"q\" 'q'", "😀", "a b", "#1", "-rf", "e\u{301}", "policy:x"];
    for name in odd {
        f.repository.write(&format!("{name}.md"), format!("# {name}\n"));
    }
    f.repository.write("UPPER.MD", "no heading\n");
    let run = f.push().await;
    assert_eq!((run.status, run.added), (RunStatus::Success, 10));
    for name in odd {
        let policy = f.policy(name).await.unwrap();
        assert_eq!(policy.path, format!("{name}.md"));
        assert!(f.registry.content(name).await.unwrap().is_some());
    }
    assert_eq!(f.policy("UPPER").await.unwrap().title, "UPPER");
    assert_eq!(f.policy("é").await.unwrap().policy_name, "é");
    assert!(f.get("policy:a%3Ab").await.is_some());
    // All can be deleted as well.
    for name in odd {
        f.repository.remove(&format!("{name}.md"));
    }
    f.repository.commit("none");
    let options = SyncOptions { allow_mass_delete: true, ..SyncOptions::default() };
    let run = crate::fixture::sync_with(&f.registry, &options).await;
    assert_eq!((run.status, run.deleted), (RunStatus::Success, 9));
}
