//! A model of what a disk may hold after the power was cut.
//!
//! - What was written to a file is durable once the file is synced, or at once if the file was
//!   opened for that. Until then each write may be there or not, and each page of a longer one.
//! - A name in a directory (created, renamed, removed) is durable once the directory is synced.
//!   Syncing a file does nothing for its name.
//! - A page, and what is smaller, is written whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use fastrand::Rng;

use super::trace::Step;

const PAGE_BYTES: usize = 4096;

/// Files whose contents are made anew when nobody has the store open: after a power loss they may
/// hold anything, or be gone.
const LOCKS: [&str; 4] = ["lock.mdb", "keyward.lock", "keyward.users", "keyward.writer"];

/// A disk, with all that is not durable yet.
pub struct Disk {
    nodes: Vec<Node>,
}

#[derive(Clone)]
enum Node {
    File(File),
    Directory(Directory),
}

#[derive(Clone, Default)]
struct File {
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(usize, Bytes),
    Resize(usize),
}

type Names = BTreeMap<String, usize>;
/// What happens to names together: each now means another node, or nothing.
type Renaming = Vec<(String, Option<usize>)>;

#[derive(Clone, Default)]
struct Directory {
    /// As processes see it.
    names: Names,
    durable: Names,
    unsynced: Vec<Renaming>,
}

/// What becomes of everything that is not durable.
pub enum Loss {
    /// It is gone.
    Everything,
    /// It was written in time.
    Nothing,
    /// Some of it is gone.
    Some(Rng),
}

impl Disk {
    /// An empty directory.
    pub fn new() -> Self {
        Self { nodes: vec![Node::Directory(Directory::default())] }
    }

    /// Does one thing more.
    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Created(path) => self.create(path, Node::File(File::default())),
            Step::CreatedDirectory(path) => {
                self.create(path, Node::Directory(Directory::default()))
            }
            Step::Renamed { from, to } => {
                let node = self.find(from);
                let ((source, old), (target, new)) = (self.parent(from), self.parent(to));
                if source == target {
                    let both = vec![(old.to_owned(), None), (new.to_owned(), Some(node))];
                    self.directory(source).rename(both);
                } else {
                    self.directory(target).rename(vec![(new.to_owned(), Some(node))]);
                    self.directory(source).rename(vec![(old.to_owned(), None)]);
                }
            }
            Step::Removed(path) => {
                let (parent, name) = self.parent(path);
                self.directory(parent).rename(vec![(name.to_owned(), None)]);
            }
            Step::Wrote { path, .. } | Step::Resized { path, .. } if is_lock(path) => {}
            Step::Wrote { path, offset, data, durable } => {
                let change = Change::Write(*offset, data.clone());
                self.file(path).change(change, *durable);
            }
            Step::Resized { path, bytes } => self.file(path).change(Change::Resize(*bytes), false),
            Step::Synced(path) => {
                let node = self.find(path);
                match &mut self.nodes[node] {
                    Node::File(file) => file.sync(),
                    Node::Directory(directory) => directory.sync(),
                }
            }
            Step::Acknowledged(_) => {}
        }
    }

    /// Whether the contents of all files are durable.
    pub fn is_synced(&self) -> bool {
        self.nodes.iter().all(|node| match node {
            Node::File(file) => file.unsynced.is_empty(),
            Node::Directory(_) => true,
        })
    }

    /// Writes down what the disk holds after a loss, into a directory that exists.
    pub fn write_image(&self, place: &Path, loss: &mut Loss) {
        self.write_directory(0, place, loss);
    }

    fn write_directory(&self, node: usize, place: &Path, loss: &mut Loss) {
        let Node::Directory(directory) = &self.nodes[node] else { panic!("{place:?} is a file") };
        for (name, node) in directory.after(loss) {
            let place = place.join(&name);
            match &self.nodes[node] {
                Node::Directory(_) => {
                    fs::create_dir(&place).unwrap();
                    self.write_directory(node, &place, loss);
                }
                Node::File(_) if is_lock(&name) => {
                    if let Some(contents) = loss.of_lock() {
                        fs::write(place, contents).unwrap();
                    }
                }
                Node::File(file) => fs::write(place, file.after(loss)).unwrap(),
            }
        }
    }

    fn create(&mut self, path: &str, node: Node) {
        let (parent, name) = self.parent(path);
        let number = self.nodes.len();
        self.nodes.push(node);
        self.directory(parent).rename(vec![(name.to_owned(), Some(number))]);
    }

    /// The node that a path means now.
    fn find(&self, path: &str) -> usize {
        path.split('/').filter(|name| !name.is_empty()).fold(0, |node, name| {
            let Node::Directory(directory) = &self.nodes[node] else { panic!("{path} is no path") };
            *directory.names.get(name).unwrap_or_else(|| panic!("{path} is not there"))
        })
    }

    fn parent<'p>(&self, path: &'p str) -> (usize, &'p str) {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.find(parent), name)
    }

    fn directory(&mut self, node: usize) -> &mut Directory {
        match &mut self.nodes[node] {
            Node::Directory(directory) => directory,
            Node::File(_) => panic!("a file is no directory"),
        }
    }

    fn file(&mut self, path: &str) -> &mut File {
        let node = self.find(path);
        match &mut self.nodes[node] {
            Node::File(file) => file,
            Node::Directory(_) => panic!("{path} is a directory"),
        }
    }
}

