//! Changing one issue, and what is refused.

use keyward_agreements::{
    Annotation, Archived, By, Error, Filter, IssueId, NewIssue, Severity, Sort, State, What,
};
use keyward_engine::{Code, Coded, Json, Put};
use keyward_key::Key;
use keyward_locks::Mode;
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Process, ada, bob, page_id, told};

on_every_engine!(
    a_new_issue_is_pending_and_is_found_by_its_id,
    classifying_and_annotating_are_told,
    what_is_so_already_is_not_recorded_again,
    an_archived_issue_refuses_everything_but_to_be_brought_back,
    an_unknown_issue_is_an_error_for_every_operation,
    issues_of_another_page_are_not_reached,
    what_is_not_known_survives_a_change,
    what_is_too_long_or_empty_is_refused,
    a_change_is_made_under_a_lock_that_is_held_above_it,
);

async fn a_new_issue_is_pending_and_is_found_by_its_id(place: Place) {
    let process = Process::on(&place).await;
    let new = NewIssue::new("  No\nnotice ", Severity::High);
    let made = process.issues.create(new, &ada()).await.unwrap();
    assert_eq!((&*made.issue.title, made.issue.state), ("No notice", State::Pending));
    assert_eq!(Process::on(&place).await.issues.get(made.issue.id).await.unwrap(), made);
}

async fn classifying_and_annotating_are_told(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let id = process.create("Notice").await.id;
    issues.classify(id, Severity::High, &bob()).await.unwrap();
    issues.annotate(id, Annotation::Append("*one*".to_owned()), &bob()).await.unwrap();
    issues.annotate(id, Annotation::Append("two".to_owned()), &bob()).await.unwrap();
    let issue = issues.get(id).await.unwrap().issue;
    assert_eq!((issue.severity, &*issue.annotations), (Severity::High, "*one*\n\ntwo"));
    let classified = What::Classified { from: Severity::Medium, to: Severity::High };
    assert_eq!(told(&issue), [What::Created, classified, What::Annotated, What::Annotated]);
    let replaced = issues.annotate(id, Annotation::Replace("three".to_owned()), &ada()).await;
    assert_eq!(replaced.unwrap().issue.annotations, "three");
}

async fn what_is_so_already_is_not_recorded_again(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let id = process.create("Notice").await.id;
    let before = issues.get(id).await.unwrap();
    assert_eq!(issues.classify(id, Severity::Medium, &bob()).await.unwrap(), before);
    let same = Annotation::Replace(String::new());
    assert_eq!(issues.annotate(id, same, &bob()).await.unwrap(), before);
    assert_eq!(issues.archive(id, false, &bob()).await.unwrap(), before);
    assert_eq!(issues.get(id).await.unwrap(), before);
}

async fn an_archived_issue_refuses_everything_but_to_be_brought_back(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let id = process.create("Notice").await.id;
    let archived = issues.archive(id, true, &ada()).await.unwrap();
    for refused in [
        issues.classify(id, Severity::High, &bob()).await,
        issues.annotate(id, Annotation::Append("x".to_owned()), &bob()).await,
        issues.transition(id, State::Active, &bob()).await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), Code::IssueArchived, "{error}");
    }
    assert_eq!(issues.archive(id, true, &bob()).await.unwrap(), archived);
    let back = issues.archive(id, false, &bob()).await.unwrap().issue;
    assert_eq!(told(&back), [What::Created, What::Archived, What::Unarchived]);
    issues.transition(id, State::Active, &bob()).await.unwrap();
}

async fn an_unknown_issue_is_an_error_for_every_operation(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let id = IssueId::parse("f47ac10b-58cc-4372-a567-0e02b2c3d479").unwrap();
    for refused in [
        issues.get(id).await,
        issues.classify(id, Severity::High, &bob()).await,
        issues.annotate(id, Annotation::Append("x".to_owned()), &bob()).await,
        issues.transition(id, State::Active, &bob()).await,
        issues.archive(id, true, &bob()).await,
    ] {
        assert!(matches!(refused, Err(Error::UnknownIssue { .. })), "{refused:?}");
    }
    assert!(issues.all().await.unwrap().is_empty());
}

