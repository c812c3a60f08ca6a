//! How large things may be.

use keyward_engine::{ErrorKind, Json};

use super::super::database::{Database, assert_same, entry, is_applied};

/// A document of plain text that is so many bytes of JSON.
fn sized(bytes: usize) -> Json {
    let empty = entry("u", "n", r#""""#).len();
    entry("u", "n", &format!("\"{}\"", "x".repeat(bytes - empty)))
}

pub async fn the_largest_document_works_and_a_much_larger_one_is_refused(database: Database) {
    let bytes_max = database.limits().document_bytes_max;
    let largest = sized(bytes_max);
    assert_eq!(largest.len(), bytes_max);
    let document = database.create("u:n:aw==", &largest).await;
    let larger = sized(2 * bytes_max);
    let refused = database.try_create("u:n:bw==", &larger).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
    let refused = database.documents.put("u:n:aw==", &larger, Some(&document)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
    assert_eq!(database.present("u:n:aw==").await.revision, document.revision);
    // It is as it was, and can still be replaced.
    assert!(is_applied(&database.put("u:n:aw==", &entry("u", "n", "1"), Some(&document)).await));
}

pub async fn the_longest_id_works_and_a_longer_one_is_refused(database: Database) {
    let bytes_max = database.limits().id_bytes_max;
    let fields = entry("u", "n", "1");
    let id = |bytes: usize| format!("u:n:{}", "x".repeat(bytes - 4));
    database.create(&id(bytes_max), &fields).await;
    let refused = database.documents.put(&id(bytes_max + 1), &fields, None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
}

pub async fn the_most_ids_of_one_read_come_back(database: Database) {
    let ids_max = database.limits().get_ids_max;
    let ids: Vec<String> = (0..ids_max).map(|n| format!("u:n:{n:05}")).collect();
    let fields = |n: usize| entry("u", "n", &n.to_string());
    let there = ids.iter().enumerate().filter(|(n, _)| n % 7 != 3);
    database.fill(there.map(|(n, id)| (id.clone(), fields(n))).collect()).await;
    let found = database.documents.get_many(&ids).await.unwrap();
    assert_eq!(found.len(), ids.len());
    for (n, document) in found.into_iter().enumerate() {
        assert_eq!(document.is_none(), n % 7 == 3, "{n}");
        if let Some(document) = document {
            assert_eq!(document.id, ids[n]);
            assert_same(&document.fields, &fields(n));
        }
    }
}
