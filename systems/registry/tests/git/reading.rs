//! What is read is what was committed.

use keyward_registry::source::{Blob, Error, FileChange, Limits, Options, Source};

use crate::repository::Repository;
use crate::{Ways, newest, paths, source};

#[tokio::test]
async fn the_newest_commit_is_read_over_every_way() {
    let repository = Repository::new();
    let ways = Ways::to(&repository);
    repository
        .write("policies/성균관대학교_학칙.md", "# 학칙\n")
        .write("policies/b/장학금.MD", "# 장학금\n")
        .write("policies/readme.md", "# no policy\n")
        .write("policies/그림.png", b"\x89PNG")
        .write("빈.md", "");
    let first = repository.commit("first");
    let cache = repository.beside("cache");
    let sources = ways.each(&repository).map(|(name, location)| source(name, &location, &cache));
    for source in &sources {
        let tree = newest(source).await;
        assert_eq!(tree.commit, first);
        assert_eq!(
            paths(&tree),
            ["policies/b/장학금.MD", "policies/성균관대학교_학칙.md", "빈.md"]
        );
        for file in &tree.files {
            assert_eq!(file.sha, repository.id_of(&file.path));
        }
        assert!(tree.problems.is_empty(), "{:?}", tree.problems);
    }
    repository
        .write("policies/b/장학금.MD", "# 장학금 개정\n")
        .remove("빈.md")
        .write("새.md", "# 새\n");
    let old = repository.id_of("빈.md");
    let new = repository.commit("second");
    for source in &sources {
        assert_eq!(source.fetch().await.unwrap(), new);
        let changes = source.changes(&first, &new).await.unwrap().expect("both are in reach");
        assert!(changes.problems.is_empty());
        let changed: Vec<_> = changes.files.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(changed, ["policies/b/장학금.MD", "빈.md", "새.md"]);
        assert_eq!(
            changes.files[1],
            FileChange { path: "빈.md".to_owned(), old: Some(old.clone()), new: None }
        );
        let sha = repository.id_of("새.md");
        assert_eq!(changes.files[2].new.as_ref(), Some(&sha));
        assert_eq!(source.blob(&sha).await.unwrap().as_deref(), Some("# 새\n".as_bytes()));
    }
}

#[tokio::test]
async fn repositories_with_sha256_are_read_like_others() {
    let repository = Repository::sha256();
    let ways = Ways::to(&repository);
    repository.write("학칙.md", "# 학칙\n");
    let first = repository.commit("first");
    assert_eq!(first.len(), 64);
    let cache = repository.beside("cache");
    for (name, location) in ways.each(&repository) {
        let source = source(name, &location, &cache);
        let tree = newest(&source).await;
        assert_eq!((tree.commit.as_str(), paths(&tree)), (first.as_str(), vec!["학칙.md"]));
        let blobs = source.blobs(vec![tree.files[0].sha.clone()]).await.unwrap();
        assert_eq!(blobs, [Blob::Content("# 학칙\n".into())]);
    }
    let source = source("path", &repository.location(), &cache);
    repository.write("학칙.md", "# 학칙 개정\n");
    let second = repository.commit("second");
    let changes = source.changes(&first, &second).await.unwrap().unwrap();
    assert_eq!(changes.files.len(), 1);
    // An id of the other kind can be in no such repository.
    assert_eq!(source.changes(&"a".repeat(40), &second).await.unwrap(), None);
    assert_eq!(source.blob(&"a".repeat(40)).await.unwrap(), None);
}

#[tokio::test]
async fn a_bare_repository_is_opened_in_place_and_nothing_is_written_there() {
    let repository = Repository::new();
    repository.write("학칙.md", "# 학칙\n");
    let commit = repository.commit("first");
    let bare = repository.beside("bare.git");
    repository.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let listing = || {
        let all = repository.git(&["-C", bare.to_str().unwrap(), "count-objects", "-v"]);
        let mut files = Vec::new();
        let mut folders = vec![bare.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
                files.push((entry.path(), entry.metadata().unwrap().modified().unwrap()));
            }
        }
        files.sort();
        (all, files)
    };
    let before = listing();
    let cache = repository.beside("cache");
    let source = source("bare", bare.to_str().unwrap(), &cache);
    assert_eq!(newest(&source).await.commit, commit);
    assert_eq!(listing(), before);
    assert!(!cache.exists(), "a repository on this machine needs no cache");
}

