//! The names of keys in Forge: `/^(?!\s+$)[a-zA-Z0-9:._\s-#]+$/`, more than one and at most 500 characters.
//!
//! A key whose colon text is such a name has that name, so an app reads and lists what it always did. Any other key
//! is named `#keyward:key:` and the base64url of its tuple encoding. Names below `#keyward:` are Keyward's own.

use keyward_key::{Key, KeyRange};

/// What all names that are not an app's begin with.
pub(crate) const RESERVED: &str = "#keyward:";
const ENCODED: &str = "#keyward:key:";
const SIDECAR: &str = "#keyward:sidecar:";
/// Characters of a name in Forge.
pub(crate) const NAME_CHARS_MAX: usize = 500;
/// The longest key whose encoded name still has a sidecar.
pub(crate) const KEY_BYTES_MAX: usize = (NAME_CHARS_MAX - SIDECAR.len() - ENCODED.len()) / 4 * 3;
/// What separates the segments of a key in its tuple encoding.
const SEPARATOR: u8 = 0;

/// The name of a key.
pub(crate) fn name(key: &Key) -> String {
    plain(key).unwrap_or_else(|| format!("{ENCODED}{}", base64(key.as_bytes())))
}

/// The key that a name stands for. `None` for sidecars, and for names that this engine would not give.
pub(crate) fn key(stored: &str) -> Option<Key> {
    let found = match stored.strip_prefix(ENCODED) {
        Some(encoded) => Key::from_bytes(unbase64(encoded)?).ok()?,
        None if stored.starts_with(RESERVED) => return None,
        None => Key::from_segments(stored.split(':')).ok()?,
    };
    (found.as_bytes().len() <= KEY_BYTES_MAX && name(&found) == stored).then_some(found)
}

/// The name of what is kept beside a key's value.
pub(crate) fn sidecar(name: &str) -> String {
    format!("{SIDECAR}{name}")
}

/// What the names of a range's keys begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefixes {
    /// Names as apps give them; `None` if no key of the range has one.
    pub plain: Option<String>,
    /// Encoded names; `None` if those of the plain prefix are all.
    pub encoded: Option<String>,
}

impl Prefixes {
    pub fn of(range: &KeyRange) -> Self {
        let common = common_prefix(range);
        let text: Option<String> = common
            .iter()
            .map(|&byte| if byte == SEPARATOR { Some(':') } else { plain_char(byte) })
            .collect();
        if text.as_ref().is_some_and(String::is_empty) {
            // Every name begins with nothing, the encoded ones too.
            return Self { plain: text, encoded: None };
        }
        // Whole characters of base64 only: the last one also depends on what follows.
        let whole = base64(common)[..common.len() * 8 / 6].to_owned();
        Self { plain: text, encoded: Some(format!("{ENCODED}{whole}")) }
    }
}

/// What the encodings of all keys in a range begin with.
fn common_prefix(range: &KeyRange) -> &[u8] {
    let start = range.start();
    let Some(end) = range.end() else { return &[] };
    let same = start.iter().zip(end).take_while(|(one, other)| one == other).count();
    // An end that is one more than the start in its last byte bounds everything below that.
    match (start.get(same), &end[same..]) {
        (Some(&byte), &[last]) if byte.checked_add(1) == Some(last) => &start[..=same],
        _ => &start[..same],
    }
}

/// The colon text of a key, if it is a name that Forge takes.
fn plain(key: &Key) -> Option<String> {
    let bytes = key.as_bytes().iter();
    let text: Option<String> =
        bytes.map(|&byte| if byte == SEPARATOR { Some(':') } else { plain_char(byte) }).collect();
    text.filter(|text| {
        let is_blank = text.bytes().all(|byte| byte.is_ascii_whitespace());
        text.len() > 1 && !is_blank && !text.starts_with(RESERVED)
    })
}

/// A character of a segment that stands in a name as it is. A colon does not: it separates segments. Of white space
/// only what every language's `\s` knows.
fn plain_char(byte: u8) -> Option<char> {
    let is_plain = byte.is_ascii_alphanumeric()
        || matches!(byte, b'.' | b'_' | b'-' | b'#' | b' ' | b'\t' | b'\n' | b'\r');
    is_plain.then_some(char::from(byte))
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64url without padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for at in 0..=group.len() {
            let digit = bits >> (18 - 6 * at) & 63;
            text.push(char::from(DIGITS[digit as usize]));
        }
    }
    text
}

