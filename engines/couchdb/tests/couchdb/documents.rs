//! Documents that another program lays out.

use std::sync::Arc;

use keyward_couchdb::CouchDbDocuments;
use keyward_engine::{BoxFuture, Consistency, Document, Documents, ErrorKind, Json, Swapped};
use serde_json::json;

use crate::server::Fresh;

fn fields(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

async fn read(documents: &impl Documents, id: &str) -> Option<Document> {
    documents.get_many(&[id.to_owned()]).await.unwrap().remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_both_programs_are_read_by_both() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    // From the layout's own page.
    let theirs = json!({
        "userId": "user_123", "namespace": "files:my-repo", "key": "src/main.py",
        "value": {"content": "def main():\n    print('Hello')\n", "lines": 2, "functions": ["main"]},
        "metadata": {"indexed_at": "2026-02-05T09:00:00Z", "file_size": 42},
        "createdByAgent": "repo-indexer", "accessCount": 15, "createdAt": "2026-02-05T09:00:00Z",
        "updatedAt": "2026-02-05T09:00:00Z"
    });
    let id = "user_123:files:my-repo:c3JjL21haW4ucHk=";
    let rev = fresh.write(&format!("/{id}"), &theirs);
    let found = read(&documents, id).await.unwrap();
    assert_eq!((found.id.as_str(), &*found.revision), (id, rev.as_str()));
    assert_eq!(serde_json::from_str::<serde_json::Value>(found.fields.as_str()).unwrap(), theirs);

    let text = r#"{"userId":"u","value":[1.50,0.1,1e22,-7,9007199254740991,"é\u0000😀"],"x":null}"#;
    let ours = fields(text);
    let id = "u:a/b +?#%:é";
    let Swapped::Applied { revision } = documents.put(id, &ours, None).await.unwrap() else {
        panic!("nothing is there");
    };
    let mut seen = fresh.read("/u%3Aa%2Fb%20%2B%3F%23%25%3A%C3%A9");
    assert_eq!(seen["_rev"], *revision);
    assert_eq!(seen["_id"], id);
    let seen = seen.as_object_mut().unwrap();
    seen.retain(|name, _| !name.starts_with('_'));
    assert_eq!(json!(seen), serde_json::from_str::<serde_json::Value>(text).unwrap());
    let many = ["none", id, "u", id].map(str::to_owned);
    let many = documents.get_many(&many).await.unwrap();
    let there: Vec<bool> = many.iter().map(Option::is_some).collect();
    assert_eq!(there, [false, true, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_swapped_only_while_it_is_what_it_was() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    let (one, two) = (fields(r#"{"v":1}"#), fields(r#"{"v":2}"#));
    assert!(matches!(documents.put("d", &one, None).await.unwrap(), Swapped::Applied { .. }));
    assert_eq!(documents.put("d", &two, None).await.unwrap(), Swapped::Conflicted);
    let first = read(&documents, "d").await.unwrap();
    assert!(matches!(
        documents.put("d", &two, Some(&first)).await.unwrap(),
        Swapped::Applied { .. }
    ));
    assert_eq!(documents.put("d", &one, Some(&first)).await.unwrap(), Swapped::Conflicted);
    assert_eq!(documents.delete(&first).await.unwrap(), Swapped::Conflicted);
    let second = read(&documents, "d").await.unwrap();
    assert_eq!(second.fields, two);
    assert!(matches!(documents.delete(&second).await.unwrap(), Swapped::Applied { .. }));
    assert_eq!(documents.delete(&second).await.unwrap(), Swapped::Conflicted);
    assert_eq!(documents.put("d", &one, Some(&second)).await.unwrap(), Swapped::Conflicted);
    assert_eq!(read(&documents, "d").await, None);
    // A new one after a deleted one, and with another revision than before.
    assert!(matches!(documents.put("d", &one, None).await.unwrap(), Swapped::Applied { .. }));
    let again = read(&documents, "d").await.unwrap();
    assert_eq!(again.fields, one);
    assert_ne!(again.revision, first.revision);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_in_several_copies_have_no_compare_and_swap() {
    let (one, three) = (Fresh::new().documents().await, Fresh::named("-copies-3"));
    assert!(one.compare() && one.consistency() == Consistency::Strong && one.list_lag().is_none());
    // Before there is a database, nothing says how many copies it will keep.
    let early = CouchDbDocuments::open(three.options()).await.unwrap();
    let documents = three.documents().await;
    assert!(!documents.compare() && documents.list_lag().is_some());
    assert!(matches!(documents.consistency(), Consistency::Eventual { .. }));
    assert!(matches!(
        documents.put("d", &fields("{}"), None).await.unwrap(),
        Swapped::Applied { .. }
    ));
    assert!(early.compare());
    let refused = early.put("e", &fields("{}"), None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misplaced, "{refused}");
    assert_eq!(read(&documents, "e").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixteen_racing_swaps_exactly_one_wins() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    let mut base = None;
    for round in 0..20 {
        let swaps = (0..16).map(|n| {
            let (documents, base) = (documents.clone(), base.clone());
            tokio::spawn(async move {
                let fields = fields(&format!(r#"{{"v":[{round},{n}]}}"#));
                documents.put("contested", &fields, base.as_ref()).await.unwrap()
            })
        });
        let mut won = 0;
        for swap in swaps.collect::<Vec<_>>() {
            won += usize::from(matches!(swap.await.unwrap(), Swapped::Applied { .. }));
        }
        assert_eq!(won, 1, "round {round}");
        base = read(&documents, "contested").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_couchdb_cannot_hold_exactly_is_refused() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    for (text, named) in [
        (r#"{"v":0.1234567890123456789}"#, "0.1234567890123456789"),
        (r#"{"v":{"w":[1,9007199254740993.0]}}"#, "9007199254740993.0"),
        (r#"{"v":1e400}"#, "1e400"),
        (r#"{"_v":1}"#, "\"_v\""),
        (r#"{"_rev":"1-x"}"#, "\"_rev\""),
        ("[1]", "object"),
    ] {
        let error = documents.put("d", &fields(text), None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
        assert!(error.message().contains(named), "{text}: {error}");
    }
    for id in ["", "_design/x", "_x:n:a", ".", ".."] {
        let error = documents.put(id, &fields("{}"), None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{id}: {error}");
    }
    let (status, found) = fresh.request("GET", "/_all_docs", "");
    assert_eq!((status, found["rows"].as_array().unwrap().len()), (200, 0), "nothing was stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_up_to_the_limits_work_and_larger_ones_are_refused() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    let limits = *documents.limits();
    let sized = |bytes: usize| fields(&format!(r#"{{"v":"{}"}}"#, "x".repeat(bytes - 8)));
    let largest = sized(limits.document_bytes_max);
    assert_eq!(largest.len(), limits.document_bytes_max);
    assert!(matches!(documents.put("d", &largest, None).await.unwrap(), Swapped::Applied { .. }));
    assert_eq!(read(&documents, "d").await.unwrap().fields, largest);
    let larger = sized(limits.document_bytes_max + 1);
    let error = documents.put("e", &larger, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    // What a server refuses by a limit of its own.
    let (status, answer) = fresh.request("PUT", "/e", larger.as_str());
    assert_eq!((status, answer["error"].as_str()), (413, Some("document_too_large")));

    let id = "é".repeat(limits.id_bytes_max / 2);
    assert!(matches!(
        documents.put(&id, &fields("{}"), None).await.unwrap(),
        Swapped::Applied { .. }
    ));
    assert!(read(&documents, &id).await.is_some());
    let error = documents.put(&format!("{id}x"), &fields("{}"), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_a_document_carries_outlive_a_swap() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    let file = json!({"note.txt": {"content_type": "text/plain", "data": "aGk="}});
    fresh.write("/d", &json!({"v": 1, "_attachments": file}));
    let found = read(&documents, "d").await.unwrap();
    let changed = fields(&found.fields.as_str().replace("\"v\":1", "\"v\":2"));
    assert!(matches!(
        documents.put("d", &changed, Some(&found)).await.unwrap(),
        Swapped::Applied { .. }
    ));
    let seen = fresh.read("/d");
    assert_eq!((&seen["v"], &seen["_attachments"]["note.txt"]["length"]), (&json!(2), &json!(2)));
}

struct OnServer(Fresh);

impl keyward_testkit::DocumentsPlace for OnServer {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Documents>> {
        Box::pin(async {
            Arc::new(CouchDbDocuments::open(self.0.options()).await.unwrap()) as Arc<dyn Documents>
        })
    }
}

keyward_testkit::document_conformance!(conformance, OnServer(Fresh::created()));
