//! Schemas that do not fit into a store.

use std::time::Duration;

use keyward_schema::{EXAMPLE, Schema, StoreLimits};

use crate::schema;

const ROOMY: StoreLimits = StoreLimits {
    key_bytes_max: 1974,
    value_bytes_max: 16 << 20,
    ttl_min: Some(Duration::from_millis(1)),
};

fn told(schema: &Schema, limits: StoreLimits) -> Vec<(&'static str, String)> {
    let problems = schema.check_limits(&schema.stores[0].name, &limits);
    problems.iter().map(|problem| (problem.code, problem.message.clone())).collect()
}

fn notes(more: &str) -> Schema {
    schema(&notes_text(more))
}

fn notes_text(more: &str) -> String {
    format!(
        "[stores.app]\n[spaces.notes]\nkey = 'user:{{user}}:notes:{{n:u64}}'\nownership = 'user'\n{more}"
    )
}

#[test]
fn the_example_fits_an_embedded_store() {
    assert_eq!(told(&schema(EXAMPLE), ROOMY), []);
}

#[test]
fn a_key_that_can_never_fit_is_told() {
    // user, a user of one letter, notes, and twenty digits.
    let shortest = "user:u:notes:00000000000000000007".len();
    let limits = |key_bytes_max| StoreLimits { key_bytes_max, ..ROOMY };
    assert_eq!(told(&notes(""), limits(shortest + 64)), []);
    let [(code, message)] = &told(&notes(""), limits(shortest - 1))[..] else { panic!() };
    assert_eq!(*code, "key-too-long");
    assert!(message.contains("have at least 33 bytes, and the store takes 32"), "{message}");
    let [(code, message)] = &told(&notes(""), limits(shortest + 63))[..] else { panic!() };
    assert_eq!(*code, "key-room");
    assert!(message.contains("leaves 63"), "{message}");
}

#[test]
fn an_index_entry_holds_the_key_and_more() {
    let index = "[spaces.notes.indexes.by_title]\nfields = ['title', 'n']\ntypes = { title = 'text', n = 'integer' }\n";
    let entry = "index:by_title:u::0:user:u:notes:00000000000000000007".len();
    let limits = StoreLimits { key_bytes_max: entry - 1, ..ROOMY };
    let found = told(&notes(index), limits);
    let too_long: Vec<_> = found.iter().filter(|(code, _)| *code == "key-too-long").collect();
    let [(_, message)] = too_long[..] else { panic!("{found:?}") };
    assert!(message.contains("the index by_title of notes"), "{message}");
    // A unique entry does not hold the key.
    let unique = format!("{index}unique = true\n");
    let codes: Vec<&str> = told(&notes(&unique), limits).iter().map(|(code, _)| *code).collect();
    assert!(!codes.contains(&"key-too-long"), "{codes:?}");
}

#[test]
fn an_earlier_version_has_a_longer_key_than_its_record() {
    let version = "system:history:notes:user:u:notes:00000000000000000007:00000000000000000001";
    let limits = |key_bytes_max| StoreLimits { key_bytes_max, ..ROOMY };
    assert_eq!(told(&notes("history = 3"), limits(version.len() + 64)), []);
    assert_eq!(told(&notes(""), limits(version.len() + 63)), []);
    let found = told(&notes("history = 3"), limits(version.len() - 1));
    let too_long: Vec<_> = found.iter().filter(|(code, _)| *code == "key-too-long").collect();
    let [(_, message)] = too_long[..] else { panic!("{found:?}") };
    assert!(message.contains("the versions that the space notes keeps"), "{message}");
}

#[test]
fn values_and_lifetimes_beyond_the_store_are_told() {
    let space = notes("value_bytes_max = '1 MiB'\nttl = '30s'\n");
    let codes = |limits| told(&space, limits).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(ROOMY), [""; 0]);
    assert_eq!(codes(StoreLimits { value_bytes_max: 1000, ..ROOMY }), ["value-too-large"]);
    let minute = Some(Duration::from_secs(60));
    assert_eq!(codes(StoreLimits { ttl_min: minute, ..ROOMY }), ["ttl-too-short"]);
    assert_eq!(codes(StoreLimits { ttl_min: None, ..ROOMY }), ["ttl-unsupported"]);
}

#[test]
fn a_store_that_is_not_declared_is_told() {
    let problems = notes("").check_limits("ap", &ROOMY);
    assert_eq!(
        problems.to_string(),
        "error[unknown-store]: there is no store \"ap\"\n = help: name a store that the schema declares\n\n1 error"
    );
}

#[test]
fn what_does_not_fit_points_at_the_line_that_says_it() {
    let index = "[spaces.notes.indexes.by_title]\nfield = 'title'\ntype = 'text'\n";
    let text = notes_text(&format!(
        "value_bytes_max = '1 MiB'\nttl = '30s'\n{index}[locks.pages]\nroot = 'page:{{page}}'\npaths = []\n"
    ));
    let schema = Schema::parse(&text, "app.toml").unwrap();
    let tight = StoreLimits { key_bytes_max: 5, value_bytes_max: 1000, ttl_min: None };
    let problems = schema.check_limits("app", &tight);
    let lines: Vec<_> = problems.iter().map(|it| (it.code, it.line, it.column)).collect();
    assert_eq!(
        lines,
        [
            ("key-too-long", 3, 7),
            ("value-too-large", 5, 19),
            ("ttl-unsupported", 6, 7),
            ("key-too-long", 7, 23),
            ("key-too-long", 11, 8),
        ]
    );
    assert!(problems.iter().all(|it| it.file == "app.toml"));
    let drawn = problems.to_string();
    assert!(
        drawn.contains("5 | value_bytes_max = '1 MiB'\n  |                   ^^^^^^^\n"),
        "{drawn}"
    );
    let kept = problems.clone().errors();
    assert_eq!(kept, problems);
}

#[test]
fn a_url_that_nobody_can_open_is_told_at_its_line() {
    let schema = Schema::parse("[stores.app]\nurl = 'rocks:./x'\n", "app.toml").unwrap();
    let problem = schema.unusable_url("app", "there is no engine called \"rocks\"");
    assert_eq!((problem.code, problem.line, problem.column), ("store-url", 2, 7));
    assert!(problem.message.ends_with("there is no engine called \"rocks\""));
}

#[test]
fn a_coordinator_that_cannot_be_one_is_told_at_its_line() {
    let text = "[stores.app]\nurl = 'rocks:./x'\ncoordinator = 'memory:'\n";
    let schema = Schema::parse(text, "app.toml").unwrap();
    let problem = schema.unusable_coordinator("app", "it is gone with the process", "use another");
    assert_eq!((problem.code, problem.line, problem.column), ("coordinator", 3, 15));
}