async fn issues_of_another_page_are_not_reached(place: Place) {
    let process = Process::on(&place).await;
    let id = process.create("Notice").await.id;
    for name in ["p2", "p:issue", "P"] {
        let other = process.all.of(&page_id(name)).unwrap();
        assert!(matches!(other.get(id).await, Err(Error::UnknownIssue { .. })), "{name}");
        let moved = other.transition(id, State::Active, &bob()).await;
        assert!(matches!(moved, Err(Error::UnknownIssue { .. })), "{name}");
        let filter = Filter { archived: Archived::Included, ..Filter::default() };
        assert_eq!(other.list(&filter, Sort::default(), None, 9).await.unwrap().total, 0);
    }
    // A lock of one page is none of another.
    let guard = process.lock("issues", Mode::Exclusive).await;
    let other = process.all.of(&page_id("p2")).unwrap();
    let new = NewIssue::new("Elsewhere", Severity::Low);
    let refused = other.create(new, &ada().under(&guard)).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused}");
}

async fn what_is_not_known_survives_a_change(place: Place) {
    let (process, store) = (Process::on(&place).await, place.store().await);
    let id = process.create("Notice").await.id;
    let key = Key::from_segments(["p", "issue", &id.to_string()]).unwrap();
    let value = store.get(&key).await.unwrap().unwrap().value;
    let more = value.as_str().replacen('{', r#"{"ticket":12345678901234567890123.10,"#, 1);
    store.put(key.clone(), Put::new(Json::parse(more).unwrap())).await.unwrap();
    process.issues.transition(id, State::Active, &bob()).await.unwrap();
    let value = store.get(&key).await.unwrap().unwrap().value;
    assert!(value.as_str().contains(r#""ticket":12345678901234567890123.10"#), "{value}");
    // What makes no sense is said, and left alone.
    store.put(key, Put::new(Json::parse("[7]").unwrap())).await.unwrap();
    let refused = process.issues.transition(id, State::Blocked, &bob()).await;
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}

async fn what_is_too_long_or_empty_is_refused(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let id = process.create("Notice").await.id;
    let before = issues.get(id).await.unwrap();
    let invalid = |refused: keyward_agreements::Result<_>| {
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    };
    for title in ["", " \n", &*"x".repeat(301)] {
        invalid(issues.create(NewIssue::new(title, Severity::Low), &ada()).await);
    }
    let why = "é".repeat(2_001);
    for by in [By::new(""), By::new("x".repeat(201)), ada().because(why)] {
        invalid(issues.transition(id, State::Active, &by).await);
    }
    let long = Annotation::Replace("x".repeat(200_000));
    invalid(issues.annotate(id, long, &ada()).await);
    assert_eq!(issues.get(id).await.unwrap(), before);
    let why = ada().because("é".repeat(2_000));
    issues.transition(id, State::Active, &why).await.unwrap();
}

async fn a_change_is_made_under_a_lock_that_is_held_above_it(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let id = process.create("Notice").await.id;
    for path in ["", "issues", &format!("issues:{id}")] {
        let guard = process.lock(path, Mode::Exclusive).await;
        let text = Annotation::Append(format!("under {path:?}"));
        issues.annotate(id, text, &ada().under(&guard)).await.unwrap();
        guard.release().await.unwrap();
    }
    assert_eq!(issues.get(id).await.unwrap().issue.history.len(), 4);
    for (path, mode) in [("policies", Mode::Exclusive), ("issues", Mode::Shared)] {
        let guard = process.lock(path, mode).await;
        let refused = issues.transition(id, State::Active, &ada().under(&guard)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{path}: {refused:?}");
        guard.release().await.unwrap();
    }
    // One that was lost is worth nothing.
    let guard = process.lock("issues", Mode::Exclusive).await;
    let target = keyward_locks::Target::Token(guard.token());
    process.root.break_lock(&target, "eve", "").await.unwrap();
    let refused = issues.transition(id, State::Active, &ada().under(&guard)).await;
    assert!(matches!(refused, Err(Error::Lock(_))), "{refused:?}");
    assert_eq!(issues.get(id).await.unwrap().issue.state, State::Pending);
}
