//! Changes in folders, with and without the system's help.

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use keyward_agreements::source::{Changed, Folder, FolderOptions, Source};
use keyward_engine::BoxStream;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::page;

/// Far more than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that is compared now and then, or practically never where the system tells of changes.
async fn watched(watch: bool) -> (TempDir, BoxStream<'static, Changed>) {
    let told = watch && cfg!(target_os = "linux");
    let poll = if told { PATIENCE * 10 } else { Duration::from_millis(10) };
    watched_with(watch, poll).await
}

async fn watched_with(watch: bool, poll: Duration) -> (TempDir, BoxStream<'static, Changed>) {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "a/page.md", "one");
    write(root.path(), "b/page.md", "one");
    let short = Duration::from_millis(10);
    let options = FolderOptions {
        quiet: short,
        delay_max: short * 10,
        poll,
        rescan: PATIENCE * 10,
        watch,
        ..FolderOptions::default()
    };
    let changes = Folder::new(root.path(), options).changes().await.unwrap().unwrap();
    (root, changes)
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Waits until a page is told of.
async fn told(changes: &mut BoxStream<'static, Changed>, id: &str) {
    let wanted = Changed { page: page(id) };
    let waiting = async { while changes.next().await.unwrap() != wanted {} };
    timeout(PATIENCE, waiting).await.expect("it is told");
}

async fn every_change_is_told(watch: bool) {
    let (root, mut changes) = watched(watch).await;
    write(root.path(), "a/page.md", "two, and longer");
    told(&mut changes, "a").await;
    write(root.path(), "b/new.pdf", "x");
    told(&mut changes, "b").await;
    fs::rename(root.path().join("b/new.pdf"), root.path().join("b/old.pdf")).unwrap();
    told(&mut changes, "b").await;
    write(root.path(), "새 쪽/page.md", "x");
    told(&mut changes, "새 쪽").await;
    write(root.path(), "새 쪽/file.pdf", "x");
    told(&mut changes, "새 쪽").await;
    fs::remove_file(root.path().join("b/old.pdf")).unwrap();
    told(&mut changes, "b").await;
    fs::remove_dir_all(root.path().join("a")).unwrap();
    told(&mut changes, "a").await;
    fs::rename(root.path().join("b"), root.path().join("c")).unwrap();
    told(&mut changes, "c").await;
    write(root.path(), "c/after.pdf", "x");
    told(&mut changes, "c").await;
}

#[tokio::test]
async fn every_change_of_a_page_is_told() {
    every_change_is_told(true).await;
}

#[tokio::test]
async fn every_change_of_a_page_is_found_without_the_system() {
    every_change_is_told(false).await;
}

#[tokio::test]
async fn many_changes_of_a_page_are_told_once() {
    let (root, mut changes) = watched(true).await;
    for n in 0..100 {
        write(root.path(), &format!("a/{n}.pdf"), "x");
    }
    assert_eq!(timeout(PATIENCE, changes.next()).await.unwrap().unwrap().page, page("a"));
    write(root.path(), "b/page.md", "two");
    assert_eq!(timeout(PATIENCE, changes.next()).await.unwrap().unwrap().page, page("b"));
}

#[tokio::test]
async fn what_is_hidden_and_what_is_no_page_is_not_told() {
    let (root, mut changes) = watched(true).await;
    write(root.path(), "README.md", "x");
    write(root.path(), ".hidden/page.md", "x");
    write(root.path(), "a/.page.md.swp", "x");
    write(root.path(), "job/page.md", "x");
    write(root.path(), "b/page.md", "two");
    assert_eq!(timeout(PATIENCE, changes.next()).await.unwrap().unwrap().page, page("b"));
    assert!(changes.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_folder_that_vanishes_and_comes_back_is_watched_again() {
    for watch in [true, false] {
        let (root, mut changes) = watched_with(watch, Duration::from_millis(10)).await;
        fs::remove_dir_all(root.path()).unwrap();
        // It is asked for while there is nothing.
        assert!(timeout(Duration::from_millis(100), changes.next()).await.is_err());
        write(root.path(), "a/page.md", "two, and another one");
        told(&mut changes, "a").await;
        write(root.path(), "a/more.pdf", "x");
        told(&mut changes, "a").await;
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_cannot_be_watched() {
    let folder = Folder::new("/nonexistent/folder", FolderOptions::default());
    assert!(folder.changes().await.is_err());
}
