//! Reads by id.

use keyward_engine::ErrorKind;

use super::super::database::{Database, assert_same, entry, json};

pub async fn documents_come_back_in_the_order_asked_for(database: Database) {
    let ids = ["u:n:Yg==", "u:n:YQ==", "v:n:YQ==", "u:n:Yw=="];
    for (n, id) in ids.iter().enumerate() {
        database.create(id, &entry("u", "n", &n.to_string())).await;
    }
    let asked = [3, 0, 2, 1].map(|n| ids[n].to_owned());
    let mut asked = asked.to_vec();
    asked.insert(2, "u:n:missing".to_owned());
    let found = database.documents.get_many(&asked).await.unwrap();
    assert_eq!(found.len(), asked.len());
    for (id, document) in asked.iter().zip(found) {
        let Some(document) = document else {
            assert_eq!(id, "u:n:missing");
            continue;
        };
        assert_eq!(document.id, *id);
        let value = ids.iter().position(|it| it == id).unwrap();
        assert_same(&document.fields, &entry("u", "n", &value.to_string()));
    }
}

pub async fn a_document_that_is_not_there_is_none(database: Database) {
    database.create("u:n:aw==", &entry("u", "n", "1")).await;
    for id in ["u:n:aw", "u:n:aw=", "u:n:aw==x", "U:n:aw==", "u:n", "u", "u:n:aw== "] {
        assert_eq!(database.get(id).await, None, "{id:?}");
    }
}

pub async fn reading_no_documents_gives_nothing(database: Database) {
    assert_eq!(database.documents.get_many(&[]).await.unwrap(), []);
}

/// Ids that every database must hold, and such as it may refuse as `Invalid`: then no document has them.
pub async fn strange_ids_name_one_document_each(database: Database) {
    let held = [
        "user_google_123:files:my-repo:c3JjL21haW4ucHk=",
        "a:b:default:aw==",
        "a:b:defaulu:aw==",
        "a%3Ab:default:aw==",
        "a%253Ab:default:aw==",
        "caf\u{e9}:n:aw==",
        "cafe\u{301}:n:aw==",
        "日本:語:8J-YgA==",
        "😀:n:aw==",
        "user one:two words:IA==",
        "a+b:c&d=e:JQ==",
        "a b:c&d=e:JQ==",
        "u?x=1:n#f:aw==",
        "u\"q\":n:aw==",
        "u'q:n:aw==",
        "USER:n:aw==",
        "user:n:aw==",
        "u\u{200d}:n:aw==",
        "u:n:aw==",
        "u;n,$@!*()[]{}|^~`<>:n:aw==",
    ];
    let may_be_refused = [
        "_user:n:aw==",
        "__user__:n:aw==",
        "u:files:apache/repo:aw==",
        "../u:n:aw==",
        "u\\v:n:aw==",
        "u\nv:n:aw==",
        "u\u{0}:n:aw==",
    ];
    let mut created = Vec::new();
    for (n, id) in held.iter().chain(&may_be_refused).enumerate() {
        let fields = json(&format!(r#"{{"userId":"u","namespace":"n","key":"k","value":{n}}}"#));
        match database.try_create(id, &fields).await {
            Ok(_) => created.push((*id, fields)),
            Err(error) => {
                assert!(may_be_refused.contains(id), "{id:?} is refused: {error}");
                assert_eq!(error.kind(), ErrorKind::Invalid, "{id:?}: {error}");
            }
        }
    }
    let ids: Vec<String> = created.iter().map(|(id, _)| (*id).to_owned()).collect();
    for (some, fields) in ids.chunks(10).zip(created.chunks(10)) {
        let found = database.documents.get_many(some).await.unwrap();
        for (document, (id, fields)) in found.into_iter().zip(fields) {
            let document = document.unwrap_or_else(|| panic!("{id:?} should be there"));
            assert_eq!(document.id, *id);
            assert_same(&document.fields, fields);
        }
    }
    for (id, _) in &created {
        let document = database.present(id).await;
        let gone = database.documents.delete(&document).await.unwrap();
        assert!(super::super::database::is_applied(&gone), "{id:?}");
        assert_eq!(database.get(id).await, None, "{id:?}");
    }
}
