//! Expensive reads of one caller, and what others notice of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyward::Data;
use keyward::schema::Schema;
use keyward_server::{Config, Limits};
use serde_json::{Value, json};

use crate::fixture::{Made, Running, answered, configured, refused, told};
use crate::spaces::SCHEMA;

/// So many places that reading them takes a while.
const MANY: usize = 3_000;
const NEAR: &str = "/v1/spaces/places/near";
const OWN: &str = "/v1/stores/app/entries/user:bob:name";

/// A server with so many places, and the keys of two users.
async fn crowded(places: usize, limits: Limits) -> (Arc<Running>, Made, Made) {
    let schema = Schema::parse(SCHEMA, "schema.toml").unwrap();
    let config = Config { limits, ..configured() };
    let server = Running::start(&config, &Data::new(schema)).await;
    let put = |n: usize| {
        let place = json!({"lat": 52.0 + n as f64 / 1e5, "lon": 13.4, "kind": "city"});
        json!({"put": {"key": format!("shared:places:p{n:05}"), "value": place}})
    };
    for from in (0..places).step_by(100) {
        let operations: Vec<Value> = (from..from + 100).map(put).collect();
        let batch = json!({ "operations": operations }).to_string();
        answered(200, server.post("/v1/spaces/places/batch", &batch)).await;
    }
    let admin = server.admin().await;
    let ada = server.key(&admin, &json!({"name": "ada", "user": "ada"})).await;
    let bob = server.key(&admin, &json!({"name": "bob", "user": "bob"})).await;
    answered(200, server.put(OWN, "1").bearer_auth(&bob.secret)).await;
    (Arc::new(server), ada, bob)
}

/// A search that reads everything and finds nothing.
fn in_vain() -> String {
    let filter = json!({"kind": "village"});
    json!({"lat": 52.0, "lon": 13.4, "radius_m": 1_000_000, "filter": filter}).to_string()
}

#[tokio::test]
async fn others_are_answered_while_a_long_search_runs() {
    let (server, ada, bob) = crowded(MANY, Limits::default()).await;
    // Both have a connection, so that the search begins at once.
    answered(200, server.get("/v1/spaces").bearer_auth(&ada.secret)).await;
    let ended = Arc::new(AtomicBool::new(false));
    let search = {
        let (server, ended) = (server.clone(), ended.clone());
        tokio::spawn(async move {
            let found = told(200, server.post(NEAR, &in_vain()).bearer_auth(&ada.secret)).await;
            ended.store(true, Ordering::Relaxed);
            found
        })
    };
    let mut answers = 0;
    while !ended.load(Ordering::Relaxed) {
        answered(200, server.get(OWN).bearer_auth(&bob.secret)).await;
        answers += 1;
    }
    assert_eq!(search.await.unwrap()["read"]["records"], MANY);
    assert!(answers >= 10, "another user was answered {answers} times during a search");
}

#[tokio::test]
async fn a_hundred_searches_in_vain_delay_nobody_else() {
    let patient = Duration::from_secs(300);
    let limits = Limits { read_wait_max: patient, answer_time_max: patient, ..Limits::default() };
    let (server, ada, bob) = crowded(400, limits).await;
    let searches = (0..100).map(|_| {
        let (server, secret) = (server.clone(), ada.secret.clone());
        tokio::spawn(async move {
            answered(200, server.post(NEAR, &in_vain()).bearer_auth(secret)).await;
        })
    });
    let searches: Vec<_> = searches.collect();
    let under_way = || searches.iter().filter(|search| !search.is_finished()).count();
    // All of them are there, and some have been answered: they are in full swing.
    while under_way() > 95 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..10 {
        let before = under_way();
        answered(200, server.get(OWN).bearer_auth(&bob.secret)).await;
        let query = json!({"limit": 5}).to_string();
        let query = server.post("/v1/spaces/places/query", &query).bearer_auth(&bob.secret);
        assert_eq!(told(200, query).await["records"].as_array().unwrap().len(), 5);
        let meanwhile = before - under_way();
        assert!(meanwhile < 50, "{meanwhile} searches were answered before two quick requests");
    }
    for search in searches {
        search.await.unwrap();
    }
}

#[tokio::test]
async fn one_caller_runs_a_part_of_the_expensive_reads_and_is_told_so() {
    let limits =
        Limits { reads_max: 4, read_wait_max: Duration::from_millis(1), ..Limits::default() };
    let (server, ada, bob) = crowded(MANY, limits).await;
    let searches = (0..20).map(|_| {
        let (server, secret) = (server.clone(), ada.secret.clone());
        tokio::spawn(async move {
            let answer = server.post(NEAR, &in_vain()).bearer_auth(secret).send().await.unwrap();
            let retry = answer.headers().get("retry-after").cloned();
            (answer.status().as_u16(), retry, answer.json::<Value>().await.unwrap())
        })
    });
    let searches: Vec<_> = searches.collect();
    // Another user has a turn of their own.
    for _ in 0..5 {
        let query = server.post("/v1/spaces/places/query", r#"{"limit":5}"#);
        answered(200, query.bearer_auth(&bob.secret)).await;
    }
    let mut refusals = 0;
    for search in searches {
        let (status, retry, body) = search.await.unwrap();
        if status == 200 {
            continue;
        }
        refusals += 1;
        assert_eq!((status, &body["code"]), (503, &json!("overloaded")), "{body}");
        assert_eq!((&body["retryable"], retry.unwrap().as_bytes()), (&json!(true), &b"1"[..]));
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains("for one user or key is 1 at a time"), "{detail}");
    }
    assert!((1..20).contains(&refusals), "{refusals} of 20 were refused");
    // Nothing is left of them.
    answered(200, server.post(NEAR, &in_vain()).bearer_auth(&ada.secret)).await;
}

#[tokio::test]
async fn the_server_bounds_what_one_page_reads() {
    let limits = Limits { query_reads_max: 400, ..Limits::default() };
    let (server, ada, _) = crowded(MANY, limits).await;
    let post =
        |path: &str, body: &Value| server.post(path, &body.to_string()).bearer_auth(&ada.secret);
    let problem =
        refused(422, "too-expensive", server.post(NEAR, &in_vain()).bearer_auth(&ada.secret));
    let problem = problem.await;
    assert_eq!((&problem["found"], &problem["retryable"]), (&json!(0), &json!(false)));
    assert!(problem["entries"].as_u64().unwrap() <= 400, "{problem}");

    let area =
        json!({"south": 50, "west": 10, "north": 55, "east": 15, "filter": {"kind": "city"}});
    for (path, body) in [
        ("/v1/spaces/places/within", area),
        (
            "/v1/spaces/places/query",
            json!({"filter": {"kind": "city"}, "allow_scan": true, "budget": 100_000}),
        ),
    ] {
        let mut asked = body;
        asked["limit"] = json!(1_000);
        let (mut found, mut pages) = (std::collections::BTreeSet::new(), 0);
        loop {
            let page = told(200, post(path, &asked)).await;
            assert!(page["read"]["entries"].as_u64().unwrap() <= 400, "{path}: {}", page["read"]);
            for record in page["records"].as_array().unwrap() {
                assert!(found.insert(record["key"].as_str().unwrap().to_owned()), "{record}");
            }
            pages += 1;
            match &page["next"] {
                Value::Null => break,
                next => asked["cursor"] = next.clone(),
            }
        }
        assert_eq!(found.len(), MANY, "{path}");
        assert!(pages >= MANY / 400, "{path}: {pages} pages");
    }
}
