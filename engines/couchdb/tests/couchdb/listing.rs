//! Lists by the views of the layout.

use std::collections::BTreeSet;

use keyward_engine::{Cursor, DocumentList, DocumentRow, Documents, Swapped};
use serde_json::json;

use crate::server::Fresh;

fn list(owner: &str, group: Option<&str>, limit: usize) -> DocumentList {
    let (owner, group) = (owner.to_owned(), group.map(str::to_owned));
    DocumentList { owner, group, with_documents: false, after: None, limit }
}

async fn rows(documents: &impl Documents, mut list: DocumentList) -> Vec<DocumentRow> {
    let mut rows = Vec::new();
    loop {
        let page = documents.list(&list).await.unwrap();
        assert!(page.rows.len() <= list.limit);
        rows.extend(page.rows);
        list.after = page.next;
        if list.after.is_none() {
            return rows;
        }
    }
}

fn fill(fresh: &Fresh, count: usize) {
    let all: Vec<usize> = (0..count).collect();
    for some in all.chunks(5_000) {
        let docs: Vec<_> = some
            .iter()
            .map(|n| json!({"_id": format!("u:n:{n:05}"), "userId": "u", "namespace": "n", "value": n}))
            .collect();
        let (status, _) =
            fresh.request("POST", "/_bulk_docs", &json!({ "docs": docs }).to_string());
        assert_eq!(status, 201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_and_fifty_documents_list_as_that_many() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    documents.prepare(true).await.unwrap();
    fill(&fresh, 10_050);
    let found = rows(&documents, list("u", Some("n"), documents.limits().list_rows_max)).await;
    let distinct: BTreeSet<_> = found.iter().map(|row| &row.id).collect();
    assert_eq!((found.len(), distinct.len()), (10_050, 10_050));
    assert!(found.iter().all(|row| row.group == "n" && row.document.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_every_size_give_each_document_once_also_while_some_are_deleted() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    fill(&fresh, 230);
    documents.prepare(true).await.unwrap();
    for (group, limit) in [(None, 7), (Some("n"), 23), (None, 115), (Some("n"), 1_000)] {
        let mut list = list("u", group, limit);
        list.with_documents = limit != 7;
        let found = rows(&documents, list).await;
        let ids: Vec<_> = found.iter().map(|row| row.id.clone()).collect();
        assert_eq!(ids, (0..230).map(|n| format!("u:n:{n:05}")).collect::<Vec<_>>(), "by {limit}");
        for row in found {
            assert_eq!(row.document.is_some(), limit != 7);
            if let Some(document) = row.document {
                assert!(document.fields.as_str().contains("\"userId\":\"u\""));
                assert!(document.revision.starts_with("1-"));
            }
        }
    }
    // The document that a cursor names may be gone.
    let mut list = list("u", None, 10);
    let first = documents.list(&list).await.unwrap();
    list.after = first.next.clone();
    let last = first.rows.last().unwrap().id.clone();
    let last = documents.get_many(&[last]).await.unwrap().remove(0).unwrap();
    assert!(matches!(documents.delete(&last).await.unwrap(), Swapped::Applied { .. }));
    let second = documents.list(&list).await.unwrap();
    assert_eq!(second.rows[0].id, "u:n:00010");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_only_what_is_its_owners_and_groups() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    documents.prepare(true).await.unwrap();
    for (id, user, namespace) in [
        ("1", json!("u"), json!("n")),
        ("2", json!("u"), json!("m")),
        ("3", json!("U"), json!("n")),
        ("4", json!("u "), json!("n")),
        ("5", json!("caf\u{e9}"), json!("n")),
        ("6", json!("cafe\u{301}"), json!("n")),
        ("7", json!("u"), json!(null)),
        ("8", json!("u"), json!(["n"])),
        ("9", json!(["u"]), json!("n")),
    ] {
        fresh.write(&format!("/{id}"), &json!({"userId": user, "namespace": namespace}));
    }
    for (owner, group, ids) in [
        ("u", Some("n"), &["1"][..]),
        ("u", Some("m"), &["2"]),
        ("u", None, &["1", "2"]),
        ("caf\u{e9}", None, &["5"]),
        ("cafe\u{301}", Some("n"), &["6"]),
        ("nobody", None, &[]),
    ] {
        let found = rows(&documents, list(owner, group, 10)).await;
        let mut found: Vec<_> = found.into_iter().map(|row| row.id).collect();
        found.sort();
        assert_eq!(found, ids, "{owner} {group:?}");
    }
    let mut forged = list("u", None, 10);
    forged.after = Some(Cursor::new(vec![0xff]));
    let error = documents.list(&forged).await.unwrap_err();
    assert_eq!(error.kind(), keyward_engine::ErrorKind::Invalid);
    // A cursor of another list reaches nobody else's documents.
    forged.after = Some(Cursor::new("0"));
    assert_eq!(rows(&documents, forged).await.len(), 2);
}
