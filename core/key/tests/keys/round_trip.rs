use keyward_key::{Key, KeyError, Prefix};
use proptest::prelude::*;

use crate::generate::{segment, segments};

proptest! {
    #![proptest_config(ProptestConfig { cases: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn text_and_bytes_give_back_the_same_segments(segments in segments()) {
        let key = Key::from_segments(&segments).unwrap();
        let text = key.to_string();

        prop_assert_eq!(key.segments().collect::<Vec<_>>(), segments.clone());
        prop_assert_eq!(key.depth(), segments.len());
        prop_assert_eq!(&Key::parse(&text).unwrap(), &key);
        prop_assert_eq!(&Key::from_bytes(key.to_bytes()).unwrap(), &key);
        prop_assert_eq!(text.split(':').count(), segments.len());
        prop_assert!(!text.chars().any(char::is_control));
    }

    #[test]
    fn a_text_that_parses_is_the_only_text_of_its_key(text in ".{0,12}") {
        if let Ok(key) = Key::parse(&text) {
            prop_assert_eq!(key.to_string(), text);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_are_a_key(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        if let Ok(key) = Key::from_bytes(bytes.clone()) {
            let again = Key::from_segments(key.segments()).unwrap();
            prop_assert_eq!(again.as_bytes(), &bytes[..]);
        }
    }
}

proptest! {
    #[test]
    fn prefixes_round_trip_with_and_without_their_separator(
        segments in prop::collection::vec(segment(), 0..4),
    ) {
        let prefix = Prefix::from_segments(&segments);
        let text = prefix.to_string();
        prop_assert_eq!(&Prefix::parse(&text).unwrap(), &prefix);
        if segments.last().is_some_and(|last| !last.is_empty()) {
            prop_assert_eq!(&Prefix::parse(text.trim_end_matches(':')).unwrap(), &prefix);
        }
        prop_assert_eq!(prefix.segments().collect::<Vec<_>>(), segments);
    }
}

#[test]
fn a_key_is_never_empty() {
    assert_eq!(Key::from_segments([""]), Err(KeyError::Empty));
    assert_eq!(Key::from_segments::<&str>([]), Err(KeyError::Empty));
    assert_eq!(Key::from_bytes(Vec::new()), Err(KeyError::Empty));
    assert!(Key::parse("").unwrap_err().to_string().contains("cannot be empty"));
    assert_eq!(Key::parse("a:").unwrap().segments().collect::<Vec<_>>(), ["a", ""]);
    assert_eq!(Key::parse(":").unwrap().depth(), 2);
}

#[test]
fn a_parse_error_points_at_the_character() {
    let error = Key::parse("학칙:50%").unwrap_err();
    assert_eq!(error.position(), 6);
    assert_eq!(error.pointing().lines().nth(1).unwrap().find('^'), Some(2 + 5));
}
