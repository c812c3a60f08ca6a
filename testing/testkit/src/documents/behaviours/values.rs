//! What documents hold: exactly, or not at all.

use keyward_engine::{ErrorKind, Json};

use super::super::database::{Database, assert_same, entry, is_applied, json};

/// Tries a value of the field `value`. What is refused must be `Invalid`, and may be.
async fn try_value(database: &Database, n: usize, value: &str, may_be_refused: bool) {
    let fields = entry("u", "n", value);
    let id = format!("u:n:{n}");
    if let Err(error) = database.try_create(&id, &fields).await {
        assert!(may_be_refused, "{value} is refused: {error}");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{value}: {error}");
    }
}

pub async fn plain_values_come_back_exactly(database: Database) {
    let values = [
        "null",
        "true",
        "false",
        "0",
        "42",
        "-7",
        "3.14",
        "-0.5",
        "1e3",
        "9007199254740992",
        "-9007199254740992",
        r#""""#,
        r#""Hello, World!""#,
        r#""def main():\n    print('Hello')\n""#,
        r#""tab\t quote\" backslash\\ slash/ é 日本 😀""#,
        "[]",
        "{}",
        r#"[1,2,3,"mixed",{"nested":"object"}]"#,
        r#"{"nested":{"deeply":{"data":[1,2,3]}}}"#,
        r#"[{"name":"repo-a","stars":100},{"name":"repo-b","stars":50}]"#,
        r#"{"content":"x","lines":2,"functions":["main"],"none":null,"flag":false}"#,
        r#"{"2026":1,"with space":2,"with-dash":3,"é":4,"$d":5,"UPPER":6,"upper":7}"#,
    ];
    for (n, value) in values.iter().enumerate() {
        try_value(&database, n, value, false).await;
    }
}

/// What other programs keep beside an entry's fields is theirs.
pub async fn fields_of_other_programs_come_back_exactly(database: Database) {
    let id = "u:n:aw==";
    let foreign = json(
        r#"{"userId":"u","namespace":"n","key":"k","value":1,"metadata":{"tags":["a","b"]},"accessCount":15,"createdByAgent":"repo-indexer","lastAccessedByAgent":null,"schema":2,"tenant":{"id":"t1","plan":null},"type":"entry","ttl":1770285600,"labels":[],"version":"1-abc"}"#,
    );
    let document = database.create(id, &foreign).await;
    let changed = Json::parse(foreign.as_str().replace(r#""value":1"#, r#""value":[2]"#)).unwrap();
    assert!(is_applied(&database.put(id, &changed, Some(&document)).await));
    assert_same(&database.present(id).await.fields, &changed);
}

pub async fn numbers_come_back_exactly_or_are_refused(database: Database) {
    let numbers = [
        "9007199254740993",
        "-9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "12345678901234567890123456789012345678",
        "123456789012345678901234567890123456789",
        "0.1",
        "0.30000000000000004",
        "0.1234567890123456789",
        "1.7976931348623157e308",
        "1e309",
        "5e-324",
        "1e-400",
        "1e125",
        "1e126",
        "1e-130",
        "1e-131",
        "-0.0",
        "1.50",
        "100e-2",
        "[1,9007199254740993]",
        r#"{"deep":[{"n":1e309}]}"#,
    ];
    for (n, number) in numbers.iter().enumerate() {
        try_value(&database, n, number, true).await;
    }
}

pub async fn odd_values_come_back_exactly_or_are_refused(database: Database) {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(50), close.repeat(50));
    let values = [
        "[[1,2],[3,[4]]]".to_owned(),
        r#"[[]]"#.to_owned(),
        deep("[", "]"),
        deep(r#"{"a":"#, "}"),
        r#"{"":1}"#.to_owned(),
        r#"{"a.b":1,"`c`":2,"[0]":3,"a/b":4,"~":5,"*":6}"#.to_owned(),
        r#"{"__name__":1,"_id":"x","_rev":"1-a","_deleted":true,"_attachments":{}}"#.to_owned(),
        r#"{"S":"text","N":"1","M":{},"stringValue":"x","nullValue":null}"#.to_owned(),
        r#""nul \u0000 and \u001f and \u007f and \ufffe""#.to_owned(),
        r#"{"\u0000":1}"#.to_owned(),
        format!(r#"{{"{}":1}}"#, "long name ".repeat(200)),
    ];
    for (n, value) in values.iter().enumerate() {
        try_value(&database, n, value, true).await;
    }
}

pub async fn a_replacement_that_is_refused_changes_nothing(database: Database) {
    let id = "u:n:aw==";
    let document = database.create(id, &entry("u", "n", "1")).await;
    // No database of documents holds all of these.
    for value in ["1e309", "123456789012345678901234567890123456789", "[[1]]", "1e-400"] {
        if let Err(error) =
            database.documents.put(id, &entry("u", "n", value), Some(&document)).await
        {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{value}: {error}");
            assert_eq!(database.present(id).await, document, "{value}");
        } else {
            let now = database.present(id).await;
            assert_same(&now.fields, &entry("u", "n", value));
            let back = database.put(id, &document.fields, Some(&now)).await;
            assert!(is_applied(&back));
            return;
        }
    }
}
