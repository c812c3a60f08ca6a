//! Opening tables: those that are there, those that are not, and those of others.

use aws_sdk_dynamodb::types::{ScalarAttributeType, TableStatus, TimeToLiveStatus};
use keyward_dynamodb::{Credentials, DynamoDb, DynamoDbDocuments, Options};
use keyward_engine::{Documents, Engine, ErrorKind, Store};

use crate::server::{Fresh, bytes, key, number, put, raw, runtime};

#[test]
fn a_table_is_created_only_if_asked_for() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let error = DynamoDb::open(fresh.options()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
        let advice = error.advice().unwrap();
        assert!(advice.contains("create=true") && advice.contains("billed"), "{advice}");
        assert!(DynamoDb::open_existing(fresh.options()).await.unwrap().is_none());
        let described = raw().describe_table().table_name(&fresh.table).send().await;
        assert!(described.is_err(), "nothing was made");

        let create = Options { create: true, ..fresh.options() };
        // Several at once are no trouble.
        let (one, other) =
            tokio::join!(DynamoDb::open(create.clone()), DynamoDb::open(create.clone()));
        let (one, other) = (Store::new(one.unwrap()), Store::new(other.unwrap()));
        one.put(key("a"), put("1")).await.unwrap();
        assert!(other.get(&key("a")).await.unwrap().is_some());
        let table =
            raw().describe_table().table_name(&fresh.table).send().await.unwrap().table.unwrap();
        assert_eq!(table.table_status, Some(TableStatus::Active));
        let ttl = raw().describe_time_to_live().table_name(&fresh.table).send().await.unwrap();
        let ttl = ttl.time_to_live_description.unwrap();
        assert_eq!(ttl.attribute_name.as_deref(), Some("t"));
        assert!(matches!(
            ttl.time_to_live_status,
            Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
        ));
        let existing = DynamoDb::open_existing(fresh.options()).await.unwrap().unwrap();
        assert!(Store::new(existing).get(&key("a")).await.unwrap().is_some());
    });
}

#[test]
fn an_empty_table_becomes_a_store_but_not_by_looking() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        assert!(DynamoDb::open_existing(fresh.options()).await.unwrap().is_none());
        assert_eq!(fresh.items().await.len(), 0);
        DynamoDb::open(fresh.options()).await.unwrap();
        assert!(DynamoDb::open_existing(fresh.options()).await.unwrap().is_some());
    });
}

#[test]
fn a_table_that_holds_something_else_becomes_no_store() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let foreign = [("p", bytes(b"x")), ("s", bytes(b"y"))];
        fresh.put_item(foreign.map(|(name, value)| (name.to_owned(), value)).into()).await;
        for create in [false, true] {
            let opened = DynamoDb::open(Options { create, ..fresh.options() }).await;
            let error = opened.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
            assert!(error.message().contains("has items"), "{error}");
        }
        assert_eq!(fresh.items().await.len(), 1);
    });
}

#[test]
fn tables_of_others_are_left_alone() {
    runtime().block_on(async {
        let fresh = Fresh::documents_table().await;
        for opened in [
            DynamoDb::open(Options { create: true, ..fresh.options() }).await.map(|_| ()),
            DynamoDb::open_existing(fresh.options()).await.map(|_| ()),
        ] {
            let error = opened.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
            assert!(error.message().contains("_id (S)"), "{error}");
            assert!(error.advice().unwrap().contains("layout=document"), "{error}");
        }
        assert_eq!(fresh.items().await.len(), 0);

        let store = Fresh::store_table().await;
        let error = DynamoDbDocuments::open(store.options()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
        assert!(error.message().contains("p (B) and s (B)"), "{error}");
        let other = Fresh::new();
        other.create(&[("_id", ScalarAttributeType::S), ("n", ScalarAttributeType::N)]).await;
        assert!(DynamoDbDocuments::open(other.options()).await.is_err());
    });
}

#[test]
fn how_keys_are_split_is_fixed_when_the_store_is_made() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let two = Options { partition_segments: Some(2), ..fresh.options() };
        DynamoDb::open(two.clone()).await.unwrap();
        DynamoDb::open(two).await.unwrap();
        let engine = DynamoDb::open(fresh.options()).await.unwrap();
        let store = Store::new(engine);
        store.put(key("a:b:c"), put("1")).await.unwrap();
        let partitions: Vec<_> =
            fresh.items().await.into_iter().map(|item| item["p"].clone()).collect();
        assert!(partitions.contains(&crate::server::bytes(b"ea\0b")), "{partitions:?}");
        let error = DynamoDb::open(Options { partition_segments: Some(1), ..fresh.options() })
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced);
        assert!(error.message().contains("partition_segments=2"), "{error}");
    });
}

#[test]
fn a_table_of_a_newer_format_is_refused() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        DynamoDb::open(fresh.options()).await.unwrap();
        let mut header = fresh.items().await.pop().unwrap();
        header.insert("format".to_owned(), number("2"));
        fresh.put_item(header).await;
        let error = DynamoDb::open(fresh.options()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced);
        assert!(error.message().contains("format 2"), "{error}");
    });
}

#[test]
fn a_table_of_documents_is_made_by_preparing() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let documents = DynamoDbDocuments::open(fresh.options()).await.unwrap();
        let error = documents.get_many(&["a".to_owned()]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
        let missing = documents.prepare(false).await.unwrap();
        assert!(
            missing[0].contains("_id (S)") && missing[0].contains("billed on demand"),
            "{missing:?}"
        );
        assert_eq!(documents.prepare(true).await.unwrap(), missing);
        assert_eq!(documents.prepare(false).await.unwrap(), [] as [String; 0]);
        assert_eq!(documents.get_many(&["a".to_owned()]).await.unwrap(), [None]);
    });
}

#[test]
fn nothing_shown_has_a_secret() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let options = Options {
            credentials: Some(Credentials::new("id", "hidden-secret")),
            ..fresh.options()
        };
        let engine = DynamoDb::open(options.clone()).await.unwrap();
        let documents = format!("{options:?} {engine:?}");
        assert!(!documents.contains("hidden-secret"), "{documents}");
        assert_eq!(engine.capabilities().engine, "dynamodb");
    });
}
