use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::key::{Segments, encode};
use crate::{Key, ParseError, encoding, text};

/// Whole leading segments that keys may share; with none, every key.
///
/// A prefix always ends on a separator: `user:7` and `user:7:` are the same prefix, and neither has
/// `user:70` or the key `user:7` itself below it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(Option<Bytes>);

impl Prefix {
    /// The prefix of every key.
    pub fn all() -> Self {
        Self(None)
    }

    /// Reads colon text, with or without the final separator; the empty text is [`Prefix::all`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Ok(Self::all());
        }
        let segments = text.strip_suffix(text::SEPARATOR).unwrap_or(text);
        let mut encoded = Vec::with_capacity(segments.len());
        for (offset, part) in text::split(segments) {
            if offset > 0 {
                encoded.push(encoding::SEPARATOR);
            }
            encoding::push_segment(&mut encoded, &text::unescape(part, text, offset)?);
        }
        Ok(Self(Some(encoded.into())))
    }

    /// Makes a prefix of segments as they are.
    pub fn from_segments<S: AsRef<str>>(segments: impl IntoIterator<Item = S>) -> Self {
        let mut segments = segments.into_iter().peekable();
        if segments.peek().is_none() {
            return Self::all();
        }
        Self(Some(encode(segments).into()))
    }

    pub(crate) fn from_encoded(encoded: Bytes) -> Self {
        Self(Some(encoded))
    }

    /// The segments, unescaped.
    pub fn segments(&self) -> Segments<'_> {
        Segments::of(self.0.as_deref())
    }

    /// The number of segments.
    pub fn depth(&self) -> usize {
        self.segments().count()
    }

    /// This prefix with one segment more.
    pub fn child(&self, segment: &str) -> Self {
        let mut encoded = self.below();
        encoding::push_segment(&mut encoded, segment);
        Self(Some(encoded.into()))
    }

    /// The key below this prefix whose further segments are those of `key`: the opposite of
    /// [`Key::tail`].
    pub fn join(&self, key: &Key) -> Key {
        let mut encoded = self.below();
        encoded.extend_from_slice(key.as_bytes());
        Key::from_stored(encoded)
    }

    /// The key with exactly these segments, unless there are none.
    pub fn to_key(&self) -> Option<Key> {
        self.0.as_ref().filter(|e| !e.is_empty()).map(|e| Key::from_stored(e.clone()))
    }

    /// The encoded bytes every key below this prefix starts with.
    pub(crate) fn below(&self) -> Vec<u8> {
        match &self.0 {
            None => Vec::new(),
            Some(encoded) => {
                let mut start = Vec::with_capacity(encoded.len() + 1);
                start.extend_from_slice(encoded);
                start.push(encoding::SEPARATOR);
                start
            }
        }
    }
}

impl From<&Key> for Prefix {
    fn from(key: &Key) -> Self {
        Self(Some(key.to_bytes()))
    }
}

/// Colon text with the final separator (`user:7:`), empty for [`Prefix::all`].
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_none() {
            return Ok(());
        }
        self.segments().write_text(f)?;
        fmt::Write::write_char(f, text::SEPARATOR)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefix({self})")
    }
}

impl FromStr for Prefix {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}
