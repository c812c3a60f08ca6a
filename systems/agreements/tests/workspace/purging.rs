//! What was made of pages that are gone goes; of pages of which nobody knows, it stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use keyward_agreements::source::{Folder, FolderOptions, Source, Uploads};
use keyward_agreements::{
    By, Course, Error, Extractor, NewIssue, Page, PageId, PageSummary, Result, Severity, SourceId,
    Workspace,
};
use keyward_cache::Purged;
use keyward_engine::{BoxFuture, Code, Coded, Json, Put, Scan};
use keyward_extract::Limits;
use keyward_key::{Key, KeyRange, Prefix};
use keyward_stores::{Place, on_databases, on_every_engine};

use crate::fixture::{Desk, models, options, page, translator};

on_every_engine!(
    a_page_that_is_certainly_gone_is_purged_and_no_other,
    a_source_that_cannot_be_reached_purges_nothing,
    a_page_is_cleared_with_its_issues_and_no_other_is,
    a_purge_of_everything_is_done_once_in_its_interval,
    a_page_that_is_not_there_takes_nothing_of_others_with_it,
    a_page_that_came_back_before_its_lock_was_had_is_kept,
    a_store_has_pages_of_one_source,
);
on_databases!(a_page_that_is_certainly_gone_is_purged_and_no_other);

/// Uploads that can be out of reach.
struct Away(Arc<Uploads>, Arc<AtomicBool>);

impl Away {
    fn check(&self) -> Result<()> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(Error::Source { message: "out of reach".to_owned(), retryable: true }),
            false => Ok(()),
        }
    }
}

impl Source for Away {
    fn identity(&self) -> String {
        self.0.identity()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PageSummary>>> {
        Box::pin(async { self.check().and(self.0.list().await) })
    }

    fn page<'a>(&'a self, page: &'a PageId) -> BoxFuture<'a, Result<Option<Page>>> {
        Box::pin(async { self.check().and(self.0.page(page).await) })
    }

    fn read<'a>(
        &'a self,
        page: &'a PageId,
        source: &'a SourceId,
    ) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async { self.check().and(self.0.read(page, source).await) })
    }
}

/// How many entries lie below a page.
async fn entries(workspace: &Workspace, id: &str) -> usize {
    let below = KeyRange::under(&Prefix::from_segments([id]));
    workspace.store().scan(&Scan::new(below)).await.unwrap().rows.len()
}

async fn filled(place: &Place) -> Desk {
    let desk = Desk::new(place.store().await, place.clock().clone(), models(translator()));
    let desk = desk.with_page("p1").await.with_page("p12").await;
    for id in ["p1", "p12"] {
        desk.policy(id, Some("fr")).await;
        let issues = desk.workspace.issues().of(&page(id)).unwrap();
        let new = NewIssue::new("An issue", Severity::Low);
        issues.create(new, &By::new("ada")).await.unwrap();
        assert_eq!(entries(&desk.workspace, id).await, 3);
    }
    desk
}

async fn a_page_that_is_certainly_gone_is_purged_and_no_other(place: Place) {
    let desk = filled(&place).await;
    // Something that is no page of ours, though no source knows it either.
    let other = Key::parse("settings:theme").unwrap();
    desk.workspace.store().put(other.clone(), Put::new(Json::parse("1").unwrap())).await.unwrap();
    desk.uploads.delete_page(&page("p1")).await.unwrap();
    let swept = desk.workspace.purge(true, &Course::untold()).await.unwrap().unwrap();
    assert_eq!(swept.entries, 3);
    assert_eq!(entries(&desk.workspace, "p1").await, 0);
    assert_eq!(entries(&desk.workspace, "p12").await, 3);
    assert!(desk.workspace.store().get(&other).await.unwrap().is_some());
    // When somebody happens to ask for it, too.
    desk.uploads.delete_page(&page("p12")).await.unwrap();
    let asked = desk.workspace.policies(&page("p12"), &Course::untold()).await;
    assert!(matches!(asked, Err(Error::UnknownPage { .. })), "{asked:?}");
    assert_eq!(entries(&desk.workspace, "p12").await, 0);
}

async fn a_source_that_cannot_be_reached_purges_nothing(place: Place) {
    let desk = filled(&place).await;
    let is_away = Arc::new(AtomicBool::new(false));
    let source = Arc::new(Away(desk.uploads.clone(), is_away.clone()));
    let store = desk.workspace.store().clone();
    let extractor = Extractor::InProcess(Limits::default());
    let clock = place.clock().clone();
    let workspace = Workspace::new(store, clock, source, extractor, None, options()).unwrap();
    desk.uploads.delete_page(&page("p1")).await.unwrap();
    is_away.store(true, Ordering::SeqCst);
    let course = Course::untold();
    let swept = workspace.purge(true, &course).await.unwrap().unwrap();
    assert_eq!(swept.entries, 0);
    assert!(workspace.policies(&page("p1"), &course).await.is_err());
    assert_eq!(entries(&workspace, "p1").await, 3);
    is_away.store(false, Ordering::SeqCst);
    workspace.purge_page(&page("p1"), &course).await.unwrap();
    assert_eq!((entries(&workspace, "p1").await, entries(&workspace, "p12").await), (0, 3));
}

