//! Writing what an analysis found.

use keyward_agreements::{Applied, Change, Error, Finding, NewIssue, Severity, State, What, merge};
use keyward_engine::{Code, Coded};
use keyward_locks::{Mode, Target};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Process, ada, bob, moment, reference, source, told};

on_every_engine!(
    findings_are_written_once_however_often_they_are_found,
    a_stale_issue_that_is_found_again_keeps_what_people_made_of_it,
    what_was_archived_or_refreshed_meanwhile_is_left_alone,
    findings_need_an_exclusive_lock_on_all_issues,
);

fn finding(title: &str) -> Finding {
    let description = vec![reference("s", 9)];
    Finding { known: None, title: title.to_owned(), severity: Severity::High, description }
}

async fn findings_are_written_once_however_often_they_are_found(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let guard = process.lock("issues", Mode::Exclusive).await;
    for round in 0..2 {
        let found: Vec<Finding> = ('a'..='z').map(|c| finding(&c.to_string().repeat(9))).collect();
        let changes = merge(&issues.all().await.unwrap(), found);
        let applied = issues.apply_findings(&guard, changes, &bob()).await.unwrap();
        assert_eq!(applied.created.len(), if round == 0 { 26 } else { 0 });
    }
    guard.release().await.unwrap();
    let all = issues.all().await.unwrap();
    assert_eq!(all.len(), 26);
    assert!(all.iter().all(|it| told(it) == [What::Created] && it.history[0].who == "bob"));
}

async fn a_stale_issue_that_is_found_again_keeps_what_people_made_of_it(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let id = process.create_about("Notice", "s", 5).await.id;
    issues.transition(id, State::Resolved, &ada()).await.unwrap();
    issues.mark_stale(&source("s"), Some(moment(9)), "keyward").await.unwrap();
    let before = issues.get(id).await.unwrap().issue;
    let guard = process.lock("", Mode::Exclusive).await;
    let changes = merge(&issues.all().await.unwrap(), vec![finding("notice")]);
    let applied = issues.apply_findings(&guard, changes, &bob()).await.unwrap();
    assert_eq!(applied, Applied { created: vec![], refreshed: vec![id] });
    guard.release().await.unwrap();
    let after = issues.get(id).await.unwrap().issue;
    assert!(!after.stale);
    assert_eq!(after.references().next().unwrap().modified, moment(9));
    assert_eq!((after.state, after.severity), (before.state, before.severity));
    assert_eq!(after.resolved_at, before.resolved_at);
    assert_eq!(told(&after).last(), Some(&What::Refreshed));
    let again = issues.mark_stale(&source("s"), Some(moment(9)), "keyward").await.unwrap();
    assert_eq!(again, 0);
}

async fn what_was_archived_or_refreshed_meanwhile_is_left_alone(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let archived = process.create_about("Archived", "s", 5).await.id;
    let fresh = process.create_about("Fresh", "t", 5).await.id;
    issues.mark_stale(&source("s"), None, "keyward").await.unwrap();
    issues.archive(archived, true, &ada()).await.unwrap();
    let before = issues.all().await.unwrap();
    let gone = keyward_agreements::IssueId::parse("f47ac10b-58cc-4372-a567-0e02b2c3d479").unwrap();
    let refresh = |issue| Change::Refresh { issue, description: vec![reference("s", 9)] };
    let guard = process.lock("issues", Mode::Exclusive).await;
    let changes = [archived, fresh, gone, archived].map(refresh).to_vec();
    let applied = issues.apply_findings(&guard, changes, &bob()).await.unwrap();
    assert_eq!(applied, Applied::default());
    guard.release().await.unwrap();
    assert_eq!(issues.all().await.unwrap(), before);
}

async fn findings_need_an_exclusive_lock_on_all_issues(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let changes = || vec![Change::Create(NewIssue::new("New", Severity::Low))];
    for (path, mode) in
        [("issues:7", Mode::Exclusive), ("policies", Mode::Exclusive), ("issues", Mode::Shared)]
    {
        let guard = process.lock(path, mode).await;
        let refused = issues.apply_findings(&guard, changes(), &bob()).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{path}: {refused}");
        guard.release().await.unwrap();
    }
    let guard = process.lock("issues", Mode::Exclusive).await;
    process.root.break_lock(&Target::Token(guard.token()), "eve", "").await.unwrap();
    let refused = issues.apply_findings(&guard, changes(), &bob()).await.unwrap_err();
    assert_eq!(refused.code(), Code::LockLost);
    assert!(issues.all().await.unwrap().is_empty());
}
