//! What is told about schemas that are wrong: each problem with its code and its place.

use std::collections::BTreeSet;

use keyward_schema::{Problems, Schema, Severity};

use crate::cases::{CASES, Case};

/// Codes of problems that have no place in the schema's text, which other tests look at.
const ELSEWHERE: [&str; 10] = [
    "coordinator",
    "file-unreadable",
    "file-too-large",
    "too-many-problems",
    "key-too-long",
    "key-room",
    "value-too-large",
    "ttl-too-short",
    "ttl-unsupported",
    "unknown-store",
];

fn expanded(text: &str) -> String {
    let space = |key: &str, ownership: &str| {
        format!("[stores.a]\n[spaces.s]\nkey = '{key}'\nownership = '{ownership}'")
    };
    let begin = match text.chars().next() {
        Some('S') => space("shared:s:{s}", "shared"),
        Some('U') => space("user:{user}:s:{n}", "user"),
        Some('H') => space("user:{user}:s:{n}", "hybrid"),
        _ => return text.to_owned(),
    };
    let queries: Vec<String> =
        (0..65).map(|n| format!("{{ name = 'q{n}', by = ['s'] }}")).collect();
    format!("{begin}{}", &text[1..]).replace("[Q]", &format!("[{}]", queries.join(", ")))
}

fn problems(text: &str) -> Problems {
    match Schema::parse_with_warnings(text, "schema.toml") {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    }
}

#[test]
fn every_problem_is_told_once_at_its_place_with_what_to_do() {
    for Case { code, text, message, hint } in CASES {
        let marked = expanded(text);
        let start = marked.find('«').expect("the case marks a place");
        let text = marked.replace(['«', '»'], "");
        let line = text[..start].matches('\n').count() + 1;
        let column = text[..start].rsplit('\n').next().unwrap().chars().count() + 1;

        let told = problems(&text);
        let mut found: Vec<_> = told.iter().map(|p| (p.code, p.line, p.column)).collect();
        // Where one mistake is several faults of a JSON Schema, they are at one place.
        found.dedup();
        assert_eq!(found, [(*code, line, column)], "{text}\n{told}");
        let problem = told.iter().next().unwrap();
        let width = marked[start..].split(['»', '\n']).next().unwrap().chars().count() - 1;
        let drawn = problem.to_string();
        let carets = drawn.lines().nth(3).unwrap().matches('^').count();
        assert_eq!(carets, width.max(1), "{told}");
        assert!(problem.message.contains(message), "{}: {told}", message);
        assert!(problem.hint.contains(hint), "{}: {told}", hint);
    }
}

#[test]
fn all_problems_of_a_schema_are_told_together() {
    let told = problems(
        r#"
        stors = 1
        [stores.a]
        url = "nonsense"
        [spaces.Notes]
        key = "user:{user:notes"
        ownership = "nobody"
        ttl = "0s"
        histroy = 3
        value = { type = "objekt" }
        [spaces.Notes.indexes.i]
        field = "x"
        unique = "yes"
        [locks.l]
        root = "{page}"
        paths = ["a:b"]
        "#,
    );
    let codes: Vec<&str> = told.iter().map(|problem| problem.code).collect();
    let expected = [
        "unknown-key",
        "store-url",
        "name",
        "key-pattern",
        "unknown-word",
        "ttl",
        "unknown-key",
        "value-schema",
        "wrong-type",
        "lock-parent",
    ];
    assert_eq!(codes, expected, "{told}");
}

#[test]
fn a_problem_is_drawn_with_its_line_and_a_caret() {
    let told = problems(
        "[stores.a]\n[spaces.notes]\nky = \"user:{user}:notes:{note}\"\nownership = \"user\"\n",
    );
    assert_eq!(
        told.to_string(),
        "\
schema.toml:2:9: error[missing-key]: the space notes needs key
  |
2 | [spaces.notes]
  |         ^^^^^
  = help: say what its keys look like, as in key = \"user:{user}:notes:{note}\"

schema.toml:3:1: error[unknown-key]: the space notes has no key \"ky\"
  |
3 | ky = \"user:{user}:notes:{note}\"
  | ^^
  = help: did you mean key?

2 errors"
    );
}

#[test]
fn a_wrong_pattern_is_pointed_at_inside_its_text() {
    let told =
        problems("[stores.a]\n[spaces.notes]\nkey = \"user_{user}\"\nownership = \"user\"\n");
    assert_eq!(
        told.iter().next().unwrap().to_string(),
        "\
schema.toml:3:13: error[key-pattern]: expected \":\" here, not '{': a segment is either a literal or one {variable}
  |
3 | key = \"user_{user}\"
  |             ^
  = help: segments are separated by \":\"; each is a literal or one {variable}, typed as in {n:u64} or {at:time}; [:…] at the end is optional"
    );
}

#[test]
fn problems_are_data_too() {
    let told = problems("[stores.a]\nulr = 1\n");
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(
        json[0],
        serde_json::json!({
            "code": "unused-store",
            "severity": "warning",
            "file": "schema.toml",
            "line": 1,
            "column": 9,
            "message": "nothing lives in the store a",
            "hint": "declare a space in it, or remove it",
        })
    );
    assert_eq!(json[1]["hint"], "did you mean url?");
}

#[test]
fn warnings_do_not_refuse_a_schema() {
    let (_, warnings) = Schema::parse_with_warnings("[stores.a]\n", "schema.toml").unwrap();
    assert_eq!(warnings.iter().map(|w| w.severity).collect::<Vec<_>>(), [Severity::Warning]);
    assert!(!warnings.has_errors());
    assert!(warnings.to_string().ends_with("\n\n1 warning"), "{warnings}");
}

#[test]
fn the_reference_lists_every_code_of_a_problem() {
    let page = include_str!("../../../../docs/schema.md");
    let section = page.split("## Problems").nth(1).expect("the page has a section of problems");
    let listed: BTreeSet<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let tested: BTreeSet<&str> = CASES.iter().map(|case| case.code).chain(ELSEWHERE).collect();
    assert_eq!(listed, tested);
}
