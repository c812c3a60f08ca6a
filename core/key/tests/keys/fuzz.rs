//! Fuzz targets. They run over random inputs and the kept corpus as ordinary tests; with
//! `cargo bolero test -p keyward-key fuzz::NAME` they run under a coverage-guided engine.

use keyward_key::{Key, KeyRange, Pattern, PatternSet, Prefix};

#[test]
fn any_text_is_a_key_or_a_clear_error() {
    bolero::check!().for_each(|input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        match Key::parse(&text) {
            Ok(key) => {
                assert_eq!(key.to_string(), text);
                assert!(KeyRange::subtree(&key).contains(&key));
            }
            Err(error) => {
                assert!(text.is_char_boundary(error.offset()));
                assert!(!error.pointing().is_empty());
            }
        }
        if let Ok(prefix) = Prefix::parse(&text) {
            assert_eq!(Prefix::parse(&prefix.to_string()).unwrap(), prefix);
        }
    });
}

#[test]
fn any_text_is_a_pattern_or_a_clear_error() {
    bolero::check!().for_each(|input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        match Pattern::parse(&text) {
            Ok(pattern) => {
                assert_eq!(pattern.as_str(), text);
                assert!(PatternSet::new([pattern.clone(), pattern]).is_err());
            }
            Err(error) => assert!(text.is_char_boundary(error.offset())),
        }
    });
}

#[test]
fn any_pattern_and_any_key_agree_on_build_and_parse() {
    bolero::check!().for_each(|input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let Some((pattern, key)) = text.split_once('\n') else {
            return;
        };
        let (Ok(pattern), Ok(key)) = (Pattern::parse(pattern), Key::parse(key)) else {
            return;
        };
        if let Some(values) = pattern.parse_key(&key) {
            assert_eq!(pattern.build(&values).unwrap(), key);
        }
    });
}
