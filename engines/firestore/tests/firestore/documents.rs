//! Documents in the layout of another program.

use std::sync::Arc;

use futures_util::future::join_all;
use keyward_engine::{BoxFuture, Document, DocumentList, Documents, ErrorKind, Json, Swapped};
use keyward_firestore::FirestoreDocuments;
use keyward_testkit::{DocumentsPlace, HttpProxy, NetworkFault, document_conformance};
use serde_json::{Value, json};

use crate::emulator::{Fresh, json_of, with_fresh};

struct InCollection(Fresh);

impl DocumentsPlace for InCollection {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Documents>> {
        Box::pin(async { Arc::new(self.0.documents().await) as Arc<dyn Documents> })
    }
}

document_conformance!(conformance, InCollection(Fresh::new()));

const ID: &str = "user_123:files:my-repo:c3JjL21haW4ucHk=";
/// An example of the layout's description.
const FIELDS: &str = r#"{"userId":"user_123","namespace":"files:my-repo","key":"src/main.py","value":{"content":"def main():\n    print('Hello')\n","lines":2,"language":"python","functions":["main"]},"metadata":{"indexed_at":"2026-02-05T09:00:00Z","file_size":42,"sha256":"abc123..."},"createdByAgent":"repo-indexer","accessCount":15,"createdAt":"2026-02-05T09:00:00Z","updatedAt":"2026-02-05T09:00:00Z"}"#;

/// The same as Google's clients write it.
fn native() -> Value {
    let text = |text: &str| json!({ "stringValue": text });
    let whole = |number: &str| json!({ "integerValue": number });
    json!({
        "_id": text(ID),
        "userId": text("user_123"),
        "namespace": text("files:my-repo"),
        "key": text("src/main.py"),
        "value": { "mapValue": { "fields": {
            "content": text("def main():\n    print('Hello')\n"),
            "lines": whole("2"),
            "language": text("python"),
            "functions": { "arrayValue": { "values": [text("main")] } },
        } } },
        "metadata": { "mapValue": { "fields": {
            "indexed_at": text("2026-02-05T09:00:00Z"),
            "file_size": whole("42"),
            "sha256": text("abc123..."),
        } } },
        "createdByAgent": text("repo-indexer"),
        "accessCount": whole("15"),
        "createdAt": text("2026-02-05T09:00:00Z"),
        "updatedAt": text("2026-02-05T09:00:00Z"),
    })
}

/// JSON without the order of its names.
fn meaning(json: &Json) -> Value {
    serde_json::from_str(json.as_str()).unwrap()
}

async fn get(documents: &FirestoreDocuments, id: &str) -> Option<Document> {
    documents.get_many(&[id.to_owned()]).await.unwrap().pop().unwrap()
}

async fn put(
    documents: &FirestoreDocuments,
    id: &str,
    fields: &str,
    replaced: Option<&Document>,
) -> Document {
    let fields = json_of(fields);
    match documents.put(id, &fields, replaced).await.unwrap() {
        Swapped::Applied { revision } => Document { id: id.to_owned(), fields, revision },
        Swapped::Conflicted => panic!("{id} is as expected"),
    }
}

#[test]
fn what_we_write_other_clients_read_and_the_other_way_round() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        fresh.set(ID, native()).await;
        let read = get(&documents, ID).await.unwrap();
        assert_eq!(meaning(&read.fields), meaning(&json_of(FIELDS)));
        assert!(matches!(documents.delete(&read).await.unwrap(), Swapped::Applied { .. }));
        assert_eq!((get(&documents, ID).await, fresh.fields(ID).await), (None, None));

        let written = put(&documents, ID, FIELDS, None).await;
        assert_eq!(fresh.fields(ID).await, Some(native()));
        assert_eq!(get(&documents, ID).await.unwrap().revision, written.revision);
    });
}

