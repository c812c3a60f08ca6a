//! Paths below `/memories`.

use std::fmt;

use super::{Done, Refused};

const ROOT: &str = "/memories";

/// A path of a file or a directory, `/memories` or below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePath {
    /// What follows `/memories/`; empty for `/memories` itself.
    key: String,
}

impl FilePath {
    /// Reads a path. A slash at its end means nothing.
    pub fn parse(text: &str) -> Done<Self> {
        let refused = |why: &str| {
            Err(Refused::Told(format!(
                "Error: {why}: paths are {ROOT} or below it, such as {ROOT}/notes.md"
            )))
        };
        let Some(rest) = text.strip_prefix(ROOT) else {
            return refused("The path does not start with /memories");
        };
        if !rest.is_empty() && !rest.starts_with('/') {
            return refused("The path does not start with /memories");
        }
        let key = rest.trim_start_matches('/').trim_end_matches('/');
        let odd = |segment: &str| matches!(segment, "" | "." | "..");
        if !key.is_empty() && key.split('/').any(odd) {
            return refused("The path has an empty part, . or ..");
        }
        if key.chars().any(char::is_control) {
            return refused("The path has a control character");
        }
        Ok(Self { key: key.to_owned() })
    }

    /// The key of the file's entry.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn is_root(&self) -> bool {
        self.key.is_empty()
    }

    /// How the keys start of what lies in this directory.
    pub fn below(&self) -> String {
        if self.is_root() { String::new() } else { format!("{}/", self.key) }
    }

    /// Whether `other` is this, or lies in it.
    pub fn contains(&self, other: &Self) -> bool {
        self == other || other.key.starts_with(&self.below())
    }

    /// The directories that this lies in, without `/memories`.
    pub fn directories(&self) -> impl Iterator<Item = Self> + '_ {
        self.key.match_indices('/').map(|(at, _)| Self { key: self.key[..at].to_owned() })
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ROOT)?;
        if self.is_root() { Ok(()) } else { write!(f, "/{}", self.key) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<String> {
        FilePath::parse(text).ok().map(|path| path.to_string())
    }

    #[test]
    fn paths_are_memories_and_what_lies_below() {
        assert_eq!(parsed("/memories").as_deref(), Some("/memories"));
        assert_eq!(parsed("/memories/").as_deref(), Some("/memories"));
        assert_eq!(parsed("/memories/a/b.md").as_deref(), Some("/memories/a/b.md"));
        assert_eq!(parsed("/memories/a/").as_deref(), Some("/memories/a"));
    }

    #[test]
    fn nothing_leads_out_of_memories() {
        for path in [
            "",
            "/",
            "memories/a",
            "/memoriesx",
            "/memories/../etc/passwd",
            "/memories/a/../b",
            "/memories/./a",
            "/memories/a//b",
            "/etc/passwd",
            "/memories/a\nb",
            "/memories/\0",
        ] {
            assert_eq!(parsed(path), None, "{path:?}");
        }
    }

    #[test]
    fn a_directory_contains_itself_and_what_is_below_but_no_namesake() {
        let Ok(a) = FilePath::parse("/memories/a") else { panic!() };
        for (other, contained) in
            [("/memories/a", true), ("/memories/a/b", true), ("/memories/ab", false)]
        {
            let Ok(other) = FilePath::parse(other) else { panic!() };
            assert_eq!(a.contains(&other), contained, "{other}");
        }
    }
}
