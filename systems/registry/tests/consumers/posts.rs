//! Changes that are posted.

use keyward_engine::Clock;
use keyward_registry::PushHook;
use serde_json::json;

use crate::fixture::{Fixture, drained};
use crate::server::{Answer, Seen, Server};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn is_signed(seen: &Seen, secret: &str, fixture: &Fixture) -> bool {
    PushHook::check(secret, |name| seen.header(name), &seen.body, fixture.clock.now()).is_ok()
}

#[tokio::test]
async fn a_change_is_posted_signed_and_under_one_id_until_it_is_accepted() {
    let fixture = Fixture::new();
    let server = Server::start([Answer::Say(500, "not\nnow".to_owned())]).await;
    keyward_testkit::write_secret(fixture.path("secret"), format!("{SECRET}\n")).unwrap();
    let registry = fixture.registry(json!({
        "hook": { "post": server.url, "secret": { "file": fixture.place("secret") } }
    }));
    fixture.repository.write("학칙.md", "# 학칙\n");
    fixture.sync(&registry).await;
    let before = fixture.clock.now();
    assert_eq!(registry.drain().await.unwrap(), drained(0, 1, 1));
    let error = registry.queue().message("학칙").await.unwrap().unwrap().error.unwrap();
    assert_eq!(error, "consumer hook: 500 Internal Server Error: not now");
    assert!(is_signed(&server.seen()[0], SECRET, &fixture));
    fixture.clock.advance(std::time::Duration::from_secs(60));
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));

    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].header("webhook-id"), seen[1].header("webhook-id"));
    assert_eq!(seen[0].header("webhook-timestamp"), Some(&*before.as_second().to_string()));
    assert_ne!(seen[0].header("webhook-timestamp"), seen[1].header("webhook-timestamp"));
    for seen in &seen {
        assert!(!is_signed(seen, "other", &fixture));
        assert_eq!(seen.header("content-type"), Some("application/json"));
        let told = seen.json();
        assert_eq!((&told["operation"], &told["content"]), (&json!("add"), &json!("# 학칙\n")));
    }

    // Another change has another id; so has the same content that comes back.
    fixture.repository.remove("학칙.md");
    fixture.sync(&registry).await;
    fixture.drain(&registry).await;
    fixture.repository.write("학칙.md", "# 학칙\n");
    fixture.sync(&registry).await;
    fixture.drain(&registry).await;
    let mut ids: Vec<_> =
        server.seen().iter().map(|seen| seen.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 4);
    assert_eq!(server.seen()[2].json()["operation"], "delete");
    assert_eq!(server.seen()[2].json().get("content"), None);
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

/// What the queue says of the one attempt that was made.
async fn refusal(answer: Answer, timeout: &str) -> String {
    let fixture = Fixture::new();
    let server = Server::start([answer]).await;
    keyward_testkit::write_secret(fixture.path("secret"), "s3cret-of-ours").unwrap();
    let registry = fixture.registry(json!({ "hook": {
        "post": server.url, "timeout": timeout, "secret": { "file": fixture.place("secret") },
    }}));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    assert_eq!(server.seen().len(), 1);
    registry.queue().message("a").await.unwrap().unwrap().error.unwrap()
}

#[tokio::test]
async fn what_is_no_success_is_a_failure_that_says_what_was_answered() {
    let other = Server::start([]).await;
    let redirected = refusal(Answer::Redirect(other.url.clone()), "30s").await;
    assert_eq!(
        redirected,
        "consumer hook: 302 Found: redirects are not followed; name the last address"
    );
    assert!(other.seen().is_empty());
    let gone = refusal(Answer::Say(410, "s3cret-of-ours is wrong".to_owned()), "30s").await;
    assert_eq!(gone, "consumer hook: 410 Gone: … is wrong");
    let flooded = refusal(Answer::Flood(503), "30s").await;
    assert!(flooded.starts_with("consumer hook: 503 Service Unavailable: xxx"), "{flooded}");
    assert!(flooded.len() < 600, "{flooded}");
    let late = refusal(Answer::Never, "300ms").await;
    assert!(late.contains("timed out"), "{late}");
}

#[tokio::test]
async fn a_success_that_never_stops_talking_is_a_success() {
    let fixture = Fixture::new();
    let server = Server::start([Answer::Flood(200)]).await;
    let registry = fixture.registry(json!({ "hook": { "post": server.url } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    assert_eq!(server.seen()[0].header("webhook-signature"), None);
}

#[tokio::test]
async fn a_server_that_is_not_there_and_a_secret_that_is_not_there_are_failures() {
    let fixture = Fixture::new();
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let server = Server::start([]).await;
    let registry = fixture.registry(json!({
        "away": { "post": format!("http://ada:pass@{free}/hook?token=t0ken") },
        "mute": { "post": server.url, "secret": { "file": fixture.place("nothing") } },
    }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    let error = registry.queue().message("a").await.unwrap().unwrap().error.unwrap();
    assert!(error.contains("consumer away: ") && error.contains("refused"), "{error}");
    assert!(error.contains("consumer mute: the secret in "), "{error}");
    assert!(!error.contains("pass") && !error.contains("t0ken"), "{error}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_server_that_cannot_prove_who_it_is_is_told_nothing() {
    let fixture = Fixture::new();
    let forged = fixture.repository.https(crate::repository::Account::new("ada", "secret"));
    let url = forged.url();
    assert!(url.starts_with("https://"), "{url}");
    let registry = fixture.registry(json!({ "hook": { "post": url } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    let error = registry.queue().message("a").await.unwrap().unwrap().error.unwrap();
    assert!(error.contains("certificate"), "{error}");
    assert_eq!(forged.requests(), 0);
}
