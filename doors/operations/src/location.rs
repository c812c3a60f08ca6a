//! Paths of things, percent-encoded.

/// The path that some segments make.
pub fn path<'s>(segments: impl IntoIterator<Item = &'s str>) -> String {
    segments.into_iter().fold(String::new(), |path, segment| path + "/" + &path_segment(segment))
}

/// A segment of a path, percent-encoded; colons may stand in one as they are.
pub fn path_segment(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) => {
                path.push(char::from(byte));
            }
            byte => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_separates_segments_is_encoded_within_one() {
        assert_eq!(path(["v1", "a:b", "c/d ü%"]), "/v1/a:b/c%2Fd%20%C3%BC%25");
    }
}
