//! A repository with many commits, any of which its branch can be at, and what is in each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fastrand::Rng;

use crate::repository::Repository;

/// The commits, made by one `git fast-import`.
pub struct Pool {
    pub repository: Repository,
    commits: Vec<Commit>,
    /// The ids of contents.
    shas: Vec<String>,
}

/// What is in a commit.
pub struct Commit {
    pub id: String,
    files: BTreeMap<String, usize>,
}

/// What a commit makes of a name.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// An entry with this content and path.
    Entry {
        sha: String,
        path: String,
    },
    /// Whatever is there.
    LeftAlone,
    Nothing,
}

const CONTENTS: [&[u8]; 4] = [b"# One\n", b"# Two\n", b"Three\n", b"\xff\xff\n"];
const BROKEN: usize = 3;

impl Pool {
    /// Small commits, and after them large ones, which take several batches.
    pub fn new(seed: u64, small: usize, large: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut trees = Vec::new();
        for _ in 0..small {
            trees.push(tree(&mut rng, 8, 4));
        }
        for _ in 0..large {
            trees.push(tree(&mut rng, 130, 2));
        }
        Self::of(trees)
    }

    /// These trees: paths, and the number of the content of each.
    pub fn of(trees: Vec<BTreeMap<String, usize>>) -> Self {
        let repository = Repository::new();
        let mut stream = Vec::new();
        for (mark, content) in CONTENTS.iter().enumerate() {
            stream.extend(format!("blob\nmark :{}\ndata {}\n", mark + 1, content.len()).bytes());
            stream.extend_from_slice(content);
            stream.push(b'\n');
        }
        for (at, files) in trees.iter().enumerate() {
            let mut text = format!(
                "commit refs/heads/c{at}\ncommitter A <a@example.org> {at} +0000\ndata 0\n"
            );
            for (path, content) in files {
                writeln!(text, "M 100644 :{} {path}", content + 1).unwrap();
            }
            text.push('\n');
            stream.extend(text.bytes());
        }
        repository.git_with_input(&["fast-import", "--quiet"], &stream);
        let ids = repository.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let ids: BTreeMap<&str, &str> =
            ids.lines().filter_map(|line| line.split_once(' ')).collect();
        let commits = trees.into_iter().enumerate().map(|(at, files)| {
            let id = ids[&*format!("refs/heads/c{at}")].to_owned();
            Commit { id, files }
        });
        let commits = commits.collect();
        let shas = CONTENTS.iter().map(|content| repository.blob(content)).collect();
        Self { repository, commits, shas }
    }

    pub fn len(&self) -> usize {
        self.commits.len()
    }

    /// Moves the branch.
    pub fn move_to(&self, at: usize) {
        let branch = self.repository.path().join(".git/refs/heads/main");
        std::fs::write(branch, format!("{}\n", self.commits[at].id)).unwrap();
    }

    pub fn commit(&self, id: &str) -> &Commit {
        self.commits.iter().find(|commit| commit.id == id).unwrap()
    }

    /// What a commit makes of a name.
    pub fn wanted(&self, commit: &Commit, name: &str) -> Wanted {
        let mut found = commit.files.iter().filter(|(path, _)| name_of(path) == name);
        match (found.next(), found.next()) {
            (None, _) => Wanted::Nothing,
            (Some((path, &content)), None) if content != BROKEN => {
                Wanted::Entry { sha: self.shas[content].clone(), path: path.clone() }
            }
            _ => Wanted::LeftAlone,
        }
    }
}

impl Commit {
    /// The names of all files.
    pub fn names(&self) -> BTreeSet<&str> {
        self.files.keys().map(|path| name_of(path)).collect()
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap().trim_end_matches(".md")
}

/// Some of so many names, in one of two folders, now and then in both or broken.
fn tree(rng: &mut Rng, names: usize, odd: u8) -> BTreeMap<String, usize> {
    let mut files = BTreeMap::new();
    let is_odd = rng.u8(..odd) == 0;
    for name in 0..names {
        if rng.u8(..4) == 0 {
            continue;
        }
        let folder = if rng.u8(..5) == 0 { "d/" } else { "" };
        files.insert(format!("{folder}n{name}.md"), rng.usize(..BROKEN));
        if is_odd && rng.u8(..12) == 0 {
            let content = if rng.bool() { BROKEN } else { 0 };
            files.insert(format!("e/n{name}.md"), content);
        }
    }
    files
}