fn unbase64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for (at, digit) in group.iter().enumerate() {
            let value = DIGITS.iter().position(|known| known == digit)?;
            bits |= u32::try_from(value).ok()? << (18 - 6 * at);
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=group.len().checked_sub(1)?]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use keyward_key::Prefix;

    use super::*;

    fn parse(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn what_an_app_can_name_has_its_colon_text_as_its_name() {
        for text in [
            "abc123",
            "abc123:policy:att789:en",
            "abc123:issue:f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "job:task456",
            "system:purged",
            "Aa0 ._-#:",
            "::",
            ":a",
            "#hash",
            "a:#keyward:x",
        ] {
            assert_eq!(name(&parse(text)), text);
            assert_eq!(key(text), Some(parse(text)));
        }
    }

    #[test]
    fn every_other_key_has_an_encoded_name_that_comes_back() {
        let mut keys: Vec<Key> = [
            "a",
            ":",
            "%20%20:%3A",
            "user:학칙",
            "a%3Ab",
            "a/b",
            "a%00",
            "%01",
            "#keyward:key:x",
            "ä",
        ]
        .map(|text| parse(&text.replace("%20", " ")))
        .into();
        keys.push(Key::from_segments([" ", "x/y"]).unwrap());
        keys.push(Key::from_segments(["  "]).unwrap());
        for parsed in keys {
            let name = name(&parsed);
            assert!(name.starts_with(ENCODED), "{name}");
            let rest = name[ENCODED.len()..].bytes();
            assert!(rest.clone().all(|byte| DIGITS.contains(&byte)), "{name}");
            assert_eq!(key(&name), Some(parsed));
        }
    }

    #[test]
    fn no_two_names_stand_for_one_key_and_sidecars_for_none() {
        for other in [
            // These keys have plain names.
            "#keyward:key:YWI",
            "#keyward:key:YWIA",
            // Not what base64 gives.
            "#keyward:key:YR",
            "#keyward:key:Y",
            "#keyward:key:*",
            "#keyward:key:",
            "#keyward:sidecar:abc",
            "#keyward:",
            "a",
            "  ",
            "a\u{a0}b",
        ] {
            assert_eq!(key(other), None, "{other}");
        }
    }

    #[test]
    fn the_longest_keys_fit_with_their_sidecars() {
        for text in ["x".repeat(KEY_BYTES_MAX), "/".repeat(KEY_BYTES_MAX)] {
            let longest = Key::from_segments([text]).unwrap();
            assert!(sidecar(&name(&longest)).len() <= NAME_CHARS_MAX);
            assert_eq!(key(&name(&longest)), Some(longest));
        }
        assert_eq!(key(&"x".repeat(KEY_BYTES_MAX + 1)), None, "it could have no sidecar");
    }

    #[test]
    fn all_names_of_a_range_begin_with_its_prefixes() {
        let keys =
            ["user:7", "user:7:a", "user:7:학", "user:70", "user:학", "b/c:d", "x", "user:7:a:b"];
        let keys = keys.map(parse);
        let mut ranges = vec![KeyRange::all()];
        for key in &keys {
            ranges.extend([KeyRange::exactly(key), KeyRange::subtree(key)]);
            ranges.extend([KeyRange::under(&Prefix::from(key)), KeyRange::all().after(key)]);
            ranges.push(KeyRange::all().before(key));
            ranges.push(KeyRange::segment_prefix(&Prefix::from(key), "a"));
            ranges.push(KeyRange::between(&Prefix::from(key), Some("a"), Some("b")));
        }
        for range in ranges {
            let Prefixes { plain, encoded } = Prefixes::of(&range);
            let is_found = |name: &str| match (&plain, &encoded) {
                (Some(all), None) => name.starts_with(all),
                (plain, encoded) => {
                    [plain, encoded].into_iter().flatten().any(|prefix| name.starts_with(prefix))
                }
            };
            for key in keys.iter().filter(|key| range.contains(key)) {
                assert!(is_found(&name(key)), "{key} in {range:?}: {plain:?}, {encoded:?}");
            }
        }
        let below = Prefixes::of(&KeyRange::under(&Prefix::parse("user:7").unwrap()));
        assert_eq!(below.plain.as_deref(), Some("user:7:"), "and never user:70");
    }
}
