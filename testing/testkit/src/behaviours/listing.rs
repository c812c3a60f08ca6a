//! Listing keys level by level.

use keyward_engine::{Cursor, ErrorKind, List, Listed, Order};
use keyward_key::{Key, KeyRange, Prefix};

use super::{key, put};
use crate::seeds::{Replay, seeds};
use crate::subject::Subject;

/// What a listing should give, worked out from all keys.
pub(super) fn naive(keys: &[Key], list: &List) -> Vec<Listed> {
    let below = KeyRange::under(&list.prefix);
    let mut items: Vec<Listed> = keys
        .iter()
        .filter(|key| below.contains(key))
        .filter(|key| !list.without.iter().any(|root| KeyRange::subtree(root).contains(key)))
        .map(|key| {
            let level = list.depth.map(|depth| list.prefix.depth() + depth);
            match level.and_then(|level| key.ancestor(level)) {
                Some(prefix) => Listed::Prefix(prefix),
                None => Listed::Key(key.clone()),
            }
        })
        .collect();
    items.dedup();
    if list.order == Order::Descending {
        items.reverse();
    }
    items
}

/// All items of a listing, page by page.
pub(super) async fn items(subject: &Subject, mut list: List) -> Vec<Listed> {
    let mut items = Vec::new();
    loop {
        let page = subject.store.list(&list).await.unwrap();
        assert!(page.items.len() <= list.limit);
        items.extend(page.items);
        let Some(next) = page.next else { break items };
        list.after = Some(next);
    }
}

/// Whether this engine lists by levels; if not, it must say so.
async fn lists_by_level(subject: &Subject) -> bool {
    if subject.is_ordered() {
        return true;
    }
    let list = List::new(Prefix::all()).depth(1);
    let refused = subject.store.list(&list).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    false
}

pub async fn a_listing_without_depth_gives_every_key(subject: Subject) {
    let mut keys = ["a", "a:b", "a:b:c", "a:d", "b"].map(key);
    keys.sort();
    subject.fill(keys.iter().map(|key| (key.clone(), put("1")))).await;
    let list = List::new(Prefix::parse("a").unwrap()).limit(1);
    let mut found = items(&subject, list).await;
    found.sort_by_key(|item| match item {
        Listed::Key(key) => key.clone(),
        Listed::Prefix(prefix) => panic!("{prefix} is no key"),
    });
    let expected = ["a:b", "a:b:c", "a:d"].map(|text| Listed::Key(key(text)));
    assert_eq!(found, expected);
}

pub async fn a_key_and_the_prefix_of_its_name_are_both_listed(subject: Subject) {
    if !lists_by_level(&subject).await {
        return;
    }
    let keys = ["a", "a:b", "a:b:c", "a:b:d", "a:c", "b:c", "c"].map(key);
    subject.fill(keys.map(|key| (key, put("1")))).await;
    let shown = async |prefix: &str, depth| -> Vec<String> {
        let list = List::new(Prefix::parse(prefix).unwrap()).depth(depth);
        let found = items(&subject, list).await;
        let show = |item: &Listed| match item {
            Listed::Key(key) => key.to_string(),
            Listed::Prefix(prefix) => prefix.to_string(),
        };
        found.iter().map(show).collect()
    };
    assert_eq!(shown("", 1).await, ["a", "a:", "b:", "c"]);
    assert_eq!(shown("a", 1).await, ["a:b", "a:b:", "a:c"]);
    assert_eq!(shown("", 2).await, ["a", "a:b", "a:b:", "a:c", "b:c", "c"]);
    assert_eq!(shown("a:b", 1).await, ["a:b:c", "a:b:d"]);
    assert!(shown("c", 1).await.is_empty());
}

pub async fn listings_by_level_agree_with_a_naive_listing(subject: Subject) {
    if !lists_by_level(&subject).await {
        return;
    }
    const SEGMENTS: [&str; 7] = ["", "\u{1}", "a", "a-b", "b", "b:c", "학"];
    for seed in seeds(3, 50) {
        let mut replay = Replay::new(subject.test, seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let subject = subject.another().await;
        let mut keys: Vec<Key> = (0..rng.usize(1..120))
            .filter_map(|_| {
                let depth = rng.usize(1..=5);
                let segments = (0..depth).map(|_| SEGMENTS[rng.usize(..SEGMENTS.len())]);
                // One empty segment is no key.
                Key::from_segments(segments.collect::<Vec<_>>()).ok()
            })
            .collect();
        keys.sort();
        keys.dedup();
        subject.fill(keys.iter().map(|key| (key.clone(), put("1")))).await;

        let prefixes = [
            Prefix::all(),
            Prefix::from_segments([""]),
            Prefix::from_segments(["a"]),
            Prefix::from_segments(["a", "b:c"]),
            Prefix::from_segments(["b", "", "\u{1}"]),
        ];
        for prefix in prefixes {
            for order in [Order::Ascending, Order::Descending] {
                for depth in 1..=4 {
                    for limit in [1, 2, 3, 7, 100] {
                        let list = List::new(prefix.clone()).depth(depth).order(order).limit(limit);
                        replay.step(format!("{list:?}"));
                        let found = items(&subject, list.clone()).await;
                        assert_eq!(found, naive(&keys, &list));
                    }
                }
                // Some subtrees left out, one of them inside of another.
                let without = [&["b"][..], &["a", "a"], &["b", "학"]];
                let without = without.map(|segments| Key::from_segments(segments).unwrap());
                for (depth, limit) in [(None, 1), (None, 3), (Some(1), 2), (Some(2), 3)] {
                    let list = List::new(prefix.clone()).order(order).limit(limit);
                    let list = List { depth, ..list.without(without.to_vec()) };
                    replay.step(format!("{list:?}"));
                    let found = items(&subject, list.clone()).await;
                    assert_eq!(found, naive(&keys, &list));
                }
            }
        }
    }
}

pub async fn a_large_subtree_is_listed_as_one_prefix(subject: Subject) {
    if !lists_by_level(&subject).await {
        return;
    }
    let many = (0..300).map(|n| key(&format!("b:{n:03}:x")));
    let around = ["a", "b", "c:d", "d"].map(key);
    subject.fill(many.chain(around).map(|key| (key, put("1")))).await;
    for order in [Order::Ascending, Order::Descending] {
        let list = List::new(Prefix::all()).depth(1).order(order);
        let mut found = items(&subject, list).await;
        if order == Order::Descending {
            found.reverse();
        }
        let below = |text| Listed::Prefix(Prefix::parse(text).unwrap());
        let at = |text| Listed::Key(key(text));
        let expected = [at("a"), at("b"), below("b"), below("c"), at("d")];
        assert_eq!(found, expected, "{order:?}");
    }
}

pub async fn listings_that_make_no_sense_are_refused(subject: Subject) {
    if !lists_by_level(&subject).await {
        return;
    }
    let list = List::new(Prefix::all());
    for nonsense in [
        list.clone().limit(0),
        list.clone().depth(1).limit(0),
        list.clone().depth(0),
        list.clone().depth(1).after(Some(Cursor::new("x"))),
        list.clone().depth(1).after(Some(Cursor::new(""))),
        list.clone().depth(1).after(Some(Cursor::new("k\u{1}"))),
    ] {
        let refused = subject.store.list(&nonsense).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{nonsense:?}: {refused}");
    }
}
