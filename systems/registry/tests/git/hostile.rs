//! Repositories that nobody made in good faith.

use keyward_registry::source::{Blob, Error, Limits, Options, Source, Tree};

use crate::repository::Repository;
use crate::{Ways, newest, paths, source};

type Entry<'a> = (&'a str, &'a [u8], &'a str);

/// Entries in git's own order: a folder as if its name ended in a slash.
fn in_order<'a>(entries: &[Entry<'a>]) -> Vec<Entry<'a>> {
    let mut entries = entries.to_vec();
    entries.sort_by_key(|(mode, name, _)| {
        let slash: &[u8] = if *mode == "40000" { b"/" } else { b"" };
        [*name, slash].concat()
    });
    entries
}

/// Reads a commit's tree over every way that hands it out, and in place.
async fn read_everywhere(repository: &Repository, check: impl Fn(&str, Result<Tree, Error>)) {
    let ways = Ways::to(repository);
    for (name, location) in ways.each(repository) {
        let source = source(name, &location, &repository.beside("cache"));
        let read = match source.fetch().await {
            Ok(commit) => source.tree(&commit).await,
            Err(error) => Err(error),
        };
        check(name, read);
    }
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_problems_and_are_not_followed() {
    let repository = Repository::new();
    let blob = repository.blob("# a\n");
    let below = repository.tree(&[("100644", b"stolen.md", &blob)]);
    let tree = repository.tree(&in_order(&[
        ("40000", b".", &below),
        ("40000", b"..", &below),
        ("40000", b".GIT", &below),
        ("40000", b".git", &below),
        ("100644", b"x/../../up.md", &blob),
        ("100644", b"/absolute.md", &blob),
        ("100644", b"a/b.md", &blob),
        ("100644", b"back\\slash.md", &blob),
        ("40000", b"c\\d", &below),
        ("100644", b"good.md", &blob),
    ]));
    repository.commit_tree(&tree);
    read_everywhere(&repository, |way, read| {
        let tree = read.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(paths(&tree), ["good.md"], "{way}");
        let mut refused: Vec<&str> =
            tree.problems.iter().map(|problem| problem.path.as_str()).collect();
        refused.sort_unstable();
        assert_eq!(
            refused,
            [
                ".",
                "..",
                ".GIT",
                ".git",
                "/absolute.md",
                "a/b.md",
                "back\\slash.md",
                "c\\d",
                "x/../../up.md"
            ]
        );
    })
    .await;
}

#[tokio::test]
async fn links_and_submodules_are_problems_if_they_are_chosen() {
    let repository = Repository::new();
    repository
        .write("target.md", "# target\n")
        .link("link.md", "target.md")
        .link("passwd.md", "/etc/passwd")
        .link("link.txt", "target.md")
        .link("folder", "..");
    let commit = repository.commit("links");
    repository.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub.md")]);
    repository.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    repository.git(&["commit", "-q", "-m", "a submodule"]);
    read_everywhere(&repository, |way, read| {
        let tree = read.unwrap();
        assert_eq!(paths(&tree), ["target.md"], "{way}");
        let problems: Vec<_> = tree.problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(problems, ["link.md", "passwd.md", "sub.md"]);
        assert!(tree.problems[0].reason.contains("symbolic link"));
        assert!(tree.problems[2].reason.contains("submodule"));
    })
    .await;
}

#[tokio::test]
async fn a_file_that_becomes_a_link_is_a_change_and_a_problem() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").write("b.md", "# b\n");
    let first = repository.commit("first");
    repository.remove("a.md").link("a.md", "b.md");
    let second = repository.commit("second");
    let source = source("r", &repository.location(), &repository.beside("cache"));
    let there = source.changes(&first, &second).await.unwrap().unwrap();
    assert_eq!((there.files.len(), there.problems.len()), (1, 1));
    assert_eq!((there.files[0].path.as_str(), &there.files[0].new), ("a.md", &None));
    let back = source.changes(&second, &first).await.unwrap().unwrap();
    assert_eq!((back.files.len(), back.problems.len()), (1, 0));
    assert_eq!(back.files[0].old, None);
}

