//! What is fetched, and into what.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use keyward_registry::source::{Error, Options, Source};
use tokio::task::JoinSet;

use crate::repository::Repository;
use crate::{Ways, newest, paths, source};

fn packs(cache: &Path, name: &str) -> Vec<(String, u64)> {
    let folder = cache.join(format!("{name}.git/objects/pack"));
    let mut packs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "pack"))
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .collect();
    packs.sort();
    packs
}

/// Text that does not compress, so that sizes tell what was sent.
fn noise(seed: u64, bytes: usize) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.alphanumeric()).take(bytes).collect()
}

#[tokio::test]
async fn only_what_is_new_is_fetched_and_no_history() {
    let repository = Repository::new();
    let ways = Ways::to(&repository);
    for n in 0..20 {
        repository.write("history.md", noise(n, 10_000));
        repository.commit("history");
    }
    for n in 0..20 {
        repository.write(&format!("{n}/kept.md"), noise(100 + n, 5_000));
    }
    let first = repository.commit("kept");
    let cache = repository.beside("cache");
    for (name, location) in &ways.each(&repository)[2..] {
        repository.reset(&first);
        let source = source(name, location, &cache);
        assert_eq!(newest(&source).await.files.len(), 21);
        let before = packs(&cache, name);
        assert_eq!(before.len(), 1);
        // The twenty old versions would be 150 KB more.
        assert!((80_000..120_000).contains(&before[0].1), "{before:?}");

        repository.write("3/kept.md", "# 개정\n");
        let second = repository.commit(&format!("second over {name}"));
        assert_eq!(source.fetch().await.unwrap(), second);
        let after = packs(&cache, name);
        let new: Vec<_> = after.iter().filter(|pack| !before.contains(pack)).collect();
        assert_eq!(new.len(), 1, "{after:?}");
        assert!(new[0].1 < 3_000, "one file of twenty was changed: {new:?}");
        let changes = source.changes(&first, &second).await.unwrap().unwrap();
        assert_eq!(changes.files.len(), 1);

        // Nothing new: nothing is fetched.
        assert_eq!(source.fetch().await.unwrap(), second);
        assert_eq!(packs(&cache, name), after);
    }
}

#[tokio::test]
async fn a_commit_is_pinned_wherever_its_branch_moves() {
    let repository = Repository::new();
    let ways = Ways::to(&repository);
    repository.write("a.md", "# a\n");
    let first = repository.commit("first");
    let cache = repository.beside("cache");
    for (name, location) in ways.each(&repository) {
        repository.reset(&first);
        let source = source(name, &location, &cache);
        let pinned = source.fetch().await.unwrap();
        // Forced away from under the reader.
        repository.remove("a.md").write("b.md", format!("# b {name}\n"));
        let forced = repository.amend(name);
        let tree = source.tree(&pinned).await.unwrap();
        assert_eq!(paths(&tree), ["a.md"]);
        assert_eq!(
            source.blob(&tree.files[0].sha).await.unwrap().as_deref(),
            Some("# a\n".as_bytes())
        );
        assert_eq!(source.fetch().await.unwrap(), forced);
        assert_eq!(paths(&source.tree(&forced).await.unwrap()), ["b.md"]);
        // What was before the force-push is still there to be compared with.
        let changes = source.changes(&pinned, &forced).await.unwrap().unwrap();
        assert_eq!(changes.files.len(), 2);
    }
}

