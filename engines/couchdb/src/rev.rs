//! Revisions of documents, and the versions of entries that are made of them.

use std::fmt;

use jiff::Timestamp;
use keyward_engine::Version;

/// A document's `_rev`: how many edits it took, and a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rev {
    text: String,
    generation: u64,
}

impl Rev {
    /// Reads a `_rev` in the one form that CouchDB gives out; it also takes others for the same.
    pub fn parse(text: &str) -> Option<Self> {
        let (generation, hash) = text.split_once('-')?;
        let number = generation.parse().ok()?;
        let is_hash = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_form = format!("{number}") == generation && number > 0;
        let is_rev = is_form && hash.len() == 32 && hash.bytes().all(is_hash);
        is_rev.then(|| Self { text: text.to_owned(), generation: number })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How many edits led to it.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

impl fmt::Display for Rev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What the version of an entry says: `REV`, or `REV.EXPIRES` for an entry that expires.
///
/// It has all that a commit with a check needs to know: which revision to replace, and whether the entry has expired.
/// CouchDB computes revisions from the document and those before it, and each write has a mark of its own, so none
/// comes twice; also not after the document was deleted, or purged with all its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub rev: Rev,
    pub expires: Option<Timestamp>,
}

impl Held {
    /// Reads a version; `None` if no entry of this engine ever has it.
    pub fn parse(version: &Version) -> Option<Self> {
        let text = version.to_string();
        let (rev, expires) = match text.split_once('.') {
            None => (text.as_str(), None),
            Some((rev, end)) => {
                let millisecond = end.parse::<i64>().ok().filter(|ms| ms.to_string() == end)?;
                (rev, Some(Timestamp::from_millisecond(millisecond).ok()?))
            }
        };
        Some(Self { rev: Rev::parse(rev)?, expires })
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    pub fn version(&self) -> Version {
        match self.expires {
            None => Version::parse(self.rev.as_str()),
            Some(at) => Version::parse(&format!("{}.{}", self.rev, at.as_millisecond())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn versions_come_back() {
        for text in
            [format!("1-{HASH}"), format!("812-{HASH}.1767225600001"), format!("3-{HASH}.-5")]
        {
            let held = Held::parse(&Version::parse(&text)).unwrap();
            assert_eq!(held.version().to_string(), text);
        }
        let held = Held::parse(&Version::parse(&format!("12-{HASH}.1500"))).unwrap();
        assert_eq!((held.rev.generation(), held.rev.as_str()), (12, &*format!("12-{HASH}")));
        assert_eq!(held.expires, Some(Timestamp::from_millisecond(1_500).unwrap()));
        assert!(!held.is_expired(Timestamp::from_millisecond(1_499).unwrap()));
        assert!(held.is_expired(Timestamp::from_millisecond(1_500).unwrap()));
    }

    #[test]
    fn what_is_no_version_of_an_entry_is_none() {
        for text in [
            String::new(),
            "17".to_owned(),
            "foreign".to_owned(),
            "1-".to_owned(),
            format!("01-{HASH}"),
            format!("0-{HASH}"),
            format!("-{HASH}"),
            format!("+1-{HASH}"),
            format!("1-{HASH}0"),
            format!("1-{}", HASH.to_uppercase()),
            format!("1-{HASH}."),
            format!("1-{HASH}.01"),
            format!("1-{HASH}.+1"),
            format!("1-{HASH}.9223372036854775807"),
            format!("1-{HASH}.1.2"),
        ] {
            assert_eq!(Held::parse(&Version::parse(&text)), None, "{text}");
        }
    }
}
