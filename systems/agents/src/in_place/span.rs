//! Which documents a range of keys can hold.

use keyward_engine::{Error, ErrorKind, Order, Result, Scan};
use keyward_key::{Key, KeyRange, Prefix};

use super::place::Part;

/// Which documents a range of keys can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Span {
    /// None.
    Nothing,
    /// Those of a user, in one namespace or in all.
    Of { part: Part, user: String, namespace: Option<String> },
}

impl Span {
    pub fn of(range: &KeyRange) -> Result<Self> {
        let meets = |part: &Part| meets(range, &KeyRange::under(&part.prefix()));
        match [Part::Entry, Part::Access].into_iter().filter(meets).collect::<Vec<_>>()[..] {
            [] => Ok(Self::Nothing),
            [part] => Self::within(part, range).ok_or_else(unlisted),
            _ => Err(unlisted()),
        }
    }

    fn within(part: Part, range: &KeyRange) -> Option<Self> {
        let (depth, all) = (part.prefix().depth(), KeyRange::under(&part.prefix()));
        let start = range.start().max(all.start()).to_vec();
        let segments: Vec<&[u8]> = start.split(|byte| *byte == SEPARATOR).collect();
        // What lies below the first so many segments of the start, if the range ends there.
        let below = |depth: usize| -> Option<Prefix> {
            let encoded = segments.get(..depth)?.join(&SEPARATOR);
            let key = Key::from_bytes(encoded).ok()?;
            let subtree = KeyRange::subtree(&key);
            let ends = range.end().is_some_and(|end| subtree.end().is_some_and(|it| end <= it));
            ends.then(|| Prefix::from(&key))
        };
        let last = |prefix: Prefix| prefix.segments().last().map(|it| it.into_owned());
        let user = below(depth + 1).and_then(last).filter(|user| !user.is_empty())?;
        let namespace = below(depth + 2).and_then(last).filter(|it| !it.is_empty());
        Some(Self::Of { part, user, namespace })
    }
}

/// What separates the segments of a key.
const SEPARATOR: u8 = 0;

fn meets(one: &KeyRange, other: &KeyRange) -> bool {
    let starts_before_end = |a: &KeyRange, b: &KeyRange| b.end().is_none_or(|end| a.start() < end);
    !one.is_empty() && starts_before_end(one, other) && starts_before_end(other, one)
}

fn unlisted() -> Error {
    let message = "layout=document lists the entries of one user at a time: the database's index is by userId";
    Error::new(ErrorKind::Unsupported, message)
        .advise("Name a user; for all users, use the database's own export.")
}

/// Whether a scan goes on where another ended: after a cursor, or after the key or prefix that a listing told of last.
pub(super) fn is_continued(scan: &Scan, part: Part) -> bool {
    let start = scan.range.start();
    let separators = start.iter().filter(|byte| **byte == SEPARATOR).count();
    // A whole key and what comes right after it, or what comes after everything below a prefix: no key starts so.
    let narrowed =
        separators > part.prefix().depth() + 2 || Key::from_bytes(start.to_vec()).is_err();
    scan.after.is_some() || (scan.order == Order::Ascending && !start.is_empty() && narrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(user: &str, namespace: Option<&str>) -> Span {
        let namespace = namespace.map(str::to_owned);
        Span::Of { part: Part::Entry, user: user.to_owned(), namespace }
    }

    #[test]
    fn a_range_names_its_user_and_namespace() {
        let prefix = |segments: &[&str]| Prefix::from_segments(segments);
        let (ada, notes) = (prefix(&["agents", "ada"]), prefix(&["agents", "ada", "n:1"]));
        let key = notes.child("k\u{0}\u{1}").to_key().unwrap();
        let under = KeyRange::under(&ada);
        for (range, span) in [
            (under.clone(), of("ada", None)),
            (KeyRange::subtree(&ada.to_key().unwrap()), of("ada", None)),
            (under.after_prefix(&notes), of("ada", None)),
            (under.after(&key), of("ada", None)),
            (KeyRange::segment_prefix(&ada, "n"), of("ada", None)),
            (KeyRange::under(&notes), of("ada", Some("n:1"))),
            (KeyRange::subtree(&notes.to_key().unwrap()), of("ada", Some("n:1"))),
            (KeyRange::under(&notes).after(&key), of("ada", Some("n:1"))),
            (KeyRange::segment_prefix(&notes, "k"), of("ada", Some("n:1"))),
            (KeyRange::exactly(&key), of("ada", Some("n:1"))),
            (KeyRange::under(&prefix(&["system", "agent-log"])), Span::Nothing),
            (KeyRange::under(&prefix(&["user", "ada"])), Span::Nothing),
        ] {
            assert_eq!(Span::of(&range).unwrap(), span, "{range:?}");
        }
        let rows = KeyRange::under(&prefix(&["system", "access", "agents", "ada"]));
        let of_rows = Span::Of { part: Part::Access, user: "ada".to_owned(), namespace: None };
        assert_eq!(Span::of(&rows).unwrap(), of_rows);
        for range in [
            KeyRange::all(),
            KeyRange::under(&prefix(&["agents"])),
            KeyRange::under(&prefix(&["agents"])).after_prefix(&ada),
            KeyRange::under(&prefix(&["system", "access"])),
            KeyRange::under(&prefix(&["system"])),
            KeyRange::segment_prefix(&prefix(&["agents"]), "a"),
        ] {
            assert_eq!(Span::of(&range).unwrap_err().kind(), ErrorKind::Unsupported, "{range:?}");
        }
    }

    #[test]
    fn only_a_scan_that_goes_on_is_continued() {
        let notes = Prefix::from_segments(["agents", "ada", "notes"]);
        let (ada, key) =
            (Prefix::from_segments(["agents", "ada"]), notes.child("k").to_key().unwrap());
        let is = |range: KeyRange| is_continued(&Scan::new(range), Part::Entry);
        for first in [
            KeyRange::under(&ada),
            KeyRange::under(&notes),
            KeyRange::segment_prefix(&notes, "k"),
            KeyRange::subtree(&notes.to_key().unwrap()),
        ] {
            assert!(!is(first.clone()), "{first:?}");
        }
        assert!(is(KeyRange::under(&notes).after(&key)));
        assert!(is(KeyRange::under(&ada).after_prefix(&notes)));
    }
}
