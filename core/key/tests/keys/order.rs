use keyward_key::{Key, KeyRange, Prefix};
use proptest::prelude::*;

use crate::generate::{segment, segments};

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn keys_order_as_their_segments_do(a in segments(), b in segments()) {
        let (key_a, key_b) = (Key::from_segments(&a).unwrap(), Key::from_segments(&b).unwrap());
        prop_assert_eq!(key_a.cmp(&key_b), a.cmp(&b));
        prop_assert_eq!(key_a.as_bytes().cmp(key_b.as_bytes()), a.cmp(&b));
    }

    #[test]
    fn under_a_prefix_are_exactly_the_longer_keys_with_its_segments(
        prefix in prop::collection::vec(segment(), 0..3),
        key in segments(),
        graft in any::<bool>(),
    ) {
        let key = if graft { [prefix.clone(), key].concat() } else { key };
        let Ok(as_key) = Key::from_segments(&key) else { return Ok(()) };
        let range = KeyRange::under(&Prefix::from_segments(&prefix));
        let expected = key.len() > prefix.len() && key.starts_with(&prefix);
        prop_assert_eq!(range.contains(&as_key), expected);
    }

    #[test]
    fn a_subtree_is_the_key_and_what_is_under_it(root in segments(), key in segments(), graft in any::<bool>()) {
        let key = if graft { [root.clone(), key].concat() } else { key };
        let range = KeyRange::subtree(&Key::from_segments(&root).unwrap());
        prop_assert_eq!(range.contains(&Key::from_segments(&key).unwrap()), key.starts_with(&root));
    }

    #[test]
    fn a_segment_prefix_stays_inside_its_segment(
        prefix in prop::collection::vec(segment(), 0..2),
        partial in segment(),
        key in segments(),
        graft in any::<bool>(),
    ) {
        let key = if graft { [prefix.clone(), key].concat() } else { key };
        let Ok(as_key) = Key::from_segments(&key) else { return Ok(()) };
        let range = KeyRange::segment_prefix(&Prefix::from_segments(&prefix), &partial);
        let expected = key.len() > prefix.len()
            && key.starts_with(&prefix)
            && key[prefix.len()].starts_with(&partial);
        prop_assert_eq!(range.contains(&as_key), expected);
    }

    #[test]
    fn a_range_of_segment_values_is_inclusive_and_misses_nothing(
        prefix in prop::collection::vec(segment(), 0..2),
        from in prop::option::of(segment()),
        to in prop::option::of(segment()),
        key in segments(),
        graft in any::<bool>(),
    ) {
        let key = if graft { [prefix.clone(), key].concat() } else { key };
        let Ok(as_key) = Key::from_segments(&key) else { return Ok(()) };
        let range =
            KeyRange::between(&Prefix::from_segments(&prefix), from.as_deref(), to.as_deref());
        let expected = key.len() > prefix.len()
            && key.starts_with(&prefix)
            && from.is_none_or(|from| key[prefix.len()] >= from)
            && to.is_none_or(|to| key[prefix.len()] <= to);
        prop_assert_eq!(range.contains(&as_key), expected);
    }

    #[test]
    fn narrowing_keeps_exactly_one_side(at in segments(), key in segments(), graft in any::<bool>()) {
        let key = if graft { [at.clone(), key].concat() } else { key };
        let (at_key, key_key) = (Key::from_segments(&at).unwrap(), Key::from_segments(&key).unwrap());
        let at_prefix = Prefix::from_segments(&at);
        let all = KeyRange::all();
        let below = KeyRange::under(&at_prefix).contains(&key_key);
        prop_assert_eq!(all.after(&at_key).contains(&key_key), key > at);
        prop_assert_eq!(all.before(&at_key).contains(&key_key), key < at);
        prop_assert_eq!(all.after_prefix(&at_prefix).contains(&key_key), key > at && !below);
        prop_assert_eq!(all.before_prefix(&at_prefix).contains(&key_key), key <= at);
    }

    #[test]
    fn an_ancestor_has_the_leading_segments(key in segments(), depth in 0_usize..6) {
        let ancestor = Key::from_segments(&key).unwrap().ancestor(depth);
        let expected = (depth < key.len()).then(|| Prefix::from_segments(&key[..depth]));
        prop_assert_eq!(ancestor, expected);
    }
}

#[test]
fn listing_user_7_never_shows_user_70() {
    let under = KeyRange::under(&Prefix::parse("user:7").unwrap());
    for (key, expected) in [
        ("user:7:notes:1", true),
        ("user:7:", true),
        ("user:7", false),
        ("user:70", false),
        ("user:70:notes:1", false),
        ("user:7%3A:notes", false),
        ("user:7%00:notes", false),
        ("user:7-1:notes", false),
        ("user:6", false),
    ] {
        assert_eq!(under.contains(&Key::parse(key).unwrap()), expected, "{key}");
    }
}

#[test]
fn a_range_lies_within_another_if_all_its_keys_do() {
    let key = |text: &str| Key::parse(text).unwrap();
    let (user, seven) = (KeyRange::subtree(&key("user")), KeyRange::subtree(&key("user:7")));
    let open = KeyRange::from_bounds(seven.start().to_vec(), None::<Vec<u8>>);
    let below = KeyRange::from_bounds(Vec::new(), seven.end().map(<[u8]>::to_vec));
    let nothing = KeyRange::from_bounds(key("b").as_bytes().to_vec(), Some(Vec::new()));
    for (inner, outer, within) in [
        (&seven, &user, true),
        (&user, &seven, false),
        (&seven, &seven, true),
        (&seven, &KeyRange::subtree(&key("user:70")), false),
        (&KeyRange::exactly(&key("user:7")), &seven, true),
        (&open, &seven, false),
        (&below, &seven, false),
        (&seven, &open, true),
        (&KeyRange::all(), &user, false),
        (&user, &KeyRange::all(), true),
        (&nothing, &seven, true),
    ] {
        assert_eq!(inner.is_within(outer), within, "{inner:?} in {outer:?}");
        let sent = KeyRange::from_bounds(inner.start().to_vec(), inner.end().map(<[u8]>::to_vec));
        assert_eq!(&sent, inner);
    }
}
