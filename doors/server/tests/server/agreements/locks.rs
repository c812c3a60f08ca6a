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

#[tokio::test]
async fn the_scope_of_a_store_alone_does_not_lock_the_pages_of_a_workspace() {
    let served = Served::new().await;
    let admin = served.server.admin().await;
    let store_only = json!({ "name": "s", "scopes": ["write:store/inbox"] });
    let store_only = served.server.key(&admin, &store_only).await.secret;
    let ask = |root| acquire(&served, "inbox", root, "policies").bearer_auth(&store_only);
    refused(403, "forbidden", ask("nda")).await;
    told(200, ask("page:7")).await;
    let both = json!({ "name": "b", "scopes": ["write:store/inbox", "write:agreements/inbox"] });
    let both = served.server.key(&admin, &both).await.secret;
    told(200, acquire(&served, "inbox", "nda", "policies").bearer_auth(&both)).await;
}