async fn a_page_is_cleared_with_its_issues_and_no_other_is(place: Place) {
    let desk = filled(&place).await;
    let course = Course::untold();
    assert_eq!(desk.workspace.clear(&page("p1"), &course).await.unwrap(), 3);
    assert_eq!(entries(&desk.workspace, "p1").await, 0);
    assert_eq!(entries(&desk.workspace, "p12").await, 3);
    // What was uploaded is still there, and is extracted anew.
    assert_eq!(desk.policy("p1", None).await.title, "Study leave");
}

async fn a_purge_of_everything_is_done_once_in_its_interval(place: Place) {
    let desk = filled(&place).await;
    let course = Course::untold();
    assert!(desk.workspace.purge(false, &course).await.unwrap().is_some());
    desk.uploads.delete_page(&page("p1")).await.unwrap();
    assert!(desk.workspace.purge(false, &course).await.unwrap().is_none());
    assert_eq!(entries(&desk.workspace, "p1").await, 3);
    assert!(desk.workspace.purge(true, &course).await.unwrap().is_some());
    assert_eq!(entries(&desk.workspace, "p1").await, 0);
}

async fn a_page_that_is_not_there_takes_nothing_of_others_with_it(place: Place) {
    let desk = Desk::new(place.store().await, place.clock().clone(), None).with_page("p1").await;
    let store = desk.workspace.store();
    let others = ["orders:7", "docs:policy:x", "locked:thing"].map(|key| Key::parse(key).unwrap());
    for key in &others {
        store.put(key.clone(), Put::new(Json::parse("1").unwrap())).await.unwrap();
    }
    // Somebody else's lock looks like that of a page.
    let root = desk.workspace.locks().root(Key::parse("locked").unwrap()).unwrap();
    let path = [keyward_locks::LockPath::root()];
    let request = keyward_locks::Request::default();
    let guard = root.acquire(&path, keyward_locks::Mode::Exclusive, &request).await.unwrap();
    guard.release().await.unwrap();
    let course = Course::untold();
    for id in ["orders", "docs", "locked"] {
        let asked = desk.workspace.policies(&page(id), &course).await;
        assert!(matches!(asked, Err(Error::UnknownPage { .. })), "{id}: {asked:?}");
    }
    desk.workspace.purge(true, &course).await.unwrap();
    for key in &others {
        assert!(store.get(key).await.unwrap().is_some(), "{key}");
    }
}

async fn a_page_that_came_back_before_its_lock_was_had_is_kept(place: Place) {
    let desk = filled(&place).await;
    desk.uploads.delete_page(&page("p1")).await.unwrap();
    // Somebody holds a lock of the page, so the purge has to wait; meanwhile the page is put again.
    let root = desk.workspace.locks().root(Key::parse("p1").unwrap()).unwrap();
    let path = [keyward_locks::LockPath::parse("issues").unwrap()];
    let request = keyward_locks::Request::default();
    let guard = root.acquire(&path, keyward_locks::Mode::Exclusive, &request).await.unwrap();
    let workspace = desk.workspace.clone();
    let purging =
        tokio::spawn(async move { workspace.purge_page(&page("p1"), &Course::untold()).await });
    while root.list().await.unwrap().waiters.is_empty() {
        tokio::task::yield_now().await;
    }
    desk.put_page("p1").await;
    guard.release().await.unwrap();
    assert_eq!(purging.await.unwrap().unwrap(), Purged::Kept);
    assert_eq!(entries(&desk.workspace, "p1").await, 3);
}

async fn a_store_has_pages_of_one_source(place: Place) {
    let desk = filled(&place).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("other")).unwrap();
    std::fs::write(folder.path().join("other/page.md"), "# Other").unwrap();
    let source = Arc::new(Folder::new(folder.path(), FolderOptions::default()));
    let (store, clock) = (desk.workspace.store().clone(), place.clock().clone());
    let extractor = Extractor::InProcess(Limits::default());
    let other = Workspace::new(store, clock, source, extractor, None, options()).unwrap();
    let course = Course::untold();
    let refused = [
        other.policies(&page("p1"), &course).await.err(),
        other.purge(true, &course).await.err(),
        other.clear(&page("p1"), &course).await.err(),
    ];
    for error in refused {
        let error = error.unwrap();
        assert_eq!(error.code(), Code::Occupied);
        assert!(error.to_string().contains("uploads"), "{error}");
    }
    assert_eq!(entries(&other, "p1").await, 3);
}
