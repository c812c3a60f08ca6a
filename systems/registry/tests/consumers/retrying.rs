//! What happens to changes that are not accepted.

use std::time::Duration;

use keyward_engine::Clock;
use keyward_key::Key;
use keyward_queue::Requeued;
use serde_json::json;

use crate::fixture::{Fixture, drained, lines, read};
use crate::server::{Answer, Server};

/// A command that writes down what it is told of.
fn log(fixture: &Fixture) -> serde_json::Value {
    let script = r#"echo "$KEYWARD_OPERATION $KEYWARD_POLICY" >> "$0/log""#;
    json!({ "command": ["sh", "-c", script, fixture.place("")] })
}

fn no() -> Answer {
    Answer::Say(503, "no".to_owned())
}

#[tokio::test]
async fn who_has_accepted_a_change_is_not_told_again_for_the_sake_of_others() {
    let fixture = Fixture::new();
    let server = Server::start([no(), no()]).await;
    let registry = fixture.registry(json!({
        "log": log(&fixture), "hook": { "post": server.url }, "site": { "export": fixture.place("out") },
    }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    assert!(fixture.path("out/policies/a/policy.md").exists());
    // What others do with the file meanwhile is not the queue's affair.
    std::fs::remove_file(fixture.path("out/policies/a/policy.md")).unwrap();
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    assert_eq!(lines(fixture.path("log")), ["add a"]);
    assert_eq!(server.seen().len(), 3);
    assert!(!fixture.path("out/policies/a/policy.md").exists());

    // A later change is told to all of them.
    fixture.repository.write("a.md", "# B\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    assert_eq!(lines(fixture.path("log")), ["add a", "update a"]);
    assert_eq!(server.seen().len(), 4);
    assert!(read(fixture.path("out/policies/a/policy.md")).contains("title: B\n"));
}

#[tokio::test]
async fn after_three_refusals_a_change_is_a_dead_letter_until_it_is_put_back() {
    let fixture = Fixture::new();
    let server = Server::start([no(), no(), no()]).await;
    let registry =
        fixture.registry(json!({ "log": log(&fixture), "hook": { "post": server.url } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    for left in [1, 1, 0] {
        assert_eq!(fixture.drain(&registry).await, drained(0, 1, left));
    }
    let died = fixture.clock.now() - Duration::from_secs(60);
    let letters = fixture.dead_letters(&registry).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].reason, "consumer hook: 503 Service Unavailable: no");
    assert_eq!((letters[0].retry_count, letters[0].died), (3, died));
    let stored = fixture.value("dead-letter:a").await.unwrap();
    assert_eq!((&stored["policyName"], &stored["retryCount"]), (&json!("a"), &json!(3)));
    assert_eq!(fixture.drain(&registry).await, drained(0, 0, 0));

    assert_eq!(registry.requeue("b").await.unwrap(), Requeued::Unknown);
    assert_eq!(registry.requeue("a").await.unwrap(), Requeued::Done);
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    // The command has accepted it the first time.
    assert_eq!(lines(fixture.path("log")), ["add a"]);
    assert!(fixture.dead_letters(&registry).await.is_empty());
}

#[tokio::test]
async fn dead_letters_can_all_be_put_back_or_dropped() {
    let fixture = Fixture::new();
    let server = Server::start(std::iter::repeat_with(no).take(9)).await;
    let registry = fixture.registry(json!({ "hook": { "post": server.url } }));
    for name in ["a", "b", "c"] {
        fixture.repository.write(&format!("{name}.md"), format!("# {name}\n"));
    }
    fixture.sync(&registry).await;
    for left in [3, 3, 0] {
        assert_eq!(fixture.drain(&registry).await, drained(0, 3, left));
    }
    assert!(registry.drop_dead_letter("b").await.unwrap());
    assert!(!registry.drop_dead_letter("b").await.unwrap());
    assert_eq!(registry.requeue_all().await.unwrap(), 2);
    assert_eq!(fixture.drain(&registry).await, drained(2, 0, 0));
}

#[tokio::test]
async fn a_deletion_reaches_every_consumer_and_nothing_of_the_policy_stays() {
    let fixture = Fixture::new();
    let server = Server::start([]).await;
    let registry = fixture.registry(json!({
        "log": log(&fixture), "hook": { "post": server.url }, "site": { "export": fixture.place("out") },
    }));
    fixture.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(2, 0, 0));
    let sha = fixture.repository.id_of("a.md");
    fixture.repository.remove("a.md");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    assert_eq!(lines(fixture.path("log")).last().unwrap(), "delete a");
    let told = server.seen().last().unwrap().json();
    assert_eq!((&told["operation"], &told["policyName"]), (&json!("delete"), &json!("a")));
    assert_eq!(
        (&told["sha"], &told["path"], &told["title"]),
        (&json!(sha), &json!("a.md"), &json!("A"))
    );
    assert!(!fixture.path("out/policies/a").exists());
    assert!(fixture.path("out/policies/b/policy.md").exists());
    assert_eq!(
        fixture.accepted().await,
        ["hook:a delete", "hook:b add", "log:a delete", "log:b add", "site:a delete", "site:b add"]
    );
    fixture.clock.advance(Duration::from_secs(8 * 86_400));
    assert_eq!(fixture.accepted().await, ["hook:b add", "log:b add", "site:b add"]);
}

#[tokio::test]
async fn a_deletion_that_one_consumer_refuses_is_not_told_to_the_others_again() {
    let fixture = Fixture::new();
    let server = Server::start([Answer::Say(200, String::new()), no()]).await;
    let registry =
        fixture.registry(json!({ "log": log(&fixture), "hook": { "post": server.url } }));
    fixture.repository.write("a.md", "# A\n").write("b.txt", "");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    fixture.repository.remove("a.md");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    assert_eq!(lines(fixture.path("log")), ["add a", "delete a"]);
}

#[tokio::test]
async fn a_change_that_is_out_of_date_is_completed_and_nobody_told() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "log": log(&fixture) }));
    fixture.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    fixture.sync(&registry).await;
    fixture.store().delete(Key::parse("policy:a").unwrap()).await.unwrap();
    assert_eq!(fixture.drain(&registry).await, drained(2, 0, 0));
    assert_eq!(lines(fixture.path("log")), ["add b"]);
}

#[tokio::test]
async fn a_row_that_no_registry_wrote_is_a_dead_letter_at_once() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "log": log(&fixture) }));
    let odd = keyward_engine::Json::parse(r#"{"operation":"explode"}"#).unwrap();
    registry.queue().enqueue(keyward_queue::Message::new(odd).id("odd")).await.unwrap();
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 0));
    let reason = &fixture.dead_letters(&registry).await[0].reason;
    assert!(reason.starts_with("the message is not what a registry wrote"), "{reason}");
}

#[tokio::test]
async fn without_consumers_the_queue_is_left_to_others() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({}));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 0, 1));
    registry.work(std::future::ready(())).await.unwrap();
    assert_eq!(fixture.keys("queue:").await, ["queue:a"]);
}