#[tokio::test]
async fn branches_are_read_apart() {
    let repository = Repository::new();
    let ways = Ways::to(&repository);
    repository.write("a.md", "# a\n");
    let main = repository.commit("main");
    repository.switch("학칙/초안").write("b.md", "# b\n");
    let draft = repository.commit("draft");
    repository.switch_orphan("alone").write("c.md", "# c\n");
    let alone = repository.commit("alone");
    repository.switch("main");
    let cache = repository.beside("cache");
    for (name, location) in ways.each(&repository) {
        let on = |branch: Option<&str>| {
            let branch = branch.map(ToOwned::to_owned);
            // One cache for all of them, as after the setting was changed.
            Source::new(name, Options { branch, ..Options::new(location.as_str()) }, &cache)
                .unwrap()
        };
        assert_eq!(on(None).fetch().await.unwrap(), main);
        assert_eq!(on(Some("학칙/초안")).fetch().await.unwrap(), draft);
        assert_eq!(paths(&newest(&on(Some("alone"))).await), ["c.md"]);
        assert_eq!(on(Some("main")).fetch().await.unwrap(), main);
        let source = on(Some("alone"));
        let changes = source.changes(&main, &source.fetch().await.unwrap()).await.unwrap().unwrap();
        assert_eq!(changes.files.len(), 2);
        let error = on(Some("nowhere")).fetch().await.unwrap_err();
        assert!(matches!(&error, Error::NoBranch { branch, .. } if branch == "nowhere"), "{error}");
        for odd in ["a b", "a..b", "*", "a:b", "^a", "-", ""] {
            let error = on(Some(odd)).fetch().await;
            assert!(error.is_err(), "{odd:?}");
        }
        assert_eq!(on(Some("alone")).fetch().await.unwrap(), alone);
    }
}

#[tokio::test]
async fn the_default_branch_is_what_head_names_now() {
    let repository = Repository::new();
    let ways = Ways::to(&repository);
    repository.write("a.md", "# a\n");
    let main = repository.commit("main");
    repository.switch("other").write("b.md", "# b\n");
    let other = repository.commit("other");
    for (name, location) in ways.each(&repository) {
        let source = source(name, &location, &repository.beside("cache"));
        repository.switch("main");
        assert_eq!(source.fetch().await.unwrap(), main);
        repository.switch("other");
        assert_eq!(source.fetch().await.unwrap(), other);
    }
}

#[tokio::test]
async fn a_cache_of_another_repository_is_not_taken_for_ours() {
    let (one, other) = (Repository::new(), Repository::new());
    one.write("one.md", "# one\n").commit("one");
    other.write("other.md", "# other\n").commit("other");
    let cache = one.beside("cache");
    let (from_one, from_other) = (one.http(), other.http());
    assert_eq!(paths(&newest(&source("r", &from_one.url(), &cache)).await), ["one.md"]);
    let moved = source("r", &from_other.url(), &cache);
    assert_eq!(paths(&newest(&moved).await), ["other.md"]);
    // Nothing of the one that was there before.
    assert_eq!(moved.blob(&one.id_of("one.md")).await.unwrap(), None);
}

#[tokio::test]
async fn a_cache_that_is_broken_or_half_made_is_made_anew() {
    let repository = Repository::new();
    repository.write("a.md", noise(1, 5_000));
    repository.commit("first");
    let http = repository.http();
    let cache = repository.beside("cache");
    let git = cache.join("r.git");
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 6] = [
        ("no mark", |git| fs::remove_file(git.join("keyward-source")).unwrap()),
        ("no head", |git| fs::remove_file(git.join("HEAD")).unwrap()),
        ("no objects", |git| fs::remove_dir_all(git.join("objects")).unwrap()),
        ("nothing", |git| fs::remove_dir_all(git).unwrap()),
        ("an odd configuration", |git| fs::write(git.join("config"), "[core\nx").unwrap()),
        ("no packs", |git| {
            fs::remove_dir_all(git.join("objects/pack")).unwrap();
            fs::create_dir(git.join("objects/pack")).unwrap();
        }),
    ];
    for (what, harm) in harms {
        assert_eq!(paths(&newest(&source("r", &http.url(), &cache)).await), ["a.md"], "{what}");
        harm(&git);
        // What a killed process leaves.
        fs::create_dir_all(cache.join("r.new/objects")).unwrap();
        fs::create_dir_all(cache.join("r.old")).unwrap();
        repository.write("b.md", what);
        repository.commit(what);
        let source = source("r", &http.url(), &cache);
        // With no packs and a new commit, the pack that comes is thin: on what is not there.
        let tree = newest(&source).await;
        assert_eq!(paths(&tree), ["a.md", "b.md"], "{what}");
        let blobs = source.blobs(tree.files.iter().map(|file| file.sha.clone()).collect()).await;
        assert_eq!(blobs.unwrap().len(), 2, "{what}");
        repository.remove("b.md");
        repository.commit("back");
    }
    let left: Vec<_> =
        fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the cache and its lock: {left:?}");
}

