//! Titles of Markdown texts.

use keyward_registry::title;

#[test]
fn the_title_is_the_first_heading_of_level_one_as_plain_text() {
    for (text, wanted) in [
        ("# 학칙\n", Some("학칙")),
        ("#   학칙   #\n", Some("학칙")),
        ("\n\n학칙 개정\n=====\n", Some("학칙 개정")),
        ("두 줄\n제목\n===\n", Some("두 줄 제목")),
        ("## 장\n# 편\n# 다른 편\n", Some("편")),
        ("text\n\n# after\n", Some("after")),
        (
            "# 제1조 (**목적**) [링크](https://example.org) `코드` ~~x~~\n",
            Some("제1조 (목적) 링크 코드 ~~x~~"),
        ),
        ("# a &amp; b \\# c\n", Some("a & b # c")),
        ("# ![그림 설명](a.png) 뒤\n", Some("그림 설명 뒤")),
        ("# <b>굵은</b> 글\n", Some("굵은 글")),
        ("#\n# second\n", Some("second")),
        ("> # quoted\n", Some("quoted")),
        ("#no space\n", None),
        ("## only a chapter\n", None),
        ("", None),
        ("plain\n", None),
        ("#\n", None),
        ("---\n", None),
    ] {
        assert_eq!(title(text).as_deref(), wanted, "{text:?}");
    }
}

#[test]
fn code_is_no_heading() {
    for text in [
        "```\n# code\n```\n# real\n",
        "~~~sh\n# code\n~~~\n# real\n",
        "    # code\n\n# real\n",
        "````\n```\n# code\n```\n````\n# real\n",
        "<!-- \n# comment\n-->\n\n# real\n",
        "<pre>\n# code\n</pre>\n\n# real\n",
    ] {
        assert_eq!(title(text).as_deref(), Some("real"), "{text:?}");
    }
    assert_eq!(title("```\n# never closed\n"), None);
}

#[test]
fn front_matter_is_skipped_at_the_very_beginning_only() {
    for (text, wanted) in [
        ("---\ntitle: x\n# comment\n---\n# real\n", Some("real")),
        ("---\r\ntitle: x\r\n# comment\r\n---\r\n# real\r\n", Some("real")),
        ("---\na: 1\n...\n# real\n", Some("real")),
        ("\u{feff}---\n# comment\n---\n# real\n", Some("real")),
        ("\u{feff}# marked\n", Some("marked")),
        ("---\n# not closed\n", Some("not closed")),
        ("\n---\n# not at the beginning\n---\n", Some("not at the beginning")),
        ("----\n# a rule\n----\n", Some("a rule")),
        ("---\n---\n# empty front\n", Some("empty front")),
    ] {
        assert_eq!(title(text).as_deref(), wanted, "{text:?}");
    }
}

#[test]
fn a_title_is_one_line_of_bounded_length() {
    assert_eq!(title("# a\t b\u{a0}\u{3000} c\n").as_deref(), Some("a b c"));
    assert_eq!(title("# a&#10;b&#0;c&#7;d\n").map(|title| title.contains('\n')), Some(false));
    let long = title(&format!("# {}\n", "가".repeat(10_000))).unwrap();
    assert_eq!(long.chars().count(), 500);
    let words = title(&format!("# {}\n", "가나 ".repeat(10_000))).unwrap();
    assert!(words.chars().count() <= 500 && !words.ends_with(' '), "{}", words.chars().count());
}

#[test]
fn no_text_takes_long_or_panics() {
    let odd = ["[", "*_", "`", "# ", "<", "&", "![", "---\n", "\u{0}", "> "];
    let mut random = fastrand::Rng::with_seed(8);
    for part in odd {
        drop(title(&part.repeat(50_000)));
    }
    for _ in 0..300 {
        let text: String = (0..200).map(|_| odd[random.usize(..odd.len())]).collect();
        drop(title(&text));
    }
}
