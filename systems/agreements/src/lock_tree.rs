//! Which locks a workspace has, for everybody who locks its pages from outside.

use std::collections::BTreeMap;

use keyward_engine::Store;
use keyward_key::Pattern;
use keyward_schema::LockTree;

use crate::page::{OWNERS, UPLOADS};
use crate::{Error, Result, places};

/// The paths below a page, coarse ones first: those that [`places::lock`] is given.
const PATHS: [&str; 4] = ["policies", "policies:{source}[:{language}]", "issues", "issues:{issue}"];

/// What one of them is called.
const ALIASES: [(&str, &str); 2] = [("policy", "policies"), ("issue", "issues")];

/// The lock tree of the workspace in a store: `page › policies | issues › one of them › language`.
///
/// Whoever opens [`Locks`](keyward_locks::Locks) on the store of a workspace gives them this tree, before
/// those of a schema. Only then do names such as `policy:{source}:{language}` mean the locks that the
/// workspace itself takes.
///
/// ```
/// let tree = keyward_agreements::lock_tree("main")?;
/// assert_eq!(tree.path("policy:terms.pdf:fr")?, ["policies", "terms.pdf", "fr"]);
/// assert!(tree.path("drafts").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lock_tree(store: &str) -> Result<LockTree> {
    let pattern = |text: &str| {
        Pattern::parse(text).map_err(|error| Error::Invalid(format!("{text}: {error}")))
    };
    let aliases = ALIASES.map(|(alias, word)| (alias.to_owned(), word.to_owned()));
    Ok(LockTree {
        name: "agreements".to_owned(),
        store: store.to_owned(),
        root: pattern("{page}")?,
        not_roots: OWNERS.iter().chain([&UPLOADS]).map(|&word| word.to_owned()).collect(),
        paths: PATHS.into_iter().map(pattern).collect::<Result<_>>()?,
        aliases: BTreeMap::from(aliases),
    })
}

/// Whether a store says that a workspace has its pages there, as it does once the workspace was used.
pub async fn is_workspace(store: &Store) -> Result<bool> {
    Ok(store.get(&places::occupied()?).await?.is_some())
}

#[cfg(test)]
mod tests {
    use keyward_key::Key;

    use super::*;
    use crate::PageId;

    #[test]
    fn names_mean_the_locks_that_a_workspace_takes() {
        let tree = lock_tree("main").unwrap();
        for (name, path) in [
            ("policies", vec!["policies"]),
            ("issues", vec!["issues"]),
            ("policy:a%3Ab", vec!["policies", "a:b"]),
            ("policies:a%3Ab", vec!["policies", "a:b"]),
            ("policy:it.html:en", vec!["policies", "it.html", "en"]),
            ("issue:7", vec!["issues", "7"]),
        ] {
            let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
            assert_eq!(tree.path(name).unwrap(), path, "{name}");
            let segments: Vec<&str> = path.iter().map(String::as_str).collect();
            assert_eq!(places::lock(&segments).unwrap().segments(), path);
        }
        for name in ["policy", "issue", "drafts", "policy:a:fr:b", "issue:7:x", "policys:a"] {
            assert!(tree.path(name).is_err(), "{name}");
        }
    }

    #[test]
    fn roots_are_pages_and_nothing_else() {
        let tree = lock_tree("main").unwrap();
        for word in
            ["abc123", "it", "nightly", "user", "upload", "agents", "shared", "job", "system"]
        {
            let key = Key::from_segments([word]).unwrap();
            assert_eq!(tree.has_root(&key), PageId::new(word).is_ok(), "{word}");
        }
        assert!(!tree.has_root(&Key::parse("page:7").unwrap()));
    }
}