#[tokio::test]
async fn a_folder_that_gives_way_to_a_name_like_its_own_is_gone_by_both_ways_of_looking() {
    let repository = Repository::new();
    let blob = repository.blob("# a\n");
    let below = repository.tree(&[("100644", b"x.md", &blob), ("100644", b"y.md", &blob)]);
    let first = repository.commit_tree(&repository.tree(&[("40000", b"d", &below)]));
    // To git's order of entries, `d` as a folder and this name are the same.
    let second = repository.commit_tree(&repository.tree(&[("100644", b"d/x.md", &blob)]));
    let source = source("r", &repository.location(), &repository.beside("cache"));
    let whole = source.tree(&second).await.unwrap();
    assert_eq!((whole.files.len(), whole.problems.len()), (0, 1));
    let changes = source.changes(&first, &second).await.unwrap().unwrap();
    assert_eq!(changes.problems, whole.problems);
    let gone: Vec<_> = changes.files.iter().map(|file| (file.path.as_str(), &file.new)).collect();
    assert_eq!(gone, [("d/x.md", &None), ("d/y.md", &None)]);
}

#[tokio::test]
async fn paths_that_are_not_utf8_are_problems() {
    let repository = Repository::new();
    let blob = repository.blob("# a\n");
    let below = repository.tree(&[("100644", b"inside.md", &blob)]);
    let tree = repository.tree(&in_order(&[
        ("100644", "학칙.md".as_bytes(), &blob),
        ("100644", b"\xb0\xa1.md", &blob),
        ("100644", b"\xb0\xa1.txt", &blob),
        ("40000", b"\xff", &below),
    ]));
    repository.commit_tree(&tree);
    read_everywhere(&repository, |way, read| {
        let tree = read.unwrap();
        assert_eq!(paths(&tree), ["학칙.md"], "{way}");
        let problems: Vec<_> = tree.problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(problems, ["\u{fffd}/inside.md", "\u{fffd}\u{fffd}.md"]);
    })
    .await;
}

