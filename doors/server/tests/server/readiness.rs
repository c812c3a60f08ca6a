//! Readiness of a server on the store of another server.

use std::time::Duration;

use keyward_server::{Config, without_schema};
use serde_json::json;
use tokio::time::timeout;

use crate::fixture::{Running, answered, configured, told};

/// Longer than an answer of readiness is used.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_server_on_a_store_of_another_is_ready_while_that_answers() {
    let other = Running::new().await;
    let url = format!("keyward+{}/main", other.url);
    // What a server keeps for itself cannot be in another's store.
    let config = Config { control: Some("memory:".to_owned()), ..configured() };
    let server = Running::start(&config, &without_schema(&url).unwrap()).await;
    // The other lets nobody write its own keys, so the probe is refused: it answers all the same.
    assert_eq!(told(200, server.get("/readyz")).await, json!({"status": "ready"}));
    answered(200, server.put("/v1/stores/main/entries/k", "1")).await;
    other.stop().await;
    let unready = async {
        loop {
            let answer = server.get("/readyz").send().await.unwrap();
            if answer.status() == 503 {
                return answer.json::<serde_json::Value>().await.unwrap();
            }
        }
    };
    let problem = timeout(PATIENCE, unready).await.unwrap();
    assert_eq!((&problem["store"], &problem["code"]), (&json!("main"), &json!("unavailable")));
}
