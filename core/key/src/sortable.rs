//! The sortable text: for databases that keep keys as text and sort it by bytes.
//!
//! Each byte of the tuple encoding becomes one or two characters, so that comparing texts compares
//! the encodings, and most keys stay readable: `user:7:notes` is `user!7!notes`. The characters that
//! document ids refuse (`/`, control characters) do not occur.

use crate::{Key, KeyError, KeyRange};

/// Stands for the separator of segments. It is below every other character used.
const SEPARATOR: char = '!';
/// Starts the two characters for the bytes `01` to `22`.
const LOW: char = '"';
/// The second character for byte `00` after [`LOW`], if there were one: bytes count up from it.
const LOW_BASE: u8 = b'0';
/// The highest byte that is written with [`LOW`].
const LOW_LAST: u8 = 0x22;

/// Appends the sortable text of a part of a tuple encoding.
fn push(text: &mut String, encoded: &str) {
    for c in encoded.chars() {
        match c {
            '\0' => text.push(SEPARATOR),
            '\u{1}'..='\u{22}' => {
                text.push(LOW);
                text.push(char::from(LOW_BASE + c as u8));
            }
            '.' => text.push_str(".a"),
            '/' => text.push_str(".b"),
            '~' => text.push_str("~a"),
            '\u{7f}' => text.push_str("~b"),
            plain => text.push(plain),
        }
    }
}

impl Key {
    /// The key as text whose byte order is the order of keys, for databases that sort text. It has no
    /// slash and no control character of ASCII.
    ///
    /// ```
    /// use keyward_key::Key;
    ///
    /// let key = Key::parse("user:7:docs/a.md")?;
    /// assert_eq!(key.to_sortable_text(), "user!7!docs.ba.amd");
    /// assert_eq!(Key::from_sortable_text("user!7!docs.ba.amd")?, key);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_sortable_text(&self) -> String {
        let encoded = String::from_utf8_lossy(self.as_bytes());
        let mut text = String::with_capacity(encoded.len() + 8);
        push(&mut text, &encoded);
        text
    }

    /// Takes a key back from [`Key::to_sortable_text`]. Text that no key has is refused.
    pub fn from_sortable_text(text: &str) -> Result<Self, KeyError> {
        let mut encoded = String::with_capacity(text.len());
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            let decoded = match c {
                SEPARATOR => '\0',
                LOW => match characters.next().and_then(|c| u8::try_from(c).ok()) {
                    Some(second) if (1..=LOW_LAST).contains(&second.wrapping_sub(LOW_BASE)) => {
                        char::from(second - LOW_BASE)
                    }
                    _ => char::REPLACEMENT_CHARACTER,
                },
                '.' | '~' => match (c, characters.next()) {
                    ('.', Some('a')) => '.',
                    ('.', Some('b')) => '/',
                    ('~', Some('a')) => '~',
                    ('~', Some('b')) => '\u{7f}',
                    _ => char::REPLACEMENT_CHARACTER,
                },
                plain => plain,
            };
            encoded.push(decoded);
        }
        let key = Self::from_bytes(encoded)?;
        // Every key has one text: what reads back as another one is not a key's.
        match key.to_sortable_text() == text {
            true => Ok(key),
            false => Err(KeyError::Encoding { offset: 0 }),
        }
    }
}

impl KeyRange {
    /// Bounds of the sortable texts of the keys in this range: from the first, inclusive, to the
    /// second, exclusive. They may take in some keys beside the range, where a bound lies within a
    /// character: look at [`KeyRange::contains`] for each key.
    pub fn sortable_bounds(&self) -> (String, Option<String>) {
        let (start, _) = valid_start(self.start());
        let end = self.end().and_then(|end| match valid_start(end) {
            (whole, true) => Some(whole),
            // The bound lies within a character, or above all of them: everything that begins with
            // the whole ones before it may belong to the range.
            (whole, false) => after_all(&whole),
        });
        (start, end)
    }
}

/// The sortable text of the longest start of the bytes that is UTF-8, and whether that is all.
fn valid_start(bytes: &[u8]) -> (String, bool) {
    let valid = match std::str::from_utf8(bytes) {
        Ok(all) => all,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut text = String::new();
    push(&mut text, valid);
    (text, valid.len() == bytes.len())
}

/// The least text above all that begin with this one; `None` if there is no end.
fn after_all(start: &str) -> Option<String> {
    let mut text = start.to_owned();
    while let Some(last) = text.pop() {
        let next = match last {
            char::MAX => continue,
            '\u{d7ff}' => '\u{e000}',
            last => char::from_u32(last as u32 + 1)?,
        };
        text.push(next);
        return Some(text);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Prefix;

    fn keys() -> impl Strategy<Value = Key> {
        let character = prop_oneof![
            Just('\0'),
            Just('\u{1}'),
            Just('\u{2}'),
            Just(' '),
            Just('!'),
            Just('"'),
            Just('#'),
            Just('.'),
            Just('/'),
            Just('0'),
            Just('a'),
            Just('~'),
            Just('\u{7f}'),
            Just('\u{80}'),
            Just('학'),
            Just('\u{ffff}'),
            Just('\u{10000}'),
            any::<char>(),
        ];
        let segment = prop::collection::vec(character, 0..4)
            .prop_map(|characters| characters.into_iter().collect::<String>());
        prop::collection::vec(segment, 1..4)
            .prop_filter_map("a key", |segments| Key::from_segments(segments).ok())
    }

    proptest! {
        #[test]
        fn texts_come_back_and_sort_as_keys(one in keys(), other in keys()) {
            let (text, other_text) = (one.to_sortable_text(), other.to_sortable_text());
            prop_assert_eq!(&Key::from_sortable_text(&text).unwrap(), &one);
            prop_assert_eq!(one.cmp(&other), text.as_bytes().cmp(other_text.as_bytes()));
            prop_assert!(!text.contains('/') && !text.bytes().any(|byte| byte < 0x20));
        }

        #[test]
        fn bounds_take_in_every_key_of_a_range(key in keys(), other in keys(), part in ".{0,2}") {
            let prefix = Prefix::from(&key);
            for range in [
                KeyRange::all(),
                KeyRange::subtree(&key),
                KeyRange::under(&prefix),
                KeyRange::exactly(&key),
                KeyRange::segment_prefix(&prefix, &part),
                KeyRange::all().after(&key),
                KeyRange::all().before(&key),
                KeyRange::between(&prefix, Some(&part), None),
            ] {
                for candidate in [&key, &other, &key.child(&part), &key.child(&format!("{part}é"))] {
                    let (start, end) = range.sortable_bounds();
                    let text = candidate.to_sortable_text();
                    let within = text >= start && end.is_none_or(|end| text < end);
                    prop_assert!(within || !range.contains(candidate), "{candidate} {range:?}");
                }
            }
        }
    }

    #[test]
    fn texts_of_no_key_are_refused() {
        for text in ["", "a\"", "a\"0", "a\"z", ".", ".c", "~", "a b", "a/b", "\u{1}"] {
            assert!(Key::from_sortable_text(text).is_err(), "{text:?}");
        }
    }
}
