//! What lies in a directory.

use std::collections::BTreeMap;

use super::path::FilePath;
use super::{Done, Refused, text_of};
use crate::namespace::Namespace;

/// How many levels are shown.
const DEPTH: usize = 2;
/// How many files are read at a time: each may be as large as a value may be.
const PAGE: usize = 64;
/// How many files and directories are shown.
const SHOWN_MAX: usize = 1_000;

/// A directory: the sizes of what lies in it, two levels deep. Names that start with a dot and
/// `node_modules` are left out, as models expect.
pub(super) async fn shown(files: &Namespace, path: &FilePath) -> Done {
    let below = path.below();
    let (mut whole, mut any, mut more) = (0, path.is_root(), 0_usize);
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = files.get_all(&below, after, PAGE).await?;
        for entry in &page.entries {
            any = true;
            let name = &entry.key[below.len()..];
            if name.split('/').any(|part| part.starts_with('.') || part == "node_modules") {
                continue;
            }
            let size = text_of(&entry.value).len();
            whole += size;
            for name in ancestry(name) {
                let has_room = shown.len() < SHOWN_MAX;
                match shown.get_mut(name) {
                    Some(sum) => *sum += size,
                    None if has_room => {
                        shown.insert(name.to_owned(), size);
                    }
                    None => more += 1,
                }
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if !any {
        let message = format!("The path {path} does not exist. Please provide a valid path.");
        return Err(Refused::Told(message));
    }
    let mut text = format!(
        "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items \
         and node_modules:\n{}\t{path}",
        human(whole)
    );
    for (name, size) in &shown {
        text.push_str(&format!("\n{}\t{path}/{name}", human(*size)));
    }
    if more > 0 {
        text.push_str(&format!("\n({more} more are not shown; view a directory in it)"));
    }
    Ok(text)
}

/// The names of a file and of the directories it lies in, as far as they are shown: directories end
/// with a slash.
fn ancestry(name: &str) -> impl Iterator<Item = &str> {
    let directories = name.match_indices('/').take(DEPTH).map(|(at, _)| &name[..=at]);
    let file = (name.matches('/').count() < DEPTH).then_some(name);
    directories.chain(file)
}

/// A size as people write it.
fn human(bytes: usize) -> String {
    let mut size = bytes as f64;
    let mut unit = "B";
    for larger in ["K", "M", "G"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    if size.fract() == 0.0 { format!("{size}{unit}") } else { format!("{size:.1}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 1, 1_023, 1_024, 1_536, 2_058, 1 << 20, 1_258_291];
        let shown = sizes.map(human);
        assert_eq!(shown, ["0B", "1B", "1023B", "1K", "1.5K", "2.0K", "1M", "1.2M"]);
    }

    #[test]
    fn two_levels_are_shown() {
        let names = |name| ancestry(name).collect::<Vec<_>>();
        assert_eq!(names("a.md"), ["a.md"]);
        assert_eq!(names("a/b.md"), ["a/", "a/b.md"]);
        assert_eq!(names("a/b/c.md"), ["a/", "a/b/"]);
    }
}
