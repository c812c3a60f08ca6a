//! Moving issues from state to state.

use std::time::Duration;

use keyward_agreements::{By, Error, PageIssues, State, What};
use keyward_engine::{Code, Coded};
use keyward_stores::{Place, on_databases, on_every_engine};
use keyward_testkit::TestClock;

use crate::fixture::{Process, ada, bob, told, went};

on_every_engine!(
    every_pair_of_states_is_allowed_or_refused_as_the_table_says,
    the_history_tells_who_moved_it_when_and_why,
    resolving_notes_when_and_reopening_removes_it,
    one_who_saw_another_version_is_told_who_changed_what,
);
on_databases!(
    the_history_tells_who_moved_it_when_and_why,
    one_who_saw_another_version_is_told_who_changed_what,
);

/// How to come to a state from pending.
fn way_to(state: State) -> &'static [State] {
    match state {
        State::Pending => &[],
        State::Active => &[State::Active],
        State::Blocked => &[State::Blocked],
        State::Resolved => &[State::Resolved],
    }
}

async fn go(issues: &PageIssues, id: keyward_agreements::IssueId, way: &[State]) {
    for to in way {
        issues.transition(id, *to, &ada()).await.unwrap();
    }
}

async fn every_pair_of_states_is_allowed_or_refused_as_the_table_says(place: Place) {
    use State::{Active, Blocked, Pending, Resolved};
    let allowed = [
        (Pending, Active),
        (Pending, Resolved),
        (Pending, Blocked),
        (Active, Blocked),
        (Active, Resolved),
        (Active, Pending),
        (Blocked, Active),
        (Blocked, Resolved),
        (Resolved, Active),
    ];
    let process = Process::on(&place).await;
    let issues = &process.issues;
    for from in State::ALL {
        for to in State::ALL {
            let id = process.create(&format!("{from} {to}")).await.id;
            go(issues, id, way_to(from)).await;
            let before = issues.get(id).await.unwrap();
            assert_eq!(before.issue.state, from);
            let moved = issues.transition(id, to, &bob()).await;
            let after = issues.get(id).await.unwrap();
            if allowed.contains(&(from, to)) {
                assert_eq!(moved.unwrap(), after, "{from} {to}");
                assert_eq!(after.issue.state, to);
                assert_eq!(told(&after.issue).last(), Some(&went(from, to)));
            } else {
                let error = moved.unwrap_err();
                assert!(matches!(error, Error::Transition { .. }), "{from} {to}: {error}");
                assert_eq!(before, after, "{from} {to}");
            }
        }
    }
}

async fn the_history_tells_who_moved_it_when_and_why(place: Place) {
    let process = Process::on(&place).await;
    let id = process.create("Notice").await.id;
    place.clock().advance(Duration::from_secs(60));
    let by = By::new("bob").because("the supplier agreed");
    let moved = process.issues.transition(id, State::Resolved, &by).await.unwrap().issue;
    assert_eq!(told(&moved), [What::Created, went(State::Pending, State::Resolved)]);
    let [created, last] = &moved.history[..] else { panic!("{:?}", moved.history) };
    assert_eq!((&*created.who, created.at), ("ada", TestClock::START));
    assert_eq!((&*last.who, last.why.as_deref()), ("bob", Some("the supplier agreed")));
    assert_eq!(last.at.to_string(), "2026-01-01T00:01:00Z");
    assert_eq!((moved.created, moved.updated), (created.at, last.at));
}

async fn resolving_notes_when_and_reopening_removes_it(place: Place) {
    let process = Process::on(&place).await;
    let id = process.create("Notice").await.id;
    place.clock().advance(Duration::from_millis(1_500));
    let resolved = process.issues.transition(id, State::Resolved, &ada()).await.unwrap().issue;
    assert_eq!(resolved.resolved_at.unwrap().to_string(), "2026-01-01T00:00:01.5Z");
    let reopened = process.issues.transition(id, State::Active, &ada()).await.unwrap().issue;
    assert_eq!(reopened.resolved_at, None);
}

async fn one_who_saw_another_version_is_told_who_changed_what(place: Place) {
    let process = Process::on(&place).await;
    let issues = &process.issues;
    let id = process.create("Notice").await.id;
    let seen = issues.get(id).await.unwrap().version;
    let by = || bob().expecting(seen.clone());
    place.clock().advance(Duration::from_secs(1));
    let moved = issues.transition(id, State::Active, &By::new("eve")).await.unwrap();
    let error = issues.transition(id, State::Blocked, &by()).await.unwrap_err();
    assert_eq!(error.code(), Code::IssueMoved);
    let told = "the issue was changed meanwhile: \
                eve moved it from pending to active at 2026-01-01T00:00:01.000000Z";
    assert_eq!(error.to_string(), told);
    assert_eq!(issues.get(id).await.unwrap(), moved);
    let by = bob().expecting(moved.version);
    assert_eq!(
        issues.transition(id, State::Blocked, &by).await.unwrap().issue.state,
        State::Blocked
    );
}
