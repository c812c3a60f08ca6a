//! A source that cannot be read says why, and is never taken for one with fewer files.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use keyward_registry::source::{Error, Limits, Options, Source};

use crate::repository::Repository;
use crate::{Ways, newest, source};

#[tokio::test]
async fn who_does_not_answer_is_unreachable() {
    let repository = Repository::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cache = repository.beside("cache");
    for url in [
        format!("http://{closed}/p.git"),
        format!("https://{closed}/p.git"),
        format!("git://{closed}/p.git"),
        "https://nobody.invalid/p.git".to_owned(),
        "git://nobody.invalid/p.git".to_owned(),
    ] {
        let error = source("r", &url, &cache).fetch().await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{url}: {error:?}");
        assert!(error.is_transient());
        assert!(error.to_string().contains(&url), "{error}");
    }
    assert!(!cache.join("r.git").exists());
}

#[tokio::test]
async fn what_is_no_repository_is_told_apart() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").commit("first");
    let ways = Ways::to(&repository);
    let cache = repository.beside("cache");
    let empty = repository.beside("empty");
    fs::create_dir(&empty).unwrap();
    let missing = repository.beside("missing");
    for url in [
        ways.http.url().replace("policies", "others"),
        ways.daemon.url().replace("policies", "others"),
        empty.to_str().unwrap().to_owned(),
        missing.to_str().unwrap().to_owned(),
        format!("file://{}", missing.to_str().unwrap()),
    ] {
        let error = source("r", &url, &cache).fetch().await.unwrap_err();
        assert!(matches!(error, Error::NoRepository { .. }), "{url}: {error:?}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn an_empty_repository_is_told_apart() {
    let repository = Repository::new();
    let ways = Ways::to(&repository);
    for (name, location) in ways.each(&repository) {
        for branch in [None, Some("main".to_owned())] {
            let options = Options { branch, ..Options::new(location.as_str()) };
            let source = Source::new(name, options, &repository.beside("cache")).unwrap();
            let error = source.fetch().await.unwrap_err();
            assert!(matches!(error, Error::Empty { .. }), "{location}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_transfer_that_breaks_off_anywhere_leaves_the_cache_as_it_was() {
    let repository = Repository::new();
    for n in 0..30 {
        repository.write(&format!("{n}.md"), format!("# {n}\n{}\n", "text ".repeat(n)));
    }
    let first = repository.commit("first");
    let http = repository.http();
    let cache = repository.beside("cache");
    let cuts: Vec<usize> = (0..40).map(|n| n * n * 4).collect();
    // With no cache at first: then there is none.
    for cut in &cuts {
        http.cut_at(*cut);
        let reader = source("r", &http.url(), &cache);
        match reader.fetch().await {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, Error::Unreachable { .. }), "{cut}: {error:?}"),
        }
        assert!(!cache.join("r.git").exists(), "{cut}");
    }
    http.cut_at(usize::MAX);
    let reader = source("r", &http.url(), &cache);
    assert_eq!(newest(&reader).await.files.len(), 30);

    repository.remove("3.md").write("30.md", "# 30\n");
    let second = repository.commit("second");
    let mut failed = 0;
    for cut in cuts {
        http.cut_at(cut);
        if let Err(error) = reader.fetch().await {
            failed += 1;
            assert!(matches!(error, Error::Unreachable { .. }), "{cut}: {error:?}");
            assert!(error.is_transient());
            assert_eq!(reader.tree(&first).await.unwrap().files.len(), 30);
        }
    }
    assert!(failed > 10, "{failed}");
    http.cut_at(usize::MAX);
    assert_eq!(reader.fetch().await.unwrap(), second);
    assert_eq!(reader.tree(&second).await.unwrap().files.len(), 30);
}

#[tokio::test]
async fn a_server_in_trouble_is_transient() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").commit("first");
    let http = repository.http();
    let source = source("r", &http.url(), &repository.beside("cache"));
    http.fail(true);
    let error = source.fetch().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }) && error.is_transient(), "{error:?}");
    http.fail(false);
    assert_eq!(newest(&source).await.files.len(), 1);
}

