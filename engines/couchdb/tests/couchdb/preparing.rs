//! The design document of the layout: told, created, and never written over.

use std::time::Duration;

use keyward_couchdb::CouchDbDocuments;
use keyward_engine::{DocumentList, Documents, ErrorKind};
use keyward_testkit::{HttpProxy, NetworkFault};
use serde_json::json;

use crate::server::{Fresh, address};

const BY_USER: &str = "function(doc) { if (doc.userId) { emit(doc.userId, doc.namespace); } }";
const BY_USER_NAMESPACE: &str = "function(doc) { if (doc.userId && doc.namespace) { emit([doc.userId, doc.namespace], null); } }";

fn list() -> DocumentList {
    let owner = "u".to_owned();
    DocumentList { owner, group: None, with_documents: false, after: None, limit: 10 }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_design_document_is_told_before_it_is_created() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    let error = documents.list(&list()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misplaced);
    assert!(error.message().contains("no view by_user in _design/data_store"), "{error}");
    let told = documents.prepare(false).await.unwrap();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("_design/data_store with the views by_user_namespace and by_user"));
    assert_eq!(fresh.request("GET", "/_design/data_store", "").0, 404, "only told");
    assert_eq!(documents.prepare(true).await.unwrap(), told);
    assert!(documents.list(&list()).await.unwrap().rows.is_empty());
    assert!(documents.prepare(false).await.unwrap().is_empty());
    assert!(documents.prepare(true).await.unwrap().is_empty());
    // Exactly as the layout says.
    let mut design = fresh.read("/_design/data_store");
    let design = design.as_object_mut().unwrap();
    design.remove("_rev");
    assert_eq!(
        json!(design),
        json!({"_id": "_design/data_store", "views": {
            "by_user_namespace": {"map": BY_USER_NAMESPACE}, "by_user": {"map": BY_USER},
        }})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn views_that_take_long_to_build_are_waited_for() {
    let fresh = Fresh::new();
    fresh.request("PUT", "", "");
    let proxy = HttpProxy::start(address()).await;
    let mut options = fresh.impatient(proxy.address());
    options.http.retry_budget = Duration::from_millis(200);
    let documents = CouchDbDocuments::open(options).await.unwrap();
    // More than one request is sent again, as while CouchDB builds for longer than a request may take.
    let build_slowly = || {
        for _ in 0..12 {
            proxy.fail_next_matching(|_, path| path.contains("/_view/"), NetworkFault::Answer(500));
        }
    };
    let views = || proxy.log().iter().filter(|line| line.contains("/_view/")).count();
    build_slowly();
    assert_eq!(documents.prepare(true).await.unwrap().len(), 1);
    let first = views();
    assert!(first > 12, "{first}");
    // Also if somebody else stored the design document.
    build_slowly();
    assert!(documents.prepare(true).await.unwrap().is_empty());
    assert!(views() > first + 12);
    assert!(documents.prepare(false).await.unwrap().is_empty());
    proxy.fail_always(NetworkFault::Answer(503));
    let error = documents.prepare(true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "a server that is away is not waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_missing_is_told_and_created_too() {
    let fresh = Fresh::new();
    let documents = keyward_couchdb::CouchDbDocuments::open(fresh.options()).await.unwrap();
    let told = documents.prepare(false).await.unwrap();
    assert_eq!(told.len(), 2);
    assert!(told[0].contains(&fresh.name), "{told:?}");
    assert_eq!(fresh.request("GET", "", "").0, 404);
    assert_eq!(documents.prepare(true).await.unwrap(), told);
    assert!(documents.prepare(true).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_view_is_added_beside_those_of_others() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    let mine = json!({"map": "function(doc) { emit(doc.key, 1); }", "reduce": "_count"});
    let design = json!({
        "language": "javascript",
        "views": {"by_user": {"map": BY_USER.replace(' ', "\n  ")}, "mine": mine},
        "validate_doc_update": "function() {}"
    });
    fresh.write("/_design/data_store", &design);
    let told = documents.prepare(false).await.unwrap();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("the view by_user_namespace to the design document"), "{told:?}");
    assert_eq!(documents.prepare(true).await.unwrap(), told);
    let after = fresh.read("/_design/data_store");
    assert_eq!(after["views"]["mine"], mine);
    assert_eq!(after["views"]["by_user"], design["views"]["by_user"]);
    assert_eq!(after["views"]["by_user_namespace"]["map"], BY_USER_NAMESPACE);
    assert_eq!(after["validate_doc_update"], design["validate_doc_update"]);
    documents.list(&list()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_does_something_else_is_told_and_left_alone() {
    let fresh = Fresh::new();
    let documents = fresh.documents().await;
    let design = json!({"views": {"by_user": {"map": "function(doc) { emit(doc.name); }"}}});
    let rev = fresh.write("/_design/data_store", &design);
    for create in [false, true] {
        let error = documents.prepare(create).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misplaced);
        assert!(error.message().contains("by_user with another map function"), "{error}");
    }
    assert_eq!(fresh.read("/_design/data_store")["_rev"], rev);
}
