//! What repositories do to those who read them.

use std::fs;
use std::path::PathBuf;

use keyward_registry::{Error, RunStatus, SyncOptions};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, counts, fails, names, sync, sync_with};

on_every_engine!(
    a_force_push_needs_no_special_case,
    another_branch_is_another_tree,
    an_emptied_file_is_a_policy_called_as_its_file,
    an_invalid_file_is_named_and_its_old_entry_left_alone,
    files_of_one_name_are_named_and_the_old_entry_left_alone,
    a_tree_that_cannot_be_read_whole_changes_nothing,
    a_content_that_cannot_be_read_changes_nothing,
    a_source_that_is_gone_changes_nothing,
    a_mass_delete_stops_unless_it_is_allowed,
    a_folder_that_is_not_there_is_no_reason_to_delete,
    what_was_left_alone_is_taken_once_it_is_valid,
);

async fn a_force_push_needs_no_special_case(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n").write("b.md", "# B\n").write("c.md", "# C\n");
    let first = f.push().await.commit.unwrap();
    f.repository.write("b.md", "# B 2\n").write("d.md", "# D\n");
    f.push().await;
    // Back, and off in another direction; what was there is forgotten.
    f.repository.reset(&first).remove("c.md").write("e.md", "# E\n");
    f.repository.amend("other");
    f.repository.git(&["reflog", "expire", "--expire=now", "--all"]);
    f.repository.git(&["gc", "-q", "--prune=now"]);
    let run = sync(&f.registry).await;
    assert_eq!((run.status, counts(&run), run.whole), (RunStatus::Success, (1, 1, 2), true));
    assert_eq!(f.names().await, ["a", "b", "e"]);
    assert_eq!(f.policy("b").await.unwrap().title, "B");
}

async fn another_branch_is_another_tree(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    f.push().await;
    f.repository.switch_orphan("draft");
    f.repository.write("b.md", "# B draft\n").write("c.md", "# C\n");
    let head = f.repository.commit("draft");
    let draft = f.reopened(|settings| settings.branch = Some("draft".to_owned())).await;
    let run = sync(&draft).await;
    assert_eq!((counts(&run), run.commit), ((1, 1, 1), Some(head)));
    assert_eq!(names(&draft).await, ["b", "c"]);
}

async fn an_emptied_file_is_a_policy_called_as_its_file(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("학칙.md", "# 대학 학칙\n");
    f.push().await;
    f.repository.write("학칙.md", "");
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (0, 1, 0)));
    assert_eq!(f.policy("학칙").await.unwrap().title, "학칙");
}

async fn an_invalid_file_is_named_and_its_old_entry_left_alone(place: Place) {
    let f = Fixture::with(place, |settings| settings.limits.blob_bytes_max = 100).await;
    f.repository.write("bytes.md", "# 1\n").write("large.md", "# 1\n").write("link.md", "# 1\n");
    f.push().await;
    f.consume().await;
    let before = f.policy("bytes").await.unwrap();
    f.repository.write("bytes.md", b"# \xff\xfe\n").write("large.md", "x".repeat(101));
    f.repository.remove("link.md").link("link.md", "/etc/passwd");
    f.repository.write("new.md", b"\xff").write("good.md", "# Good\n");
    f.repository.write(&format!("{}.md", "n".repeat(201)), "# long\n");
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Partial, (1, 0, 0)));
    assert_eq!(run.error_count, 5);
    let paths: Vec<&str> = run.errors.iter().map(|error| &*error.path).collect();
    assert!(["bytes.md", "large.md", "link.md", "new.md"].iter().all(|path| paths.contains(path)));
    assert_eq!(f.names().await, ["bytes", "good", "large", "link"]);
    assert_eq!(f.policy("bytes").await.unwrap(), before);
    assert_eq!(f.queued().await, ["add good"]);
    // Everything valid was applied, so the registry is at the commit.
    assert_eq!(f.last_commit().await, Some(f.repository.head()));
    let status = f.registry.status().await.unwrap();
    assert_eq!(status.last_run.unwrap().status, RunStatus::Partial);
    // And the next run looks at everything again.
    let again = sync(&f.registry).await;
    assert_eq!((again.status, again.whole, counts(&again)), (RunStatus::Partial, true, (0, 0, 0)));
}

async fn files_of_one_name_are_named_and_the_old_entry_left_alone(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a/x.md", "# X\n").write("y.md", "# Y\n");
    f.push().await;
    // Only the second one is a change; and one that is written with a combining mark.
    f.repository.write("b/x.md", "# other X\n").write("é.md", "# 1\n");
    f.repository.write("e\u{301}.md", "# 2\n");
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Partial, (0, 0, 0)));
    let mut paths: Vec<&str> = run.errors.iter().map(|error| &*error.path).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["a/x.md", "b/x.md", "e\u{301}.md", "é.md"]);
    assert_eq!(f.policy("x").await.unwrap().path, "a/x.md");
    // Nor is it updated or deleted while two have its name.
    f.repository.remove("a/x.md").write("c/x.md", "# third X\n");
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Partial, (0, 0, 0)));
    assert_eq!(f.policy("x").await.unwrap().path, "a/x.md");
    f.repository.remove("b/x.md").remove("e\u{301}.md");
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (1, 1, 0)));
    assert_eq!(f.policy("x").await.unwrap().path, "c/x.md");
}

