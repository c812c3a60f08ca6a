//! Lists, filters, orders and the bound.

use std::time::Duration;

use keyward_agreements::{
    Annotation, Archived, Change, Error, Filter, NewIssue, PageIssues, Severity, Sort, State,
};
use keyward_engine::{Commit, Json, Put};
use keyward_key::Key;
use keyward_locks::Mode;
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Process, ada, source};

on_every_engine!(
    filters_let_through_what_they_say,
    issues_are_listed_in_every_order,
    pages_of_a_list_have_every_issue_once,
    a_cursor_of_another_list_is_refused,
    a_page_has_room_for_ten_thousand_issues,
);

async fn titles(issues: &PageIssues, filter: &Filter, sort: Sort) -> Vec<String> {
    let page = issues.list(filter, sort, None, 100).await.unwrap();
    assert_eq!((page.total, page.next), (page.items.len(), None));
    page.items.into_iter().map(|it| it.issue.title).collect()
}

/// Four issues, one minute after the other.
async fn some(place: &Place) -> Process {
    let process = Process::on(place).await;
    let issues = &process.issues;
    let minute = || place.clock().advance(Duration::from_secs(60));
    let new = |title: &str, severity| NewIssue::new(title, severity);
    let a = issues.create(new("ärger", Severity::Low), &ada()).await.unwrap().issue.id;
    minute();
    process.create_about("Clause", "s", 5).await;
    minute();
    let b = issues.create(new("Bond", Severity::High), &ada()).await.unwrap().issue.id;
    minute();
    let gone = issues.create(new("Dropped", Severity::High), &ada()).await.unwrap().issue.id;
    issues.archive(gone, true, &ada()).await.unwrap();
    issues.mark_stale(&source("s"), None, "keyward").await.unwrap();
    minute();
    issues.transition(b, State::Resolved, &ada()).await.unwrap();
    minute();
    issues.annotate(a, Annotation::Append("Über NOTES".to_owned()), &ada()).await.unwrap();
    process
}

async fn filters_let_through_what_they_say(place: Place) {
    let process = some(&place).await;
    let issues = &process.issues;
    let all = Filter::default;
    let text = |text: &str| Filter { text: Some(text.to_owned()), ..all() };
    let archived = |archived| Filter { archived, ..all() };
    for (filter, expected) in [
        (all(), vec!["Bond", "Clause", "ärger"]),
        (archived(Archived::Included), vec!["Bond", "Clause", "Dropped", "ärger"]),
        (archived(Archived::Only), vec!["Dropped"]),
        (Filter { states: vec![State::Resolved], ..all() }, vec!["Bond"]),
        (
            Filter { states: vec![State::Resolved, State::Pending], ..all() },
            vec!["Bond", "Clause", "ärger"],
        ),
        (Filter { states: vec![State::Blocked], ..all() }, vec![]),
        (Filter { severities: vec![Severity::Low], ..all() }, vec!["Clause", "ärger"]),
        (Filter { source: Some(source("s")), ..all() }, vec!["Clause"]),
        (Filter { source: Some(source("t")), ..all() }, vec![]),
        (Filter { stale: Some(true), ..all() }, vec!["Clause"]),
        (Filter { stale: Some(false), ..all() }, vec!["Bond", "ärger"]),
        (text("ÄRG"), vec!["ärger"]),
        (text("über notes"), vec!["ärger"]),
        (text("S SAYS"), vec!["Clause"]),
        (text("see"), vec!["Clause"]),
        (text("nowhere"), vec![]),
    ] {
        assert_eq!(titles(issues, &filter, Sort::Title).await, expected, "{filter:?}");
    }
    let refused = issues.list(&text(&"x".repeat(1_001)), Sort::Title, None, 1).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

async fn issues_are_listed_in_every_order(place: Place) {
    let process = some(&place).await;
    for (sort, expected) in [
        (Sort::default(), ["Bond", "ärger", "Clause"]),
        (Sort::Created, ["Bond", "Clause", "ärger"]),
        (Sort::Updated, ["ärger", "Bond", "Clause"]),
        (Sort::Title, ["Bond", "Clause", "ärger"]),
        (Sort::State, ["ärger", "Clause", "Bond"]),
    ] {
        assert_eq!(titles(&process.issues, &Filter::default(), sort).await, expected, "{sort:?}");
    }
}

async fn pages_of_a_list_have_every_issue_once(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let new = |n: usize| {
        let severity = Severity::try_from((n % 3) as u8 + 1).unwrap();
        Change::Create(NewIssue::new(format!("Issue {}", n % 10), severity))
    };
    let guard = process.lock("issues", Mode::Exclusive).await;
    issues.apply_findings(&guard, (0..60).map(new).collect(), &ada()).await.unwrap();
    guard.release().await.unwrap();
    for sort in [Sort::Severity, Sort::Created, Sort::Updated, Sort::Title, Sort::State] {
        let whole = issues.list(&Filter::default(), sort, None, 500).await.unwrap();
        let (mut paged, mut cursor) = (Vec::new(), None);
        loop {
            let after: Option<&str> = cursor.as_deref();
            let page = issues.list(&Filter::default(), sort, after, 7).await.unwrap();
            assert_eq!(page.total, 60);
            paged.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(paged, whole.items, "{sort:?}");
    }
}

async fn a_cursor_of_another_list_is_refused(place: Place) {
    let process = some(&place).await;
    let list = |sort, after| {
        let issues = process.issues.clone();
        async move { issues.list(&Filter::default(), sort, after, 1).await }
    };
    let next = list(Sort::Title, None).await.unwrap().next.unwrap();
    assert!(list(Sort::Title, Some(&next)).await.is_ok());
    let long = "A".repeat(100_000);
    for (sort, cursor) in
        [(Sort::State, &*next), (Sort::Title, ""), (Sort::Title, "?"), (Sort::Title, &*long)]
    {
        let refused = list(sort, Some(cursor)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}

async fn a_page_has_room_for_ten_thousand_issues(place: Place) {
    let (process, store) = (Process::on(&place).await, place.store().await);
    let issues = &process.issues;
    let id = process.create("First").await.id.to_string();
    let key = |id: &str| Key::from_segments(["p", "issue", id]).unwrap();
    let value = store.get(&key(&id)).await.unwrap().unwrap().value;
    for thousand in 0..10 {
        let mut commit = Commit::new();
        for n in 0..if thousand == 9 { 998 } else { 1_000 } {
            let other = format!("00000000-0000-4000-8000-{:012}", thousand * 1_000 + n);
            let value = Json::parse(value.as_str().replacen(&id, &other, 1)).unwrap();
            commit = commit.put(key(&other), Put::new(value));
        }
        assert!(store.commit(commit).await.unwrap().is_applied());
    }
    let new = || NewIssue::new("Last", Severity::High);
    let guard = process.lock("issues", Mode::Exclusive).await;
    let two = vec![Change::Create(new()), Change::Create(new())];
    let refused = issues.apply_findings(&guard, two, &ada()).await.unwrap_err();
    assert!(refused.to_string().contains("10000"), "{refused}");
    guard.release().await.unwrap();
    issues.create(new(), &ada()).await.unwrap();
    let refused = issues.create(new(), &ada()).await.unwrap_err();
    assert!(matches!(&refused, Error::Invalid(_)), "{refused}");
    let listed = issues.list(&Filter::default(), Sort::default(), None, 1_000).await.unwrap();
    assert_eq!((listed.total, listed.items.len()), (10_000, PageIssues::PAGE_MAX));
    assert_eq!(listed.items[0].issue.title, "Last");
}
