//! Issues that refer to what has changed.

use keyward_agreements::{Severity, What};
use keyward_locks::Mode;
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Process, ada, moment, source, told};

on_every_engine!(
    only_issues_about_an_older_state_of_the_policy_are_marked,
    marking_again_records_nothing,
    a_policy_that_is_gone_marks_all_that_refer_to_it,
    marking_does_not_wait_for_who_holds_the_issues,
    more_issues_than_fit_a_commit_are_marked,
);

async fn only_issues_about_an_older_state_of_the_policy_are_marked(place: Place) {
    let process = Process::on(&place).await;
    let older = process.create_about("Older", "s", 5).await.id;
    let newer = process.create_about("Newer", "s", 9).await.id;
    let other = process.create_about("Other", "t", 5).await.id;
    let none = process.create("None").await.id;
    let put_away = process.create_about("Put away", "s", 5).await.id;
    process.issues.archive(put_away, true, &ada()).await.unwrap();
    let marked = process.issues.mark_stale(&source("s"), Some(moment(9)), "keyward").await;
    assert_eq!(marked.unwrap(), 2);
    for (id, is_stale) in
        [(older, true), (newer, false), (other, false), (none, false), (put_away, true)]
    {
        let issue = process.issues.get(id).await.unwrap().issue;
        assert_eq!(issue.stale, is_stale, "{}", issue.title);
        let stale = What::Stale { source: source("s") };
        assert_eq!(told(&issue).last() == Some(&stale), is_stale, "{}", issue.title);
    }
}

async fn marking_again_records_nothing(place: Place) {
    let process = Process::on(&place).await;
    process.create_about("Older", "s", 5).await;
    let s = source("s");
    let mark = || process.issues.mark_stale(&s, Some(moment(9)), "keyward");
    assert_eq!(mark().await.unwrap(), 1);
    let after = process.issues.all().await.unwrap();
    assert_eq!(mark().await.unwrap(), 0);
    assert_eq!(process.issues.mark_stale(&s, None, "keyward").await.unwrap(), 0);
    assert_eq!(process.issues.all().await.unwrap(), after);
}

async fn a_policy_that_is_gone_marks_all_that_refer_to_it(place: Place) {
    let process = Process::on(&place).await;
    process.create_about("One", "s", 5).await;
    process.create_about("Two", "s", 500).await;
    process.create_about("Three", "t", 5).await;
    assert_eq!(process.issues.mark_stale(&source("s"), None, "keyward").await.unwrap(), 2);
}

async fn marking_does_not_wait_for_who_holds_the_issues(place: Place) {
    let process = Process::on(&place).await;
    let id = process.create_about("One", "s", 5).await.id;
    let guard = process.lock("issues", Mode::Exclusive).await;
    assert_eq!(process.issues.mark_stale(&source("s"), None, "keyward").await.unwrap(), 1);
    // Who holds them goes on with what is there now.
    let by = ada().under(&guard);
    let issue = process.issues.classify(id, Severity::High, &by).await.unwrap().issue;
    assert!(issue.stale && issue.history.len() == 3);
    guard.release().await.unwrap();
}

async fn more_issues_than_fit_a_commit_are_marked(place: Place) {
    use keyward_agreements::{Change, NewIssue};
    let process = Process::on(&place).await;
    let new = |n| {
        let parts = vec![crate::fixture::reference("s", 5)];
        Change::Create(NewIssue::new(format!("Issue {n}"), Severity::Low).describe(parts))
    };
    let guard = process.lock("issues", Mode::Exclusive).await;
    let changes = (0..120).map(new).collect();
    let applied = process.issues.apply_findings(&guard, changes, &ada()).await.unwrap();
    assert_eq!(applied.created.len(), 120);
    guard.release().await.unwrap();
    let (one, other) = (Process::on(&place).await, Process::on(&place).await);
    // Two who mark at once mark each issue once.
    let (s, newer) = (source("s"), Some(moment(9)));
    let (first, second) = tokio::join!(
        one.issues.mark_stale(&s, newer, "one"),
        other.issues.mark_stale(&s, newer, "other")
    );
    assert_eq!(first.unwrap() + second.unwrap(), 120);
    let all = process.issues.all().await.unwrap();
    assert!(all.iter().all(|issue| issue.stale && issue.history.len() == 2));
}
