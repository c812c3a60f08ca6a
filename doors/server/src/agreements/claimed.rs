//! What of a store belongs to a workspace: nobody writes it but what goes through the workspace.

use keyward::agreements::PageId;
use keyward::schema::Space;
use keyward::{Data, Key};

use super::{store_of, unkept};
use crate::config::Config;
use crate::problem::Result;

/// What is made of a page lies below its id, under one of these.
const OF_PAGES: [&str; 3] = ["policy", "issue", "analysis"];
/// Where uploads lie.
const UPLOADS: &str = "upload";

/// The keys of a workspace.
#[derive(Debug)]
pub(crate) struct Claimed {
    workspace: String,
}

impl Claimed {
    /// The workspace's name.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Whether a key is one of the workspace's: of an upload, or of what was made of a page.
    pub fn covers(&self, key: &Key) -> bool {
        let mut segments = key.segments();
        let first = segments.next().unwrap_or_default();
        let is_made = segments.next().is_some_and(|kind| OF_PAGES.contains(&&*kind));
        first == UPLOADS || is_made && PageId::new(&first).is_ok()
    }

    /// Whether a key is a page's: the catalog of its locks, which can be asked for like others.
    pub fn is_page(&self, key: &Key) -> bool {
        key.segments().nth(1).is_none() && PageId::new(&key.first()).is_ok()
    }
}

/// What the workspace of a store keeps there, if there is one. Refused if there are two, or something else
/// whose keys could be taken for a page's.
pub(crate) fn claimed<'s>(
    store: &str,
    spaces: impl Iterator<Item = &'s Space>,
    data: &Data,
    config: &Config,
) -> Result<Option<Claimed>> {
    let mut found: Option<Claimed> = None;
    for one in &config.agreements {
        if store_of(one, data)? != store {
            continue;
        }
        if let Some(other) = &found {
            let reason = format!("{} keeps its pages in the same store", other.workspace());
            return Err(unkept(&one.name, &reason));
        }
        found = Some(Claimed { workspace: one.name.clone() });
    }
    let Some(claimed) = &found else { return Ok(None) };
    for space in spaces {
        if could_be_of_a_page(space.key.as_str()) {
            let reason = format!(
                "the space {} has keys like those of pages; give the workspace a store of its own",
                space.name
            );
            return Err(unkept(claimed.workspace(), &reason));
        }
    }
    Ok(found)
}

/// Whether keys of a pattern could be taken for those of a page.
fn could_be_of_a_page(pattern: &str) -> bool {
    let mut segments = pattern.split(':');
    let first = segments.next().unwrap_or_default();
    let second = segments.next();
    let is_variable = |segment: &str| segment.contains(['{', '[']);
    let first_is_page = is_variable(first) || first == UPLOADS || PageId::new(first).is_ok();
    first_is_page
        && second
            .is_none_or(|kind| OF_PAGES.contains(&kind) || is_variable(kind) && is_variable(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_pages_and_uploads_are_the_workspaces_and_others_are_not() {
        let claimed = Claimed { workspace: "w".to_owned() };
        for key in ["a:policy:s", "a:policy:s:fr", "a:issue:i", "a:analysis", "upload:a:latest"] {
            assert!(claimed.covers(&Key::parse(key).unwrap()), "{key}");
        }
        assert!(claimed.is_page(&Key::parse("a").unwrap()));
        for key in ["job", "a:policy", "system:x"] {
            assert!(!claimed.is_page(&Key::parse(key).unwrap()), "{key}");
        }
        for key in
            ["a", "system:x", "job:7", "queue:q:m", "a:other", "agents:ada:n:k", "metadata:x"]
        {
            assert!(!claimed.covers(&Key::parse(key).unwrap()), "{key}");
        }
    }

    #[test]
    fn spaces_whose_keys_look_like_pages_are_known() {
        for pattern in ["{page}", "{page}:{part}", "notes:policy:{n}", "{x}:issue:{i}", "upload"] {
            assert!(could_be_of_a_page(pattern), "{pattern}");
        }
        for pattern in ["agents:{user}:{namespace}:{key}", "user:{user}:notes:{n}", "{x}:notes:{n}"]
        {
            assert!(!could_be_of_a_page(pattern), "{pattern}");
        }
    }
}
