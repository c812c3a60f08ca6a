//! Credentials reach whom they are for, and nobody else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyward_registry::source::{self, Credentials, Error, Options, Source};

use crate::newest;
use crate::repository::{Account, HttpServer, Repository};

const SECRET: &str = "s3cr3t-토큰";

fn with_password(server: &HttpServer, password: &'static str) -> Options {
    Options {
        credentials: Credentials::Account(Arc::new(move || {
            Ok(source::Account { username: "ada".to_owned(), password: password.to_owned() })
        })),
        authority: server.authority().map(Into::into),
        ..Options::new(server.url())
    }
}

#[tokio::test]
async fn a_private_repository_is_read_with_credentials() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").commit("first");
    let server = repository.https(Account::new("ada", SECRET));
    let source =
        Source::new("r", with_password(&server, SECRET), &repository.beside("cache")).unwrap();
    assert_eq!(newest(&source).await.files.len(), 1);
    repository.write("b.md", "# b\n").commit("second");
    assert_eq!(newest(&source).await.files.len(), 2);
    // Nothing of them is kept.
    let mut folders = vec![repository.beside("cache")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                let shown = String::from_utf8_lossy(&bytes).contains(SECRET);
                assert!(!shown, "{}", path.display());
            }
        }
    }
}

#[tokio::test]
async fn who_is_refused_is_told_so_and_no_secret_is_shown() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").commit("first");
    let server = repository.https(Account::new("ada", SECRET));
    let cache = repository.beside("cache");
    let wrong = with_password(&server, "wr0ng-비밀");
    let none = Options { credentials: Credentials::None, ..wrong.clone() };
    let unreadable = Options {
        credentials: Credentials::Account(Arc::new(|| Err("TOKEN is not set".to_owned()))),
        ..wrong.clone()
    };
    for (options, said) in
        [(wrong, "not accepted"), (none, "there are none"), (unreadable, "TOKEN")]
    {
        let source = Source::new("r", options, &cache).unwrap();
        let error = source.fetch().await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error:?}");
        let shown = format!("{error} {error:?} {source:?}");
        assert!(shown.contains(said), "{shown}");
        assert!(!shown.contains("비밀") && !shown.contains(SECRET), "{shown}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn a_server_whose_certificate_nobody_vouches_for_is_unreachable() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").commit("first");
    let server = repository.https(Account::new("ada", SECRET));
    let options = Options { authority: None, ..with_password(&server, SECRET) };
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    let error = source.fetch().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn secrets_are_read_when_they_are_used() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").commit("first");
    let server = repository.https(Account::new("ada", SECRET));
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    let options = Options {
        credentials: Credentials::Account(Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(source::Account { username: "ada".to_owned(), password: SECRET.to_owned() })
        })),
        ..with_password(&server, SECRET)
    };
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 0);
    source.fetch().await.unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    source.fetch().await.unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn credentials_are_not_given_to_a_host_that_a_redirect_leads_to() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").commit("first");
    let server = repository.https(Account::new("ada", SECRET));
    let thief = repository.https(Account::new("ada", SECRET));
    server.redirect_to(Some(thief.url()));
    let mut options = with_password(&server, SECRET);
    let both = repository.beside("both.pem");
    let authority = |server: &HttpServer| fs::read(server.authority().unwrap()).unwrap();
    fs::write(&both, [authority(&server), authority(&thief)].concat()).unwrap();
    options.authority = Some(both);
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    let error = source.fetch().await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    assert!(thief.requests() > 0, "the redirect was followed");
    assert_eq!(thief.credentials_seen(), 0);
    server.redirect_to(None);
    assert_eq!(newest(&source).await.files.len(), 1);
    assert!(server.credentials_seen() > 0);
}

