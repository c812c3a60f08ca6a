//! Documents that another program wrote, with everything that DynamoDB has and JSON has not.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use keyward_dynamodb::DynamoDbDocuments;
use keyward_engine::{Document, Documents, ErrorKind, Swapped};

use crate::server::{Fresh, Item, bytes, json, number, raw, runtime, text};

async fn present(documents: &DynamoDbDocuments, id: &str) -> Document {
    documents.get_many(&[id.to_owned()]).await.unwrap().pop().flatten().unwrap()
}

fn id(id: &str) -> Item {
    Item::from([("_id".to_owned(), text(id))])
}

/// As boto3 writes it.
fn written_by_another() -> Item {
    let mut item = id("u:n:aw==");
    item.extend([
        ("userId".to_owned(), text("u")),
        ("namespace".to_owned(), text("n")),
        ("key".to_owned(), text("k")),
        (
            "value".to_owned(),
            AttributeValue::M(HashMap::from([("score".to_owned(), number("95.5"))])),
        ),
        ("accessCount".to_owned(), number("5")),
        ("note".to_owned(), AttributeValue::Null(true)),
        ("tags".to_owned(), AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()])),
        ("picture".to_owned(), bytes(b"\x00\xff")),
    ]);
    item
}

#[test]
fn a_write_keeps_what_json_cannot_express() {
    runtime().block_on(async {
        let fresh = Fresh::documents_table().await;
        fresh.put_item(written_by_another()).await;
        let documents = DynamoDbDocuments::open(fresh.options()).await.unwrap();
        let document = present(&documents, "u:n:aw==").await;
        assert_eq!(
            document.fields.as_str(),
            r#"{"accessCount":5,"key":"k","namespace":"n","note":null,"picture":"AP8=","tags":["a","b"],"userId":"u","value":{"score":95.5}}"#
        );
        let fields = document.fields.as_str().replace(r#""accessCount":5"#, r#""accessCount":6"#);
        let Swapped::Applied { revision } = documents.put("u:n:aw==", &json(&fields), Some(&document)).await.unwrap()
        else {
            panic!("nobody else wrote");
        };
        let mut expected = written_by_another();
        expected.insert("accessCount".to_owned(), number("6"));
        let same = |item: &Item| {
            item.keys().len() == expected.len()
                && item["tags"].as_ss().unwrap().len() == 2
                && item["picture"] == expected["picture"]
                && item["accessCount"] == number("6")
        };
        let item = fresh.item(id("u:n:aw==")).await.unwrap();
        assert!(same(&item), "{item:?}");

        // What was written is good for the next swap; a field that is written becomes JSON's.
        let document = Document { id: document.id, fields: json(&fields), revision };
        let fields = fields.replace(r#""tags":["a","b"]"#, r#""tags":["a"]"#).replace(r#","note":null"#, "");
        let swapped = documents.put("u:n:aw==", &json(&fields), Some(&document)).await.unwrap();
        assert!(matches!(swapped, Swapped::Applied { .. }));
        let item = fresh.item(id("u:n:aw==")).await.unwrap();
        assert_eq!(item["tags"], AttributeValue::L(vec![text("a")]));
        assert_eq!(item["picture"], bytes(b"\x00\xff"));
        assert!(!item.contains_key("note"));
    });
}

#[test]
fn a_change_of_any_attribute_by_another_is_a_conflict() {
    runtime().block_on(async {
        let fresh = Fresh::documents_table().await;
        let documents = DynamoDbDocuments::open(fresh.options()).await.unwrap();
        let changes = [
            ("value", AttributeValue::M(HashMap::new())),
            ("accessCount", number("6")),
            ("accessCount", text("5")),
            ("note", text("")),
            ("tags", AttributeValue::L(vec![text("a"), text("b")])),
            ("picture", text("AP8=")),
            ("new", number("1")),
        ];
        for (name, value) in changes {
            fresh.put_item(written_by_another()).await;
            let document = present(&documents, "u:n:aw==").await;
            let mut changed = written_by_another();
            changed.insert(name.to_owned(), value.clone());
            fresh.put_item(changed.clone()).await;
            let fields =
                document.fields.as_str().replace("{\"accessCount\"", "{\"new\":2,\"accessCount\"");
            let swapped = documents.put("u:n:aw==", &json(&fields), Some(&document)).await.unwrap();
            assert_eq!(swapped, Swapped::Conflicted, "{name}: {value:?}");
            if name != "new" {
                let swapped = documents.delete(&document).await.unwrap();
                assert_eq!(swapped, Swapped::Conflicted, "{name}: {value:?}");
            }
            assert_eq!(fresh.item(id("u:n:aw==")).await.unwrap()[name], changed[name]);
        }
    });
}

/// Nothing is lost: it is as if it had been added right after.
#[test]
fn an_attribute_that_another_adds_meanwhile_stays() {
    runtime().block_on(async {
        let fresh = Fresh::documents_table().await;
        fresh.put_item(written_by_another()).await;
        let documents = DynamoDbDocuments::open(fresh.options()).await.unwrap();
        let document = present(&documents, "u:n:aw==").await;
        let mut added = written_by_another();
        added.insert("lastAccessedByAgent".to_owned(), text("reporter"));
        fresh.put_item(added).await;
        let fields = document.fields.as_str().replace(r#""accessCount":5"#, r#""accessCount":6"#);
        let swapped = documents.put("u:n:aw==", &json(&fields), Some(&document)).await.unwrap();
        assert!(matches!(swapped, Swapped::Applied { .. }));
        let item = fresh.item(id("u:n:aw==")).await.unwrap();
        assert_eq!(item["lastAccessedByAgent"], text("reporter"));
        assert_eq!(item["accessCount"], number("6"));
    });
}

#[test]
fn documents_are_attributes_as_other_programs_write_them() {
    runtime().block_on(async {
        let fresh = Fresh::documents_table().await;
        let documents = DynamoDbDocuments::open(fresh.options()).await.unwrap();
        let fields = json(
            r#"{"userId":"u","namespace":"n","key":"k","value":{"score":95,"items":["a",null,true]},"accessCount":0}"#,
        );
        let swapped = documents.put("u:n:aw==", &fields, None).await.unwrap();
        assert!(matches!(swapped, Swapped::Applied { .. }));
        let item = fresh.item(id("u:n:aw==")).await.unwrap();
        let value = item["value"].as_m().unwrap();
        assert_eq!(value["score"], number("95"));
        let items = vec![text("a"), AttributeValue::Null(true), AttributeValue::Bool(true)];
        assert_eq!(value["items"], AttributeValue::L(items));
        assert_eq!((item["accessCount"].clone(), item["key"].clone()), (number("0"), text("k")));
    });
}

#[test]
fn an_index_of_another_name_serves_as_well() {
    use aws_sdk_dynamodb::types::{
        AttributeDefinition, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndexUpdate,
        KeySchemaElement, KeyType, Projection, ProjectionType, ScalarAttributeType,
    };
    runtime().block_on(async {
        let fresh = Fresh::documents_table().await;
        let documents = DynamoDbDocuments::open(fresh.options()).await.unwrap();
        let list = keyward_engine::DocumentList {
            owner: "u".to_owned(),
            group: None,
            with_documents: true,
            after: None,
            limit: 10,
        };
        let error = documents.list(&list).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
        let part = |name, kind| {
            KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap()
        };
        let index = CreateGlobalSecondaryIndexAction::builder()
            .index_name("theirs")
            .key_schema(part("userId", KeyType::Hash))
            .key_schema(part("namespace", KeyType::Range))
            .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build())
            .build()
            .unwrap();
        let mut update = raw().update_table().table_name(&fresh.table);
        for name in ["_id", "userId", "namespace"] {
            let definition = AttributeDefinition::builder().attribute_name(name);
            let definition = definition.attribute_type(ScalarAttributeType::S).build().unwrap();
            update = update.attribute_definitions(definition);
        }
        let update = update.global_secondary_index_updates(
            GlobalSecondaryIndexUpdate::builder().create(index).build(),
        );
        update.send().await.unwrap();
        // It may still be being built.
        documents.prepare(true).await.unwrap();
        fresh.put_item(written_by_another()).await;
        let page = loop {
            let page = documents.list(&list).await.unwrap();
            if !page.rows.is_empty() {
                break page;
            }
            tokio::time::sleep(DynamoDbDocuments::LIST_LAG).await;
        };
        assert_eq!((page.rows[0].id.as_str(), page.rows[0].group.as_str()), ("u:n:aw==", "n"));
        assert!(page.rows[0].document.as_ref().unwrap().fields.as_str().contains("95.5"));
    });
}
