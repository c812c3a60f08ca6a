//! Pages that end when they are large, however many items were asked for, and go on from where they ended.

use serde_json::{Value, json};

use crate::claims::{act, claim};
use crate::fixture::{Running, answered, told};

const SCHEMA: &str = r#"
    [stores.main]
    url = "memory:"
    [spaces.places]
    key = "shared:places:{place}"
    ownership = "shared"
    history = 30
    [spaces.places.indexes.geo]
    kind = "geohash"
    lat = "lat"
    lon = "lon"
    precision = 6
"#;

const MANY: usize = 20;
/// How many of the large values come on one page: 4 MiB of them, and the one that reaches that.
const PAGE_ITEMS_MAX: usize = 5;

fn large(n: usize) -> Value {
    let text = "x".repeat(900 * 1_024);
    json!({"lat": 52.5 + n as f64 / 1e4, "lon": 13.4, "text": text})
}

async fn with_places() -> Running {
    let server = Running::with_schema(SCHEMA).await;
    for n in 0..MANY {
        let path = format!("/v1/spaces/places/records/shared:places:p{n:02}");
        answered(201, server.put(&path, &large(n).to_string())).await;
    }
    server
}

/// Asks for pages until there is none left, and gives what `told` takes out of their items.
async fn all(
    mut page: impl AsyncFnMut(Value) -> Value,
    items: &str,
    told: impl Fn(&Value) -> String,
) -> Vec<String> {
    let (mut found, mut pages, mut next) = (Vec::new(), 0, Value::Null);
    loop {
        let page = page(next).await;
        let items = page[items].as_array().unwrap();
        assert!(items.len() <= PAGE_ITEMS_MAX, "{} large items on one page", items.len());
        found.extend(items.iter().map(&told));
        pages += 1;
        next = page["next"].clone();
        if next.is_null() {
            assert!(pages >= MANY / PAGE_ITEMS_MAX, "{pages} pages");
            return found;
        }
    }
}

#[tokio::test]
async fn places_near_a_point_come_in_pages_of_bounded_size() {
    let server = with_places().await;
    let expected: Vec<String> = (0..MANY).map(|n| format!("shared:places:p{n:02}")).collect();
    let circle = json!({"lat": 52.5, "lon": 13.4, "radius_m": 10_000});
    let area = json!({"south": 52.4, "west": 13.3, "north": 52.6, "east": 13.5});
    for (path, asked) in [("near", circle), ("within", area)] {
        let page = async |next: Value| {
            let mut asked = asked.clone();
            (asked["limit"], asked["cursor"]) = (json!(1_000), next);
            let path = format!("/v1/spaces/places/{path}");
            told(200, server.post(&path, &asked.to_string())).await
        };
        let mut found = all(page, "records", |it| it["key"].as_str().unwrap().to_owned()).await;
        if path == "within" {
            found.sort();
        }
        assert_eq!(found, expected, "{path}");
    }
}

#[tokio::test]
async fn earlier_versions_come_in_pages_of_bounded_size() {
    let server = Running::with_schema(SCHEMA).await;
    let (record, entry) = ("shared:places:p", "/v1/agents/namespaces/n/entries/k");
    for n in 0..MANY {
        let put = server.put(&format!("/v1/spaces/places/records/{record}"), &large(n).to_string());
        assert!(put.send().await.unwrap().status().is_success());
        let put = server.put(entry, &json!({ "value": large(n) }).to_string());
        assert!(put.send().await.unwrap().status().is_success());
    }
    let expected: Vec<String> = (1..=MANY).rev().map(|n| n.to_string()).collect();
    for path in [format!("/v1/spaces/places/history/{record}"), format!("{entry}/history")] {
        let page = async |next: Value| {
            let before = next.as_u64().map(|next| format!("&before={next}")).unwrap_or_default();
            told(200, server.get(&format!("{path}?limit=1000{before}"))).await
        };
        let found = all(page, "items", |it| it["number"].to_string()).await;
        assert_eq!(found, expected, "{path}");
    }
}

#[tokio::test]
async fn what_agents_search_for_comes_in_pages_of_bounded_size() {
    let server = Running::new().await;
    let namespace = "/v1/agents/namespaces/n";
    for n in 0..MANY {
        let path = format!("{namespace}/entries/k{n:02}");
        answered(201, server.put(&path, &json!({ "value": large(n) }).to_string())).await;
    }
    let expected: Vec<String> = (0..MANY).map(|n| format!("k{n:02}")).collect();
    for path in [format!("{namespace}/search"), "/v1/agents/search".to_owned()] {
        let page = async |next: Value| {
            let asked = json!({"filter": {"value.lon": 13.4}, "limit": 1_000, "cursor": next});
            told(200, server.post(&path, &asked.to_string())).await
        };
        let found = all(page, "items", |it| it["key"].as_str().unwrap().to_owned()).await;
        assert_eq!(found, expected, "{path}");
    }
    let page = async |next: Value| {
        let cursor = next.as_str().map(|next| format!("&cursor={next}")).unwrap_or_default();
        told(200, server.get(&format!("{namespace}/entries?limit=1000{cursor}"))).await
    };
    let found = all(page, "items", |it| it["key"].as_str().unwrap().to_owned()).await;
    assert_eq!(found, expected);
}

