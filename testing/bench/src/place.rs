//! Where the data lies while the benchmark runs.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Result;

/// A fresh directory inside `parent`, removed at the end of the run.
///
/// By default `parent` is the build's target directory, not the system's temporary directory: that
/// one is often in memory, where a sync costs nothing.
pub fn directory(parent: Option<&Path>) -> Result<TempDir> {
    let parent = match parent {
        Some(parent) => {
            fs::create_dir_all(parent)?;
            parent.to_owned()
        }
        None => target_directory()?,
    };
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(parent)?)
}

/// The program lies in `target/release`.
fn target_directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2);
    Ok(target
        .ok_or("the program has no target directory around it; say where with --dir")?
        .to_owned())
}

/// One line for the head of the report: the machine and the place of the data.
pub fn describe(directory: &Path) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let file_system =
        fs::read_to_string("/proc/mounts").ok().and_then(|mounts| file_system(&mounts, directory));
    let place = directory.display();
    match file_system.as_deref() {
        Some("tmpfs" | "ramfs") => format!(
            "{cpus} CPUs; data in {place}, which is in memory: durable commits say nothing there"
        ),
        Some(name) => format!("{cpus} CPUs; data in {place} ({name})"),
        None => format!("{cpus} CPUs; data in {place}"),
    }
}

/// The kind of file system a path lies on, by the table of mounts.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((Path::new(fields.next()?), fields.next()?))
        })
        .filter(|(mounted_at, _)| path.starts_with(mounted_at))
        // A later mount on the same place hides the earlier one.
        .max_by_key(|(mounted_at, _)| mounted_at.components().count())
        .map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_decides_the_file_system() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /mem tmpfs rw 0 0\n/dev/b /mem/disk xfs rw 0 0\n";
        let kind = |path: &str| file_system(mounts, Path::new(path));
        assert_eq!(kind("/home/x").as_deref(), Some("ext4"));
        assert_eq!(kind("/mem/x").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/mem/disk/x").as_deref(), Some("xfs"));
        assert_eq!(kind("/memory").as_deref(), Some("ext4"));
    }
}
