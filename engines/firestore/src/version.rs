//! Versions, and the marks of commits.
//!
//! The version of an entry is the time at which Firestore last changed its document. Firestore gives all
//! documents of a commit one time, and later commits later ones, so it never comes back, also after a delete. Only a write that
//! changes nothing leaves it as it is; the mark makes every write a change.
//!
//! A commit that expects a version must not be applied after the entry has expired, and Firestore's preconditions know
//! nothing of that. So the version says when the first of the commit's entries ends, if any does: until
//! then it is certain without a read that the entry has not expired. It is that of the commit and not of the entry,
//! so that all entries of a commit have one version.

use std::fmt;

use jiff::Timestamp;
use keyward_engine::{Commit, Error, ErrorKind, Result, Version, Write};

/// When a document was last changed, and the first end of the commit that changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub updated: Timestamp,
    pub first_end: Option<Timestamp>,
}

impl Stamp {
    pub fn version(self) -> Version {
        let updated = self.updated.as_microsecond();
        match self.first_end {
            None => Version::parse(&updated.to_string()),
            Some(end) => Version::parse(&format!("{updated}-{}", end.as_millisecond())),
        }
    }

    /// What a version says; `None` if it is none of this engine's.
    pub fn parse(version: &Version) -> Option<Self> {
        let text = version.to_string();
        let (updated, first_end) = match text.split_once('-') {
            None => (text.as_str(), None),
            Some((updated, end)) => (updated, Some(end)),
        };
        let updated = Timestamp::from_microsecond(updated.parse().ok()?).ok()?;
        let end = |end: &str| Timestamp::from_millisecond(end.parse().ok()?).ok();
        let stamp = Self {
            updated,
            first_end: match first_end {
                None => None,
                Some(text) => Some(end(text)?),
            },
        };
        (stamp.version() == *version).then_some(stamp)
    }
}

/// What tells a commit from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    random: u128,
    pub first_end: Option<Timestamp>,
}

/// Ends from then on never come: beyond them the calendar has no room for rounding.
const NEVER: Timestamp = Timestamp::constant(253_370_764_800, 0);

impl Mark {
    /// The mark of a commit that is made now.
    ///
    /// Its bits are the operating system's: a generator of the process's own would repeat itself where a machine is
    /// resumed twice from one snapshot, and the commit of one would pass for that of the other.
    pub fn new(commit: &Commit, now: Timestamp) -> Result<Self> {
        let ends = commit.writes.iter().filter_map(|write| match write {
            Write::Put(_, put) => put.expiry.map(|expiry| expiry.moment(now)),
            Write::Delete(_) | Write::Add(..) => None,
        });
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|error| {
            let message = format!("the operating system gives no random bits: {error}");
            Error::new(ErrorKind::Internal, message)
        })?;
        let first_end = ends.min().filter(|end| *end < NEVER);
        Ok(Self { random: u128::from_be_bytes(bits), first_end })
    }

    /// A mark of the text that `Display` gave. The end is rounded down to milliseconds, as versions have it.
    pub fn parse(text: &str) -> Option<Self> {
        let (random, first_end) = match text.split_once('-') {
            None => (text, None),
            Some((random, end)) => {
                (random, Some(Timestamp::from_millisecond(end.parse().ok()?).ok()?))
            }
        };
        Some(Self { random: u128::from_str_radix(random, 16).ok()?, first_end })
    }

    /// Whether both are that of one commit.
    pub fn is_same(self, other: Self) -> bool {
        self.random == other.random
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.random)?;
        match self.first_end {
            None => Ok(()),
            Some(end) => write!(f, "-{}", end.as_millisecond()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use keyward_engine::{Expiry, Json, Put};
    use keyward_key::Key;

    use super::*;

    #[test]
    fn versions_say_when_the_first_entry_of_their_commit_ends() {
        let now: Timestamp = "2026-01-01T00:00:00.25Z".parse().unwrap();
        let put = |key: &str, ttl: Option<u64>| {
            let put = Put::new(Json::from_integer(1));
            let put = match ttl {
                Some(ttl) => put.expiring(Expiry::After(Duration::from_secs(ttl))),
                None => put,
            };
            (Key::parse(key).unwrap(), put)
        };
        let commit = |puts: &[(Key, Put)]| {
            puts.iter()
                .fold(Commit::new(), |commit, (key, put)| commit.put(key.clone(), put.clone()))
        };
        let puts = [put("a", Some(9)), put("b", Some(3)), put("c", None)];
        let mark = Mark::new(&commit(&puts), now).unwrap();
        assert_eq!(mark.first_end, Some(now + Duration::from_secs(3)));
        let read = Mark::parse(&mark.to_string()).unwrap();
        assert_eq!(read, mark);
        let stamp = Stamp { updated: now, first_end: read.first_end };
        assert_eq!(stamp.version().to_string(), "1767225600250000-1767225603250");
        assert_eq!(Stamp::parse(&stamp.version()), Some(stamp));

        let forever = Mark::new(&commit(&[put("c", None)]), now).unwrap();
        assert_eq!(Mark::parse(&forever.to_string()), Some(forever));
        assert!(!forever.is_same(mark));
        assert_eq!(
            Stamp { updated: now, first_end: None }.version().as_number(),
            Some(1767225600250000)
        );
    }

    #[test]
    fn marks_differ_where_generators_repeat_themselves() {
        // As in two processes that go on from one snapshot.
        let mark = || {
            fastrand::seed(7);
            Mark::new(&Commit::new(), Timestamp::UNIX_EPOCH).unwrap()
        };
        assert!(!mark().is_same(mark()));
    }

    #[test]
    fn versions_of_others_are_told() {
        for text in ["", "x", "1-", "1-x", "01", "1-01", "1-a9f2", "18446744073709551615", "1-2-3"]
        {
            assert_eq!(Stamp::parse(&Version::parse(text)), None, "{text}");
        }
    }
}
