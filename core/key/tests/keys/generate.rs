//! Generators biased towards what goes wrong: separators, escapes, control characters, characters
//! around the encoding's special bytes, and near-equal texts.

use proptest::prelude::*;

pub fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => prop::sample::select(vec!['a', 'b', '1', '7', '0', '-']),
        3 => prop::sample::select(vec![':', '%', '\0', '\u{1}', '\u{2}', '\u{7f}', '\u{85}', '\n']),
        1 => prop::sample::select(vec!['학', 'é', '\u{301}', '\u{10ffff}', '\u{e000}', ' ', '{', '[', ']']),
        1 => any::<char>(),
    ]
}

pub fn segment() -> impl Strategy<Value = String> {
    prop::collection::vec(character(), 0..6).prop_map(|chars| chars.into_iter().collect())
}

/// Segments that can be a key: not just one empty one.
pub fn segments() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(segment(), 1..5)
        .prop_filter("a key is not empty", |segments| segments.len() > 1 || !segments[0].is_empty())
}
