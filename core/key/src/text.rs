//! The outward form of a segment: readable text in which `%`, `:` and control characters are
//! percent-escaped. Every key has exactly one text: what could have been written plainly must not
//! be written as an escape.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::ParseError;

pub(crate) const SEPARATOR: char = ':';

fn must_escape(c: char) -> bool {
    c == '%' || c == SEPARATOR || c.is_control()
}

/// Writes one segment in its text form.
pub(crate) fn write_escaped(segment: &str, f: &mut impl Write) -> fmt::Result {
    let mut plain = 0;
    for (at, c) in segment.char_indices().filter(|&(_, c)| must_escape(c)) {
        f.write_str(&segment[plain..at])?;
        let mut utf8 = [0; 4];
        for byte in c.encode_utf8(&mut utf8).bytes() {
            write!(f, "%{byte:02X}")?;
        }
        plain = at + c.len_utf8();
    }
    f.write_str(&segment[plain..])
}

/// Reads one segment from its text form. `whole` and `offset` say where the segment stands, for
/// the error.
pub(crate) fn unescape<'t>(
    segment: &'t str,
    whole: &str,
    offset: usize,
) -> Result<Cow<'t, str>, ParseError> {
    let error = |at: usize, message: String| Err(ParseError::new(whole, offset + at, message));
    if let Some((at, c)) = segment.char_indices().find(|&(_, c)| must_escape(c) && c != '%') {
        let mut escaped = String::new();
        // Writing to a String cannot fail.
        let _ = write_escaped(c.encode_utf8(&mut [0; 4]), &mut escaped);
        return error(at, format!("the character {c:?} must be written {escaped} in a key"));
    }
    if !segment.contains('%') {
        return Ok(Cow::Borrowed(segment));
    }

    let bytes = segment.as_bytes();
    let mut decoded = String::with_capacity(segment.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            let run = segment[at..].find('%').unwrap_or(segment.len() - at);
            decoded.push_str(&segment[at..at + run]);
            at += run;
            continue;
        }
        let (c, length) = match escaped_char(&bytes[at..]) {
            Ok(found) => found,
            Err(Malformed) => {
                return error(
                    at,
                    "a % starts an escape such as %3A (two hex digits a byte of UTF-8); \
                     write a plain % as %25"
                        .to_owned(),
                );
            }
        };
        let given = &segment[at..at + length];
        let mut canonical = String::new();
        let _ = write_escaped(c.encode_utf8(&mut [0; 4]), &mut canonical);
        if given != canonical {
            return error(at, format!("{given} must be written {canonical:?}"));
        }
        decoded.push(c);
        at += length;
    }
    Ok(Cow::Owned(decoded))
}

struct Malformed;

/// The character whose UTF-8 bytes are escaped at the start of `bytes`, and the length of the
/// escapes.
fn escaped_char(bytes: &[u8]) -> Result<(char, usize), Malformed> {
    let byte_at = |n: usize| -> Result<u8, Malformed> {
        match bytes.get(3 * n..3 * n + 3) {
            Some([b'%', high, low]) => {
                let digit = |d: u8| (d as char).to_digit(16).ok_or(Malformed);
                Ok((digit(*high)? * 16 + digit(*low)?) as u8)
            }
            _ => Err(Malformed),
        }
    };
    let first = byte_at(0)?;
    let count = match first {
        0x00..=0x7F => 1,
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return Err(Malformed),
    };
    let mut utf8 = [first, 0, 0, 0];
    for (n, byte) in utf8.iter_mut().enumerate().take(count).skip(1) {
        *byte = byte_at(n)?;
    }
    let text = std::str::from_utf8(&utf8[..count]).map_err(|_| Malformed)?;
    let c = text.chars().next().ok_or(Malformed)?;
    Ok((c, 3 * count))
}

/// Splits a text at its separators, giving each part with its offset.
pub(crate) fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    text.split(SEPARATOR).map(move |part| {
        let at = offset;
        offset += part.len() + 1;
        (at, part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(segment: &str) -> String {
        let mut out = String::new();
        write_escaped(segment, &mut out).unwrap();
        out
    }

    #[test]
    fn only_separators_percents_and_controls_are_escaped() {
        assert_eq!(escaped("학칙/2024 (a+b).md"), "학칙/2024 (a+b).md");
        assert_eq!(escaped("a:b"), "a%3Ab");
        assert_eq!(escaped("50%"), "50%25");
        assert_eq!(escaped("a\0\n\u{7f}\u{85}"), "a%00%0A%7F%C2%85");
    }

    #[test]
    fn an_escape_that_is_not_needed_is_refused_with_the_right_form() {
        for (text, says) in [
            ("%41", "\"A\""),
            ("%3a", "%3A"),
            ("%ED%95%99", "\"학\""),
            ("%", "%25"),
            ("%4", "%25"),
            ("%zz", "%25"),
            ("%C2", "%25"),
            ("%FF", "%25"),
            ("a\nb", "%0A"),
        ] {
            let error = unescape(text, text, 0).unwrap_err();
            assert!(error.message().contains(says), "{text:?}: {error}");
        }
    }
}