/// The pages of a listing with a cursor in its query.
async fn listed(server: &Running, path: &str, id: &str) -> Vec<String> {
    let page = async |next: Value| {
        let sign = if path.contains('?') { '&' } else { '?' };
        let cursor = next.as_str().map(|next| format!("&cursor={next}")).unwrap_or_default();
        told(200, server.get(&format!("{path}{sign}limit=1000{cursor}"))).await
    };
    all(page, "items", |it| it[id].as_str().unwrap().to_owned()).await
}

#[tokio::test]
async fn entries_come_in_pages_of_bounded_size() {
    let server = Running::new().await;
    let expected: Vec<String> = (0..MANY).map(|n| format!("e:k{n:02}")).collect();
    for n in 0..MANY {
        let put = server.put(&format!("/v1/stores/main/entries/e:k{n:02}"), &large(n).to_string());
        assert!(put.send().await.unwrap().status().is_success());
    }
    let entries = "/v1/stores/main/entries?values=true";
    let ascending = listed(&server, entries, "key").await;
    assert_eq!(ascending, expected);
    let mut descending = listed(&server, &format!("{entries}&descending=true"), "key").await;
    descending.reverse();
    assert_eq!(descending, expected);
    assert_eq!(listed(&server, &format!("{entries}&prefix=e"), "key").await, expected);
}

#[tokio::test]
async fn metadata_counts_for_the_size_of_a_page() {
    let server = Running::new().await;
    let body = json!({ "value": 1, "metadata": { "text": "x".repeat(60 * 1_024) } }).to_string();
    for n in 0..80 {
        let put = server.put(&format!("/v1/stores/main/entries/e:k{n:02}?view=entry"), &body);
        assert!(put.send().await.unwrap().status().is_success());
    }
    let entries = "/v1/stores/main/entries?values=true&limit=1000";
    let first = told(200, server.get(entries)).await;
    // 68 of 60 KiB are not quite 4 MiB.
    assert_eq!(first["items"].as_array().unwrap().len(), 69);
    let next = first["next"].as_str().unwrap();
    let last = told(200, server.get(&format!("{entries}&cursor={next}"))).await;
    assert_eq!(last["items"].as_array().unwrap().len(), 11);
    assert_eq!(last["items"][0]["key"], "e:k69");
    assert_eq!(last["next"], Value::Null);
}

const QUEUE: &str = "/v1/stores/main/queues/q";

#[tokio::test]
async fn messages_and_dead_letters_come_in_pages_of_bounded_size() {
    let server = Running::new().await;
    let expected: Vec<String> = (0..MANY).map(|n| format!("m{n:02}")).collect();
    for (n, id) in expected.iter().enumerate() {
        let body = json!({"messages": [{"payload": large(n), "id": id}]}).to_string();
        answered(200, server.post(&format!("{QUEUE}/messages"), &body)).await;
    }
    let messages = format!("{QUEUE}/messages");
    assert_eq!(listed(&server, &messages, "id").await, expected);
    assert_eq!(listed(&server, &format!("{messages}?state=ready"), "id").await, expected);

    for _ in 0..MANY {
        let message = claim(&server, "{}").await.remove(0);
        answered(200, act(&server, &message, "fail", r#","reason":"no paper""#)).await;
    }
    assert_eq!(listed(&server, &format!("{QUEUE}/dead-letters"), "id").await, expected);
    let (mut requeued, mut next) = (0, Value::Null);
    loop {
        let asked = json!({"limit": 1_000, "cursor": next}).to_string();
        let page = told(200, server.post(&format!("{QUEUE}/dead-letters/requeue"), &asked)).await;
        requeued += page["requeued"].as_u64().unwrap();
        next = page["next"].clone();
        if next.is_null() {
            break;
        }
    }
    assert_eq!(requeued, MANY as u64);
}

#[tokio::test]
async fn jobs_come_in_pages_of_bounded_size_with_their_results() {
    let server = Running::new().await;
    let expected: Vec<String> = (0..MANY).map(|n| format!("j{n:02}")).collect();
    for (n, id) in expected.iter().enumerate() {
        let job = json!({"queue": "q", "payload": 1, "id": id, "retention_ms": 3_600_000});
        answered(201, server.post("/v1/stores/main/jobs", &job.to_string())).await;
        let message = claim(&server, "{}").await.remove(0);
        let result = format!(r#","result":{}"#, large(n));
        answered(200, act(&server, &message, "complete", &result)).await;
    }
    assert_eq!(listed(&server, "/v1/stores/main/jobs", "id").await, expected);
}
