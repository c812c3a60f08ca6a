//! Folders with real files in them, hostile ones too.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use keyward_agreements::source::{Folder, FolderOptions, Source, SourceLimits};
use keyward_agreements::{BodyFormat, Error};
use keyward_engine::{Code, Coded};
use tempfile::TempDir;

use crate::{page, source};

fn folder() -> (TempDir, Folder) {
    let root = tempfile::tempdir().unwrap();
    let folder = Folder::new(root.path(), FolderOptions::default());
    (root, folder)
}

fn limited(root: &TempDir, change: impl Fn(&mut SourceLimits)) -> Folder {
    let mut options = FolderOptions::default();
    change(&mut options.limits);
    Folder::new(root.path(), options)
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_page_is_a_directory_with_its_text_and_its_files() {
    let (root, folder) = folder();
    write(root.path(), "study/page.md", "\u{feff}# Study rules\n\nText.\n");
    write(root.path(), "study/학칙 개정.PDF", "pdf");
    write(root.path(), "study/a:b.odd", "odd");
    write(root.path(), "empty/.keep", "");
    write(root.path(), "README.md", "about this folder");
    let pages = folder.list().await.unwrap();
    let shown: Vec<_> = pages.iter().map(|page| (page.id.as_str(), &*page.title)).collect();
    assert_eq!(shown, [("empty", "empty"), ("study", "Study rules")]);
    let found = folder.page(&page("study")).await.unwrap().unwrap();
    assert_eq!((&*found.title, found.body_format), ("Study rules", BodyFormat::Markdown));
    assert_eq!(found.body, "# Study rules\n\nText.\n");
    let names: Vec<_> = found.attachments.iter().map(|it| it.source.as_str()).collect();
    assert_eq!(names, ["a:b.odd", "학칙 개정.PDF"]);
    assert_eq!(found.attachments[1].media_type.as_deref(), Some("application/pdf"));
    assert_eq!(found.attachments[1].bytes, Some(3));
    let read = folder.read(&page("study"), &source("학칙 개정.PDF")).await.unwrap();
    assert_eq!(read.unwrap(), "pdf");
    assert_eq!(folder.read(&page("study"), &source("no.pdf")).await.unwrap(), None);
    assert_eq!(folder.page(&page("empty")).await.unwrap().unwrap().attachments, []);
}

#[tokio::test]
async fn the_text_is_the_first_of_the_names_it_may_have() {
    let (root, folder) = folder();
    let names = ["index.html", "page.html", "README.md", "index.md", "page.md"];
    for (nth, name) in names.into_iter().enumerate() {
        write(root.path(), &format!("p/{name}"), name);
        let found = folder.page(&page("p")).await.unwrap().unwrap();
        assert_eq!(found.body, name);
        assert_eq!(found.body_format == BodyFormat::Html, name.ends_with("html"));
        // The others are files like any other.
        assert_eq!(found.attachments.len(), nth);
        assert_eq!(folder.read(&page("p"), &source(name)).await.unwrap(), None);
    }
}

#[tokio::test]
async fn names_are_in_form_nfc_and_two_that_become_one_are_an_error() {
    let (root, folder) = folder();
    write(root.path(), "re\u{301}sume\u{301}/Ko\u{308}ln.pdf", "x");
    let found = folder.page(&page("résumé")).await.unwrap().unwrap();
    assert_eq!(found.attachments[0].source, source("Köln.pdf"));
    assert!(folder.read(&page("résumé"), &source("Köln.pdf")).await.unwrap().is_some());
    write(root.path(), "re\u{301}sume\u{301}/Köln.pdf", "y");
    let error = folder.page(&page("résumé")).await.unwrap_err().to_string();
    assert!(error.contains("Ko\\u{308}ln.pdf") && error.contains("\"Köln.pdf\""), "{error}");
    write(root.path(), "résumé/page.md", "");
    for error in [
        folder.list().await.unwrap_err().to_string(),
        folder.page(&page("résumé")).await.unwrap_err().to_string(),
    ] {
        assert!(
            error.contains("re\\u{301}sume\\u{301}") && error.contains("\"résumé\""),
            "{error}"
        );
    }
}

#[tokio::test]
async fn hidden_files_links_pipes_and_directories_are_not_attached() {
    let (root, folder) = folder();
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "secret", "secret");
    write(root.path(), "p/.hidden", "x");
    write(root.path(), "p/below/file", "x");
    symlink(outside.path().join("secret"), root.path().join("p/link.pdf")).unwrap();
    symlink(outside.path().join("secret"), root.path().join("p/page.md")).unwrap();
    let pipe = root.path().join("p/pipe.pdf");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, 0o600.into(), 0).unwrap();
    let found = folder.page(&page("p")).await.unwrap().unwrap();
    assert_eq!((&*found.body, found.attachments), ("", vec![]));
    for name in ["link.pdf", "page.md", "pipe.pdf", "below"] {
        assert_eq!(folder.read(&page("p"), &source(name)).await.unwrap(), None, "{name}");
    }
    assert!(folder.read(&page("p"), &source(".hidden")).await.is_err());
}

