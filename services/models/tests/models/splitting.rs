//! Documents that are cut into parts.

use keyward_models::split_markdown;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn assert_whole(document: &str, chars_max: usize) {
    let parts = split_markdown(document, chars_max);
    assert_eq!(parts.concat(), document);
    for part in parts {
        assert!(!part.is_empty());
        assert!(part.chars().count() <= chars_max.max(1), "{part:?}");
    }
}

/// Pieces of Markdown, put together in any order.
fn document() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("# One\n".to_owned()),
        Just("## Two\n\n".to_owned()),
        Just("Title\n=====\n".to_owned()),
        Just("```rust\n# no heading\n\nlet a = 1;\n```\n".to_owned()),
        Just("~~~\nopen\n".to_owned()),
        Just("- item one. More.\n  - nested\n\n    para\n".to_owned()),
        Just("> quoted. Text.\n> ```\n> code\n> ```\n".to_owned()),
        Just("| a | b |\n|---|---|\n| 1. | 2 |\n".to_owned()),
        Just("제1조. 휴가는 20일이다。 다음 문장！\n\n".to_owned()),
        Just("---\r\nkey: value\r\n---\r\n".to_owned()),
        Just("<div>\nraw. html\n</div>\n\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\u{0}\u{301}👩‍👩‍👧\t".to_owned()),
        "[a-z]{1,40}[.!?]? ",
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..25).prop_map(|pieces| pieces.concat())
}

#[test]
fn the_parts_are_the_document_and_none_is_too_long() {
    // The same inputs every time; a failure prints the input, which is all that is needed.
    let config = Config { cases: 1_500, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let tried = runner.run(&(document(), 0_usize..200), |(document, chars_max)| {
        assert_whole(&document, chars_max);
        Ok(())
    });
    tried.unwrap();
}

#[test]
fn headings_are_cut_at_by_level() {
    let document = "Intro.\n\n# A\n\naaa\n\n## A1\n\naaa\n\n## A2\n\naaa\n\n# B\n\nbbb\n";
    assert_eq!(split_markdown(document, 1_000), [document]);
    assert_eq!(
        split_markdown(document, 40),
        ["Intro.\n\n", "# A\n\naaa\n\n## A1\n\naaa\n\n## A2\n\naaa\n\n", "# B\n\nbbb\n"]
    );
    assert_eq!(
        split_markdown(document, 25),
        ["Intro.\n\n", "# A\n\naaa\n\n## A1\n\naaa\n\n", "## A2\n\naaa\n\n", "# B\n\nbbb\n"]
    );
}

#[test]
fn without_headings_paragraphs_are_cut_at_and_then_sentences_and_words() {
    let document = "One two. Three four.\n\nFive six seven eight. Nine.\n";
    assert_eq!(
        split_markdown(document, 30),
        ["One two. Three four.\n\n", "Five six seven eight. Nine.\n"]
    );
    assert_eq!(
        split_markdown(document, 22),
        ["One two. Three four.\n\n", "Five six seven eight. ", "Nine.\n"]
    );
    assert_eq!(split_markdown("aaaa bbbb cccc", 10), ["aaaa bbbb ", "cccc"]);
    assert_eq!(split_markdown("하나다。둘이다。셋", 4), ["하나다。", "둘이다。", "셋"]);
    assert_eq!(split_markdown("aaaaaaa", 3), ["aaa", "aaa", "a"]);
}

#[test]
fn code_is_cut_only_if_it_is_too_long_by_itself() {
    let code = "```sh\n# no heading. Nor a sentence.\n\nmake it\n```\n";
    let document = format!("Before it, a text.\n\n{code}\nAfter it.\n");
    let parts = split_markdown(&document, code.chars().count() + 1);
    assert!(parts.iter().any(|part| part.starts_with(code)), "{parts:?}");
    // In a list, the same.
    let item = "- Do this. And that.\n\n  ```\n  a. b. c. d.\n  ```\n";
    let document = item.repeat(3);
    for part in split_markdown(&document, 30) {
        assert_eq!(part.matches("```").count() % 2, 0, "{part:?}");
    }
    let long = format!("```\n{}```\n", "a line. of code\n".repeat(20));
    for part in split_markdown(&long, 50) {
        assert!(part.ends_with('\n'), "{part:?}");
    }
}

#[test]
fn lists_and_tables_are_cut_between_their_items_and_rows() {
    let list = "- one\n- two\n- three\n";
    assert_eq!(split_markdown(list, 12), ["- one\n- two\n", "- three\n"]);
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n";
    for part in split_markdown(table, 32) {
        assert!(part.starts_with("| ") && part.ends_with(" |\n"), "{part:?}");
    }
}

#[test]
fn a_document_of_nothing_has_no_parts_and_a_limit_of_nothing_is_one() {
    assert!(split_markdown("", 5).is_empty());
    assert_eq!(split_markdown("\n", 5), ["\n"]);
    assert_eq!(split_markdown("ab", 0), ["a", "b"]);
}

#[test]
fn a_long_line_takes_no_longer_than_its_length() {
    // Quadratic work on these would take minutes.
    for document in ["가".repeat(400_000), "가. ".repeat(200_000), "# 가\n".repeat(100_000)] {
        assert_whole(&document, 8_000);
    }
}
