//! Keys as names of Workers KV.
//!
//! A name is what the original programs write: the segments, joined by `:`. Every name is a key and every key has one
//! name, so a namespace that another program filled is read whole. To that end only what would be ambiguous is
//! escaped: a `:` within a segment is `%3A`, and a text that already looks like such an escape has one `25` more after
//! its `%`. The names `.` and `..`, which Workers KV refuses, are escaped in the same way.

use keyward_key::{Key, KeyRange};

/// The longest name that Workers KV takes.
pub(crate) const NAME_BYTES_MAX: usize = 512;

const COLON: &str = "3A";
const DOTS: [&str; 2] = ["2E", "2E."];
/// Escapes the percent sign of what looks like an escape.
const PERCENT: &str = "25";

/// The name of a key.
pub(crate) fn name_of(key: &Key) -> String {
    let mut name = String::with_capacity(key.as_bytes().len());
    for (n, segment) in key.segments().enumerate() {
        if n > 0 {
            name.push(':');
        }
        push_segment(&mut name, &segment);
    }
    match name.as_str() {
        "." => "%2E".to_owned(),
        ".." => "%2E.".to_owned(),
        _ if escaped_dots(&name).is_some() => format!("%{PERCENT}{}", &name[1..]),
        _ => name,
    }
}

/// The key of a name; `None` for the empty name, which no entry has.
pub(crate) fn key_of(name: &str) -> Option<Key> {
    let plain = match escaped_dots(name) {
        Some(0) => name.replacen("%2E", ".", 1),
        Some(_) => format!("%{}", &name[1 + PERCENT.len()..]),
        None => name.to_owned(),
    };
    Key::from_segments(plain.split(':').map(segment_of)).ok()
}

/// What the names of all keys in a range begin with.
pub(crate) fn prefix_of(range: &KeyRange) -> String {
    let encoded = common_start(range);
    let whole = match std::str::from_utf8(encoded) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&encoded[..error.valid_up_to()]).unwrap_or_default(),
    };
    // The tuple encoding: segments end with 00, and 01 escapes the bytes 00 and 01.
    let mut segments: Vec<String> = vec![String::new()];
    let mut characters = whole.chars();
    while let Some(c) = characters.next() {
        match c {
            '\0' => segments.push(String::new()),
            '\u{1}' => match characters.next() {
                Some(escaped) => segment(&mut segments).push(char::from(escaped as u8 - 1)),
                None => break,
            },
            c => segment(&mut segments).push(c),
        }
    }
    // Whether the last % begins what looks like an escape depends on what follows.
    let last = segment(&mut segments);
    if let Some(percent) = last.rfind('%') {
        last.truncate(percent);
    }
    let mut prefix = String::new();
    for (n, segment) in segments.iter().enumerate() {
        if n > 0 {
            prefix.push(':');
        }
        push_segment(&mut prefix, segment);
    }
    // The names of the keys . and .. begin differently.
    if prefix == "." || prefix == ".." {
        prefix.clear();
    }
    // A listing takes a control character for the end of the text.
    if let Some(at) = prefix.find(char::is_control) {
        prefix.truncate(at);
    }
    prefix
}

fn segment(segments: &mut [String]) -> &mut String {
    let last = segments.len() - 1;
    &mut segments[last]
}

fn push_segment(name: &mut String, segment: &str) {
    for (at, c) in segment.char_indices() {
        match c {
            ':' => {
                name.push('%');
                name.push_str(COLON);
            }
            '%' => {
                name.push('%');
                if past_percents(&segment[at + 1..]).1.starts_with(COLON) {
                    name.push_str(PERCENT);
                }
            }
            c => name.push(c),
        }
    }
}

fn segment_of(part: &str) -> String {
    let mut segment = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('%') {
        segment.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match past_percents(rest) {
            (0, after) if after.starts_with(COLON) => {
                segment.push(':');
                rest = &rest[COLON.len()..];
            }
            (_, after) if after.starts_with(COLON) => {
                segment.push('%');
                rest = &rest[PERCENT.len()..];
            }
            _ => segment.push('%'),
        }
    }
    segment.push_str(rest);
    segment
}

/// How many `25` stand at the start of a text, and what follows them.
fn past_percents(text: &str) -> (usize, &str) {
    let mut rest = text;
    let mut count = 0;
    while let Some(after) = rest.strip_prefix(PERCENT) {
        (rest, count) = (after, count + 1);
    }
    (count, rest)
}

/// Whether a name is one of the dots, escaped; and how often its percent sign is escaped besides.
fn escaped_dots(name: &str) -> Option<usize> {
    let (count, rest) = past_percents(name.strip_prefix('%')?);
    DOTS.contains(&rest).then_some(count)
}

