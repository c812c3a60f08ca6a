//! Documents read from what programs write, as it arrives.

use keyward_agents::{DocumentReader, Result};
use keyward_engine::{Code, Coded};
use proptest::prelude::*;

const BYTES_MAX: usize = 1 << 20;
const TIMES: &str = r#""createdAt":"2026-02-05T10:00:00Z","updatedAt":"2026-02-05T10:00:00Z""#;
const TYPED_TIMES: &str =
    r#""createdAt":{"S":"2026-02-05T10:00:00Z"},"updatedAt":{"S":"2026-02-05T10:00:00Z"}"#;

fn plain(user: &str, key: &str, value: &str) -> String {
    format!(r#"{{"userId":"{user}","namespace":"n","key":"{key}","value":{value},{TIMES}}}"#)
}

fn typed(key: &str, value: &str) -> String {
    format!(
        r#"{{"userId":{{"S":"ada"}},"namespace":{{"S":"n"}},"key":{{"S":"{key}"}},"value":{value},{TYPED_TIMES}}}"#
    )
}

/// Keys and values, the number of skipped documents, and what the reading came to.
fn read_by(input: &str, piece: usize) -> (Vec<(String, String)>, usize, Result<()>) {
    let mut reader = DocumentReader::new(BYTES_MAX);
    let mut found = Vec::new();
    let mut read = || {
        for piece in input.as_bytes().chunks(piece) {
            reader.push(piece, &mut found)?;
        }
        reader.finish()
    };
    let ended = read();
    let found = found.into_iter().map(|it| (it.document.id.key, it.document.value.to_string()));
    (found.collect(), reader.skipped(), ended)
}

fn read(input: &str) -> (Vec<(String, String)>, usize, Result<()>) {
    read_by(input, usize::MAX)
}

fn keys(input: &str) -> Vec<String> {
    let (found, _, ended) = read(input);
    ended.unwrap();
    found.into_iter().map(|(key, _)| key).collect()
}

#[test]
fn every_form_is_read_however_it_arrives() {
    let [a, b] = ["a", "b"].map(|key| plain("ada", key, r#"{"rows":[1,"]}\\"],"Items":[]}"#));
    let pretty: serde_json::Value = serde_json::from_str(&a).unwrap();
    let pretty = serde_json::to_string_pretty(&pretty).unwrap();
    let row = |doc: &str| format!(r#"{{"id":"x","key":"x","value":{{"rev":"1-a"}},"doc":{doc}}}"#);
    let couch = |rows: &str| format!("{{\"total_rows\":2,\"offset\":0,\"rows\":[\n{rows}\n]}}\n");
    let [ta, tb] = ["a", "b"].map(|key| typed(key, r#"{"L":[{"NULL":true}]}"#));
    for input in [
        format!("{a}\n{b}\n"),
        format!("{a}{b}"),
        format!("{pretty}\n\n{b}"),
        format!(" [\n{pretty},{b} ] "),
        format!("[{a}]\n[{b}]"),
        couch(&format!("{},\n{}", row(&a), row(&pretty.replace("\"a\"", "\"b\"")))),
        couch(&row(&a)) + &couch(&row(&b)),
        format!(r#"{{"Items":[{ta},{tb}],"Count":2,"ScannedCount":2,"ConsumedCapacity":null}}"#),
        format!(r#"{{"Items": [{a}, {tb}]}}"#),
        format!("{ta}\n{tb}\n"),
        format!("{{\"Item\":{ta}}}\n{{\"Item\":{tb}}}"),
    ] {
        for piece in [1, 7, usize::MAX] {
            let (found, skipped, ended) = read_by(&input, piece);
            ended.unwrap_or_else(|error| panic!("{error}: {input}"));
            let found: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
            assert_eq!((found, skipped), (vec!["a", "b"], 0), "{input}");
        }
    }
    for empty in ["", " \n ", "[]", "[ ]", r#"{"rows":[]}"#, r#"{"Items":[],"Count":0}"#] {
        assert!(keys(empty).is_empty(), "{empty}");
    }
}

#[test]
fn design_documents_and_deleted_ones_are_skipped_and_counted() {
    let a = plain("ada", "a", "1");
    let design = r#"{"_id":"_design/data_store","_rev":"1-x","views":{"by_user":{"map":"f"}}}"#;
    let gone = r#"{"id":"g","key":"g","value":{"rev":"2-a","deleted":true},"doc":null}"#;
    let rows = format!(
        r#"{{"rows":[{{"id":"_design/data_store","doc":{design}}},{gone},{{"doc":{a}}}]}}"#
    );
    for (input, count) in [(rows, 2), (format!("{design}\n{a}"), 1), (format!("[{a},{design}]"), 1)]
    {
        let (found, skipped, ended) = read(&input);
        ended.unwrap();
        assert_eq!((found.len(), skipped), (1, count), "{input}");
    }
}

#[test]
fn values_with_types_become_plain_as_they_were_written() {
    for (value, expected) in [
        (r#"{"S":"a\u00e9\n"}"#, r#""a\u00e9\n""#),
        (r#"{"N":"-12345678901234567890.50"}"#, "-12345678901234567890.50"),
        (r#"{"BOOL":false}"#, "false"),
        (r#"{"NULL":true}"#, "null"),
        (r#"{"M":{}}"#, "{}"),
        (r#"{"L":[]}"#, "[]"),
        (
            r#"{ "M" : { "z" : {"N":"1"}, "\u0061" : {"L":[{"S":"x"},{"M":{"y":{"N":"1e2"}}}]} } }"#,
            r#"{"z":1,"\u0061":["x",{"y":1e2}]}"#,
        ),
        (r#"{"SS":["a","b"]}"#, r#"["a","b"]"#),
        (r#"{"NS":["1","2.50"]}"#, "[1,2.50]"),
        (r#"{"B":"aGk="}"#, r#""aGk=""#),
    ] {
        let (found, _, ended) = read(&typed("k", value));
        ended.unwrap();
        assert_eq!(found, [("k".to_owned(), expected.to_owned())]);
    }
    // As deep as a value may be.
    let (mut deep, mut expected) = (r#"{"N":"1"}"#.to_owned(), "1".to_owned());
    for _ in 0..60 {
        (deep, expected) = (format!(r#"{{"L":[{deep}]}}"#), format!("[{expected}]"));
    }
    assert_eq!(read(&typed("k", &deep)).0, [("k".to_owned(), expected)]);
    for (value, reason) in [
        (r#"{"N":1}"#, "not a number"),
        (r#"{"N":"one"}"#, "not a number"),
        (r#"{"S":1}"#, "does not have the type"),
        (r#"{"X":1}"#, "is not a type of DynamoDB's"),
        (r#"{"S":"a","N":"1"}"#, "two types"),
        ("{}", "no type"),
        ("1", "a value with its type"),
    ] {
        let error = read(&typed("k", value)).2.unwrap_err().to_string();
        assert!(error.contains(reason), "{value}: {error}");
    }
}

#[test]
fn a_bad_document_is_named_by_number_and_line_after_those_before_it() {
    let a = plain("ada", "a", "1");
    for (rest, line, reason) in [
        ("hello", 2, "expected a JSON object, found 'h'"),
        ("{\"_id\":1}", 2, "_id is no text"),
        ("{\"a\"", 2, "the input ends before the document does"),
        ("{\"a\":]}", 2, "not storable as JSON"),
        ("\n[1]", 3, "expected a JSON object, found '1'"),
        ("[{\"_id\":\"_design/x\"}", 2, "the input ends before the list of documents does"),
        ("{\"rows\":[\n{\"id\":\"x\"}]}", 3, "get the rows with _all_docs?include_docs=true"),
        ("{\"rows\":[{\"id\":\"x\",\"doc\":null}]}", 2, "doc is null"),
        ("{\"_id\":\"ada:n:aw==\",\"rows\":[],\"value\":1}", 2, "a list of documents and a field"),
        ("{\"rows\":[],\"Items\":[]}", 2, "two lists"),
        ("{\"rows\":[] 7}", 2, "not storable as JSON"),
    ] {
        for piece in [1, usize::MAX] {
            let (found, _, ended) = read_by(&format!("{a}\n{rest}"), piece);
            assert_eq!(found.len(), 1, "{rest}");
            let error = ended.unwrap_err();
            assert_eq!(error.document().and_then(|(_, line)| line), Some(line), "{error}: {rest}");
            assert!(error.to_string().contains(reason), "{error}: {rest}");
        }
    }
    for input in ["[,]", "[{}", "[]]"] {
        assert!(read(input).2.is_err(), "{input}");
    }
    let two = format!("[{a} {a}]");
    let error = read(&two).2.unwrap_err().to_string();
    assert!(error.contains("document 2 (line 1)") && error.contains("a comma"), "{error}");
}

#[test]
fn a_document_is_held_up_to_its_bound_and_the_rest_is_not() {
    let a = plain("ada", "a", "1");
    let mut reader = DocumentReader::new(a.len());
    let mut found = Vec::new();
    for _ in 0..1_000 {
        reader.push(format!("{a}\n").as_bytes(), &mut found).unwrap();
        assert_eq!(reader.held_bytes(), 0);
    }
    let error = reader.push(plain("ada", "a", "10").as_bytes(), &mut found).unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded);
    assert_eq!(error.document(), Some((1_001, Some(1_001))));
    assert_eq!(found.len(), 1_000);
}

#[test]
fn documents_of_other_users_are_refused_where_one_is_expected() {
    let mut reader = DocumentReader::new(BYTES_MAX).only_of("ada");
    let mut found = Vec::new();
    let input = [plain("ada", "a", "1"), plain("bob", "b", "2")].join("\n");
    let error = reader.push(input.as_bytes(), &mut found).unwrap_err();
    assert_eq!(error.code(), Code::BadDocument);
    let said = "document 2 (line 2) cannot be imported: it belongs to user \"bob\", not \"ada\"";
    assert_eq!(error.to_string(), said);
    assert_eq!(found.len(), 1);
}

proptest! {
    #[test]
    fn any_input_is_read_the_same_in_pieces(
        input in r#"([\[\]{},:"\\ \n1a]|"rows"|"Items"|"doc"|\{"_id":"_design/x"\}){0,24}"#,
        piece in 1_usize..5,
    ) {
        let (whole, parts) = (read(&input), read_by(&input, piece));
        prop_assert_eq!((&whole.0, whole.1), (&parts.0, parts.1));
        prop_assert_eq!(
            whole.2.err().map(|error| error.to_string()),
            parts.2.err().map(|error| error.to_string())
        );
    }
}