#[tokio::test]
async fn one_who_answers_nothing_is_waited_for_no_longer_than_set() {
    let repository = Repository::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let limits = Limits { fetch_time_max: Duration::from_millis(300), ..Limits::default() };
    for (name, url) in
        [("daemon", format!("git://{address}/p.git")), ("http", format!("http://{address}/p.git"))]
    {
        let options = Options { limits, ..Options::new(url) };
        let source = Source::new(name, options, &repository.beside("cache")).unwrap();
        let error = source.fetch().await.unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{name}: {error:?}");
        assert!(error.is_transient());
    }
}

#[tokio::test]
async fn a_repository_that_sends_too_much_is_given_up() {
    let repository = Repository::new();
    let mut random = fastrand::Rng::with_seed(1);
    let noise = |bytes: usize, random: &mut fastrand::Rng| -> Vec<u8> {
        std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
    };
    repository.write("a.md", "# a\n").write("small.bin", noise(100_000, &mut random));
    let first = repository.commit("small");
    let ways = Ways::to(&repository);
    let cache = repository.beside("cache");
    let limits = Limits { fetch_bytes_max: 1_000_000, ..Limits::default() };
    for (name, location) in &ways.each(&repository)[2..] {
        repository.reset(&first);
        let options = Options { limits, ..Options::new(location.as_str()) };
        let source = Source::new(name, options, &cache).unwrap();
        assert_eq!(source.fetch().await.unwrap(), first);
        repository.write("large.bin", noise(3_000_000, &mut random));
        repository.commit("large");
        let error = source.fetch().await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{name}: {error:?}");
        // The cache is as it was.
        assert_eq!(source.tree(&first).await.unwrap().files.len(), 1);
        let other =
            Source::new("fresh", Options { limits, ..Options::new(location.as_str()) }, &cache);
        let error = other.unwrap().fetch().await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{name}: {error:?}");
        assert!(!cache.join("fresh.git").exists());
    }
}

#[tokio::test]
async fn an_object_that_is_missing_or_damaged_is_an_error_and_never_an_absence() {
    for harm in ["missing", "damaged", "other"] {
        for what in ["HEAD^{tree}", "HEAD:docs", "HEAD:docs/a.md"] {
            let repository = Repository::new();
            repository
                .write("docs/a.md", "# a\n")
                .write("docs/b.md", "# b\n")
                .write("c.md", "# c\n");
            let commit = repository.commit("first");
            let id = repository.git(&["rev-parse", what]);
            let object = repository.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
            let bytes = fs::read(&object).unwrap();
            fs::remove_file(&object).unwrap();
            match harm {
                "missing" => {}
                "damaged" => fs::write(&object, &bytes[..bytes.len() / 2]).unwrap(),
                _ => {
                    // A good object, of another content, where this one should be.
                    let other = repository.blob("# not what was committed\n");
                    let other =
                        repository.path().join(".git/objects").join(&other[..2]).join(&other[2..]);
                    fs::copy(other, &object).unwrap();
                }
            }
            let source = source("r", &repository.location(), &repository.beside("cache"));
            assert_eq!(source.fetch().await.unwrap(), commit);
            let error = match source.tree(&commit).await {
                Err(error) => error,
                Ok(tree) => {
                    assert_eq!(what, "HEAD:docs/a.md", "{harm}: {tree:?}");
                    assert_eq!(tree.files.len(), 3);
                    source.blobs(vec![id.clone()]).await.unwrap_err()
                }
            };
            assert!(matches!(error, Error::Unreadable { .. }), "{harm} {what}: {error:?}");
            assert!(error.to_string().contains(&id), "{error}");
        }
    }
}

#[tokio::test]
async fn what_only_the_older_commit_needs_is_not_missed() {
    let repository = Repository::new();
    repository.write("docs/a.md", "# a\n");
    let first = repository.commit("first");
    let id = repository.git(&["rev-parse", "HEAD:docs"]);
    repository.write("docs/b.md", "# b\n");
    let second = repository.commit("second");
    let object = repository.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
    let reader = || source("r", &repository.location(), &repository.beside("cache"));
    assert_eq!(reader().changes(&first, &second).await.unwrap().unwrap().files.len(), 1);
    let bytes = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    assert_eq!(reader().changes(&first, &second).await.unwrap(), None);
    fs::write(&object, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(reader().changes(&first, &second).await.unwrap(), None);
    assert_eq!(newest(&reader()).await.files.len(), 2);
}
