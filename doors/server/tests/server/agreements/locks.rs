//! The locks of pages, by the names that the guide gives them.

use reqwest::RequestBuilder;
use serde_json::json;

use super::{Model, PAGE, Served};
use crate::fixture::{answered, refused, told};

fn acquire(served: &Served, store: &str, root: &str, path: &str) -> RequestBuilder {
    let body = json!({ "root": root, "paths": [path], "ttl": 60 }).to_string();
    served.server.post(&format!("/v1/stores/{store}/locks/acquire"), &body)
}

#[tokio::test]
async fn a_lock_has_one_path_whichever_of_its_names_is_used() {
    let served = Served::new().await;
    for (name, others) in [
        ("policy:leave:fr", &["policies:leave:fr", "policy:leave", "policies", "nda", ""][..]),
        ("policies:leave", &["policy:leave", "policy:leave:de"]),
        ("issue:7", &["issues:7", "issues"]),
    ] {
        let held = told(200, acquire(&served, "inbox", "nda", name)).await;
        assert_eq!(held["paths"], json!([name.replace("policies:", "policy:")]));
        for other in others {
            refused(409, "locked", acquire(&served, "inbox", "nda", other)).await;
        }
        let ticket = json!({ "ticket": held["ticket"] }).to_string();
        answered(204, served.server.post("/v1/stores/inbox/locks/release", &ticket)).await;
    }
    for outside in ["drafts", "policy", "policys:leave", "policy:leave:fr:x", "issue:7:8"] {
        refused(400, "outside-tree", acquire(&served, "inbox", "nda", outside)).await;
    }
    // Other roots of the store, and other stores, have any path.
    told(200, acquire(&served, "inbox", "page:7", "drafts")).await;
    told(200, acquire(&served, "main", "nda", "drafts")).await;
}

#[tokio::test]
async fn a_translation_that_runs_holds_the_lock_of_its_name() {
    let served = Served::with(Model::held()).await;
    let job = told(202, served.make(&format!("{PAGE}/policies/leave?language=fr&wait_ms=0"))).await;
    let held = "/v1/stores/inbox/locks?root=nda";
    while told(200, served.server.get(held)).await["holders"][0]["paths"]
        != json!(["policy:leave:fr"])
    {
        tokio::task::yield_now().await;
    }
    for name in ["policy:leave:fr", "policies:leave:fr", "policy:leave", "policies"] {
        refused(409, "locked", acquire(&served, "inbox", "nda", name)).await;
    }
    told(200, acquire(&served, "inbox", "nda", "policy:leave:de")).await;
    served.model.let_answer();
    served.ended(&job).await;
    told(200, acquire(&served, "inbox", "nda", "policy:leave:fr")).await;
}
