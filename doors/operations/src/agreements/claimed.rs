//! What of a store belongs to a workspace: nobody writes it but what goes through the workspace.

use keyward::Data;
use keyward::rules::WorkspaceKeys;
use keyward::schema::Space;

use super::{store_of, unkept};
use crate::config::ServicesConfig;
use crate::problem::Result;

/// What the workspace of a store keeps there, if there is one. Refused if there are two, or something else
/// whose keys could be taken for a page's.
pub fn claimed<'s>(
    store: &str,
    spaces: impl Iterator<Item = &'s Space>,
    data: &Data,
    config: &ServicesConfig,
) -> Result<Option<WorkspaceKeys>> {
    let mut found: Option<&str> = None;
    for one in &config.agreements {
        if store_of(one, data)? != store {
            continue;
        }
        if let Some(other) = found {
            let reason = format!("{other} keeps its pages in the same store");
            return Err(unkept(&one.name, &reason));
        }
        found = Some(&one.name);
    }
    let Some(workspace) = found else { return Ok(None) };
    for space in spaces {
        if WorkspaceKeys::could_cover(space.key.as_str()) {
            let reason = format!(
                "the space {} has keys like those of pages; give the workspace a store of its own",
                space.name
            );
            return Err(unkept(workspace, &reason));
        }
    }
    Ok(Some(WorkspaceKeys::new(workspace)))
}

#[cfg(test)]
mod tests {
    use keyward::Key;

    use super::*;

    #[test]
    fn keys_of_pages_and_uploads_are_the_workspaces_and_others_are_not() {
        let claimed = WorkspaceKeys::new("w");
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
            assert!(WorkspaceKeys::could_cover(pattern), "{pattern}");
        }
        for pattern in ["agents:{user}:{namespace}:{key}", "user:{user}:notes:{n}", "{x}:notes:{n}"]
        {
            assert!(!WorkspaceKeys::could_cover(pattern), "{pattern}");
        }
    }
}
