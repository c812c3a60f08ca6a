//! What was made of a policy goes with the policy.

use keyward_agreements::{By, Course, Error, NewIssue, Part, Reference, Severity};
use keyward_engine::Scan;
use keyward_key::{Key, KeyRange};
use keyward_stores::{Place, on_databases, on_every_engine};

use crate::fixture::{Desk, POLICY, language, models, options, page, source, translator};

on_every_engine!(
    a_policy_is_extracted_and_translated_once_and_kept,
    a_newer_attachment_drops_the_original_and_all_translations_and_marks_issues,
    a_vanished_attachment_is_forgotten_and_its_issues_are_marked,
    a_page_with_stale_issues_is_analysed_again_if_the_settings_say_so,
    who_only_reads_waits_for_no_lock_and_writes_nothing,
    a_look_at_a_page_that_is_cut_off_leaves_no_lock,
);
on_databases!(a_policy_is_extracted_and_translated_once_and_kept);

async fn a_policy_is_extracted_and_translated_once_and_kept(place: Place) {
    let scripted = translator();
    let store = place.store().await;
    let desk = Desk::new(store, place.clock().clone(), models(scripted.clone()));
    let desk = desk.with_page("p1").await;
    let original = desk.policy("p1", None).await;
    assert!(original.original);
    assert_eq!(original.title, "Study leave");
    assert_eq!(original.language, Some(language("en")));
    assert_eq!(original.content.trim(), POLICY.trim());
    let french = desk.policy("p1", Some("fr")).await;
    assert!(!french.original);
    assert_eq!((french.title.as_str(), french.language), ("French title", Some(language("fr"))));
    let made = french.made.clone().unwrap();
    assert_eq!((made.prompt.as_str(), made.receipt.provider.as_str()), ("translate@2", "scripted"));
    assert_eq!(desk.policy("p1", Some("fr")).await, french);
    // In the language that it is in, it is the original.
    assert_eq!(desk.policy("p1", Some("en")).await, original);
    assert_eq!(scripted.calls(), 1);
    for key in ["p1:policy:leave", "p1:policy:leave:fr"] {
        let key = Key::parse(key).unwrap();
        assert!(desk.workspace.store().get(&key).await.unwrap().is_some(), "{key}");
    }
    let course = Course::untold();
    let catalog = desk.workspace.policies(&page("p1"), &course).await.unwrap();
    let listed = &catalog[&source("leave")];
    assert_eq!((listed.title.as_str(), listed.extracted), ("Study leave", true));
    assert_eq!(listed.translations, ["fr"]);
}

/// An issue that refers to the policy as it is now.
async fn issue(desk: &Desk) -> keyward_agreements::IssueId {
    let document = desk.policy("p1", None).await;
    let excerpt = "a leave of one year";
    let (from, title) = (document.source.clone(), document.title.clone());
    let reference = Reference::new(from, title, excerpt, document.modified, &document.content);
    let new = NewIssue::new("How long?", Severity::High)
        .describe(vec![Part::Text("See".to_owned()), Part::Reference(reference)]);
    let issues = desk.workspace.issues().of(&page("p1")).unwrap();
    issues.create(new, &By::new("ada")).await.unwrap().issue.id
}

async fn a_newer_attachment_drops_the_original_and_all_translations_and_marks_issues(place: Place) {
    let scripted = translator();
    let desk = Desk::new(place.store().await, place.clock().clone(), models(scripted.clone()));
    let desk = desk.with_page("p1").await;
    let id = issue(&desk).await;
    for code in ["fr", "de"] {
        desk.policy("p1", Some(code)).await;
    }
    let issues = desk.workspace.issues().of(&page("p1")).unwrap();
    assert!(!issues.get(id).await.unwrap().issue.stale);

    desk.attach("p1", "leave", "# Study leave\n\nThere is no leave any more.").await;
    let cached =
        desk.workspace.cached_policy(&page("p1"), &source("leave"), Some(language("fr"))).await;
    assert_eq!(cached.unwrap(), None);
    let original = desk.policy("p1", None).await;
    assert!(original.content.contains("no leave any more"));
    assert!(issues.get(id).await.unwrap().issue.stale);
    for key in ["p1:policy:leave:fr", "p1:policy:leave:de"] {
        let key = Key::parse(key).unwrap();
        assert_eq!(desk.workspace.store().get(&key).await.unwrap(), None, "{key}");
    }
    let french = desk.policy("p1", Some("fr")).await;
    assert!(french.content.contains("no leave any more"));
    assert_eq!(scripted.calls(), 3);
}

