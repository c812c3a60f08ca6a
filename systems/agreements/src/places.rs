//! Which key holds what, and which lock is for what.

use keyward_key::{Key, KeyRange, Prefix};
use keyward_locks::LockPath;

use crate::{Error, PageId, Result, SourceId};

/// What is made of a page lies below its key, under one of these.
pub(crate) const OF_PAGES: [&str; 3] = ["policy", "issue", "analysis"];

/// `system:agreements`: where the pages of a store come from.
pub(crate) fn occupied() -> Result<Key> {
    Key::from_segments(["system", "agreements"]).map_err(|error| Error::Invalid(error.to_string()))
}

/// `{page}`: the catalog of the page's locks.
pub(crate) fn page(page: &PageId) -> Result<Key> {
    Key::from_segments([page.as_str()]).map_err(|error| Error::Invalid(error.to_string()))
}

/// `{page}:policy:{source}[:{language}]`.
pub(crate) fn policy(of: &PageId, source: &SourceId, language: Option<&str>) -> Result<Key> {
    let key = page(of)?.child("policy").child(source.as_str());
    Ok(language.map_or_else(|| key.clone(), |language| key.child(language)))
}

/// All documents of a page.
pub(crate) fn policies(page: &PageId) -> KeyRange {
    KeyRange::under(&Prefix::from_segments([page.as_str(), "policy"]))
}

/// `{page}:issue:{issue}`.
pub(crate) fn issue(of: &PageId, issue: &str) -> Result<Key> {
    Ok(page(of)?.child("issue").child(issue))
}

/// All issues of a page.
pub(crate) fn issues(page: &PageId) -> KeyRange {
    KeyRange::under(&Prefix::from_segments([page.as_str(), "issue"]))
}

/// `{page}:analysis`: what the last analysis came to.
pub(crate) fn analysis(of: &PageId) -> Result<Key> {
    Ok(page(of)?.child("analysis"))
}

/// The locks of a page, from coarse to fine: `page › policies | issues › one of them › language`.
pub(crate) fn lock(segments: &[&str]) -> Result<LockPath> {
    Ok(LockPath::new(segments.iter().copied())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_document() {
        let (page, source) = (PageId::new("abc123").unwrap(), SourceId::new("att789").unwrap());
        assert_eq!(policy(&page, &source, None).unwrap().to_string(), "abc123:policy:att789");
        assert_eq!(
            policy(&page, &source, Some("en")).unwrap().to_string(),
            "abc123:policy:att789:en"
        );
        assert_eq!(issue(&page, "f47ac10b").unwrap().to_string(), "abc123:issue:f47ac10b");
        let odd = SourceId::new("a:b").unwrap();
        assert_eq!(policy(&page, &odd, None).unwrap().to_string(), "abc123:policy:a%3Ab");
    }
}
