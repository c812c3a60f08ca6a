//! Holds the code to the tables of `docs/key-format.md`, and the page to the code.

use std::ops::{Bound, RangeBounds};

use keyward_key::{
    Key, KeyRange, Pattern, PatternSet, Prefix, RESERVED_FIRST_SEGMENTS, SegmentValue,
};

const PAGE: &str = include_str!("../../../../docs/key-format.md");

/// The cells of every table with this header, without their backticks.
#[track_caller]
fn rows(header: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let inside = line.trim_start_matches('|').trim_end_matches('|');
        inside.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = PAGE.lines();
    let mut rows = Vec::new();
    while lines.by_ref().any(|line| line == header) {
        let table = lines.by_ref().skip(1).take_while(|line| !line.is_empty());
        rows.extend(table.map(cells));
    }
    assert!(!rows.is_empty(), "the page has no table {header}");
    rows
}

fn plain(cell: &str) -> &str {
    cell.trim_matches('`')
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(" ")
}

#[test]
fn the_pages_texts_have_the_pages_segments() {
    for row in rows("| key text | segments |") {
        let key = Key::parse(plain(&row[0])).unwrap();
        let segments: Vec<String> = key.segments().map(|s| format!("`{s:?}`")).collect();
        assert_eq!(segments.join(" "), row[1]);
    }
}

#[test]
fn the_pages_texts_have_the_pages_bytes_and_order() {
    for row in rows("| key text | bytes |") {
        let key = Key::parse(plain(&row[0])).unwrap();
        assert_eq!(hex(key.as_bytes()), plain(&row[1]), "{key}");
        assert_eq!(key.to_string(), plain(&row[0]));
    }
    let ordered = rows("| in key order | bytes |");
    for row in &ordered {
        let key = Key::parse(plain(&row[0])).unwrap();
        assert_eq!(hex(key.as_bytes()), plain(&row[1]), "{key}");
    }
    let keys: Vec<Key> = ordered.iter().map(|row| Key::parse(plain(&row[0])).unwrap()).collect();
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
}

#[test]
fn the_pages_bad_texts_are_refused_where_it_says() {
    for row in rows("| refused text | at character | because |") {
        let error = Key::parse(plain(&row[0])).unwrap_err();
        assert_eq!(error.position().to_string(), row[1], "{error}");
    }
    for bytes in [&b""[..], b"a\x01", b"a\x01\x00b", b"a\x01\x03", b"\xFF", b"\xED\x95"] {
        assert!(Key::from_bytes(bytes.to_vec()).is_err(), "{bytes:?}");
    }
}

#[test]
fn the_pages_ranges_have_the_pages_bounds() {
    let prefix = |text: &str| Prefix::parse(text).unwrap();
    let user_7 = Key::parse("user:7").unwrap();
    let ranges = [
        ("all", KeyRange::all()),
        ("under `user:7`", KeyRange::under(&prefix("user:7"))),
        ("subtree of `user:7`", KeyRange::subtree(&user_7)),
        ("exactly `user:7`", KeyRange::exactly(&user_7)),
        (
            "under `geo`, next segment starts with `u4`",
            KeyRange::segment_prefix(&prefix("geo"), "u4"),
        ),
        (
            "under `n`, next segment from `2` to `4`",
            KeyRange::between(&prefix("n"), Some("2"), Some("4")),
        ),
    ];
    let rows = rows("| range | start | end |");
    assert_eq!(rows.len(), ranges.len());
    for (row, (name, range)) in rows.iter().zip(&ranges) {
        let bound = |bound: Bound<&[u8]>| match bound {
            Bound::Included(bytes) | Bound::Excluded(bytes) => hex(bytes),
            Bound::Unbounded => "–".to_owned(),
        };
        let (start, end) = (bound(range.start_bound()), bound(range.end_bound()));
        let shown = [&row[0], plain(&row[1]), plain(&row[2])];
        assert_eq!(shown, [name, start.as_str(), &end]);
    }
    let [.., (_, from_2_to_4)] = &ranges;
    assert!(from_2_to_4.contains(&Key::parse("n:4:x").unwrap()));
    assert!(!from_2_to_4.contains(&Key::parse("n:40").unwrap()));
}

#[test]
fn the_pages_prefixes_are_as_it_says() {
    let prefix = |text: &str| Prefix::parse(text).unwrap();
    assert_eq!(prefix("user:7"), prefix("user:7:"));
    assert_eq!(prefix(""), Prefix::all());
    assert_eq!(prefix("a::").segments().collect::<Vec<_>>(), ["a", ""]);
}

#[test]
fn the_pages_keys_have_the_pages_values() {
    for row in rows("| pattern | key | values |") {
        let pattern: Pattern = plain(&row[0]).parse().unwrap();
        let key = Key::parse(plain(&row[1])).unwrap();
        let values = pattern.parse_key(&key).map(|values| {
            let shown = values.iter().map(|(name, value)| match value {
                SegmentValue::Text(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            });
            shown.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(values.as_deref().unwrap_or("–"), row[2], "{key}");
    }
}

#[test]
fn the_pages_patterns_clash_as_it_says() {
    for row in rows("| first | second | both fit |") {
        let patterns = [&row[0], &row[1]].map(|text| plain(text).parse::<Pattern>().unwrap());
        let clash = PatternSet::new(patterns).map_err(|clash| clash.example.to_string());
        match clash {
            Ok(_) => assert_eq!(row[2], "–"),
            Err(example) => assert_eq!(example, plain(&row[2])),
        }
    }
}

#[test]
fn the_page_names_every_reserved_segment_and_type() {
    let reserved = PAGE.split("### Reserved first segments").nth(1).unwrap();
    for segment in RESERVED_FIRST_SEGMENTS {
        assert!(reserved.contains(&format!("`{segment}`")), "{segment}");
    }
    assert!("user-{id}".parse::<Pattern>().is_err());
    for bad in ["a[:b]", "{a}:{a}", "a[:{b}]:c", "{a:i32}"] {
        assert!(bad.parse::<Pattern>().is_err(), "{bad}");
    }
}