async fn a_vanished_attachment_is_forgotten_and_its_issues_are_marked(place: Place) {
    let desk = Desk::new(place.store().await, place.clock().clone(), models(translator()));
    let desk = desk.with_page("p1").await;
    let id = issue(&desk).await;
    desk.policy("p1", Some("fr")).await;
    assert!(desk.uploads.detach(&page("p1"), &source("leave")).await.unwrap());
    let course = Course::untold();
    let asked = desk.workspace.policy(&page("p1"), &source("leave"), None, &course).await;
    assert!(matches!(asked, Err(Error::UnknownPolicy { .. })), "{asked:?}");
    for key in ["p1:policy:leave", "p1:policy:leave:fr"] {
        let key = Key::parse(key).unwrap();
        assert_eq!(desk.workspace.store().get(&key).await.unwrap(), None, "{key}");
    }
    let issues = desk.workspace.issues().of(&page("p1")).unwrap();
    assert!(issues.get(id).await.unwrap().issue.stale);
    let catalog = desk.workspace.policies(&page("p1"), &course).await.unwrap();
    assert!(catalog.is_empty());
}

/// Everything that a store holds, by key, with its version.
async fn contents(desk: &Desk) -> Vec<(String, String)> {
    let all = Scan::new(KeyRange::all()).limit(1_000);
    let rows = desk.workspace.store().scan(&all).await.unwrap().rows;
    rows.iter()
        .map(|row| (row.key.to_string(), row.entry.as_ref().unwrap().version.to_string()))
        .collect()
}

async fn who_only_reads_waits_for_no_lock_and_writes_nothing(place: Place) {
    let desk = Desk::new(place.store().await, place.clock().clone(), models(translator()));
    let desk = desk.with_page("p1").await;
    issue(&desk).await;
    desk.attach("p1", "second", POLICY).await;
    let (id, course) = (page("p1"), Course::untold());
    desk.workspace.policy(&id, &source("second"), None, &course).await.unwrap();
    desk.policy("p1", Some("fr")).await;
    // One policy has changed, one is gone, and somebody holds the whole page.
    desk.attach("p1", "leave", "# Study leave\n\nThere is no leave any more.").await;
    desk.uploads.detach(&id, &source("second")).await.unwrap();
    let root = desk.workspace.locks().root(Key::parse("p1").unwrap()).unwrap();
    let request = keyward_locks::Request::default();
    let everything = [keyward_locks::LockPath::root()];
    let mode = keyward_locks::Mode::Exclusive;
    let held = root.acquire(&everything, mode, &request).await.unwrap();
    let before = contents(&desk).await;
    let catalog = desk.workspace.listed_policies(&id).await.unwrap();
    assert_eq!(catalog.keys().collect::<Vec<_>>(), [&source("leave")]);
    let listed = &catalog[&source("leave")];
    assert_eq!((listed.extracted, listed.translations.len()), (false, 0));
    for code in [None, Some(language("fr"))] {
        let cached = desk.workspace.cached_policy(&id, &source("leave"), code).await;
        assert_eq!(cached.unwrap(), None);
    }
    let gone = desk.workspace.cached_policy(&id, &source("second"), None).await;
    assert!(matches!(gone, Err(Error::UnknownPolicy { .. })), "{gone:?}");
    for absent in [
        desk.workspace.listed_policies(&page("none")).await.map(drop),
        desk.workspace.cached_policy(&page("none"), &source("leave"), None).await.map(drop),
    ] {
        assert!(matches!(absent, Err(Error::UnknownPage { .. })), "{absent:?}");
    }
    assert_eq!(contents(&desk).await, before);
    held.release().await.unwrap();
}

async fn a_look_at_a_page_that_is_cut_off_leaves_no_lock(place: Place) {
    let desk = Desk::new(place.store().await, place.clock().clone(), models(translator()));
    let desk = desk.with_page("p1").await;
    let (id, course) = (page("p1"), Course::untold());
    let root = desk.workspace.locks().root(Key::parse("p1").unwrap()).unwrap();
    for cut in 0..120 {
        let looking = desk.workspace.policies(&id, &course);
        let _ = tokio::time::timeout(std::time::Duration::from_micros(cut * 50), looking).await;
        desk.workspace.locks().settled().await;
        let left = root.list().await.unwrap();
        assert!(left.holders.is_empty() && left.waiters.is_empty(), "{cut}: {left:?}");
    }
}

async fn a_page_with_stale_issues_is_analysed_again_if_the_settings_say_so(place: Place) {
    let options = keyward_agreements::Options { analyze_again: true, ..options() };
    let (store, clock) = (place.store().await, place.clock().clone());
    let desk = Desk::with(store, clock, models(translator()), options).with_page("p1").await;
    issue(&desk).await;
    desk.attach("p1", "leave", "# Study leave\n\nChanged.").await;
    let course = Course::untold();
    for _ in 0..2 {
        desk.workspace.policies(&page("p1"), &course).await.unwrap();
    }
    // Once, however often it is looked at.
    let jobs = desk.workspace.jobs().list(None, 10).await.unwrap();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert!(jobs[0].id.starts_with("analyze-again:p1:"), "{}", jobs[0].id);
}
