//! Compare-and-swap of one document.

use keyward_engine::{Document, Swapped};

use super::super::database::{Database, assert_same, entry, is_applied, json};

const ID: &str = "u:n:aw==";

fn value(value: &str) -> keyward_engine::Json {
    entry("u", "n", value)
}

pub async fn a_document_is_created_only_where_there_is_none(database: Database) {
    database.create(ID, &value("1")).await;
    assert_eq!(database.put(ID, &value("2"), None).await, Swapped::Conflicted);
    assert_eq!(database.put(ID, &value("1"), None).await, Swapped::Conflicted);
    assert_same(&database.present(ID).await.fields, &value("1"));
}

pub async fn a_document_is_replaced_only_as_it_was_read(database: Database) {
    let first = database.create(ID, &value("1")).await;
    assert!(is_applied(&database.put(ID, &value("2"), Some(&first)).await));
    assert_eq!(database.put(ID, &value("3"), Some(&first)).await, Swapped::Conflicted);
    let second = database.present(ID).await;
    assert_same(&second.fields, &value("2"));
    assert!(is_applied(&database.put(ID, &value("3"), Some(&second)).await));
    // One that is not there is never replaced.
    let other = Document { id: "u:n:bw==".to_owned(), ..second };
    assert_eq!(database.put(&other.id, &value("4"), Some(&other)).await, Swapped::Conflicted);
    assert_eq!(database.get(&other.id).await, None);
    assert_same(&database.present(ID).await.fields, &value("3"));
}

pub async fn a_document_is_deleted_only_as_it_was_read(database: Database) {
    let first = database.create(ID, &value("1")).await;
    assert!(is_applied(&database.put(ID, &value("2"), Some(&first)).await));
    assert_eq!(database.documents.delete(&first).await.unwrap(), Swapped::Conflicted);
    let second = database.present(ID).await;
    assert!(is_applied(&database.documents.delete(&second).await.unwrap()));
    assert_eq!(database.get(ID).await, None);
    assert_eq!(database.documents.delete(&second).await.unwrap(), Swapped::Conflicted);
}

pub async fn a_deleted_document_is_absent_and_can_be_created_again(database: Database) {
    for round in 0..5 {
        let document = database.create(ID, &value(&round.to_string())).await;
        assert!(is_applied(&database.documents.delete(&document).await.unwrap()));
        assert_eq!(database.get(ID).await, None);
        let gone = database.put(ID, &value("9"), Some(&document)).await;
        assert_eq!(gone, Swapped::Conflicted);
        assert_eq!(database.get(ID).await, None);
    }
}

pub async fn a_document_of_an_earlier_life_replaces_and_deletes_nothing(database: Database) {
    let first = database.create(ID, &value("1")).await;
    assert!(is_applied(&database.documents.delete(&first).await.unwrap()));
    let again = database.create(ID, &value("2")).await;
    assert_eq!(database.put(ID, &value("3"), Some(&first)).await, Swapped::Conflicted);
    assert_eq!(database.documents.delete(&first).await.unwrap(), Swapped::Conflicted);
    assert_eq!(database.present(ID).await, again);
}

/// An adapter that compares fields tells no revision, and its documents are read before they are
/// replaced.
pub async fn the_revision_of_a_put_is_good_for_the_next_swap(database: Database) {
    let Swapped::Applied { revision } = database.put(ID, &value("0"), None).await else {
        panic!("there was no document");
    };
    if revision.is_empty() {
        assert!(database.present(ID).await.revision.is_empty());
        return;
    }
    let mut known = Document { id: ID.to_owned(), fields: value("0"), revision };
    for round in 1..5 {
        let fields = value(&round.to_string());
        let Swapped::Applied { revision } = database.put(ID, &fields, Some(&known)).await else {
            panic!("nobody else has changed it");
        };
        assert_ne!(revision, known.revision);
        assert_eq!(database.present(ID).await.revision, revision);
        known = Document { fields, revision, ..known };
    }
    assert!(is_applied(&database.documents.delete(&known).await.unwrap()));
}

pub async fn a_swap_that_changes_nothing_is_applied(database: Database) {
    let document = database.create(ID, &value("1")).await;
    assert!(is_applied(&database.put(ID, &document.fields, Some(&document)).await));
    assert_same(&database.present(ID).await.fields, &value("1"));
}

pub async fn a_put_replaces_all_fields(database: Database) {
    let more =
        json(r#"{"userId":"u","namespace":"n","key":"k","value":{"a":1,"b":2},"extra":[1]}"#);
    let document = database.create(ID, &more).await;
    let less = json(r#"{"userId":"u","namespace":"n","key":"k","value":{"b":3},"other":null}"#);
    assert!(is_applied(&database.put(ID, &less, Some(&document)).await));
    assert_same(&database.present(ID).await.fields, &less);
}
