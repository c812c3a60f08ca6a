use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::encoding::{self, SEPARATOR};
use crate::{KeyError, ParseError, Prefix, text};

/// A key: one or more text segments.
///
/// Kept in the tuple encoding, so comparing two keys compares them segment by segment, and cloning
/// is cheap. `Display` and [`Key::parse`] speak colon text.
///
/// ```
/// use keyward_key::Key;
///
/// let key = Key::from_segments(["user", "a:b", "notes"])?;
/// assert_eq!(key.to_string(), "user:a%3Ab:notes");
/// assert_eq!(key, "user:a%3Ab:notes".parse()?);
/// // In plain text `a-b` would sort before `a`'s children.
/// assert!(Key::parse("a:z")? < Key::parse("a-b")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Bytes);

impl Key {
    /// Reads colon text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::new(text, 0, "a key cannot be empty"));
        }
        let mut encoded = Vec::with_capacity(text.len());
        for (offset, part) in text::split(text) {
            if offset > 0 {
                encoded.push(SEPARATOR);
            }
            encoding::push_segment(&mut encoded, &text::unescape(part, text, offset)?);
        }
        Ok(Self(encoded.into()))
    }

    /// Makes a key of segments as they are: nothing in them needs escaping.
    pub fn from_segments<S: AsRef<str>>(
        segments: impl IntoIterator<Item = S>,
    ) -> Result<Self, KeyError> {
        let encoded = encode(segments);
        if encoded.is_empty() { Err(KeyError::Empty) } else { Ok(Self(encoded.into())) }
    }

    /// Takes bytes that [`Key::as_bytes`] gave earlier, checking that they are a key.
    pub fn from_bytes(encoded: impl Into<Bytes>) -> Result<Self, KeyError> {
        let encoded = encoded.into();
        if encoded.is_empty() {
            return Err(KeyError::Empty);
        }
        encoding::validate(&encoded).map_err(|offset| KeyError::Encoding { offset })?;
        Ok(Self(encoded))
    }

    /// Takes bytes that [`Key::as_bytes`] gave earlier, without checking them again: for engines
    /// reading back what they stored. If the bytes were damaged, segments show replacement
    /// characters; nothing panics.
    pub fn from_stored(encoded: impl Into<Bytes>) -> Self {
        Self(encoded.into())
    }

    /// The tuple encoding.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The tuple encoding, shared rather than copied.
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The segments, unescaped.
    pub fn segments(&self) -> Segments<'_> {
        Segments { rest: Some(&self.0) }
    }

    /// The first segment, unescaped.
    pub fn first(&self) -> Cow<'_, str> {
        self.segments().next().unwrap_or_default()
    }

    /// The number of segments.
    pub fn depth(&self) -> usize {
        self.0.iter().filter(|&&b| b == SEPARATOR).count() + 1
    }

    /// This key with one segment more.
    pub fn child(&self, segment: &str) -> Self {
        let mut encoded = Vec::with_capacity(self.0.len() + 1 + segment.len());
        encoded.extend_from_slice(&self.0);
        encoded.push(SEPARATOR);
        encoding::push_segment(&mut encoded, segment);
        Self(encoded.into())
    }

    /// The key made of the segments after the first `depth`, if there are any: what follows a
    /// prefix of known length.
    ///
    /// ```
    /// use keyward_key::Key;
    /// let entry = Key::parse("index:by-tag:rust:user:7:posts:p1")?;
    /// assert_eq!(entry.tail(3), Some(Key::parse("user:7:posts:p1")?));
    /// assert_eq!(entry.tail(7), None);
    /// # Ok::<(), keyward_key::ParseError>(())
    /// ```
    pub fn tail(&self, depth: usize) -> Option<Self> {
        if depth == 0 {
            return Some(self.clone());
        }
        let end = self.end_of(depth)?;
        let rest = self.0.slice(end + 1..);
        (!rest.is_empty()).then_some(Self(rest))
    }

    /// The prefix made of the first `depth` segments, if the key is deeper than that.
    pub fn ancestor(&self, depth: usize) -> Option<Prefix> {
        if depth == 0 {
            return Some(Prefix::all());
        }
        Some(Prefix::from_encoded(self.0.slice(..self.end_of(depth)?)))
    }

    /// Where the first `depth` segments end, if more follow.
    fn end_of(&self, depth: usize) -> Option<usize> {
        memchr::memchr_iter(SEPARATOR, &self.0).nth(depth.checked_sub(1)?)
    }
}

pub(crate) fn encode<S: AsRef<str>>(segments: impl IntoIterator<Item = S>) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (n, segment) in segments.into_iter().enumerate() {
        if n > 0 {
            encoded.push(SEPARATOR);
        }
        encoding::push_segment(&mut encoded, segment.as_ref());
    }
    encoded
}

/// The segments of a key or prefix, unescaped. Made by [`Key::segments`] and [`Prefix::segments`].
#[derive(Debug, Clone)]
pub struct Segments<'k> {
    rest: Option<&'k [u8]>,
}

impl<'k> Segments<'k> {
    pub(crate) fn of(encoded: Option<&'k [u8]>) -> Self {
        Self { rest: encoded }
    }

    pub(crate) fn write_text(self, f: &mut impl fmt::Write) -> fmt::Result {
        for (n, segment) in self.enumerate() {
            if n > 0 {
                f.write_char(text::SEPARATOR)?;
            }
            text::write_escaped(&segment, f)?;
        }
        Ok(())
    }
}

impl<'k> Segments<'k> {
    /// Whether the next segment is this text. The segment is taken either way, and not decoded.
    ///
    /// ```
    /// use keyward_key::Key;
    /// let key = Key::parse("user:a%3Ab:notes")?;
    /// let mut segments = key.segments();
    /// assert!(segments.next_is("user") && segments.next_is("a:b"));
    /// assert!(!segments.next_is("note") && !segments.next_is(""));
    /// # Ok::<(), keyward_key::ParseError>(())
    /// ```
    pub fn next_is(&mut self, text: &str) -> bool {
        self.next_encoded().is_some_and(|segment| encoding::is_segment(segment, text))
    }

    /// The segments after the first `n`, which are not decoded.
    #[must_use]
    pub fn past(mut self, n: usize) -> Self {
        for _ in 0..n {
            self.next_encoded();
        }
        self
    }

    fn next_encoded(&mut self) -> Option<&'k [u8]> {
        let rest = self.rest?;
        match memchr::memchr(SEPARATOR, rest) {
            Some(end) => {
                self.rest = Some(&rest[end + 1..]);
                Some(&rest[..end])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

impl<'k> Iterator for Segments<'k> {
    type Item = Cow<'k, str>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_encoded().map(encoding::decode_segment)
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        *self = self.clone().past(n);
        self.next()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments().write_text(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl FromStr for Key {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}