impl Directory {
    fn rename(&mut self, renaming: Renaming) {
        set(&mut self.names, &renaming);
        self.unsynced.push(renaming);
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.names);
        self.unsynced.clear();
    }

    fn after(&self, loss: &mut Loss) -> Names {
        let mut names = self.durable.clone();
        let kept = loss.of_names(self.unsynced.len());
        for (renaming, _) in self.unsynced.iter().zip(kept).filter(|(_, kept)| *kept) {
            set(&mut names, renaming);
        }
        names
    }
}

fn is_lock(path: &str) -> bool {
    LOCKS.iter().any(|name| Path::new(path).ends_with(name))
}

fn set(names: &mut Names, renaming: &Renaming) {
    for (name, node) in renaming {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}

impl File {
    fn change(&mut self, change: Change, durable: bool) {
        if durable {
            // Only this write is durable, not what was written before it: they must not overlap, or
            // this model would put the older one on top.
            assert!(!self.unsynced.iter().any(|older| older.overlaps(&change)));
            change.apply(&mut self.durable, || true);
        } else {
            self.unsynced.push(change);
        }
    }

    fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable, || true);
        }
    }

    fn after(&self, loss: &mut Loss) -> Vec<u8> {
        let mut contents = self.durable.clone();
        for change in &self.unsynced {
            change.apply(&mut contents, loss.of_write());
        }
        contents
    }
}

impl Change {
    /// Changes a file's contents, by those pages that are kept.
    fn apply(&self, contents: &mut Vec<u8>, mut kept: impl FnMut() -> bool) {
        let (mut at, mut data) = match self {
            Self::Write(offset, data) => (*offset, data.clone()),
            Self::Resize(bytes) => {
                if kept() {
                    contents.resize(*bytes, 0);
                }
                return;
            }
        };
        while !data.is_empty() {
            let page = data.split_to(data.len().min(PAGE_BYTES - at % PAGE_BYTES));
            if kept() {
                contents.resize(contents.len().max(at + page.len()), 0);
                contents[at..at + page.len()].copy_from_slice(&page);
            }
            at += page.len();
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Write(a, one), Self::Write(b, two)) => {
                a < &(b + two.len()) && b < &(a + one.len())
            }
            _ => true,
        }
    }
}

impl Loss {
    /// Which of some changes of names are kept: any of them, or those up to some moment.
    fn of_names(&mut self, count: usize) -> Vec<bool> {
        match self {
            Self::Everything => vec![false; count],
            Self::Nothing => vec![true; count],
            Self::Some(rng) => {
                let (any, end) = (rng.bool(), rng.usize(0..=count));
                (0..count).map(|at| if any { rng.bool() } else { at < end }).collect()
            }
        }
    }

    /// Whether each page of a write is kept: usually all or none.
    fn of_write(&mut self) -> impl FnMut() -> bool + use<> {
        let (all, mut torn) = match self {
            Self::Everything => (false, None),
            Self::Nothing => (true, None),
            Self::Some(rng) => (rng.bool(), (rng.u8(0..4) == 0).then(|| rng.fork())),
        };
        move || torn.as_mut().map_or(all, |rng| rng.bool())
    }

    /// What a lock file holds, if it is there.
    fn of_lock(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Everything => Some(Vec::new()),
            Self::Nothing => Some(vec![0; 128 << 10]),
            Self::Some(rng) => rng.bool().then(|| {
                let mut contents = vec![0; rng.usize(0..40) * PAGE_BYTES];
                rng.fill(&mut contents);
                contents
            }),
        }
    }
}
