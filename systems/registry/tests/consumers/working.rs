//! Workers that run until they are told to stop.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use keyward_registry::Registry;
use serde_json::json;
use tokio::sync::{Notify, oneshot};

use crate::fixture::{Fixture, lines, read, until};
use crate::server::{Answer, Server};

/// Runs a worker until something is so.
async fn work_until(registry: &Registry, look: impl AsyncFnMut() -> bool) {
    let (stop, stopped) = oneshot::channel::<()>();
    let looking = async {
        until(look).await;
        drop(stop);
    };
    let (worked, ()) = tokio::join!(registry.work(async { drop(stopped.await) }), looking);
    worked.unwrap();
}

#[tokio::test]
async fn two_workers_share_the_changes_and_each_is_accepted_once() {
    const POLICIES: usize = 40;
    let fixture = Fixture::new();
    let server = Server::start([]).await;
    let consumers = json!({
        "hook": { "post": server.url }, "site": { "export": fixture.place("out") },
    });
    let registries = [fixture.registry(consumers.clone()), fixture.registry(consumers)];
    for at in 0..POLICIES {
        fixture.repository.write(&format!("정책-{at}.md"), format!("# Policy {at}\n"));
    }
    fixture.sync(&registries[0]).await;
    let mut stops = Vec::new();
    let mut workers = Vec::new();
    for registry in &registries {
        let (stop, stopped) = oneshot::channel::<()>();
        let registry = registry.clone();
        stops.push(stop);
        workers
            .push(tokio::spawn(async move { registry.work(async { drop(stopped.await) }).await }));
    }
    until(async || fixture.keys("queue:").await.is_empty()).await;
    drop(stops);
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
    let completed: Vec<u64> =
        registries.iter().map(|registry| registry.queue().metrics().completed.get()).collect();
    assert_eq!(completed.iter().sum::<u64>(), POLICIES as u64, "{completed:?}");
    let ids: BTreeSet<String> =
        server.seen().iter().map(|seen| seen.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!((ids.len(), server.seen().len()), (POLICIES, POLICIES));
    assert_eq!(std::fs::read_dir(fixture.path("out/policies")).unwrap().count(), POLICIES);
}

#[tokio::test]
async fn a_worker_puts_an_export_right_when_nothing_waits_once_after_each_run() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    fixture.drain(&registry).await;
    let file = fixture.path("out/policies/a/policy.md");
    std::fs::remove_file(&file).unwrap();
    let repaired = async || fixture.value("system:registry:policies:repaired:site").await;
    work_until(&registry, async || repaired().await.is_some()).await;
    assert!(read(&file).ends_with("# A\n"));
    let first = repaired().await;

    // Nothing has changed since: it is not looked at again, until a day has passed.
    std::fs::remove_file(&file).unwrap();
    registry.work(tokio::time::sleep(Duration::from_millis(300))).await.unwrap();
    assert!(!file.exists());
    fixture.clock.advance(Duration::from_secs(25 * 3_600));
    work_until(&registry, async || file.exists() && repaired().await != first).await;
}

#[tokio::test]
async fn a_worker_that_is_told_to_stop_ends_what_it_has_begun() {
    let fixture = Fixture::new();
    let script = r#"echo begun >> "$0/log"; sleep 0.3; echo ended >> "$0/log""#;
    let command = json!(["sh", "-c", script, fixture.place("")]);
    let registry = fixture.registry(json!({ "slow": { "command": command } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    work_until(&registry, async || !lines(fixture.path("log")).is_empty()).await;
    assert_eq!(lines(fixture.path("log")), ["begun", "ended"]);
    assert!(fixture.keys("queue:").await.is_empty());
}

#[tokio::test]
async fn a_change_that_is_replaced_while_it_is_told_of_is_told_of_anew() {
    let fixture = Fixture::new();
    let server = Server::start([Answer::Never]).await;
    let registry = fixture.registry(json!({ "hook": { "post": server.url, "timeout": "1s" } }));
    fixture.repository.write("a.md", "# One\n");
    fixture.sync(&registry).await;
    let working = work_until(&registry, async || server.seen().len() == 2);
    let changing = async {
        until(async || server.seen().len() == 1).await;
        fixture.repository.write("a.md", "# Two\n");
        fixture.sync(&registry).await;
    };
    tokio::join!(working, changing);
    assert_eq!(server.seen()[1].json()["title"], "Two");
    let done = fixture.value("system:registry:policies:done:hook:a").await.unwrap();
    assert_eq!(done["sha"], json!(fixture.repository.id_of("a.md")));
}

#[tokio::test]
async fn a_writer_that_was_overtaken_leaves_what_is_newest() {
    let fixture = Fixture::new();
    let released = Arc::new(Notify::new());
    let server = Server::start([Answer::Held(released.clone())]).await;
    keyward_testkit::write_secret(fixture.path("key"), "key").unwrap();
    let key = json!({ "file": fixture.place("key") });
    let endpoint = server.url.trim_end_matches("/hook");
    let s3 =
        json!({ "endpoint": endpoint, "allow_http": true, "access_key": key, "secret_key": key });
    let consumers = json!({ "site": { "export": "s3://bucket", "s3": s3 } });
    let (slow, fast) = (fixture.registry(consumers.clone()), fixture.registry(consumers));
    fixture.repository.write("a.md", "# Old\n");
    fixture.sync(&slow).await;
    let overtaking = async {
        until(async || server.seen().len() == 1).await;
        fixture.repository.write("a.md", "# New\n");
        fixture.sync(&fast).await;
        assert_eq!(fast.drain().await.unwrap().completed, 1);
        assert_eq!(server.seen().len(), 2);
        released.notify_one();
    };
    let (drained, ()) = tokio::join!(slow.drain(), overtaking);
    assert_eq!(drained.unwrap().completed, 0);
    // What the service has is what came last.
    let written: Vec<bool> =
        server.seen().iter().map(|seen| seen.body.ends_with(b"# New\n")).collect();
    assert_eq!(written, [false, true, true]);
    let done = fixture.value("system:registry:policies:done:site:a").await.unwrap();
    assert_eq!(done["sha"], json!(fixture.repository.id_of("a.md")));
}

#[tokio::test]
async fn a_worker_fills_an_export_that_was_away_as_soon_as_it_is_back() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    std::fs::write(fixture.path("out"), "no folder").unwrap();
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    work_until(&registry, async || {
        fixture.clock.advance(Duration::from_millis(100));
        !fixture.dead_letters(&registry).await.is_empty()
    })
    .await;
    std::fs::remove_file(fixture.path("out")).unwrap();
    work_until(&registry, async || fixture.dead_letters(&registry).await.is_empty()).await;
    assert!(read(fixture.path("out/policies/a/policy.md")).ends_with("# A\n"));
}
