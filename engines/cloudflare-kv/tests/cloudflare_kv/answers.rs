//! Answers that are not what they look like, and those that refuse a part of a batch.

use futures_util::future::join_all;
use keyward_cloudflare_kv::CloudflareKv;
use keyward_engine::{ErrorKind, Json, Put, Scan, Store};
use keyward_key::{Key, KeyRange};
use keyward_testkit::TestClock;
use serde_json::{Value, json};

use crate::scripted::{Answer, Asked, Scripted};

/// Puts that go out in one request, and the bound on the requests for one of them that is refused.
const PUTS: usize = 4_000;
const REQUESTS_FOR_ONE_MAX: usize = 40;
/// The bound on the requests of a batch of which everything is refused.
const REQUESTS_MAX: usize = 160;

async fn store(server: &Scripted) -> Store {
    Store::new(CloudflareKv::open_with(server.options(), TestClock::new()).await.unwrap())
}

fn good(result: Value) -> Answer {
    (200, json!({ "success": true, "errors": [], "messages": [], "result": result }))
}

fn numbered(n: usize) -> Key {
    Key::parse(&format!("row:{n:05}")).unwrap()
}

#[tokio::test]
async fn a_write_that_is_answered_200_without_success_is_no_success() {
    let server = Scripted::start(|asked| match &*asked.what {
        "GET /keys" => good(json!([])),
        _ => {
            let errors = json!([{ "code": 10_001, "message": "the store is read-only" }]);
            (200, json!({ "success": false, "errors": errors, "result": null }))
        }
    });
    let store = store(&server).await;
    let put = store.put(numbered(1), Put::new(Json::from_integer(1))).await.unwrap_err();
    let delete = store.delete(numbered(1)).await.unwrap_err();
    for error in [put, delete] {
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        assert!(error.to_string().contains("the store is read-only"), "{error}");
    }
    let read = store.get(&numbered(1)).await.unwrap_err();
    assert_eq!(read.kind(), ErrorKind::Internal, "{read}");
}

#[tokio::test]
async fn an_answer_without_a_result_is_no_empty_namespace() {
    let answers = [
        json!({ "success": true, "result": null }),
        json!({ "success": true }),
        json!({ "success": false, "result": [] }),
    ];
    for answer in answers {
        let later = answer.clone();
        let requests = std::sync::atomic::AtomicUsize::new(0);
        let server = Scripted::start(move |_| {
            match requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => good(json!([])),
                _ => (200, later.clone()),
            }
        });
        let store = store(&server).await;
        let listed = store.scan(&Scan::new(KeyRange::all())).await.unwrap_err();
        assert_eq!(listed.kind(), ErrorKind::Internal, "{answer}: {listed}");
        let read = store.get(&numbered(1)).await.unwrap_err();
        assert_eq!(read.kind(), ErrorKind::Internal, "{answer}: {read}");
    }
}

/// A server that refuses a bulk write in which a pair is refused.
fn refusing(is_refused: impl Fn(&str) -> bool + Send + Sync + 'static) -> Scripted {
    Scripted::start(move |Asked { what, body }| match &*what {
        "PUT /bulk" => {
            let mut names = body.as_array().unwrap().iter().map(|pair| pair["key"].as_str());
            match names.any(|name| is_refused(name.unwrap())) {
                true => {
                    let errors = json!([{ "code": 10_012, "message": "a pair is refused" }]);
                    (400, json!({ "success": false, "errors": errors, "result": null }))
                }
                false => good(json!({ "unsuccessful_keys": [] })),
            }
        }
        _ => good(json!([])),
    })
}

#[tokio::test]
async fn a_refused_pair_is_found_in_few_requests_and_fails_alone() {
    let server = refusing(|name| name == "row:01234");
    let store = store(&server).await;
    let put = |n| store.put(numbered(n), Put::new(Json::from_integer(1)));
    let before = server.requests();
    let written = join_all((0..PUTS).map(put)).await;
    let failed: Vec<usize> = (0..PUTS).filter(|n| written[*n].is_err()).collect();
    assert_eq!(failed, [1_234]);
    let requests = server.requests() - before;
    assert!(requests <= REQUESTS_FOR_ONE_MAX, "{requests} requests");
}

#[tokio::test]
async fn pairs_that_are_all_refused_do_not_take_a_request_each() {
    let server = refusing(|_| true);
    let store = store(&server).await;
    let put = |n| store.put(numbered(n), Put::new(Json::from_integer(1)));
    let before = server.requests();
    let written = join_all((0..PUTS).map(put)).await;
    assert!(written.iter().all(Result::is_err));
    let requests = server.requests() - before;
    assert!(requests <= REQUESTS_MAX, "{requests} requests");
    let told: Vec<String> =
        written.into_iter().filter_map(|one| Some(one.err()?.to_string())).collect();
    assert!(told.iter().any(|told| told.contains("at least one of")), "{:?}", told.last());
}
