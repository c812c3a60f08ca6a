use std::ops::{Bound, RangeBounds};

use bytes::Bytes;

use crate::encoding::{self, AFTER_SEPARATOR};
use crate::{Key, Prefix};

/// A contiguous part of the key order: from a start (inclusive) to an end (exclusive), both as
/// encoded bytes.
///
/// There is no constructor for raw text prefixes: each one below stops at a segment's end, except
/// [`KeyRange::segment_prefix`], which stays inside one segment by construction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyRange {
    start: Bytes,
    /// `None` is "to the end".
    end: Option<Bytes>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self { start: Bytes::new(), end: None }
    }

    /// The keys whose encoded bytes lie between a start (inclusive) and an end (exclusive; `None` is
    /// "to the end"): a range that was taken apart with [`KeyRange::start`] and [`KeyRange::end`], to
    /// be sent somewhere. Any bytes are bounds, since they are only compared with.
    ///
    /// ```
    /// use keyward_key::{KeyRange, Prefix};
    ///
    /// let notes = KeyRange::under(&Prefix::parse("user:7:notes")?);
    /// let sent = (notes.start().to_vec(), notes.end().map(<[u8]>::to_vec));
    /// assert_eq!(KeyRange::from_bounds(sent.0, sent.1), notes);
    /// # Ok::<(), keyward_key::ParseError>(())
    /// ```
    pub fn from_bounds(start: impl Into<Bytes>, end: Option<impl Into<Bytes>>) -> Self {
        Self { start: start.into(), end: end.map(Into::into) }
    }

    /// The keys below `prefix`, at any depth. The key that is the prefix itself is not below it.
    pub fn under(prefix: &Prefix) -> Self {
        Self::starting_with(prefix.below())
    }

    /// `key` and everything below it.
    pub fn subtree(key: &Key) -> Self {
        Self { start: key.to_bytes(), end: Some(after_subtree(key.as_bytes().to_vec())) }
    }

    /// Exactly `key`.
    pub fn exactly(key: &Key) -> Self {
        let mut end = key.as_bytes().to_vec();
        // The smallest byte string after the key itself.
        end.push(0);
        Self { start: key.to_bytes(), end: Some(end.into()) }
    }

    /// Keys below `prefix` whose next segment starts with `partial`: a geohash cell, the beginning
    /// of a title. Cannot reach outside that one segment.
    pub fn segment_prefix(prefix: &Prefix, partial: &str) -> Self {
        let mut start = prefix.below();
        encoding::push_segment(&mut start, partial);
        Self::starting_with(start)
    }

    /// Keys below `prefix` whose next segment lies between `from` and `to`, both inclusive; `None`
    /// is open. Everything deeper than a segment in range is in range too.
    pub fn between(prefix: &Prefix, from: Option<&str>, to: Option<&str>) -> Self {
        let under = Self::under(prefix);
        let bound = |segment: &str| {
            let mut bytes = prefix.below();
            encoding::push_segment(&mut bytes, segment);
            bytes
        };
        Self {
            start: from.map_or(under.start, |from| bound(from).into()),
            end: to.map_or(under.end, |to| Some(after_subtree(bound(to)))),
        }
    }

    /// The part of this range after `key` (in ascending order).
    pub fn after(&self, key: &Key) -> Self {
        let mut next = key.as_bytes().to_vec();
        next.push(0);
        Self { start: Bytes::from(next).max(self.start.clone()), end: self.end.clone() }
    }

    /// The part of this range after `prefix` and everything below it (in ascending order): what a
    /// depth-limited listing jumps to.
    pub fn after_prefix(&self, prefix: &Prefix) -> Self {
        match Self::under(prefix).end {
            Some(end) => Self { start: end.max(self.start.clone()), end: self.end.clone() },
            None => Self { start: Bytes::new(), end: Some(Bytes::new()) },
        }
    }

    /// The part of this range before `key` (for going down).
    pub fn before(&self, key: &Key) -> Self {
        self.ending_at(key.to_bytes())
    }

    /// The part of this range before `prefix` and everything below it (for going down).
    pub fn before_prefix(&self, prefix: &Prefix) -> Self {
        self.ending_at(prefix.below().into())
    }

    /// Where the range begins, as bytes of the encoding.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// Where the range ends, as bytes of the encoding; `None` is "nowhere".
    pub fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// Whether every key of this range lies in `other` as well.
    pub fn is_within(&self, other: &Self) -> bool {
        let ends_before = match (&self.end, &other.end) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(end), Some(other)) => end <= other,
        };
        self.is_empty() || (self.start >= other.start && ends_before)
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &Key) -> bool {
        key.as_bytes() >= &self.start[..]
            && self.end.as_ref().is_none_or(|end| key.as_bytes() < &end[..])
    }

    /// Whether no key can lie in the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    fn ending_at(&self, end: Bytes) -> Self {
        let end = match &self.end {
            Some(old) => end.min(old.clone()),
            None => end,
        };
        Self { start: self.start.clone(), end: Some(end) }
    }

    fn starting_with(start: Vec<u8>) -> Self {
        let end = encoding::end_of_prefix(&start).map(Bytes::from);
        Self { start: start.into(), end }
    }
}

/// The range over encoded keys, for ordered maps of them.
impl RangeBounds<[u8]> for KeyRange {
    fn start_bound(&self) -> Bound<&[u8]> {
        // No key is empty, and some ordered maps take no empty bound.
        if self.start.is_empty() { Bound::Unbounded } else { Bound::Included(&self.start) }
    }

    fn end_bound(&self) -> Bound<&[u8]> {
        self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
    }
}

fn after_subtree(mut encoded: Vec<u8>) -> Bytes {
    encoded.push(AFTER_SEPARATOR);
    encoded.into()
}