/// The longest bytes that every key of a range begins with.
fn common_start(range: &KeyRange) -> &[u8] {
    let (start, Some(end)) = (range.start(), range.end()) else { return &[] };
    let shared = start.iter().zip(end).take_while(|(one, other)| one == other).count();
    let longest = (shared + 1).min(start.len());
    // Everything from the start on that begins otherwise lies behind the last that begins so.
    let ends_within = |length: &usize| {
        let mut after = start[..*length].to_vec();
        match after.last_mut() {
            Some(last) => *last = last.saturating_add(1),
            None => return true,
        }
        end <= after.as_slice()
    };
    let length = (0..=longest).rev().find(ends_within).unwrap_or_default();
    &start[..length]
}

#[cfg(test)]
mod tests {
    use keyward_key::Prefix;

    use super::*;

    fn key(segments: &[&str]) -> Key {
        Key::from_segments(segments).unwrap()
    }

    #[test]
    fn names_are_what_the_original_programs_write() {
        for (segments, name) in [
            (&["policy", "학칙"][..], "policy:학칙"),
            (&["metadata", "sync", "lastCommit"], "metadata:sync:lastCommit"),
            (&["policy", "50% 할인"], "policy:50% 할인"),
            (&["a", "%41"], "a:%41"),
            (&["a:b", ""], "a%3Ab:"),
            (&["a%3Ab"], "a%253Ab"),
            (&["a%253Ab"], "a%25253Ab"),
            (&["%:"], "%%3A"),
            (&["%25:"], "%25%3A"),
            (&["%2"], "%2"),
            (&["."], "%2E"),
            (&[".."], "%2E."),
            (&["%2E"], "%252E"),
            (&["%252E."], "%25252E."),
            (&[".", "a"], ".:a"),
            (&["%2E", "a"], "%2E:a"),
            (&["a\n\0"], "a\n\0"),
        ] {
            assert_eq!(name_of(&key(segments)), name);
            assert_eq!(key_of(name), Some(key(segments)), "{name:?}");
        }
        assert_eq!(key_of(""), None);
    }

    #[test]
    fn names_and_keys_are_one_to_one() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..100_000 {
            let pieces =
                ["%", "25", "3A", "2E", ".", ":", "a", "%3A", "2", "5", "\0", "\u{1}", "학"];
            let name: String =
                (0..rng.usize(1..8)).map(|_| pieces[rng.usize(..pieces.len())]).collect();
            if name == "." || name == ".." {
                continue;
            }
            let key = key_of(&name).unwrap();
            assert_eq!(name_of(&key), name);
            // The same text as one segment, and back.
            let whole = Key::from_segments([&name]).unwrap();
            assert_eq!(key_of(&name_of(&whole)), Some(whole));
        }
    }

    #[test]
    fn every_key_of_a_range_begins_with_its_prefix() {
        let pieces = ["%", "25", "3A", "2E", ".", ":", "a", "b", "\0", "\u{1}", "학", "한", ""];
        let mut rng = fastrand::Rng::with_seed(8);
        let any = |rng: &mut fastrand::Rng| {
            let mut segment = || -> String {
                (0..rng.usize(..4)).map(|_| pieces[rng.usize(..pieces.len())]).collect()
            };
            let segments: Vec<String> = (0..3).map(|_| segment()).collect();
            Key::from_segments(&segments[..1 + segments[0].len() % 3])
                .unwrap_or_else(|_| Key::parse("a").unwrap())
        };
        for _ in 0..20_000 {
            let (one, other) = (any(&mut rng), any(&mut rng));
            let part = one.first().into_owned();
            let prefix = one.ancestor(1).unwrap_or(Prefix::all());
            for range in [
                KeyRange::all(),
                KeyRange::exactly(&one),
                KeyRange::subtree(&one),
                KeyRange::under(&prefix),
                KeyRange::segment_prefix(&prefix, &part),
                KeyRange::under(&prefix).after(&other),
                KeyRange::under(&prefix).before(&other),
                KeyRange::between(&prefix, Some("a"), Some("b")),
            ] {
                let begin = prefix_of(&range);
                for key in [&one, &other, &one.child(&part), &other.child("x")] {
                    let name = name_of(key);
                    assert!(!range.contains(key) || name.starts_with(&begin), "{name} {begin}");
                }
            }
        }
    }

    #[test]
    fn a_prefix_is_as_long_as_it_can_be() {
        let policies = Prefix::parse("policy").unwrap();
        assert_eq!(prefix_of(&KeyRange::under(&policies)), "policy:");
        assert_eq!(prefix_of(&KeyRange::segment_prefix(&policies, "학")), "policy:학");
        assert_eq!(prefix_of(&KeyRange::exactly(&key(&["a", "b"]))), "a:b");
        assert_eq!(prefix_of(&KeyRange::all()), "");
    }
}
