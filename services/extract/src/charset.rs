//! Bytes to text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How far into a page its declared encoding is looked for.
const DECLARATION_BYTES: usize = 1024;

/// The text of bytes that are certainly Unicode text: UTF-8 without control characters, or UTF-16
/// with a mark.
pub(crate) fn strict(bytes: &[u8]) -> Option<String> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes[mark..])?;
        return Some(text.into_owned());
    }
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.bytes().any(crate::content::is_binary)).then(|| text.to_owned())
}

/// The text of any bytes: by their mark, as UTF-8 if they are that, by the encoding that a page
/// declares, else as the encoding of old Windows programs.
pub(crate) fn decode(bytes: &[u8]) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned();
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let encoding = declared(bytes).unwrap_or(WINDOWS_1252);
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// The encoding after `charset=` at the beginning of a page.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(DECLARATION_BYTES)].to_ascii_lowercase();
    let at = head.windows(8).position(|window| window == b"charset=")? + 8;
    let label: Vec<u8> = head[at..]
        .iter()
        .copied()
        .skip_while(|byte| matches!(byte, b'"' | b'\'' | b' '))
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':'))
        .collect();
    // A declaration that could be read as ASCII is not true for UTF-16, and for UTF-8 it is false
    // here: the caller has tried it.
    Encoding::for_label(&label).filter(|encoding| ![UTF_8, UTF_16BE, UTF_16LE].contains(encoding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_encodings_are_read_as_declared_or_as_windows_ones() {
        assert_eq!(decode(b"M\xfcnchen"), "München");
        assert_eq!(
            decode(b"<meta charset='iso-8859-2'>\xbei\xb9"),
            "<meta charset='iso-8859-2'>žiš"
        );
        assert_eq!(decode(b"\xff\xfea\0\xe4\0"), "aä");
        assert_eq!(strict(b"a\0b"), None);
    }
}
