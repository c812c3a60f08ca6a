//! What is in a directory, by names in Unicode's form NFC.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::Path;

use keyward_key::FileNames;
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization;

use super::super::{SourceLimits, refused};
use super::LeftOut;
use super::files::{is_file, unread};
use crate::{PageId, Result, SourceId};

/// The directories of a folder.
#[derive(Default)]
pub(super) struct Pages {
    /// What each page's directory is called on disk.
    pub disk: BTreeMap<PageId, String>,
    /// Names, in form NFC, of what is no directory.
    pub others: BTreeSet<String>,
    pub left_out: Vec<LeftOut>,
}

/// Lists the folder: all of it, or an error.
pub(super) fn pages(root: &OwnedFd, place: &Path, limits: &SourceLimits) -> Result<Pages> {
    let mut pages = Pages::default();
    let mut names = FileNames::new();
    visit(root, place, |name, kind| {
        let Ok(disk) = name else {
            pages.left_out.push(left_out(name, "its name is no UTF-8 text"));
            return Ok(());
        };
        let kind = match kind {
            FileType::Unknown => match stat(root, place, disk)? {
                Some(stat) => FileType::from_raw_mode(stat.st_mode),
                None => return Ok(()),
            },
            kind => kind,
        };
        if kind != FileType::Directory {
            if kind == FileType::Symlink {
                pages.left_out.push(left_out(name, "it is a link, and links are not followed"));
            }
            pages.others.insert(disk.nfc().collect());
            return Ok(());
        }
        let id = match PageId::new(disk) {
            Ok(id) => id,
            Err(error) => {
                pages.left_out.push(left_out(name, &error.to_string()));
                return Ok(());
            }
        };
        names.add(disk).map_err(|clash| refused(format!("in {}, {clash}", place.display())))?;
        if pages.disk.len() == limits.pages_max {
            let (place, most) = (place.display(), limits.pages_max);
            return Err(refused(format!("{place} has more than {most} pages")));
        }
        pages.disk.insert(id, disk.to_owned());
        Ok(())
    })?;
    Ok(pages)
}

/// A regular file of a page.
pub(super) struct Found {
    pub id: SourceId,
    /// What it is called on disk.
    pub disk: String,
    pub stat: Stat,
}

/// The regular files in a page's directory, by id, and what cannot be taken.
pub(super) fn files(
    directory: &OwnedFd,
    place: &Path,
    limits: &SourceLimits,
) -> Result<(Vec<Found>, Vec<LeftOut>)> {
    let mut found = BTreeMap::new();
    let mut out = Vec::new();
    let mut names = FileNames::new();
    visit(directory, place, |name, kind| {
        if matches!(kind, FileType::Directory | FileType::Symlink) {
            return Ok(());
        }
        let Ok(disk) = name else {
            out.push(left_out(name, "its name is no UTF-8 text"));
            return Ok(());
        };
        let Some(stat) = stat(directory, place, disk)?.filter(is_file) else { return Ok(()) };
        let id = match SourceId::new(disk) {
            Ok(id) => id,
            Err(error) => {
                out.push(left_out(name, &error.to_string()));
                return Ok(());
            }
        };
        names.add(disk).map_err(|clash| refused(format!("in {}, {clash}", place.display())))?;
        // One more is the page's text.
        if found.len() > limits.attachments_max {
            let (place, most) = (place.display(), limits.attachments_max);
            return Err(refused(format!("{place} has more than {most} files")));
        }
        found.insert(id.clone(), Found { id, disk: disk.to_owned(), stat });
        Ok(())
    })?;
    Ok((found.into_values().collect(), out))
}

/// Everything in a directory that is not hidden: its name, as text or as bytes, and what it is.
pub(super) fn visit(
    directory: &OwnedFd,
    place: &Path,
    mut see: impl FnMut(Result<&str, &[u8]>, FileType) -> Result<()>,
) -> Result<()> {
    for entry in Dir::read_from(directory).map_err(|error| unread(place, error))? {
        let entry = entry.map_err(|error| unread(place, error))?;
        let name = entry.file_name().to_bytes();
        if !name.starts_with(b".") {
            see(std::str::from_utf8(name).map_err(|_| name), entry.file_type())?;
        }
    }
    Ok(())
}

/// What a name stands for, itself and not where it leads. `None` if it is gone again.
pub(super) fn stat(directory: &OwnedFd, place: &Path, disk: &str) -> Result<Option<Stat>> {
    match rustix::fs::statat(directory, disk, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(unread(&place.join(disk), error)),
    }
}

fn left_out(name: Result<&str, &[u8]>, reason: &str) -> LeftOut {
    let name = name.map_or_else(String::from_utf8_lossy, std::borrow::Cow::Borrowed);
    LeftOut { name: name.into_owned(), reason: reason.to_owned() }
}