#[tokio::test]
async fn what_would_show_credentials_is_refused_before_anything_is_sent() {
    let repository = Repository::new();
    let cache = repository.beside("cache");
    let account = Credentials::Account(Arc::new(|| panic!("nobody asks")));
    let key = Credentials::SshKey("/nowhere/key".into());
    for (url, credentials) in [
        (format!("https://ada:{SECRET}@example.org/p.git"), Credentials::None),
        (format!("http://:{SECRET}@example.org/p.git"), Credentials::None),
        (format!("ssh://ada:{SECRET}@example.org/p.git"), Credentials::None),
        ("http://example.org/p.git".to_owned(), account.clone()),
        ("git://example.org/p.git".to_owned(), account.clone()),
        ("ssh://example.org/p.git".to_owned(), account),
        ("https://example.org/p.git".to_owned(), key),
    ] {
        let options = Options { credentials, ..Options::new(url.as_str()) };
        let error = Source::new("r", options, &cache).unwrap_err();
        assert!(matches!(error, Error::Options(_)), "{url}: {error:?}");
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
}

#[tokio::test]
async fn ways_that_run_programs_are_refused() {
    let repository = Repository::new();
    for url in [
        "ext::sh -c touch% /tmp/owned",
        "fd::3",
        "foo::bar",
        "ftp://example.org/p.git",
        "transport::https://example.org/p.git",
        "ssh://-oProxyCommand=touch/p.git",
        "git://-host/p.git",
        "",
        "a\nb",
        "file://host/p.git",
    ] {
        let error = Source::new("r", Options::new(url), &repository.beside("cache")).unwrap_err();
        assert!(matches!(error, Error::Options(_)), "{url}: {error:?}");
    }
    for name in ["", ".", "..", "a/b", "../a", "a\\b", ".hidden"] {
        let refused = Source::new(name, Options::new("/p"), &repository.beside("cache"));
        assert!(refused.is_err(), "{name}");
    }
}

/// A program in the place of ssh: it notes its arguments, and runs what the other side's shell would.
fn instead_of_ssh(repository: &Repository, then: &str) -> std::path::PathBuf {
    let program = repository.beside("ssh");
    let noted = repository.beside("arguments");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$GIT_PROTOCOL\" \"$@\" > '{}'\n\
         export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'\n{then}\n",
        noted.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

const AS_THE_OTHER_SIDE: &str = "for last; do :; done\nexec sh -c \"$last\"";

#[tokio::test]
async fn ssh_is_run_with_the_key_and_asks_nobody() {
    let repository = Repository::new();
    repository.write("학칙.md", "# 학칙\n").commit("first");
    let ssh = instead_of_ssh(&repository, AS_THE_OTHER_SIDE);
    let key = repository.beside("a key");
    let options = Options {
        credentials: Credentials::SshKey(key.clone()),
        ssh,
        ..Options::new(format!("ssh://git@example.org:2222{}", repository.location()))
    };
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    assert_eq!(newest(&source).await.files.len(), 1);
    let noted = fs::read_to_string(repository.beside("arguments")).unwrap();
    let arguments: Vec<&str> = noted.lines().collect();
    let after = |option: &str| {
        let at = arguments.iter().position(|argument| *argument == option).expect("it is given");
        arguments[at + 1]
    };
    assert_eq!(arguments[0], "version=2");
    assert_eq!(after("-i"), key.to_str().unwrap());
    assert_eq!(after("-p"), "2222");
    assert_eq!(after("--"), "git@example.org");
    for option in ["BatchMode=yes", "IdentitiesOnly=yes"] {
        assert!(arguments.contains(&option), "{noted}");
    }
    assert_eq!(*arguments.last().unwrap(), format!("git-upload-pack '{}'", repository.location()));
    repository.write("b.md", "# b\n").commit("second");
    assert_eq!(newest(&source).await.files.len(), 2);
}

#[tokio::test]
async fn the_short_form_of_an_ssh_address_is_taken() {
    let repository = Repository::new();
    repository.write("a.md", "# a\n").commit("first");
    let ssh = instead_of_ssh(&repository, AS_THE_OTHER_SIDE);
    let options =
        Options { ssh, ..Options::new(format!("git@example.org:{}", repository.location())) };
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    assert_eq!(newest(&source).await.files.len(), 1);
}

#[tokio::test]
async fn what_ssh_complains_of_is_told() {
    let repository = Repository::new();
    let refused = "echo 'git@example.org: Permission denied (publickey).' >&2; exit 255";
    let unknown = "echo 'Host key verification failed.' >&2; exit 255";
    for (then, is_refused, said) in
        [(refused, true, "Permission denied"), (unknown, false, "Host key"), ("exit 1", false, "")]
    {
        let ssh = instead_of_ssh(&repository, then);
        let options = Options { ssh, ..Options::new("git@example.org:p.git") };
        let source = Source::new("r", options, &repository.beside("cache")).unwrap();
        let error = source.fetch().await.unwrap_err();
        assert_eq!(matches!(error, Error::Refused { .. }), is_refused, "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
    }
    let options = Options { ssh: "/nowhere/ssh".into(), ..Options::new("git@example.org:p.git") };
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    let error = source.fetch().await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/ssh"), "{error}");
}

#[tokio::test]
async fn an_ssh_that_hangs_is_ended() {
    let repository = Repository::new();
    let marker = repository.beside("pid");
    let ssh =
        instead_of_ssh(&repository, &format!("echo $$ > '{}'; exec sleep 1000", marker.display()));
    let limits = source::Limits {
        fetch_time_max: std::time::Duration::from_secs(4),
        ..source::Limits::default()
    };
    let options = Options { ssh, limits, ..Options::new("git@example.org:p.git") };
    let source = Source::new("r", options, &repository.beside("cache")).unwrap();
    assert!(matches!(source.fetch().await, Err(Error::TimedOut { .. })));
    let pid = fs::read_to_string(&marker).unwrap();
    let process = std::path::Path::new("/proc").join(pid.trim());
    // It is killed as the fetch is given up, before that is told.
    assert!(!process.exists(), "{}", process.display());
}
