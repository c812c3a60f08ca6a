//! Pages that end when they are large, however many items were asked for, and go on from where they ended.

use serde_json::{Value, json};

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