async fn a_tree_that_cannot_be_read_whole_changes_nothing(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("p/a.md", "# A\n").write("p/b.md", "# B\n").write("q/c.md", "# C\n");
    let first = f.push().await.commit.unwrap();
    f.repository.write("p/a.md", "# A 2\n").remove("q/c.md").write("r/d.md", "# D\n");
    f.repository.commit("second");
    let tree = f.repository.git(&["rev-parse", "HEAD:p"]);
    let (kept, held) = damage(&f, &tree);
    for options in [SyncOptions::default(), SyncOptions { full: true, ..SyncOptions::default() }] {
        let error = fails(&f.registry, &options).await;
        assert!(matches!(error, Error::Source { .. }), "{error}");
        assert_eq!(f.names().await, ["a", "b", "c"]);
        assert_eq!(f.last_commit().await.as_deref(), Some(&*first));
    }
    let failed = f.registry.status().await.unwrap().last_run.unwrap();
    assert_eq!((failed.status, failed.error_count), (RunStatus::Failed, 1));
    fs::write(kept, held).unwrap();
    let run = sync(&f.registry).await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (1, 1, 1)));
}

async fn a_content_that_cannot_be_read_changes_nothing(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    let first = f.push().await.commit.unwrap();
    f.repository.write("a.md", "# A 2\n").remove("b.md").write("c.md", "# C\n");
    f.repository.commit("second");
    let blob = f.repository.id_of("a.md");
    let (kept, held) = damage(&f, &blob);
    assert!(matches!(f.fails().await, Error::Source { .. }));
    assert_eq!(f.names().await, ["a", "b"]);
    assert_eq!(f.last_commit().await.as_deref(), Some(&*first));
    fs::write(kept, held).unwrap();
    assert_eq!(counts(&sync(&f.registry).await), (1, 1, 1));
}

/// Cuts an object of the repository short; gives where it is and what it was.
fn damage(f: &Fixture, id: &str) -> (PathBuf, Vec<u8>) {
    let path = f.repository.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    (path, whole)
}

async fn a_source_that_is_gone_changes_nothing(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n");
    let first = f.push().await.commit.unwrap();
    let (at, away) = (f.repository.path(), f.repository.beside("away"));
    fs::rename(&at, &away).unwrap();
    let error = f.fails().await;
    assert!(matches!(error, Error::Source { .. }), "{error}");
    assert_eq!((f.names().await, f.last_commit().await), (vec!["a".to_owned()], Some(first)));
    let newest = f.registry.runs(None, 1).await.unwrap().items.remove(0);
    assert_eq!(newest.status, RunStatus::Failed);
    assert_eq!(newest.errors[0].reason, error.to_string());
    fs::rename(&away, &at).unwrap();
    f.repository.write("b.md", "# B\n");
    assert_eq!(counts(&f.push().await), (1, 0, 0));
}

async fn a_mass_delete_stops_unless_it_is_allowed(place: Place) {
    let f = Fixture::new(place).await;
    for name in 0..10 {
        f.repository.write(&format!("{name}.md"), format!("# {name}\n"));
    }
    let first = f.push().await.commit.unwrap();
    for name in 0..6 {
        f.repository.remove(&format!("{name}.md"));
    }
    f.repository.commit("most are gone");
    for full in [false, true] {
        let error = fails(&f.registry, &SyncOptions { full, ..SyncOptions::default() }).await;
        let expected =
            matches!(error, Error::MassDelete { deletes: 6, entries: 10, percent_max: 50 });
        assert!(expected, "{error}");
        assert_eq!(f.names().await.len(), 10);
        assert_eq!(f.last_commit().await.as_deref(), Some(&*first));
    }
    // The plan tells, and changes nothing.
    let plan = f.registry.plan(&SyncOptions::default()).await.unwrap();
    assert_eq!(plan.steps.iter().filter(|step| crate::fixture::is_delete(step)).count(), 6);
    let options = SyncOptions { allow_mass_delete: true, ..SyncOptions::default() };
    assert_eq!(counts(&sync_with(&f.registry, &options).await), (0, 0, 6));
    // Half of what is left is not more than half; and what is only renamed is not lost.
    f.repository.remove("6.md").remove("7.md");
    assert_eq!(counts(&f.push().await), (0, 0, 2));
    f.repository.rename("8.md", "eight.md").rename("9.md", "nine.md");
    assert_eq!(counts(&f.push().await), (2, 0, 2));
}

async fn a_folder_that_is_not_there_is_no_reason_to_delete(place: Place) {
    let f = Fixture::with(place, |settings| settings.folder = "policies".to_owned()).await;
    f.repository.write("policies/a.md", "# A\n").write("other/b.md", "# B\n");
    f.push().await;
    assert_eq!(f.names().await, ["a"]);
    f.repository.rename("policies", "rules");
    f.repository.commit("renamed");
    let error = f.fails().await;
    assert!(matches!(error, Error::Source { .. }), "{error}");
    assert_eq!(f.names().await, ["a"]);
}

async fn what_was_left_alone_is_taken_once_it_is_valid(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n").write("b.md", b"\xff");
    assert_eq!(f.push().await.status, RunStatus::Partial);
    f.repository.write("c.md", "# C\n");
    let run = f.push().await;
    assert_eq!((run.status, run.whole, counts(&run)), (RunStatus::Partial, true, (1, 0, 0)));
    f.repository.write("b.md", "# B\n");
    let run = f.push().await;
    assert_eq!((run.status, counts(&run)), (RunStatus::Success, (1, 0, 0)));
    f.repository.write("d.md", "# D\n");
    let run = f.push().await;
    assert_eq!((run.whole, counts(&run)), (false, (1, 0, 0)));
}
