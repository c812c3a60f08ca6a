//! The order-preserving tuple encoding: segments joined by `0x00`. Inside a segment the two bytes
//! that would disturb the order are replaced (`0x00` → `01 01`, `0x01` → `01 02`), so the separator
//! sorts below every data byte and comparing bytes compares segment by segment.

use std::borrow::Cow;

pub(crate) const SEPARATOR: u8 = 0x00;
/// The smallest byte above [`SEPARATOR`]: put after an encoded key it is the end of the key's
/// subtree.
pub(crate) const AFTER_SEPARATOR: u8 = 0x01;
const ESCAPE: u8 = 0x01;

pub(crate) fn push_segment(out: &mut Vec<u8>, segment: &str) {
    let bytes = segment.as_bytes();
    if !bytes.iter().any(|&b| b <= ESCAPE) {
        out.extend_from_slice(bytes);
        return;
    }
    for &byte in bytes {
        if byte <= ESCAPE {
            out.extend_from_slice(&[ESCAPE, byte + 1]);
        } else {
            out.push(byte);
        }
    }
}

/// Decodes one segment. Bytes that the encoding never makes (a damaged store) come out as
/// replacement characters rather than as a panic; [`validate`] tells them apart.
pub(crate) fn decode_segment(encoded: &[u8]) -> Cow<'_, str> {
    if !encoded.contains(&ESCAPE) {
        return String::from_utf8_lossy(encoded);
    }
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            ESCAPE => decoded.push(bytes.next().map_or(0xFF, |b| b.wrapping_sub(1))),
            other => decoded.push(other),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// Whether an encoded segment is this text.
pub(crate) fn is_segment(encoded: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    if !text.iter().any(|&byte| byte <= ESCAPE) {
        return encoded == text;
    }
    let escaped =
        |byte: u8| if byte <= ESCAPE { [Some(ESCAPE), Some(byte + 1)] } else { [Some(byte), None] };
    encoded.iter().copied().eq(text.iter().flat_map(|&byte| escaped(byte)).flatten())
}

/// The offset of the first byte that this encoding could not have made, if any.
pub(crate) fn validate(encoded: &[u8]) -> Result<(), usize> {
    let mut at = 0;
    while at < encoded.len() {
        if encoded[at] == ESCAPE {
            match encoded.get(at + 1) {
                Some(1 | 2) => at += 1,
                _ => return Err(at),
            }
        }
        at += 1;
    }
    // Escapes and separators are ASCII, so the whole is UTF-8 exactly when each segment is.
    std::str::from_utf8(encoded).map(|_| ()).map_err(|error| error.valid_up_to())
}

/// The end (exclusive) of all byte strings that start with `prefix`, or `None` when there is no
/// end because every byte is `0xFF` (which UTF-8 never contains).
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
