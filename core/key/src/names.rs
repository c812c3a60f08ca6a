use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use unicode_normalization::UnicodeNormalization;

/// Names taken from files, in Unicode normal form C, so that a name typed on one system and a file
/// listed on another are the same segment.
///
/// ```
/// use keyward_key::FileNames;
///
/// let mut names = FileNames::new();
/// assert_eq!(names.add("re\u{301}sume\u{301}.md")?, "résumé.md");
/// let clash = names.add("résumé.md").unwrap_err();
/// assert_eq!(clash.name, "résumé.md");
/// # Ok::<(), keyward_key::NameCollision>(())
/// ```
#[derive(Debug, Default, Clone)]
pub struct FileNames {
    by_name: BTreeMap<String, String>,
}

/// Two files whose names become one in normal form C.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the files {first:?} and {second:?} have the same name {name:?} in Unicode normal form C; \
     rename one of them"
)]
pub struct NameCollision {
    /// The name both become.
    pub name: String,
    /// The file that was added first, as it was given.
    pub first: String,
    /// The file that was added second, as it was given.
    pub second: String,
}

impl FileNames {
    /// No names yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file's name and returns it in normal form C, unless another file already has it.
    pub fn add(&mut self, file: &str) -> Result<String, NameCollision> {
        let name: String = file.nfc().collect();
        match self.by_name.entry(name.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(file.to_owned());
                Ok(name)
            }
            Entry::Occupied(taken) => {
                Err(NameCollision { name, first: taken.get().clone(), second: file.to_owned() })
            }
        }
    }
}