#[tokio::test]
async fn a_link_in_the_place_of_a_page_is_not_followed_and_not_taken_for_its_end() {
    let (root, folder) = folder();
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "page.md", "# Secret");
    write(root.path(), "other/page.md", "");
    symlink(outside.path(), root.path().join("linked")).unwrap();
    let survey = folder.survey().await.unwrap();
    assert_eq!(survey.pages.len(), 1);
    assert_eq!(survey.left_out[0].name, "linked");
    assert!(folder.page(&page("linked")).await.is_err());
    assert!(folder.read(&page("linked"), &source("page.md")).await.is_err());
}

#[tokio::test]
async fn ids_that_lead_elsewhere_are_refused() {
    let (root, folder) = folder();
    write(root.path(), "p/a.pdf", "x");
    for id in ["..", ".", "../p", "p/../p", "/etc", "p/a.pdf", ".git"] {
        let refused = folder.page(&page(id)).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{id}: {refused}");
        let refused = folder.read(&page("p"), &source(id)).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{id}: {refused}");
    }
}

#[tokio::test]
async fn names_that_are_no_page_are_reported_and_left_out() {
    let (root, folder) = folder();
    for name in ["job", "upload", "a\nb", "fine", &"long".repeat(60)] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    fs::create_dir(root.path().join(OsStr::from_bytes(b"no\xfftext"))).unwrap();
    let survey = folder.survey().await.unwrap();
    assert_eq!(survey.pages.len(), 1);
    let mut names: Vec<_> = survey.left_out.iter().map(|out| &*out.name).collect();
    names.sort();
    assert_eq!(names, ["a\nb", "job", &"long".repeat(60), "no\u{fffd}text", "upload"]);
    assert_eq!(folder.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_folder_that_vanishes_is_an_error_and_a_page_that_does_is_not() {
    let (root, folder) = folder();
    write(root.path(), "a/page.md", "");
    write(root.path(), "b/page.md", "");
    fs::remove_dir_all(root.path().join("a")).unwrap();
    assert_eq!(folder.page(&page("a")).await.unwrap(), None);
    assert_eq!(folder.read(&page("a"), &source("x")).await.unwrap(), None);
    // As a folder looks that is not mounted.
    fs::remove_dir_all(root.path().join("b")).unwrap();
    assert!(folder.page(&page("b")).await.unwrap_err().retryable());
    assert!(folder.list().await.unwrap().is_empty());
    fs::remove_dir(root.path()).unwrap();
    assert!(folder.list().await.unwrap_err().retryable());
    assert!(folder.page(&page("b")).await.unwrap_err().retryable());
    fs::write(root.path(), "a file").unwrap();
    assert!(folder.page(&page("b")).await.is_err());
    fs::remove_file(root.path()).unwrap();
}

#[tokio::test]
async fn a_file_replaced_by_an_older_one_has_changed() {
    let (root, folder) = folder();
    write(root.path(), "p/a.pdf", "new");
    let created = async || folder.page(&page("p")).await.unwrap().unwrap().attachments[0].created;
    let year = Duration::from_secs(365 * 86_400);
    // One that says it comes from the future is no obstacle either.
    let file = File::options().write(true).open(root.path().join("p/a.pdf")).unwrap();
    let future = SystemTime::UNIX_EPOCH + year * 120;
    file.set_modified(future).unwrap();
    let before = created().await;
    let older = root.path().join("older");
    // The clock of a file system stands still for a few milliseconds at a time.
    let ticked = loop {
        fs::write(&older, "old").unwrap();
        let file = File::options().write(true).open(&older).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + year).unwrap();
        fs::rename(&older, root.path().join("p/a.pdf")).unwrap();
        let now = created().await;
        if now != before {
            break now;
        }
    };
    assert!(ticked > before && before < Timestamp::from_second(86_400 * 365 * 119).unwrap());
    assert_eq!(folder.read(&page("p"), &source("a.pdf")).await.unwrap().unwrap(), "old");
}

#[tokio::test]
async fn what_is_too_much_is_refused() {
    let (root, _) = folder();
    write(root.path(), "p/page.md", "0123456789");
    write(root.path(), "p/a.pdf", "0123456789");
    write(root.path(), "p/b.pdf", "01234");
    write(root.path(), "q/page.md", "");
    let small = limited(&root, |limits| limits.attachment_bytes_max = 9);
    assert_eq!(small.page(&page("p")).await.unwrap().unwrap().attachments.len(), 2);
    let refused = small.read(&page("p"), &source("a.pdf")).await.unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded);
    assert!(small.read(&page("p"), &source("b.pdf")).await.unwrap().is_some());
    let short = limited(&root, |limits| limits.body_bytes_max = 9);
    assert_eq!(short.page(&page("p")).await.unwrap_err().code(), Code::LimitExceeded);
    let few = limited(&root, |limits| limits.attachments_max = 1);
    assert!(few.page(&page("p")).await.is_err());
    assert!(few.page(&page("q")).await.unwrap().is_some());
    let one = limited(&root, |limits| limits.pages_max = 1);
    assert!(one.list().await.is_err());
}

#[tokio::test]
async fn a_text_that_is_none_is_an_error_and_its_page_is_in_the_list() {
    let (root, folder) = folder();
    fs::create_dir(root.path().join("p")).unwrap();
    fs::write(root.path().join("p/page.md"), b"# Caf\xe9").unwrap();
    assert!(folder.page(&page("p")).await.is_err());
    assert_eq!(folder.list().await.unwrap()[0].title, "Caf\u{fffd}");
}