#[tokio::test]
async fn a_tree_that_is_out_of_order_or_has_a_name_twice_is_refused_whole() {
    for names in [["b.md", "a.md"], ["a.md", "a.md"]] {
        let repository = Repository::new();
        let (one, other) = (repository.blob("# one\n"), repository.blob("# other\n"));
        let tree = repository.tree(&[
            ("100644", names[0].as_bytes(), &one),
            ("100644", names[1].as_bytes(), &other),
        ]);
        repository.commit_tree(&tree);
        read_everywhere(&repository, |way, read| {
            let error = read.unwrap_err();
            assert!(matches!(error, Error::Hostile { .. }), "{way}: {error:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn an_entry_without_a_name_or_with_an_odd_mode_does_no_harm() {
    let repository = Repository::new();
    let blob = repository.blob("# a\n");
    for (mode, name) in
        [("100644", &b""[..]), ("0", b"a.md"), ("777777777777", b"a.md"), ("x", b"a.md")]
    {
        let tree = repository.tree(&[(mode, name, &blob)]);
        let commit = repository.git(&["commit-tree", "-m", "odd", &tree]);
        let source = source("r", &repository.location(), &repository.beside("cache"));
        match source.tree(&commit).await {
            Ok(tree) => assert!(tree.files.len() <= 1, "{mode} {name:?}: {tree:?}"),
            Err(error) => assert!(matches!(error, Error::Unreadable { .. }), "{error:?}"),
        }
    }
}

#[tokio::test]
async fn a_tree_that_is_cut_is_an_error() {
    let repository = Repository::new();
    let blob = repository.blob("# a\n");
    let mut object = b"100644 a.md\0".to_vec();
    object.extend((0..40).step_by(2).map(|at| u8::from_str_radix(&blob[at..at + 2], 16).unwrap()));
    object.extend_from_slice(b"100644 b.md\0only some");
    let tree = repository
        .git_with_input(&["hash-object", "-t", "tree", "--literally", "-w", "--stdin"], &object);
    let commit = repository.git(&["commit-tree", "-m", "cut", &tree]);
    let source = source("r", &repository.location(), &repository.beside("cache"));
    let error = source.tree(&commit).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");
}

#[tokio::test]
async fn folders_may_be_nested_64_deep_and_no_deeper() {
    let repository = Repository::new();
    let blob = repository.blob("# deep\n");
    let mut tree = repository.tree(&[("100644", b"a.md", &blob)]);
    for depth in 1..=65 {
        tree = repository.tree(&[("40000", b"d", &tree)]);
        let commit = repository.git(&["commit-tree", "-m", "deep", &tree]);
        let source = source("r", &repository.location(), &repository.beside("cache"));
        let read = source.tree(&commit).await;
        if depth <= 64 {
            assert_eq!(read.unwrap().files.len(), 1, "{depth}");
        } else {
            let error = read.unwrap_err();
            assert!(matches!(error, Error::Hostile { .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_few_objects_that_make_endless_paths_are_refused() {
    for name in [&b"a.md"[..], b"a.txt"] {
        let repository = Repository::new();
        let blob = repository.blob("# bomb\n");
        let mut tree = repository.tree(&[("100644", name, &blob)]);
        for _ in 0..20 {
            tree = repository.tree(&[
                ("40000", b"a", &tree),
                ("40000", b"b", &tree),
                ("40000", b"c", &tree),
                ("40000", b"d", &tree),
            ]);
        }
        let commit = repository.commit_tree(&tree);
        let limits = Limits { files_max: 1_000, ..Limits::default() };
        let options = Options { limits, ..Options::new(repository.location()) };
        let source = Source::new("r", options, &repository.beside("cache")).unwrap();
        let error = source.tree(&commit).await.unwrap_err();
        let refused = matches!(error, Error::Hostile { .. } | Error::TooManyFiles { .. });
        assert!(refused, "{error:?}");
    }
}

#[tokio::test]
async fn more_files_than_are_allowed_refuse_the_whole_tree() {
    let repository = Repository::new();
    for n in 0..10 {
        repository.write(&format!("{n}.md"), n.to_string());
    }
    let ten = repository.commit("ten");
    repository.link("link.md", "0.md");
    let and_a_link = repository.commit("ten and a link");
    let with = |files_max: u64| {
        let limits = Limits { files_max, ..Limits::default() };
        let options = Options { limits, ..Options::new(repository.location()) };
        Source::new("r", options, &repository.beside("cache")).unwrap()
    };
    assert_eq!(with(10).tree(&ten).await.unwrap().files.len(), 10);
    let error = with(9).tree(&ten).await.unwrap_err();
    assert_eq!(error, Error::TooManyFiles { repository: repository.location(), files_max: 9 });
    // What cannot be a policy counts as well, or a list of problems would have no bound.
    assert!(with(10).tree(&and_a_link).await.is_err());
}

#[tokio::test]
async fn a_replaced_object_is_what_its_id_says() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n");
    repository.commit("first");
    let sha = repository.id_of("a.md");
    let other = repository.blob("# replaced\n");
    repository.git(&["replace", &sha, &other]);
    let source = source("r", &repository.location(), &repository.beside("cache"));
    assert_eq!(source.blob(&sha).await.unwrap().as_deref(), Some("# a\n".as_bytes()));
}

#[tokio::test]
async fn no_word_of_the_repositorys_configuration_is_obeyed() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").write(".gitattributes", "*.md filter=evil\n");
    repository.commit("first");
    let marker = repository.beside("owned");
    let touch = format!("touch {}", marker.display());
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.gitProxy",
        "filter.evil.smudge",
        "filter.evil.process",
        "uploadpack.packObjectsHook",
        "credential.helper",
        "core.pager",
        "core.hooksPath",
    ] {
        repository.git(&["config", key, &touch]);
    }
    repository.git(&["config", "include.path", "/nonexistent/included"]);
    repository.git(&["config", "url.ext::sh.insteadOf", "http"]);
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        let path = format!(".git/hooks/{hook}");
        repository.write(&path, format!("#!/bin/sh\n{touch}\n"));
    }
    let tree = newest(&source("r", &repository.location(), &repository.beside("cache"))).await;
    assert_eq!(paths(&tree), ["a.md"]);
    assert!(!marker.exists());
}

#[tokio::test]
async fn a_huge_blob_beside_policies_does_not_stop_them() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").write("huge.md", vec![b'x'; 32 << 20]);
    repository.commit("first");
    let ways = Ways::to(&repository);
    for (name, location) in ways.each(&repository) {
        let source = source(name, &location, &repository.beside("cache"));
        let tree = newest(&source).await;
        let blobs = source.blobs(tree.files.iter().map(|file| file.sha.clone()).collect()).await;
        assert_eq!(
            blobs.unwrap(),
            [Blob::Content("# a\n".into()), Blob::TooLarge(32 << 20)],
            "{name}"
        );
    }
}
