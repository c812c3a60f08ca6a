//! What the paths of a lock tree are called.

use keyward_key::Key;

use crate::LockTree;
use crate::nearest::{listed, nearest};
use crate::shape::Shape;

/// A name or path that a lock tree does not have, with what it has instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be locked: {reason}")]
pub struct LockNameError {
    /// What was asked for.
    pub name: String,
    /// Why not, and what to write.
    pub reason: String,
}

impl LockTree {
    /// Whether a key is a root of this tree.
    pub fn has_root(&self, key: &Key) -> bool {
        self.root.matches(key) && !self.not_roots.iter().any(|word| *word == key.first())
    }

    /// The path that a name means: colon text, in which an alias stands for the word it is declared
    /// for. Refused if the tree has no such path.
    ///
    /// ```
    /// use keyward_schema::Schema;
    ///
    /// let schema = Schema::parse(
    ///     r#"
    ///     [stores.app]
    ///     [locks.page]
    ///     root = "{page}"
    ///     paths = ["policies", "policies:{source}[:{language}]"]
    ///     aliases = { policy = "policies" }
    ///     "#,
    ///     "schema.toml",
    /// )?;
    /// let tree = &schema.locks[0];
    /// let french = tree.path("policy:123:fr")?;
    /// assert_eq!(french, ["policies", "123", "fr"]);
    /// assert_eq!(tree.name(&french), "policy:123:fr");
    /// assert_eq!(tree.name(&tree.path("policies")?), "policies");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn path(&self, name: &str) -> Result<Vec<String>, LockNameError> {
        if name.is_empty() {
            return Ok(Vec::new());
        }
        let refused = |reason: String| Err(LockNameError { name: name.to_owned(), reason });
        let key = match Key::parse(name) {
            Ok(key) => key,
            Err(error) => return refused(error.message().to_owned()),
        };
        let mut path: Vec<String> = key.segments().map(|segment| segment.into_owned()).collect();
        let word = path.first().and_then(|first| self.aliases.get(first)).cloned();
        match (word, &mut path[..]) {
            (Some(word), [alias]) => {
                return refused(format!(
                    "{alias} is followed by what lies below {word}; write {word} for all of it"
                ));
            }
            (Some(word), [first, ..]) => *first = word,
            _ => {}
        }
        self.check(&path)?;
        Ok(path)
    }

    /// What a path is called: what [`LockTree::path`] reads as the same path.
    pub fn name(&self, path: &[String]) -> String {
        let mut named = path.to_vec();
        if let [first, _, ..] = &mut named[..] {
            let alias = self.aliases.iter().find(|(_, word)| *word == first);
            if let Some((alias, _)) = alias {
                first.clone_from(alias);
            }
        }
        Key::from_segments(named).map(|key| key.to_string()).unwrap_or_default()
    }

    /// Refuses a path that the tree does not have. The root itself, without segments, it always has.
    pub fn check(&self, path: &[String]) -> Result<(), LockNameError> {
        if path.is_empty() {
            return Ok(());
        }
        let known = Key::from_segments(path)
            .is_ok_and(|key| self.paths.iter().any(|pattern| pattern.matches(&key)));
        if known {
            return Ok(());
        }
        let tree = &self.name;
        let words: Vec<String> = self.paths.iter().filter_map(first_word).collect();
        let words =
            || words.iter().map(String::as_str).chain(self.aliases.keys().map(String::as_str));
        let near = nearest(&path[0], words()).filter(|word| *word != path[0]);
        let reason = match near {
            Some(word) => format!("the lock tree {tree} has no {}; did you mean {word}?", path[0]),
            None => {
                let paths = listed(self.paths.iter().map(|pattern| pattern.as_str()));
                format!("the lock tree {tree} has {paths}")
            }
        };
        Err(LockNameError { name: self.name(path), reason })
    }
}

fn first_word(pattern: &keyward_key::Pattern) -> Option<String> {
    Shape::of(pattern).first_literal().map(str::to_owned)
}
