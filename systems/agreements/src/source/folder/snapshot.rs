//! What a folder looks like, for comparing it later.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::FileType;

use super::super::SourceLimits;
use super::files::{enter, mark, open_root};
use super::names::{pages, stat, visit};
use crate::{PageId, Result};

/// What each page looks like.
pub(super) type Snapshot = BTreeMap<PageId, Look>;

/// What a page looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// What its directory is called on disk.
    pub disk: String,
    sum: u64,
}

/// Looks at all pages.
pub(super) fn take(place: &Path, limits: &SourceLimits) -> Result<Snapshot> {
    let root = open_root(place)?;
    let disk = pages(&root, place, limits)?.disk;
    let looks = disk.into_iter().filter_map(|(id, disk)| Some((id, look(&root, place, disk)?)));
    Ok(looks.collect())
}

/// Looks at one page. `None` if it is not there.
pub(super) fn look(root: &OwnedFd, place: &Path, disk: String) -> Option<Look> {
    let mut marks = Vec::new();
    let seen = match enter(root, place, &disk) {
        Ok(Some(directory)) => {
            let place = place.join(&disk);
            let seen = visit(&directory, &place, |name, kind| {
                if let (Ok(name), false) = (name, kind == FileType::Directory) {
                    let mark = stat(&directory, &place, name)?.map(|stat| mark(&stat));
                    marks.push((name.to_owned(), mark));
                }
                Ok(())
            });
            seen.is_ok()
        }
        Ok(None) => return None,
        // What cannot be read looks different as soon as it can.
        Err(_) if is_directory(root, place, &disk) => false,
        Err(_) => return None,
    };
    marks.sort();
    let mut hasher = DefaultHasher::new();
    (seen, marks).hash(&mut hasher);
    Some(Look { disk, sum: hasher.finish() })
}

fn is_directory(root: &OwnedFd, place: &Path, disk: &str) -> bool {
    let found = stat(root, place, disk).ok().flatten();
    found.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// The pages that are new, changed or gone.
pub(super) fn compare(old: &Snapshot, new: &Snapshot) -> Vec<PageId> {
    let changed = new.iter().filter(|(id, look)| old.get(*id) != Some(look));
    let gone = old.iter().filter(|(id, _)| !new.contains_key(*id));
    changed.chain(gone).map(|(id, _)| id.clone()).collect()
}