#[test]
fn a_put_replaces_only_what_it_expects() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        let first = put(&documents, "a", r#"{"n":1}"#, None).await;
        let again = documents.put("a", &json_of(r#"{"n":2}"#), None).await.unwrap();
        assert_eq!(again, Swapped::Conflicted);
        let second = put(&documents, "a", r#"{"n":2}"#, Some(&first)).await;
        assert_ne!(first.revision, second.revision);
        for fields in [r#"{"n":3}"#, r#"{"n":1}"#] {
            let late = documents.put("a", &json_of(fields), Some(&first)).await.unwrap();
            assert_eq!(late, Swapped::Conflicted, "{fields}");
        }
        assert_eq!(documents.delete(&first).await.unwrap(), Swapped::Conflicted);
        // A put that changes nothing is still a comparison.
        let same = put(&documents, "a", r#"{"n":2}"#, Some(&second)).await;
        assert_eq!(same.revision, second.revision);
        // Removed, and made anew with what it had.
        assert!(matches!(documents.delete(&second).await.unwrap(), Swapped::Applied { .. }));
        assert_eq!(documents.delete(&second).await.unwrap(), Swapped::Conflicted);
        let gone = documents.put("a", &json_of(r#"{"n":9}"#), Some(&second)).await.unwrap();
        assert_eq!(gone, Swapped::Conflicted);
        let anew = put(&documents, "a", r#"{"n":2}"#, None).await;
        assert_ne!(anew.revision, second.revision);
        assert_eq!(documents.delete(&second).await.unwrap(), Swapped::Conflicted);
    });
}

#[test]
fn types_that_json_does_not_have_survive_puts() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        let foreign = json!({
            "at": { "timestampValue": "2026-02-05T10:30:00.123456Z" },
            "bytes": { "bytesValue": "AAEC" },
            "point": { "geoPointValue": { "latitude": 1.5, "longitude": -2.0 } },
            "other": { "referenceValue": fresh.name("x") },
            "odd": { "doubleValue": "NaN" },
            "vector": { "mapValue": { "fields": {
                "__type__": { "stringValue": "__vector__" },
                "value": { "arrayValue": { "values": [{ "doubleValue": 1.0 }] } },
            } } },
            "list": { "arrayValue": { "values": [{ "timestampValue": "2026-01-01T00:00:00Z" }] } },
        });
        let with = |changes: Value| {
            let mut fields = foreign.clone();
            fields["value"] = json!({ "mapValue": { "fields": foreign } });
            for (name, value) in changes.as_object().unwrap() {
                fields[name] = value.clone();
            }
            fields
        };
        fresh.set("d", with(json!({ "accessCount": { "integerValue": "1" } }))).await;
        let read = get(&documents, "d").await.unwrap();
        let fields = meaning(&read.fields);
        assert_eq!(fields["at"], "2026-02-05T10:30:00.123456Z");
        assert_eq!(fields["bytes"], "AAEC");
        assert_eq!(fields["point"], json!({ "latitude": 1.5, "longitude": -2.0 }));
        assert_eq!(fields["odd"], "NaN");
        assert_eq!(fields["value"]["other"], fresh.name("x"));

        // One number is changed, one field is added, and one within the value.
        let mut changed = fields;
        changed["accessCount"] = json!(2);
        changed["lastAccessedByAgent"] = json!("a");
        changed["value"]["new"] = json!(true);
        let after = put(&documents, "d", &changed.to_string(), Some(&read)).await;
        let mut expected = with(json!({
            "accessCount": { "integerValue": "2" },
            "lastAccessedByAgent": { "stringValue": "a" },
        }));
        expected["value"]["mapValue"]["fields"]["new"] = json!({ "booleanValue": true });
        assert_eq!(fresh.fields("d").await, Some(expected));

        // What is changed has the type of its JSON from then on.
        changed["at"] = json!("2027");
        changed["value"] = json!({ "at": "2026-02-05T10:30:00.123456Z" });
        put(&documents, "d", &changed.to_string(), Some(&after)).await;
        let fields = fresh.fields("d").await.unwrap();
        assert_eq!(fields["at"], json!({ "stringValue": "2027" }));
        assert_eq!(fields["value"]["mapValue"]["fields"], json!({ "at": foreign["at"] }));
    });
}

/// A path into a value that is no map would make it a map of only what is changed.
#[test]
fn what_is_shown_as_an_object_and_is_no_map_is_replaced_whole() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        let double = |number: f64| json!({ "doubleValue": number });
        let map = |fields: Value| json!({ "mapValue": { "fields": fields } });
        let vector = |numbers: &[f64]| {
            let values: Vec<Value> = numbers.iter().copied().map(double).collect();
            let values = json!({ "arrayValue": { "values": values } });
            map(json!({ "__type__": { "stringValue": "__vector__" }, "value": values }))
        };
        let fields = json!({
            "point": { "geoPointValue": { "latitude": 1.5, "longitude": -2.0 } },
            "same": { "geoPointValue": { "latitude": 1.5, "longitude": -2.0 } },
            "vector": vector(&[1.0, 2.5]),
            "at": { "timestampValue": "2026-01-01T00:00:00Z" },
        });
        fresh.set("d", json!({ "value": map(fields) })).await;
        let read = get(&documents, "d").await.unwrap();
        let mut changed = meaning(&read.fields);
        changed["value"]["point"]["latitude"] = json!(1.25);
        changed["value"]["vector"]["value"] = json!([1.0, 3.5]);
        let written = put(&documents, "d", &changed.to_string(), Some(&read)).await;
        assert_eq!(meaning(&get(&documents, "d").await.unwrap().fields), changed);
        let expected = map(json!({
            "point": map(json!({ "latitude": double(1.25), "longitude": double(-2.0) })),
            "same": { "geoPointValue": { "latitude": 1.5, "longitude": -2.0 } },
            "vector": vector(&[1.0, 3.5]),
            "at": { "timestampValue": "2026-01-01T00:00:00Z" },
        }));
        assert_eq!(fresh.fields("d").await.unwrap()["value"], expected);

        // Its members may go as well.
        changed["value"]["same"] = json!({ "latitude": 1.5 });
        changed["value"]["vector"] = json!({ "value": [1.0, 3.5] });
        put(&documents, "d", &changed.to_string(), Some(&written)).await;
        assert_eq!(meaning(&get(&documents, "d").await.unwrap().fields), changed);
    });
}

