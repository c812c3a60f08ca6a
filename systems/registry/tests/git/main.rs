//! A source on real repositories: over a path, `git daemon` and smart HTTP.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../repository/mod.rs"]
mod repository;

mod agreeing;
mod credentials;
mod failing;
mod fetching;
mod hostile;
mod names;
mod reading;
mod titles;

use std::path::Path;

use keyward_registry::source::{Options, Source, Tree};

use repository::{Daemon, HttpServer, Repository};

/// The ways to a repository that every test of reading goes.
struct Ways {
    daemon: Daemon,
    http: HttpServer,
}

impl Ways {
    fn to(repository: &Repository) -> Self {
        Self { daemon: repository.daemon(), http: repository.http() }
    }

    /// The repository's address on each, and a name for a registry there.
    fn each(&self, repository: &Repository) -> [(&'static str, String); 4] {
        [
            ("path", repository.location()),
            ("file", format!("file://{}", repository.location())),
            ("daemon", self.daemon.url()),
            ("http", self.http.url()),
        ]
    }
}

/// A source of everything that is Markdown.
fn source(name: &str, location: &str, cache: &Path) -> Source {
    Source::new(name, Options::new(location), cache).expect("the options are good")
}

/// The tree of the newest commit.
async fn newest(source: &Source) -> Tree {
    let commit = source.fetch().await.expect("the newest commit is in reach");
    source.tree(&commit).await.expect("its tree can be read")
}

/// The paths of a tree.
fn paths(tree: &Tree) -> Vec<&str> {
    tree.files.iter().map(|file| file.path.as_str()).collect()
}
