//! Scans give the keys of a range, in the order of their segments.

use keyward_engine::{ErrorKind, Order, Row, Scan};
use keyward_key::{Key, KeyRange, Prefix};

use super::{json, key, odd_keys, put};
use crate::subject::Subject;

/// Keys in their order: where plain text would order otherwise, and where other encodings do.
const ORDERED: [&str; 24] = [
    ":a", "%00", "%01", "%01%02", "%02", "%0A", " ", "0", "A", "B:a", "a", "a:", "a::b", "a:%00",
    "a:z", "a:z:z", "a%00", "a%01", "a%02", "a b", "a-b", "a1", "a%3Ab", "ab",
];

pub async fn scans_follow_the_order_of_segments(subject: Subject) {
    let keys = ORDERED.map(key);
    assert!(keys.is_sorted(), "the table is in order");
    // Written in an order that is neither up nor down.
    let mixed = (0..keys.len()).map(|n| keys[n * 7 % keys.len()].clone());
    subject.fill(mixed.map(|key| (key, put("1")))).await;

    assert_eq!(subject.keys(KeyRange::all()).await, keys);
    let mut reversed = keys.to_vec();
    reversed.reverse();
    assert_eq!(subject.keys_descending(KeyRange::all()).await, reversed);
}

pub async fn characters_order_by_code_point(subject: Subject) {
    // UTF-16 would put U+10000 before U+E000; a collation would mix cases and accents.
    let texts = [
        "Z",
        "a",
        "z",
        "\u{7f}",
        "\u{80}",
        "Ä",
        "ä",
        "\u{301}",
        "ﬀ",
        "학",
        "\u{e000}",
        "\u{ffff}",
        "\u{10000}",
        "😀",
        "\u{10ffff}",
    ];
    let mut keys: Vec<Key> =
        texts.map(|text| Key::from_segments(["order", text]).unwrap()).to_vec();
    keys.sort();
    subject.fill(keys.iter().rev().map(|key| (key.clone(), put("1")))).await;

    let texts_in_order = |keys: Vec<Key>| -> Vec<String> {
        let last = |key: &Key| key.segments().last().unwrap().into_owned();
        keys.iter().map(last).collect()
    };
    let mut expected = texts.map(str::to_owned).to_vec();
    expected.sort_by_key(|text| text.chars().collect::<Vec<_>>());
    let found = texts_in_order(subject.keys(KeyRange::all()).await);
    assert_eq!(found, expected);
    expected.reverse();
    let found = texts_in_order(subject.keys_descending(KeyRange::all()).await);
    assert_eq!(found, expected);
}

pub async fn ranges_hold_exactly_their_keys(subject: Subject) {
    let mut keys = ORDERED.map(key).to_vec();
    keys.extend(odd_keys());
    keys.sort();
    keys.dedup();
    subject.fill(keys.iter().map(|key| (key.clone(), put("1")))).await;

    let prefixes = ["", "a", "a:z", "B", ":", "a%00", "nobody"];
    let prefixes = prefixes.map(|text| Prefix::parse(text).unwrap());
    let partials = ["", "a", "a%", "z", "\0", "\u{1}", "학"];
    let mut ranges = vec![KeyRange::all()];
    for key in keys.iter().step_by(2) {
        ranges.extend([KeyRange::exactly(key), KeyRange::subtree(key)]);
        ranges.push(KeyRange::all().after(key));
        ranges.push(KeyRange::all().before(key));
    }
    for prefix in &prefixes {
        ranges.push(KeyRange::under(prefix));
        for (at, partial) in partials.iter().enumerate() {
            ranges.push(KeyRange::segment_prefix(prefix, partial));
            ranges.push(KeyRange::between(prefix, Some(partial), None));
            ranges.push(KeyRange::between(prefix, None, Some(partial)));
            for to in &partials[at..] {
                ranges.push(KeyRange::between(prefix, Some(partial), Some(to)));
                ranges.push(KeyRange::between(prefix, Some(to), Some(partial)));
            }
        }
    }
    for range in ranges {
        let mut expected = keys.clone();
        expected.retain(|key| range.contains(key));
        assert_eq!(subject.keys(range.clone()).await, expected, "{range:?}");
        expected.reverse();
        let found = subject.keys_descending(range.clone()).await;
        assert_eq!(found, expected, "{range:?} going down");
    }
}

pub async fn a_range_without_keys_gives_an_empty_end(subject: Subject) {
    let key = key("b");
    let backwards = KeyRange::between(&Prefix::all(), Some("z"), Some("a"));
    assert!(backwards.is_empty());
    let nothing = [
        KeyRange::all(),
        backwards.clone(),
        KeyRange::exactly(&key),
        KeyRange::under(&Prefix::from(&key)),
    ];
    for range in nothing {
        assert_eq!(subject.keys(range.clone()).await, []);
        assert_eq!(subject.keys_descending(range).await, []);
    }
    subject.put(&key, put("1")).await;
    for range in [
        backwards,
        KeyRange::under(&Prefix::from(&key)),
        KeyRange::all().after(&key),
        KeyRange::all().before(&key),
    ] {
        assert_eq!(subject.keys(range.clone()).await, [], "{range:?}");
        assert_eq!(subject.keys_descending(range).await, []);
    }
}

pub async fn scans_carry_whole_entries_or_only_keys(subject: Subject) {
    let mut expected = Vec::new();
    for n in 0..5 {
        let key = key(&format!("row:{n}"));
        let described = put(&n.to_string()).with_metadata(json(&format!(r#"{{"n":{n}}}"#)));
        let entry = subject.put(&key, described).await;
        let entry = Some(entry);
        expected.push(Row { key, entry });
    }
    let scan = Scan::new(KeyRange::all());
    let mut rows = subject.rows(scan.clone()).await;
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(rows, expected, "as single reads give them");

    for row in &mut expected {
        row.entry = None;
    }
    let mut rows = subject.rows(scan.keys_only()).await;
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(rows, expected, "no entries");
}

pub async fn scanning_down_is_the_reverse_or_refused(subject: Subject) {
    let keys = ["a", "b", "c"].map(key);
    subject.fill(keys.map(|key| (key, put("1")))).await;
    let down = Scan::new(KeyRange::all()).order(Order::Descending);
    if !subject.is_ordered() {
        let refused = subject.store.scan(&down).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
        return;
    }
    let up = subject.rows(Scan::new(KeyRange::all())).await;
    let down = subject.rows(down).await;
    assert!(up.iter().eq(down.iter().rev()), "{up:?} and {down:?}");
}
