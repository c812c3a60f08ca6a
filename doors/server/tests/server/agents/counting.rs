//! Accesses: counted in memory, written in the background and at a stop.

use std::time::Duration;

use futures_util::future::join_all;
use keyward::Data;
use keyward_server::{Config, without_schema};
use serde_json::{Value, json};

use super::{NAMESPACE, by, entry, made};
use crate::fixture::{Running, answered, configured, etag, told};

/// Nothing is written before the stop, unless somebody asks for it.
fn patient() -> Config {
    let mut config = configured();
    config.agents.flush_interval = Duration::from_secs(60 * 60);
    config
}

#[tokio::test]
async fn n_reads_are_n_after_a_stop_and_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().display());
    let mut version = String::new();
    for round in 1..=3_u64 {
        let server = Running::start(&patient(), &without_schema(&url).unwrap()).await;
        if round == 1 {
            made(&server, "k", &json!(1)).await;
            version = etag(&answered(200, server.get(&entry("k"))).await);
        }
        let reads = (0..40).map(|n| {
            let path = if n % 2 == 0 { entry("k") } else { format!("{}/value", entry("k")) };
            by(&format!("agent{}", n % 4), server.get(&path)).send()
        });
        for answer in join_all(reads).await {
            assert_eq!(answer.unwrap().status(), 200);
        }
        // Reads by nobody, and looking through entries, do not count.
        for path in [entry("k"), format!("{NAMESPACE}/entries"), format!("{NAMESPACE}/keys")] {
            answered(200, server.get(&path)).await;
        }
        assert_eq!(told(200, server.get(&entry("k"))).await["accessCount"], 40 * round);
        server.stop().await;
    }
    let server = Running::on(&without_schema(&url).unwrap()).await;
    let read = answered(200, server.get(&entry("k"))).await;
    assert_eq!(etag(&read), version, "counting moves no version");
    let document: Value = read.json().await.unwrap();
    assert_eq!(document["accessCount"], 120);
    assert_eq!(document["createdAt"], document["updatedAt"]);
    assert!(document["lastAccessedByAgent"].as_str().unwrap().starts_with("agent"));
    server.stop().await;
}

#[tokio::test]
async fn what_is_held_is_counted_and_written_in_the_background() {
    let data: Data = without_schema("memory:").unwrap();
    let server = Running::start(&patient(), &data).await;
    made(&server, "k", &json!(1)).await;
    for _ in 0..3 {
        answered(200, by("a", server.get(&entry("k"))).header("keyward-run", "r")).await;
    }
    let metrics = answered(200, server.get("/metrics")).await.text().await.unwrap();
    for line in [
        "keyward_agents_entries_held 1",
        "keyward_agents_accesses_held 3",
        "keyward_agents_log_lines_held 3",
        "keyward_agents_accesses_lost_total 0",
        "keyward_agents_log_lines_lost_total 0",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} is not in {metrics}");
    }
    server.stop().await;

    let mut config = configured();
    config.agents.flush_interval = Duration::from_millis(5);
    let server = Running::start(&config, &data).await;
    answered(200, by("a", server.get(&entry("k")))).await;
    loop {
        let metrics = answered(200, server.get("/metrics")).await.text().await.unwrap();
        if metrics.lines().any(|line| line == "keyward_agents_accesses_held 0") {
            break;
        }
        tokio::task::yield_now().await;
    }
    // Another server on the same store knows it.
    let other = Running::start(&patient(), &data).await;
    assert_eq!(told(200, other.get(&entry("k"))).await["accessCount"], 4);
}
