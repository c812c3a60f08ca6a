//! A source agrees with git itself, and its two ways of finding changes with each other, on random
//! repositories.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyward_registry::source::{FileChange, Options, Source, Tree};
use keyward_testkit::{Replay, Test, seeds};

use crate::repository::Repository;
use crate::source;

const TEST: Test = Test {
    package: "keyward-registry",
    path: "git::agreeing::changes_are_the_difference_of_two_whole_trees",
};

const FOLDERS: [&str; 6] = ["", "a/", "a/b/", "a.md/", "정책/", "정책/하위/"];
const FILES: [&str; 7] = ["a.md", "a", "b.MD", "학칙.md", "README.md", "c.txt", "a-b.md"];

/// Does something to the working tree.
fn step(repository: &Repository, random: &mut Rng) -> String {
    let pick = |random: &mut Rng| {
        let folder = FOLDERS[random.usize(..FOLDERS.len())];
        format!("{folder}{}", FILES[random.usize(..FILES.len())])
    };
    let path = pick(random);
    let file = repository.path().join(&path);
    // What is in the way goes: a folder where a file is to be, a file where a folder is.
    let clear = || {
        let mut above = String::new();
        for part in path.split('/') {
            above.push_str(part);
            let there = repository.path().join(&above);
            if there.is_symlink() || there.is_file() || there == file && there.is_dir() {
                repository.remove(&above);
            }
            above.push('/');
        }
    };
    match random.u8(..10) {
        0..5 => {
            clear();
            repository.write(&path, format!("# {}\n", random.u8(..6)));
            format!("write {path}")
        }
        5 => {
            clear();
            repository.link(&path, "elsewhere");
            format!("link {path}")
        }
        6 | 7 if file.exists() || file.is_symlink() => {
            repository.remove(&path);
            format!("remove {path}")
        }
        8 if file.is_file() => {
            let to = format!("moved/{}/{path}", random.u8(..3));
            if !repository.path().join(&to).exists() {
                repository.rename(&path, &to);
            }
            format!("rename {path} to {to}")
        }
        _ => {
            let folder = repository.path().join("정책");
            if folder.is_dir() && random.u8(..4) == 0 {
                repository.remove("정책");
            }
            "remove 정책, perhaps".to_owned()
        }
    }
}

/// What differs between two trees, by looking at all of both.
fn difference(old: &Tree, new: &Tree) -> Vec<FileChange> {
    let files = |tree: &Tree| -> BTreeMap<String, String> {
        tree.files.iter().map(|file| (file.path.clone(), file.sha.clone())).collect()
    };
    let (old, new) = (files(old), files(new));
    let paths: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path))
        .map(|path| FileChange {
            path: path.clone(),
            old: old.get(path).cloned(),
            new: new.get(path).cloned(),
        })
        .collect()
}

/// The regular files of a commit, as git lists them.
fn listed(repository: &Repository, commit: &str) -> Vec<(String, String)> {
    let text = repository.git(&["ls-tree", "-r", "-z", commit]);
    let mut files: Vec<(String, String)> = text
        .split('\0')
        .filter_map(|line| line.split_once('\t'))
        .filter(|(about, path)| {
            let name = path.rsplit('/').next().unwrap_or(path);
            let is_markdown = path.to_ascii_lowercase().ends_with(".md");
            about.starts_with("100") && is_markdown && !name.eq_ignore_ascii_case("readme.md")
        })
        .map(|(about, path)| (path.to_owned(), about.rsplit(' ').next().unwrap().to_owned()))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn changes_are_the_difference_of_two_whole_trees() {
    for seed in seeds(12, 300) {
        let mut replay = Replay::new(TEST, seed);
        let mut random = Rng::with_seed(seed);
        let repository = if random.bool() { Repository::new() } else { Repository::sha256() };
        let cache = repository.beside("cache");
        let whole = source("whole", &repository.location(), &cache);
        let options =
            Options { folder: "정책".to_owned(), ..Options::new(repository.location()) };
        let folder = Source::new("folder", options, &cache).unwrap();
        let mut commits = Vec::new();
        for _ in 0..8 {
            for _ in 0..random.u8(0..8) {
                replay.step(step(&repository, &mut random));
            }
            replay.step("commit".to_owned());
            commits.push(repository.commit("random"));
        }
        for source in [&whole, &folder] {
            source.fetch().await.unwrap();
            for _ in 0..12 {
                let old = &commits[random.usize(..commits.len())];
                let new = &commits[random.usize(..commits.len())];
                replay.step(format!("compare {old} with {new}"));
                let (before, after) =
                    (source.tree(old).await.unwrap(), source.tree(new).await.unwrap());
                let changes = source.changes(old, new).await.unwrap().unwrap();
                assert_eq!(changes.files, difference(&before, &after));
                for problem in &changes.problems {
                    assert!(after.problems.contains(problem), "{problem:?}");
                }
                if before.problems.is_empty() {
                    assert_eq!(changes.problems, after.problems);
                }
            }
        }
        for commit in &commits {
            let tree = whole.tree(commit).await.unwrap();
            let files: Vec<_> = tree.files.into_iter().map(|file| (file.path, file.sha)).collect();
            assert_eq!(files, listed(&repository, commit));
        }
    }
}