#[tokio::test]
async fn a_damaged_object_of_the_cache_is_an_error_once_and_then_fetched_again() {
    let repository = Repository::new();
    repository.write("a.md", noise(1, 5_000)).write("b.md", noise(2, 5_000));
    repository.commit("first");
    let daemon = repository.daemon();
    let cache = repository.beside("cache");
    let reader = source("r", &daemon.url(), &cache);
    let tree = newest(&reader).await;
    let shas: Vec<String> = tree.files.iter().map(|file| file.sha.clone()).collect();
    drop(reader);
    let pack = cache.join("r.git/objects/pack").join(&packs(&cache, "r")[0].0);
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 16].fill(0xa5);
    fs::remove_file(&pack).unwrap();
    fs::write(&pack, bytes).unwrap();

    let reader = source("r", &daemon.url(), &cache);
    assert_eq!(reader.fetch().await.unwrap(), tree.commit, "nothing new is asked for");
    let error = reader.blobs(shas.clone()).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    assert_eq!(reader.fetch().await.unwrap(), tree.commit);
    assert_eq!(reader.blobs(shas).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_cache_does_not_grow_for_ever() {
    let repository = Repository::new();
    let http = repository.http();
    let cache = repository.beside("cache");
    let source = source("r", &http.url(), &cache);
    repository.write("a.md", "0");
    let first = repository.commit("first");
    source.fetch().await.unwrap();
    let mut most = 0;
    for n in 1..=60 {
        repository.write("a.md", n.to_string());
        let commit = repository.commit("next");
        assert_eq!(source.fetch().await.unwrap(), commit);
        most = most.max(packs(&cache, "r").len());
    }
    assert!((45..=52).contains(&most), "{most}");
    assert!(packs(&cache, "r").len() < 20);
    // What was before cannot be compared with any more, and says so.
    let last = repository.head();
    assert_eq!(source.changes(&first, &last).await.unwrap(), None);
    assert_eq!(source.tree(&last).await.unwrap().files.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_who_fetch_into_one_cache_at_once_are_both_served() {
    let repository = Arc::new(Repository::new());
    for n in 0..50 {
        repository.write(&format!("{n}.md"), noise(n, 1_000));
    }
    let commit = repository.commit("first");
    let http = repository.http();
    let cache = repository.beside("cache");
    let mut readers = JoinSet::new();
    for _ in 0..6 {
        // Each opens the cache itself, as another process would.
        let source = source("r", &http.url(), &cache);
        readers.spawn(async move {
            let tree = newest(&source).await;
            (tree.commit, tree.files.len())
        });
    }
    for read in readers.join_all().await {
        assert_eq!(read, (commit.clone(), 50));
    }
    assert_eq!(packs(&cache, "r").len(), 1, "the first fetched for all");
}

#[tokio::test]
async fn a_blob_is_read_by_one_who_has_not_fetched() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n");
    repository.commit("first");
    let sha = repository.id_of("a.md");
    let ways = Ways::to(&repository);
    for (name, location) in ways.each(&repository) {
        let source = source(name, &location, &repository.beside("cache"));
        assert_eq!(source.blob(&sha).await.unwrap().as_deref(), Some("# a\n".as_bytes()), "{name}");
    }
}
