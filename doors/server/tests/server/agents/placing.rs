//! Where agents' entries are, and what of that shows.

use keyward::schema::Schema;
use keyward::{Data, KeyRange, Scan};
use reqwest::Method;
use serde_json::{Value, json};

use super::{by, entry};
use crate::fixture::{Running, answered, refused, told};

async fn keys(data: &Data, store: &str) -> Vec<String> {
    let records = data.records(store).await.unwrap();
    let page = records.store().scan(&Scan::new(KeyRange::all()).limit(1_000)).await.unwrap();
    page.rows.iter().map(|row| row.key.to_string()).collect()
}

#[tokio::test]
async fn a_store_without_agents_is_as_it_was() {
    let schema = Schema::parse("[stores.app]\nurl = 'memory:'\n", "schema.toml").unwrap();
    let data = Data::new(schema);
    let server = Running::on(&data).await;
    assert_eq!(told(200, server.get("/v1/spaces")).await, json!({"items": []}));
    assert_eq!(told(200, server.get("/v1/stores/app")).await["spaces"], json!([]));
    let schema = told(200, server.get("/v1/schema")).await;
    assert!(!schema.to_string().contains("agent_data_store"), "{schema}");
    refused(404, "not-found", server.get(&entry("k"))).await;
    assert_eq!(told(200, server.get("/v1/agents/namespaces")).await["items"], json!([]));
    server.stop().await;
    let left = keys(&data, "app").await;
    assert!(left.iter().all(|key| !key.contains("agent")), "{left:?}");
}

#[tokio::test]
async fn a_declared_space_holds_them_and_shows() {
    let schema = r#"
        [stores.main]
        url = "memory:"
        [stores.app]
        url = "memory:"
        [spaces.agent_data_store]
        store = "app"
        key = "kept:{user}:{namespace}:{key}"
        ownership = "user"
    "#;
    let data = Data::new(Schema::parse(schema, "schema.toml").unwrap());
    let server = Running::on(&data).await;
    answered(201, server.put(&entry("k"), r#"{"value":1}"#)).await;
    let written = keys(&data, "app").await;
    assert!(written.iter().any(|key| key == "kept:local:files%3Aapache/repo:k"), "{written:?}");
    let spaces = told(200, server.get("/v1/spaces")).await;
    assert_eq!(spaces["items"][0]["name"], "agent_data_store");
    let records = told(200, server.get("/v1/spaces/agent_data_store/records")).await;
    assert_eq!(records["items"].as_array().unwrap().len(), 1);
    let record = "/v1/spaces/agent_data_store/records/kept:local:n:k";
    let batch = r#"{"operations":[{"delete":{"key":"kept:local:n:k"}}]}"#;
    for request in [
        server.put(record, "1"),
        server.request(Method::DELETE, record),
        server.post("/v1/spaces/agent_data_store/batch", batch),
    ] {
        let problem = refused(403, "reserved", request).await;
        assert!(problem["hint"].as_str().unwrap().contains("/v1/agents/"), "{problem}");
    }
}

#[tokio::test]
async fn of_several_stores_main_holds_them_or_none() {
    let stores = |names: [&str; 2]| {
        let text = names.map(|name| format!("[stores.{name}]\nurl = 'memory:'\n")).concat();
        Data::new(Schema::parse(&text, "schema.toml").unwrap())
    };
    let data = stores(["app", "main"]);
    let server = Running::on(&data).await;
    answered(201, server.put(&entry("k"), r#"{"value":1}"#)).await;
    assert!(keys(&data, "main").await.iter().any(|key| key.starts_with("agents:local:")));
    assert!(keys(&data, "app").await.iter().all(|key| !key.starts_with("agents:")));
    let free = "/v1/stores/app/entries/agents:a:b:c";
    answered(200, server.put(free, "1")).await;

    let nowhere = Running::on(&stores(["one", "two"])).await;
    let problem = refused(400, "invalid", nowhere.get(&entry("k"))).await;
    assert!(problem["detail"].as_str().unwrap().contains("agent_data_store"), "{problem}");
    answered(200, nowhere.put("/v1/stores/one/entries/agents:a:b:c", "1")).await;
}

#[tokio::test]
async fn everything_of_a_user_includes_what_agents_keep() {
    let schema = Schema::parse("[stores.main]\nurl = 'memory:'\n", "schema.toml").unwrap();
    let data = Data::new(schema);
    let server = Running::on(&data).await;
    let admin = server.admin().await;
    for user in ["ada", "adam"] {
        let of = |path: &str| format!("{path}?user={user}");
        let put = server.put(&of(&entry("k")), r#"{"value":1}"#).header("keyward-run", "r");
        answered(201, by("a", put).bearer_auth(&admin.secret)).await;
        let put = server.put(&of(&entry("k")), r#"{"value":2}"#);
        answered(200, put.bearer_auth(&admin.secret)).await;
        let settings = of("/v1/agents/namespaces/n/settings");
        answered(200, server.put(&settings, r#"{"ttl":60}"#).bearer_auth(&admin.secret)).await;
        answered(200, by("a", server.get(&of(&entry("k")))).bearer_auth(&admin.secret)).await;
        let log = of("/v1/agents/runs/r/operations");
        answered(200, server.get(&log).bearer_auth(&admin.secret)).await;
    }
    let export = server.get("/v1/users/ada/export").bearer_auth(&admin.secret);
    let text = answered(200, export).await.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |what: &str| lines.iter().any(|line| line.to_string().contains(what));
    for what in [
        "\"agent_data_store\"",
        "\"past\"",
        "system:agent-log:ada:r",
        "system:agent-settings:ada:n",
    ] {
        assert!(has(what), "{what} is not in {text}");
    }
    assert!(!has("adam"), "{text}");

    let of_ada = |keys: Vec<String>| keys.into_iter().filter(|key| key.contains(":ada:")).count();
    assert!(of_ada(keys(&data, "main").await) > 0);
    let removed = server.request(Method::DELETE, "/v1/users/ada").bearer_auth(&admin.secret);
    assert_eq!(told(200, removed).await["records"], 1);
    let of_adam = format!("{}?user=adam", entry("k"));
    let left = told(200, server.get(&of_adam).bearer_auth(&admin.secret)).await;
    assert_eq!(left["accessCount"], 1);
    // Nothing that was gathered comes back when the server stops.
    server.stop().await;
    let left: Vec<String> = keys(&data, "main").await;
    let of_ada: Vec<&String> = left.iter().filter(|key| key.contains(":ada:")).collect();
    assert_eq!(of_ada, Vec::<&String>::new());
    assert!(left.iter().any(|key| key.starts_with("system:access:agents:adam:")), "{left:?}");
}
