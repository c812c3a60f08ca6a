//! Which files of a tree are taken, and what names are refused.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::{Error, Options, Result};

/// The longest path that is taken.
const PATH_BYTES_MAX: usize = 4_096;

/// The folder and globs of a registry.
#[derive(Debug)]
pub(super) struct Choice {
    folder: String,
    include: GlobSet,
    exclude: GlobSet,
}

impl Choice {
    pub(super) fn new(options: &Options) -> Result<Self> {
        let folder = options.folder.trim_matches('/');
        let is_odd = |part: &str| matches!(part, "" | "." | "..");
        if !folder.is_empty() && folder.split('/').any(is_odd) {
            return Err(Error::Options(format!(
                "the folder {:?} is no path inside a repository; write it like docs/policies",
                options.folder
            )));
        }
        Ok(Self {
            folder: folder.to_owned(),
            include: globs(&options.include)?,
            exclude: globs(&options.exclude)?,
        })
    }

    /// The folder, without slashes at its ends; empty is the root.
    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    /// Whether a path (from the repository's root) that is below the folder is chosen by the globs.
    pub(super) fn takes(&self, path: &[u8]) -> bool {
        let below = match self.folder.len() {
            0 => path,
            length => path.get(length + 1..).unwrap_or_default(),
        };
        let below = Path::new(OsStr::from_bytes(below));
        self.include.is_match(below) && !self.exclude.is_match(below)
    }
}

fn globs(globs: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let built = GlobBuilder::new(glob).literal_separator(true).case_insensitive(true).build();
        set.add(built.map_err(|error| Error::Options(format!("{glob:?} is no glob: {error}")))?);
    }
    set.build().map_err(|error| Error::Options(format!("the globs cannot be used: {error}")))
}

/// Why an entry of a tree with this name is not looked at, if so: git itself would not write it into a
/// working tree, or another system would take it for something else.
pub(super) fn refused(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("an entry of its folder has no name"),
        b"." | b".." => Some("`.` and `..` are no names"),
        _ if name.eq_ignore_ascii_case(b".git") => Some("`.git` is git's own"),
        _ if name.contains(&b'/') => Some("a name with a slash in it would lead elsewhere"),
        _ if name.contains(&b'\\') => Some("a name with a backslash in it would lead elsewhere"),
        _ => None,
    }
}

/// Why a path is not taken, if so.
pub(super) fn refused_path(path: &[u8]) -> Option<&'static str> {
    let is_text = std::str::from_utf8(path).is_ok();
    too_long(path).or((!is_text).then_some("the path is not UTF-8; rename it"))
}

/// Why neither a path nor anything below it is taken, if so.
pub(super) fn too_long(path: &[u8]) -> Option<&'static str> {
    let is_long = path.len() > PATH_BYTES_MAX;
    is_long.then_some("the path is longer than 4096 bytes; shorten it")
}