#[test]
fn the_field_of_the_id_stays_as_the_other_program_has_it() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        fresh.set("without", json!({ "n": { "integerValue": "1" } })).await;
        fresh
            .set("with", json!({ "_id": { "stringValue": "with" }, "n": { "integerValue": "1" } }))
            .await;
        for id in ["without", "with"] {
            let read = get(&documents, id).await.unwrap();
            assert_eq!(read.fields.as_str(), r#"{"n":1}"#);
            let before = fresh.fields(id).await.unwrap();
            put(&documents, id, r#"{"n":2}"#, Some(&read)).await;
            let after = fresh.fields(id).await.unwrap();
            assert_eq!(after.get("_id"), before.get("_id"), "{id}");
        }
    });
}

#[test]
fn values_come_back_exactly_or_are_refused() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        let deep = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        for (n, (value, shown)) in [
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.10", "1.1"),
            ("1e2", "100.0"),
            ("0.1", "0.1"),
            ("2.2250738585072014e-308", "2.2250738585072014e-308"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e308"),
            ("null", "null"),
            ("[]", "[]"),
            ("{}", "{}"),
            (r#"[{"a":[]},null,"x",1.5]"#, r#"[{"a":[]},null,"x",1.5]"#),
            (r#""\u0000\u2028\ud83d\ude00 \"\\/""#, "\"\\u0000\u{2028}😀 \\\"\\\\/\""),
            (r#"{"a.b":1,"`":2,"":3}"#, ""),
            (deep(20).as_str(), deep(20).as_str()),
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("d{n}");
            let fields = json_of(&format!(r#"{{"value":{value}}}"#));
            let written = documents.put(&id, &fields, None).await;
            if shown.is_empty() {
                assert_eq!(written.unwrap_err().kind(), ErrorKind::Invalid, "{value}");
                continue;
            }
            assert!(matches!(written.unwrap(), Swapped::Applied { .. }), "{value}");
            let read = get(&documents, &id).await.unwrap();
            assert_eq!(read.fields.as_str(), format!(r#"{{"value":{shown}}}"#));
        }
        for value in
            ["9223372036854775808", "0.1234567890123456789", "[[1]]", r#"{"__x__":1}"#, &deep(21)]
        {
            let fields = json_of(&format!(r#"{{"value":{value}}}"#));
            let made = documents.put("refused", &fields, None).await.unwrap_err();
            assert_eq!(made.kind(), ErrorKind::Invalid, "{value}: {made}");
            assert!(made.message().contains("\"value"), "{made}");
            let held = get(&documents, "d0").await.unwrap();
            let replaced = documents.put("d0", &fields, Some(&held)).await.unwrap_err();
            assert_eq!(replaced.kind(), ErrorKind::Invalid, "{value}: {replaced}");
            assert_eq!(get(&documents, "d0").await, Some(held));
        }
        assert_eq!(get(&documents, "refused").await, None);
    });
}

#[test]
fn a_document_has_one_mebibyte_and_no_more() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        // Two texts, so that neither alone is too long. What they have besides: names, ends of texts, and the id twice.
        let rest =
            "entries".len() + 1 + 2 + 16 + 32 + "_id".len() + 1 + 2 + 2 * ("a".len() + 1) + 2;
        let of = |bytes: usize| {
            let (one, other) = ("x".repeat(500_000), "y".repeat(bytes - rest - 500_000));
            json_of(&format!(r#"{{"a":"{one}","b":"{other}"}}"#))
        };
        let most = 1 << 20;
        assert!(documents.limits().document_bytes_max < most);
        let refused = documents.put("d", &of(most + 1), None).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
        assert!(refused.message().contains("1048577"), "{refused}");
        let Swapped::Applied { revision } = documents.put("d", &of(most), None).await.unwrap()
        else {
            panic!("there is no such document");
        };
        let held = Document { id: "d".to_owned(), fields: of(most), revision };
        assert_eq!(get(&documents, "d").await, Some(held.clone()));
        let refused = documents.put("d", &of(most + 1), Some(&held)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
    });
}

#[test]
fn ids_that_firestore_cannot_have_are_refused_and_read_as_absent() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        put(&documents, "there", r#"{"n":1}"#, None).await;
        let long = "x".repeat(1_501);
        let ids = ["u:files:my/repo:a2V5", "..", "__x__", "", &long];
        for (id, says) in ids.iter().zip(["slash", "..", "__", "empty", "1500 bytes"]) {
            let error = documents.put(id, &json_of("{}"), None).await.unwrap_err();
            let is_long = id.len() > 1_500;
            let kind = if is_long { ErrorKind::LimitExceeded } else { ErrorKind::Invalid };
            assert_eq!(error.kind(), kind);
            assert!(error.message().contains(says), "{error}");
        }
        let mut wanted: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        wanted.insert(2, "there".to_owned());
        let found = documents.get_many(&wanted).await.unwrap();
        let there: Vec<bool> = found.iter().map(Option::is_some).collect();
        assert_eq!(there, [false, false, true, false, false, false]);
        let longest = "x".repeat(1_500);
        put(&documents, &longest, "{}", None).await;
        assert!(get(&documents, &longest).await.is_some());
    });
}

fn list_of(owner: &str, group: Option<&str>, limit: usize) -> DocumentList {
    DocumentList {
        owner: owner.to_owned(),
        group: group.map(str::to_owned),
        with_documents: false,
        after: None,
        limit,
    }
}

async fn list(documents: &FirestoreDocuments, mut list: DocumentList) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    loop {
        let page = documents.list(&list).await.unwrap();
        assert!(page.rows.len() <= list.limit);
        for row in page.rows {
            let document = row.document.as_ref();
            assert_eq!(document.is_some(), list.with_documents);
            assert!(
                document.is_none_or(|it| it.id == row.id && it.fields.as_str().contains("value"))
            );
            rows.push((row.id, row.group));
        }
        let Some(next) = page.next else { return rows };
        list.after = Some(next);
    }
}

#[test]
fn lists_are_strong_and_page_without_a_cap() {
    with_fresh(async |fresh: Fresh| {
        const COUNT: usize = 10_050;
        let documents = fresh.documents().await;
        let text = |text: &str| json!({ "stringValue": text });
        let mut writes = Vec::new();
        let mut expected = Vec::new();
        for n in 0..COUNT {
            let group = if n % 10 == 0 { "other" } else { "n" };
            let id = format!("u:{group}:{n:05}");
            let fields = json!({ "userId": text("u"), "namespace": text(group), "value": { "integerValue": "1" } });
            writes.push(json!({ "update": { "name": fresh.name(&id), "fields": fields } }));
            expected.push((id, group.to_owned()));
        }
        for (id, owner, group) in [
            ("u7:n:x", text("u7"), text("n")),
            ("odd", json!({ "integerValue": "7" }), text("n")),
            ("none", text("u"), json!({ "nullValue": null })),
        ] {
            let fields =
                json!({ "userId": owner, "namespace": group, "value": { "integerValue": "1" } });
            writes.push(json!({ "update": { "name": fresh.name(id), "fields": fields } }));
        }
        for some in writes.chunks(500) {
            fresh.call("commit", json!({ "writes": some })).await.unwrap();
        }
        expected.sort();
        let most = documents.limits().list_rows_max;
        assert_eq!(list(&documents, list_of("u", None, most)).await, expected);
        let in_group = |group: &str| -> Vec<_> {
            expected.iter().filter(|(_, it)| it == group).cloned().collect()
        };
        assert_eq!(list(&documents, list_of("u", Some("n"), most)).await, in_group("n"));
        let whole = DocumentList { with_documents: true, ..list_of("u", Some("other"), 100) };
        assert_eq!(list(&documents, whole).await, in_group("other"));
        assert_eq!(list(&documents, list_of("u7", Some("n"), 1)).await.len(), 1);
        assert_eq!(list(&documents, list_of("u", Some("none"), 1)).await, []);

        // A write is in the next list.
        put(&documents, "u8:n:a", r#"{"userId":"u8","namespace":"n","value":1}"#, None).await;
        assert_eq!(list(&documents, list_of("u8", Some("n"), 5)).await.len(), 1);
        let mut forged = list_of("u", None, 5);
        forged.after = Some(keyward_engine::Cursor::new("../x"));
        assert_eq!(documents.list(&forged).await.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(documents.prepare(false).await.unwrap(), [""; 0], "the emulator needs no index");
    });
}

#[test]
fn of_racing_puts_one_wins_each_time() {
    with_fresh(async |fresh| {
        let documents = fresh.documents().await;
        let mut held = put(&documents, "d", r#"{"n":0}"#, None).await;
        for round in 1..=20 {
            let puts = (0..16).map(|n| {
                let (documents, held) = (&documents, &held);
                async move {
                    let fields = json_of(&format!(r#"{{"n":{round},"by":{n}}}"#));
                    documents.put("d", &fields, Some(held)).await.unwrap()
                }
            });
            let swapped = join_all(puts).await;
            let won = swapped.iter().filter(|it| matches!(it, Swapped::Applied { .. })).count();
            assert_eq!(won, 1, "round {round}");
            held = get(&documents, "d").await.unwrap();
        }
    });
}

#[test]
fn an_operation_takes_one_request_and_lost_answers_are_told() {
    with_fresh(async |fresh| {
        let proxy = HttpProxy::start(fresh.address).await;
        let documents =
            FirestoreDocuments::open(fresh.options_through(proxy.address())).await.unwrap();
        let (mut held, requests) = proxy.count(put(&documents, "d", r#"{"n":0}"#, None)).await;
        assert_eq!(requests, 1, "put");
        let ids: Vec<String> = (0..100).map(|n| format!("d{n}")).collect();
        assert_eq!(proxy.count(documents.get_many(&ids)).await.1, 1, "get_many of 100");
        assert_eq!(proxy.count(documents.list(&list_of("u", Some("n"), 100))).await.1, 1, "list");
        for (n, fault) in NetworkFault::EACH.into_iter().enumerate() {
            proxy.fail_next(fault);
            let fields = json_of(&format!(r#"{{"n":{}}}"#, n + 1));
            let swapped = documents.put("d", &fields, Some(&held)).await;
            proxy.heal();
            let now = get(&documents, "d").await.unwrap();
            let is_done = now.fields == fields;
            match swapped {
                Ok(Swapped::Applied { revision }) => {
                    assert!(is_done && now.revision == revision, "{fault:?}");
                }
                Ok(Swapped::Conflicted) => panic!("nobody else wrote: {fault:?}"),
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
                Err(error) => {
                    assert!(
                        error.kind() == ErrorKind::Unavailable && !is_done,
                        "{fault:?}: {error}"
                    );
                }
            }
            held = now;
            // A create is not sent again, since somebody might have deleted it in between.
            let id = format!("new{n}");
            proxy.fail_next(fault);
            let made = documents.put(&id, &fields, None).await;
            proxy.heal();
            let there = get(&documents, &id).await.is_some();
            match made {
                Ok(Swapped::Applied { .. }) => assert!(there, "{fault:?}"),
                Ok(Swapped::Conflicted) => panic!("nobody else wrote: {fault:?}"),
                Err(error) => {
                    assert!(error.kind() == ErrorKind::OutcomeUnknown || !there, "{error}")
                }
            }
        }
    });
}