#[tokio::test]
async fn folder_and_globs_choose_files() {
    let repository = Repository::new();
    for path in
        ["docs/a.md", "docs/x/b.md", "docs/x/README.md", "docs/c.txt", "docsier/d.md", "e.md"]
    {
        repository.write(path, path);
    }
    repository.commit("first");
    let cache = repository.beside("cache");
    let chosen = async |folder: &str, include: &[&str], exclude: &[&str]| {
        let text = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        let options = Options {
            folder: folder.to_owned(),
            include: text(include),
            exclude: text(exclude),
            ..Options::new(repository.location())
        };
        let source = Source::new("r", options, &cache).unwrap();
        paths(&newest(&source).await).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let markdown = ["**/*.md"];
    assert_eq!(
        chosen("", &markdown, &["**/README.md"]).await,
        ["docs/a.md", "docs/x/b.md", "docsier/d.md", "e.md"]
    );
    assert_eq!(
        chosen("/docs/", &markdown, &[]).await,
        ["docs/a.md", "docs/x/README.md", "docs/x/b.md"]
    );
    assert_eq!(chosen("docs", &["*.md"], &[]).await, ["docs/a.md"]);
    assert_eq!(chosen("docs", &["**"], &["x/**"]).await, ["docs/a.md", "docs/c.txt"]);
    assert_eq!(chosen("docs", &["*.{MD,TXT}"], &[]).await, ["docs/a.md", "docs/c.txt"]);
    for folder in ["..", "docs/../..", "a//b", "./docs"] {
        let options = Options { folder: folder.to_owned(), ..Options::new(repository.location()) };
        let refused = Source::new("r", options, &cache).unwrap_err();
        assert!(matches!(refused, Error::Options(_)), "{folder}: {refused}");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_a_problem_not_an_empty_registry() {
    let repository = Repository::new();
    repository.write("docs/a.md", "# a\n").link("linked", "docs");
    let first = repository.commit("first");
    for folder in ["dogs", "docs/a.md", "linked"] {
        let options = Options { folder: folder.to_owned(), ..Options::new(repository.location()) };
        let source = Source::new("r", options, &repository.beside("cache")).unwrap();
        let tree = newest(&source).await;
        assert_eq!((tree.files.len(), tree.problems.len()), (0, 1), "{folder}");
        assert_eq!(tree.problems[0].path, folder);
    }
    let options = Options { folder: "docs".to_owned(), ..Options::new(repository.location()) };
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    repository.rename("docs", "texts");
    let second = repository.commit("moved");
    let changes = source.changes(&first, &second).await.unwrap().unwrap();
    assert_eq!((changes.files.len(), changes.problems.len()), (1, 1));
    assert_eq!(changes.files[0].new, None);
}

#[tokio::test]
async fn blobs_come_in_the_order_of_their_ids() {
    let repository = Repository::new();
    let contents: Vec<String> = (0..50).map(|n| format!("# 문서 {n}\n")).collect();
    for (n, content) in contents.iter().enumerate() {
        repository.write(&format!("{n}.md"), content);
    }
    repository.commit("first");
    let ways = Ways::to(&repository);
    for (name, location) in ways.each(&repository) {
        let source = source(name, &location, &repository.beside("cache"));
        let tree = newest(&source).await;
        let mut shas: Vec<String> = (0..50)
            .map(|n| {
                tree.files.iter().find(|file| file.path == format!("{n}.md")).unwrap().sha.clone()
            })
            .collect();
        shas.reverse();
        let blobs = source.blobs(shas).await.unwrap();
        let wanted: Vec<Blob> =
            contents.iter().rev().map(|content| Blob::Content(content.clone().into())).collect();
        assert_eq!(blobs, wanted);
        assert_eq!(source.blobs(Vec::new()).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_blob_that_is_too_large_is_told_of_and_not_read() {
    let repository = Repository::new();
    repository.write("large.md", "x".repeat(1_001)).write("fits.md", "x".repeat(1_000));
    repository.commit("first");
    let limits = Limits { blob_bytes_max: 1_000, ..Limits::default() };
    let http = repository.http();
    let options = Options { limits, ..Options::new(http.url()) };
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    source.fetch().await.unwrap();
    let shas = vec![repository.id_of("large.md"), repository.id_of("fits.md")];
    let blobs = source.blobs(shas.clone()).await.unwrap();
    assert_eq!(blobs[0], Blob::TooLarge(1_001));
    assert!(matches!(&blobs[1], Blob::Content(content) if content.len() == 1_000));
    let refused = source.blob(&shas[0]).await.unwrap_err();
    assert!(refused.to_string().contains("1001"), "{refused}");
    let trusted = repository.beside("cache").join("r.git/keyward-source").exists();
    assert!(trusted, "a cache with a large file is not a damaged one");
}

#[tokio::test]
async fn a_commit_or_blob_that_is_not_there_is_never_taken_for_an_empty_one() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n");
    let commit = repository.commit("first");
    let source = source("r", &repository.location(), &repository.beside("cache"));
    let unknown = "12".repeat(20);
    for odd in [unknown.as_str(), "", "main", &"g".repeat(40)] {
        assert!(matches!(source.tree(odd).await, Err(Error::Unreadable { .. })), "{odd}");
        assert!(
            matches!(source.changes(&commit, odd).await, Err(Error::Unreadable { .. })),
            "{odd}"
        );
        assert_eq!(source.changes(odd, &commit).await.unwrap(), None);
        let shas = vec![repository.id_of("a.md"), odd.to_owned()];
        assert!(matches!(source.blobs(shas).await, Err(Error::Unreadable { .. })), "{odd}");
        assert_eq!(source.blob(odd).await.unwrap(), None, "{odd}");
    }
    // What is there, and is no blob.
    let tree = repository.git(&["rev-parse", "HEAD^{tree}"]);
    assert!(source.blob(&tree).await.is_err());
    assert!(source.tree(&tree).await.is_err());
}
