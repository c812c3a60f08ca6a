use jiff::Timestamp;
use keyward_key::{Bindings, Key, Pattern, PatternSet, RESERVED_FIRST_SEGMENTS, is_reserved};
use proptest::prelude::*;

use crate::generate::{segment, segments};

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap()
}

fn moment() -> impl Strategy<Value = Timestamp> {
    // From the year 0000 to the last moment there is a time for, late in 9999.
    (-62_167_219_200_i64..Timestamp::MAX.as_second(), 0_i32..1_000_000_000)
        .prop_map(|(second, nanosecond)| Timestamp::new(second, nanosecond).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn build_and_parse_are_inverse(
        page in segment(),
        source in segment(),
        n in any::<u64>(),
        at in moment(),
        language in prop::option::of(segment()),
    ) {
        let pattern = pattern("{page}:policy:{source}:{n:u64}:{at:time}[:{language}]");
        let mut values = Bindings::new()
            .with("page", page.as_str())
            .with("source", source.as_str())
            .with("n", n)
            .with("at", at);
        if let Some(language) = &language {
            values = values.with("language", language.as_str());
        }
        let buildable = !page.is_empty()
            && !is_reserved(&page)
            && !source.is_empty()
            && language.as_ref().is_none_or(|language| !language.is_empty());
        match pattern.build(&values) {
            Ok(key) => {
                prop_assert!(buildable);
                prop_assert_eq!(pattern.parse_key(&key), Some(values));
            }
            Err(_) => prop_assert!(!buildable),
        }
    }

    #[test]
    fn a_key_that_parses_builds_again(key in segments()) {
        let key = Key::from_segments(&key).unwrap();
        for text in ["{a}", "{a}:{b}", "{a}[:{b}[:{c}:{d}]]", "a:{b}[:7:{c}]"] {
            let pattern = pattern(text);
            if let Some(values) = pattern.parse_key(&key) {
                prop_assert_eq!(&pattern.build(&values).unwrap(), &key);
            }
        }
    }

    #[test]
    fn numbers_and_times_sort_in_key_order(a in (any::<u64>(), moment()), b in (any::<u64>(), moment())) {
        let pattern = pattern("x:{n:u64}:{at:time}");
        let key = |(n, at): (u64, Timestamp)| {
            pattern.build(&Bindings::new().with("n", n).with("at", at)).unwrap()
        };
        prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
    }
}

#[test]
fn the_documents_keys_come_out_as_written() {
    let at = "2026-11-15T21:59:51.5Z".parse::<Timestamp>().unwrap();
    for (text, values, key) in [
        (
            "{page}:policy:{source}[:{language}]",
            vec![("page", "abc123".into()), ("source", "att789".into())],
            "abc123:policy:att789",
        ),
        (
            "user:{userId}:notes:{noteId}",
            vec![("userId", "a1".into()), ("noteId", "note_001".into())],
            "user:a1:notes:note_001",
        ),
        ("policy:{policyName}", vec![("policyName", "학칙".into())], "policy:학칙"),
        (
            "shared:posts:recent:{at:time}:{post}",
            vec![("at", at.into()), ("post", "p".into())],
            "shared:posts:recent:20261115T215951.500000000Z:p",
        ),
        (
            "lock:{root}:{token:u64}",
            vec![("root", "p".into()), ("token", 42_u64.into())],
            "lock:p:00000000000000000042",
        ),
    ] {
        let values = values
            .into_iter()
            .fold(Bindings::new(), |all, (name, value): (&str, keyward_key::SegmentValue)| {
                all.with(name, value)
            });
        assert_eq!(pattern(text).build(&values).unwrap().to_string(), key);
    }
}

#[test]
fn a_bad_pattern_is_refused_where_it_goes_wrong() {
    for (text, position, says) in [
        ("", 1, "cannot be empty"),
        ("a::b", 3, "expected a segment"),
        ("a:", 3, "expected a segment"),
        (":a", 1, "expected a segment"),
        ("user-{id}", 6, "either a literal or one {variable}"),
        ("{id}x", 5, "expected \":\""),
        ("{id", 1, "close the variable"),
        ("{1d}", 2, "starts with no digit"),
        ("{}", 2, "name is made of"),
        ("{a}:{a}", 6, "twice"),
        ("{a:i32}", 4, "text, u64 or time"),
        ("a[b]", 3, "starts with \":\""),
        ("a[:{b}", 7, "close the optional part"),
        ("a[:b]", 5, "a {variable} of its own"),
        ("a[:{b}]:c", 8, "at the end"),
        ("a[:{b}][:{c}]", 8, "[:{a}[:{b}]]"),
        ("a]", 2, "closes nothing"),
        ("a}b", 2, "expected \":\""),
        ("50%:a", 3, "%25"),
    ] {
        let error = text.parse::<Pattern>().unwrap_err();
        assert_eq!(error.position(), position, "{text}: {error}");
        assert!(error.message().contains(says), "{text}: {error}");
    }
}

#[test]
fn values_that_do_not_fit_are_refused_by_name() {
    let policy = pattern("{page}:policy:{source}[:{language}[:{region}]]");
    let base = Bindings::new().with("page", "p").with("source", "s");
    for (values, says) in [
        (Bindings::new().with("page", "p"), "needs a value for {source}"),
        (base.clone().with("region", "r"), "needs a value for {language}"),
        (base.clone().with("lang", "fr"), "no such variable"),
        (base.clone().with("language", ""), "{language} cannot be empty"),
        (base.clone().with("page", 7_u64), "{page} takes text, not 7"),
        (base.clone().with("page", "job"), "belong to Keyward"),
    ] {
        let error = policy.build(&values).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    for reserved in RESERVED_FIRST_SEGMENTS {
        assert!(policy.build(&base.clone().with("page", reserved)).is_err());
        assert!(!policy.matches(&Key::from_segments([reserved, "policy", "s"]).unwrap()));
        assert!(policy.build(&base.clone().with("source", reserved)).is_ok());
    }
}

#[test]
fn a_prefix_stops_at_the_first_unknown_value() {
    let policy = pattern("{page}:policy:{source}[:{language}]");
    let prefix = |values: Bindings| policy.prefix(&values).map(|prefix| prefix.to_string());
    assert_eq!(prefix(Bindings::new()).unwrap(), "");
    assert_eq!(prefix(Bindings::new().with("page", "p")).unwrap(), "p:policy:");
    let original = Bindings::new().with("page", "p").with("source", "s");
    assert_eq!(prefix(original.clone()).unwrap(), "p:policy:s:");
    assert_eq!(prefix(original.with("language", "fr")).unwrap(), "p:policy:s:");
    assert!(prefix(Bindings::new().with("source", "s")).is_err());
}

#[test]
fn patterns_that_could_claim_one_key_are_refused_with_both_named() {
    for (first, second, example) in [
        ("{page}", "{other}", Some("other")),
        (
            "{page}:policy:{source}",
            "{page}:policy:{source}[:{language}]",
            Some("page:policy:source"),
        ),
        ("{page}", "{job}", Some("my-job")),
        ("user:{id}", "{kind}:{id}", Some("user:id")),
        ("user:{id}", "user:me", Some("user:me")),
        ("x:{n:u64}", "x:{any}", Some("x:00000000000000000007")),
        ("x:{n:u64}", "x:{at:time}", None),
        ("x:{n:u64}", "x:latest", None),
        ("x:{at:time}", "x:20260101T000000.000000000Z", Some("x:20260101T000000.000000000Z")),
        ("{page}:issue:{id}", "{page}:policy:{id}", None),
        ("{page}:issue:{id}", "job:{id}", None),
        ("{page}:{what}", "job:{id}", None),
        ("{page}:policy:{token}", "lock:{root}:{token}", None),
        ("a[:{b}[:c:{d}]]", "a:{x}:c:7", Some("a:x:c:7")),
        ("user:{id}:notes:{n}", "user:{id}:posts:{n}", None),
    ] {
        let outcome = PatternSet::new([pattern(first), pattern(second)]);
        match (outcome, example) {
            (Ok(_), None) => {}
            (Err(clash), Some(example)) => {
                assert_eq!((clash.first.as_str(), clash.second.as_str()), (first, second));
                assert!(clash.to_string().contains(first) && clash.to_string().contains(second));
                assert!(clash.first.matches(&clash.example), "{clash}");
                assert!(clash.second.matches(&clash.example), "{clash}");
                assert_eq!(clash.example.to_string(), example);
            }
            (outcome, _) => panic!("{first} and {second}: {outcome:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn no_key_has_two_patterns_of_a_set(
        texts in prop::collection::vec("[ab{}:]{0,1}(a|b|\\{x\\}|\\{n:u64\\}|job)(:(a|\\{y\\}|7))?(\\[:(\\{z\\}|b)\\])?", 2..4),
        keys in prop::collection::vec("(a|b|job|7|00000000000000000007)(:(a|b|7)){0,3}", 1..4),
    ) {
        let patterns: Vec<Pattern> = texts.iter().filter_map(|text| text.parse().ok()).collect();
        let keys: Vec<Key> = keys.iter().filter_map(|key| Key::parse(key).ok()).collect();
        let shared = keys.iter().any(|key| patterns.iter().filter(|p| p.matches(key)).count() > 1);
        if shared {
            prop_assert!(PatternSet::new(patterns).is_err());
        }
    }
}
