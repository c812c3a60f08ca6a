use jiff::Timestamp;
use serde_json::Map;

use super::super::{Event, Precision, State, What};
use super::*;

fn reference(source: &str, offset: usize, length: usize) -> Part {
    Part::Reference(Reference {
        source: SourceId::new(source).unwrap(),
        title: "Policy".to_owned(),
        excerpt: format!("what {source} says at {offset}"),
        offset,
        length,
        located: Precision::Exact,
        modified: Timestamp::UNIX_EPOCH,
        other: Map::new(),
    })
}

fn known(title: &str, description: Vec<Part>) -> Issue {
    let id = IssueId::random().unwrap();
    let (at, who) = (Timestamp::UNIX_EPOCH, "ada".to_owned());
    let created = Event { id, at, who, change: What::Created, why: None, other: Map::new() };
    Issue::new(id, NewIssue::new(title, Severity::Low).describe(description), created)
}

fn stale(title: &str, description: Vec<Part>) -> Issue {
    Issue { stale: true, ..known(title, description) }
}

fn finding(title: &str, description: Vec<Part>) -> Finding {
    Finding { known: None, title: title.to_owned(), severity: Severity::High, description }
}

fn created(changes: &[Change]) -> Vec<&str> {
    let title = |change: &'_ Change| match change {
        Change::Create(new) => Some(new.title.clone()),
        Change::Refresh { .. } => None,
    };
    assert!(changes.iter().all(|change| title(change).is_some()), "{changes:?}");
    changes
        .iter()
        .filter_map(|change| match change {
            Change::Create(new) => Some(new.title.as_str()),
            Change::Refresh { .. } => None,
        })
        .collect()
}

#[test]
fn what_is_new_is_made_once_with_its_highest_severity() {
    let low = Finding { severity: Severity::Low, ..finding("No notice", vec![]) };
    let changes = merge(&[], vec![low, finding("no  NOTICE", vec![]), finding("Other", vec![])]);
    assert_eq!(created(&changes), ["No notice", "Other"]);
    assert!(matches!(&changes[0], Change::Create(new) if new.severity == Severity::High));
}

#[test]
fn findings_about_one_passage_with_titles_alike_are_one() {
    let one = finding("Notice period is missing", vec![reference("s", 100, 50)]);
    let other = finding("Missing notice period", vec![reference("s", 110, 60)]);
    assert_eq!(created(&merge(&[], vec![one.clone(), other])).len(), 1);
    let elsewhere = finding("Missing notice period", vec![reference("t", 110, 60)]);
    assert_eq!(created(&merge(&[], vec![one.clone(), elsewhere])).len(), 2);
    let beside = finding("Missing notice period", vec![reference("s", 140, 60)]);
    assert_eq!(created(&merge(&[], vec![one.clone(), beside])).len(), 2);
    let about_else = finding("Unlimited liability", vec![reference("s", 100, 50)]);
    assert_eq!(created(&merge(&[], vec![one, about_else])).len(), 2);
}

#[test]
fn what_is_known_is_not_made_again() {
    let issue = known("No notice", vec![reference("s", 10, 20)]);
    let by_title = finding("no notice", vec![]);
    let by_passage = finding("No notice given", vec![reference("s", 12, 20)]);
    let by_id = Finding { known: Some(issue.id), ..finding("Whatever", vec![]) };
    assert!(merge(&[issue], vec![by_title, by_passage, by_id]).is_empty());
}

#[test]
fn an_id_that_nobody_knows_is_no_reason_to_drop_a_finding() {
    let known = Some(IssueId::random().unwrap());
    let changes = merge(&[], vec![Finding { known, ..finding("New", vec![]) }]);
    assert_eq!(created(&changes), ["New"]);
}

#[test]
fn a_stale_issue_gets_its_new_places_and_keeps_its_text() {
    let text = |text: &str| Part::Text(text.to_owned());
    let before = vec![text("see"), reference("s", 1, 5), text("and"), reference("s", 9, 5)];
    let issue = stale("Known", before);
    let found = vec![text("new words"), reference("s", 30, 5)];
    let changes = merge(std::slice::from_ref(&issue), vec![finding("known", found)]);
    let description = vec![text("see"), reference("s", 30, 5), text("and")];
    assert_eq!(changes, [Change::Refresh { issue: issue.id, description }]);
    // Without a place, nobody knows whether it is where it was.
    assert!(merge(&[issue], vec![finding("known", vec![])]).is_empty());
}

#[test]
fn a_stale_issue_is_refreshed_once() {
    let issue = stale("Known", vec![]);
    let again = || finding("known", vec![reference("s", 30, 5)]);
    assert_eq!(merge(&[issue], vec![again(), again()]).len(), 1);
}

#[test]
fn what_refers_to_other_policies_stays_and_findings_of_several_add_up() {
    let issue = stale("Known", vec![reference("a", 1, 5), reference("b", 9, 5)]);
    let found = |places| finding("known", places);
    let changes = merge(std::slice::from_ref(&issue), vec![found(vec![reference("b", 30, 5)])]);
    let description = vec![reference("a", 1, 5), reference("b", 30, 5)];
    assert_eq!(changes, [Change::Refresh { issue: issue.id, description }]);
    let findings = vec![found(vec![reference("a", 2, 5)]), found(vec![reference("b", 30, 5)])];
    let changes = merge(std::slice::from_ref(&issue), findings);
    let description = vec![reference("a", 2, 5), reference("b", 30, 5)];
    assert_eq!(changes, [Change::Refresh { issue: issue.id, description }]);
}

#[test]
fn what_is_resolved_or_archived_is_neither_made_again_nor_reopened() {
    let resolved = Issue { state: State::Resolved, ..stale("Settled", vec![]) };
    let archived = Issue { archived: true, ..stale("Put away", vec![]) };
    let places = || vec![reference("s", 30, 5)];
    let findings = vec![finding("settled", places()), finding("put away", places())];
    let changes = merge(&[resolved.clone(), archived], findings);
    // What is settled is told where it shows now; applying that leaves its state.
    assert!(matches!(&changes[..], [Change::Refresh { issue, .. }] if *issue == resolved.id));
}

#[test]
fn what_is_too_long_is_cut_and_what_has_no_title_is_left_out() {
    let long = finding(&"x ".repeat(400), vec![Part::Text("y".repeat(1 << 20))]);
    let changes = merge(&[], vec![long, finding(" \n", vec![])]);
    assert_eq!(changes.len(), 1);
    let Change::Create(new) = &changes[0] else { panic!("{changes:?}") };
    assert!(new.clone().checked().is_ok());
}
