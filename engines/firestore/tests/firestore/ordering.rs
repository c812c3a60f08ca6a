//! Firestore's order of ids is that of keys.

use keyward_engine::{Commit, Order, Scan};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_testkit::TestClock;

use crate::emulator::{put, with_fresh};

/// Characters around every border of UTF-8's and UTF-16's order, and those that ids escape.
const CHARACTERS: [char; 30] = [
    '\0',
    '\u{1}',
    '\u{2}',
    '\u{1f}',
    ' ',
    '!',
    '"',
    '#',
    '%',
    '.',
    '/',
    '0',
    ':',
    '=',
    '>',
    'A',
    'a',
    '_',
    '`',
    '~',
    '\u{7f}',
    '\u{80}',
    'é',
    '학',
    '\u{d7ff}',
    '\u{e000}',
    '\u{ffff}',
    '\u{10000}',
    '\u{1f600}',
    '\u{10ffff}',
];

#[test]
fn ids_sort_as_keys_do_also_above_the_basic_plane() {
    with_fresh(async |fresh| {
        let store = fresh.store(TestClock::new()).await;
        let mut keys = Vec::new();
        for one in CHARACTERS {
            keys.push(Key::from_segments([one.to_string()]).unwrap());
            keys.push(Key::from_segments([one.to_string(), "__a__".to_owned()]).unwrap());
            for other in ['\0', 'a', '\u{e000}', '\u{10000}'] {
                keys.push(Key::from_segments([format!("a{one}{other}")]).unwrap());
            }
        }
        keys.sort();
        keys.dedup();
        for some in keys.chunks(100) {
            let commit =
                some.iter().fold(Commit::new(), |commit, key| commit.put(key.clone(), put("1")));
            assert!(store.commit(commit).await.unwrap().is_applied());
        }
        let under = Prefix::from(&Key::from_segments(["\u{10000}"]).unwrap());
        for range in [
            KeyRange::all(),
            KeyRange::under(&under),
            KeyRange::segment_prefix(&Prefix::all(), "a\u{e000}"),
        ] {
            let expected: Vec<_> = keys.iter().filter(|key| range.contains(key)).cloned().collect();
            assert!(!expected.is_empty());
            for order in [Order::Ascending, Order::Descending] {
                let mut scan = Scan::new(range.clone()).order(order).limit(7).keys_only();
                let mut found = Vec::new();
                loop {
                    let page = store.scan(&scan).await.unwrap();
                    found.extend(page.rows.into_iter().map(|row| row.key));
                    let Some(next) = page.next else { break };
                    scan.after = Some(next);
                }
                if order == Order::Descending {
                    found.reverse();
                }
                assert_eq!(found, expected, "{order:?} {range:?}");
            }
        }
    });
}
