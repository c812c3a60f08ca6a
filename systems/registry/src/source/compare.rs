//! Comparing two trees, or a tree with nothing. Equal subtrees are not entered, so the cost is that of
//! what has changed.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gix::ObjectId;
use gix::objs::tree::{EntryMode, EntryRef, name_order};
use gix::objs::{Kind, TreeRefIter};

use super::choice::{Choice, refused, refused_path, too_long};
use super::error::told;
use super::{Error, FileChange, NOT_ITSELF, Problem, Result};

/// The deepest nesting of folders that is followed.
const DEPTH_MAX: usize = 64;
/// How many folders and entries are looked at for each file that may be chosen, before a tree is
/// refused: trees can be built in which few objects make an endless number of paths.
const FOLDERS_PER_FILE_MAX: u64 = 2;
const FOLDERS_MAX_MIN: u64 = 20_000;
const ENTRIES_PER_FILE_MAX: u64 = 20;
const ENTRIES_MAX_MIN: u64 = 1_000_000;

/// What differs between two commits.
pub(super) struct Compared {
    pub(super) files: Vec<FileChange>,
    pub(super) problems: Vec<Problem>,
}

/// Why two commits could not be compared.
pub(super) enum Failed {
    /// An object of the older one is not there: there is nothing to compare with.
    OldIsGone,
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// One side of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

/// A comparison that is going on.
pub(super) struct Comparison<'a> {
    repository: &'a gix::Repository,
    shown: &'a str,
    choice: &'a Choice,
    files_max: u64,
    interrupt: &'a AtomicBool,
    folders: u64,
    entries: u64,
    files: Vec<FileChange>,
    problems: Vec<Problem>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        repository: &'a gix::Repository,
        shown: &'a str,
        choice: &'a Choice,
        files_max: u64,
        interrupt: &'a AtomicBool,
    ) -> Self {
        Self {
            repository,
            shown,
            choice,
            files_max,
            interrupt,
            folders: 0,
            entries: 0,
            files: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Compares the folder of two commits; without an old one everything is new.
    pub(super) fn run(mut self, old: Option<ObjectId>, new: ObjectId) -> Result<Compared, Failed> {
        let old = match old {
            Some(commit) => self.folder(commit, Side::Old)?,
            None => None,
        };
        let new = self.folder(new, Side::New)?;
        if new.is_none() {
            self.problem(
                self.choice.folder().as_bytes(),
                "the folder is not in the commit; set `folder` to one that is",
            )?;
        }
        let mut path = self.choice.folder().as_bytes().to_vec();
        self.trees(&mut path, 0, old, new)?;
        // Of a tree, names with a slash after them come after their likes; of paths, not.
        self.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.problems.sort_unstable();
        Ok(Compared { files: self.files, problems: self.problems })
    }

    /// The tree of the folder in a commit, if it is there.
    fn folder(&mut self, commit: ObjectId, side: Side) -> Result<Option<ObjectId>, Failed> {
        let data = self.object(commit, Kind::Commit, side)?;
        let mut tree = gix::objs::CommitRefIter::from_bytes(&data, self.repository.object_hash())
            .tree_id()
            .map_err(|error| self.unreadable(&format!("commit {commit}"), told(&error)))?;
        for part in self.choice.folder().split('/').filter(|part| !part.is_empty()) {
            let data = self.object(tree, Kind::Tree, side)?;
            let entries = self.entries(&data, Some(tree))?;
            let found = entries.iter().find(|entry| entry.filename == part && entry.mode.is_tree());
            match found {
                Some(entry) => tree = entry.oid.to_owned(),
                None => return Ok(None),
            }
        }
        Ok(Some(tree))
    }

    fn trees(
        &mut self,
        path: &mut Vec<u8>,
        depth: usize,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
    ) -> Result<(), Failed> {
        if old == new {
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err(self
                .hostile(format!("folders are nested more than {DEPTH_MAX} deep"))
                .into());
        }
        let old_data = self.tree(old, Side::Old)?;
        let new_data = self.tree(new, Side::New)?;
        let old = self.entries(&old_data, old)?;
        let new = self.entries(&new_data, new)?;
        let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => order(a, b),
            };
            let was = if order.is_le() { old.next() } else { None };
            let is = if order.is_ge() { new.next() } else { None };
            self.entry(path, depth, was, is)?;
        }
    }

    /// Compares two entries of one name; if both are there, both are trees or none is.
    fn entry(
        &mut self,
        path: &mut Vec<u8>,
        depth: usize,
        was: Option<EntryRef<'_>>,
        is: Option<EntryRef<'_>>,
    ) -> Result<(), Failed> {
        let Some(entry) = is.or(was) else { return Ok(()) };
        let same = |a: EntryRef<'_>, b: EntryRef<'_>| a.oid == b.oid && a.mode == b.mode;
        if was.zip(is).is_some_and(|(was, is)| same(was, is)) {
            return Ok(());
        }
        let length = path.len();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(entry.filename);
        let compared = if entry.mode.is_tree() {
            self.subtrees(path, depth, was, is)
        } else {
            self.leaves(path, was, is)
        };
        path.truncate(length);
        compared
    }

    fn subtrees(
        &mut self,
        path: &mut Vec<u8>,
        depth: usize,
        was: Option<EntryRef<'_>>,
        is: Option<EntryRef<'_>>,
    ) -> Result<(), Failed> {
        let name = is.or(was).map(|entry| entry.filename.as_ref()).unwrap_or_default();
        match refused(name).or_else(|| too_long(path)) {
            Some(reason) if is.is_some() => Ok(self.problem(path, reason)?),
            Some(_) => Ok(()),
            None => {
                let id = |entry: Option<EntryRef<'_>>| entry.map(|entry| entry.oid.to_owned());
                self.trees(path, depth + 1, id(was), id(is))
            }
        }
    }

    fn leaves(
        &mut self,
        path: &[u8],
        was: Option<EntryRef<'_>>,
        is: Option<EntryRef<'_>>,
    ) -> Result<(), Failed> {
        if !self.choice.takes(path) {
            return Ok(());
        }
        let old = was.and_then(|entry| file(path, entry).ok());
        let new = match is.map(|entry| file(path, entry)) {
            Some(Ok(id)) => Some(id),
            Some(Err(reason)) => {
                self.problem(path, reason)?;
                None
            }
            None => None,
        };
        if old != new {
            let text = |id: Option<ObjectId>| id.map(|id| id.to_hex().to_string());
            // A file has a path that is UTF-8, or `file` has refused it.
            let path = String::from_utf8_lossy(path).into_owned();
            self.files.push(FileChange { path, old: text(old), new: text(new) });
            self.check_count()?;
        }
        Ok(())
    }

    fn problem(&mut self, path: &[u8], reason: &str) -> Result<()> {
        const CHARS_MAX: usize = 500;
        let path = String::from_utf8_lossy(path).chars().take(CHARS_MAX).collect::<String>();
        self.problems.push(Problem { path, reason: reason.to_owned() });
        self.check_count()
    }

    fn check_count(&self) -> Result<()> {
        if (self.files.len() + self.problems.len()) as u64 > self.files_max {
            let (repository, files_max) = (self.shown.to_owned(), self.files_max);
            return Err(Error::TooManyFiles { repository, files_max });
        }
        Ok(())
    }

    /// The bytes of a tree; of none, those of an empty one.
    fn tree(&self, id: Option<ObjectId>, side: Side) -> Result<Vec<u8>, Failed> {
        id.map_or_else(|| Ok(Vec::new()), |id| self.object(id, Kind::Tree, side))
    }

    fn object(&self, id: ObjectId, kind: Kind, side: Side) -> Result<Vec<u8>, Failed> {
        if self.interrupt.load(Relaxed) {
            return Err(Error::Cancelled.into());
        }
        match (self.whole_object(id, kind), side) {
            (Ok(data), _) => Ok(data),
            // With what cannot be read nothing can be compared, and nothing has to be.
            (Err(_), Side::Old) => Err(Failed::OldIsGone),
            (Err(reason), Side::New) => {
                Err(self.unreadable(&format!("{kind} {id}"), reason).into())
            }
        }
    }

    /// An object that is what its id says, or what is wrong with it.
    fn whole_object(&self, id: ObjectId, kind: Kind) -> Result<Vec<u8>, String> {
        let found = self.repository.try_find_object(id).map_err(|error| told(&error))?;
        let object = found.ok_or("it is not there")?.detach();
        if object.kind != kind {
            return Err(format!("it is a {}", object.kind));
        }
        // Not every damage is one to those who unpack objects.
        match gix::objs::compute_hash(id.kind(), kind, &object.data) {
            Ok(hash) if hash == id => Ok(object.data),
            _ => Err(NOT_ITSELF.to_owned()),
        }
    }

    /// The entries of a tree, which are in git's order and of different names, or the tree is refused:
    /// what is merged by order must have one.
    fn entries<'t>(&mut self, data: &'t [u8], id: Option<ObjectId>) -> Result<Vec<EntryRef<'t>>> {
        let shown = || id.map_or_else(String::new, |id| format!("tree {id}"));
        let mut entries: Vec<EntryRef<'t>> = Vec::new();
        for entry in TreeRefIter::from_bytes(data, self.repository.object_hash()) {
            let entry = entry.map_err(|error| self.unreadable(&shown(), told(&error)))?;
            if entries.last().is_some_and(|last| order(last, &entry).is_ge()) {
                return Err(self.hostile(format!("the entries of {} are not in order", shown())));
            }
            entries.push(entry);
        }
        self.folders += 1;
        self.entries += entries.len() as u64;
        let bound = |per_file: u64, min: u64| self.files_max.saturating_mul(per_file).max(min);
        let folders_max = bound(FOLDERS_PER_FILE_MAX, FOLDERS_MAX_MIN);
        let entries_max = bound(ENTRIES_PER_FILE_MAX, ENTRIES_MAX_MIN);
        if self.folders > folders_max || self.entries > entries_max {
            return Err(self.hostile(format!(
                "it has more than {folders_max} folders or {entries_max} entries; narrow `folder`, or \
                 raise `limits.files_max`"
            )));
        }
        Ok(entries)
    }

    fn unreadable(&self, what: &str, reason: String) -> Error {
        Error::Unreadable { repository: self.shown.to_owned(), what: what.to_owned(), reason }
    }

    fn hostile(&self, reason: String) -> Error {
        Error::Hostile { repository: self.shown.to_owned(), reason }
    }
}

/// Git's order of entries, made total: to git itself, names with slashes in them, which there should not
/// be, can be equal to others.
fn order(a: &EntryRef<'_>, b: &EntryRef<'_>) -> Ordering {
    let (a_is_tree, b_is_tree) = (a.mode.is_tree(), b.mode.is_tree());
    name_order(a.filename, a_is_tree, b.filename, b_is_tree)
        .then_with(|| a.filename.cmp(b.filename))
        .then_with(|| a_is_tree.cmp(&b_is_tree))
}

/// The blob of an entry that can be a policy, or why it cannot.
fn file(path: &[u8], entry: EntryRef<'_>) -> Result<ObjectId, &'static str> {
    if let Some(reason) = refused(entry.filename).or_else(|| refused_path(path)) {
        return Err(reason);
    }
    let is = |test: fn(&EntryMode) -> bool| test(&entry.mode);
    if is(EntryMode::is_link) {
        Err("it is a symbolic link, which is not followed; commit the file itself")
    } else if is(EntryMode::is_commit) {
        Err("it is a submodule, which is not entered; commit the file itself")
    } else {
        Ok(entry.oid.to_owned())
    }
}
