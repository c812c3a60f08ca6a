//! Exports to a bucket, on a real server. By this module's name `./test --fast` leaves them out.

use keyward_engine::Coded;
use keyward_registry::{Registry, Repaired};
use serde_json::{Value, json};

use crate::fixture::{Fixture, drained};

/// A bucket of the test's own.
struct Bucket {
    endpoint: String,
    name: String,
}

impl Bucket {
    async fn new(fixture: &Fixture) -> Self {
        let endpoint = std::env::var("KEYWARD_TEST_S3").expect(
            "KEYWARD_TEST_S3 must be the address of an S3 server: run the tests with \
             testing/services/run, or leave these out with ./test --fast",
        );
        // A folder's name that nobody else has.
        let own = fixture.path("");
        let own = own.file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        let own: String = own.bytes().map(|byte| format!("{byte:02x}")).collect();
        let bucket = Self { endpoint, name: format!("test-{}", &own[..own.len().min(40)]) };
        keyward_testkit::write_secret(fixture.path("key"), "test-key").unwrap();
        keyward_testkit::write_secret(fixture.path("secret"), "test-secret").unwrap();
        let made =
            client().put(format!("{}/{}", bucket.endpoint, bucket.name)).send().await.unwrap();
        assert!(made.status().is_success(), "{made:?}");
        bucket
    }

    fn consumer(&self, fixture: &Fixture, endpoint: &str) -> Value {
        json!({ "site": {
            "export": format!("s3://{}/some/prefix", self.name),
            "timeout": "5s",
            "s3": {
                "endpoint": endpoint, "region": "us-east-1", "allow_http": true,
                "access_key": { "file": fixture.place("key") },
                "secret_key": { "file": fixture.place("secret") },
            },
        }})
    }

    fn registry(&self, fixture: &Fixture) -> Registry {
        fixture.registry(self.consumer(fixture, &self.endpoint))
    }

    fn url(&self, name: &str) -> reqwest::Url {
        let mut url = reqwest::Url::parse(&self.endpoint).unwrap();
        // As it is called, and then as addresses write it.
        let parts = [&*self.name, "some", "prefix", "policies", name, "policy.md"];
        url.path_segments_mut().unwrap().extend(parts);
        url
    }

    async fn read(&self, name: &str) -> Option<String> {
        let answer = client().get(self.url(name)).send().await.unwrap();
        if answer.status().as_u16() == 404 {
            return None;
        }
        assert_eq!(answer.headers()["content-type"], "text/markdown; charset=utf-8");
        Some(answer.text().await.unwrap())
    }

    async fn write(&self, name: &str, text: &str) {
        let answer = client().put(self.url(name)).body(text.to_owned()).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    }

    async fn remove(&self, name: &str) {
        client().delete(self.url(name)).send().await.unwrap();
    }
}

fn client() -> reqwest::Client {
    // Consumers say which cryptography there is; the test may be faster.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

#[tokio::test]
async fn policies_are_put_into_a_bucket_and_removed_from_it() {
    let fixture = Fixture::new();
    let bucket = Bucket::new(&fixture).await;
    let registry = bucket.registry(&fixture);
    let names = ["개인정보", "100%", "a b", "a+b", "a#b?c", "%2e%2e", "~", "a&b"];
    for name in names {
        fixture.repository.write(&format!("{name}.md"), format!("# Of {name}\n"));
    }
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(names.len() as u64, 0, 0));
    for name in names {
        let text = bucket.read(name).await.unwrap_or_else(|| panic!("{name}"));
        assert!(text.ends_with(&format!("\n# Of {name}\n")), "{text}");
    }
    // All are found again by their names.
    let repaired = registry.repair("site").await.unwrap();
    assert_eq!(repaired, Repaired { checked: names.len() as u64, ..Repaired::default() });
    fixture.repository.remove("개인정보.md");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    assert_eq!(bucket.read("개인정보").await, None);
    assert!(bucket.read("100%").await.is_some());
}

#[tokio::test]
async fn what_a_bucket_lost_is_put_right_and_what_others_keep_there_left_alone() {
    let fixture = Fixture::new();
    let bucket = Bucket::new(&fixture).await;
    let registry = bucket.registry(&fixture);
    for name in ["deleted", "changed", "same-size", "fine"] {
        fixture.repository.write(&format!("{name}.md"), "# Title\n\nBody\n");
    }
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(4, 0, 0));
    let right = bucket.read("deleted").await.unwrap();
    bucket.remove("deleted").await;
    bucket.write("changed", "other").await;
    let same_size = bucket.read("same-size").await.unwrap().replace("Body", "Ydob");
    bucket.write("same-size", &same_size).await;
    bucket.write("theirs", "theirs").await;
    let repaired = registry.repair("site").await.unwrap();
    let expected = Repaired { checked: 4, written: 3, unknown: 1, ..Repaired::default() };
    assert_eq!(repaired, expected);
    assert_eq!(bucket.read("deleted").await.unwrap(), right);
    assert!(bucket.read("same-size").await.unwrap().ends_with("Body\n"));
    let theirs = client().get(bucket.url("theirs")).send().await.unwrap().text().await.unwrap();
    assert_eq!(theirs, "theirs");
    let again = registry.repair("site").await.unwrap();
    assert_eq!(again, Repaired { checked: 4, unknown: 1, ..Repaired::default() });
}

#[tokio::test]
async fn a_bucket_that_was_away_is_put_right_later() {
    let fixture = Fixture::new();
    let bucket = Bucket::new(&fixture).await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let away = fixture.registry(bucket.consumer(&fixture, &format!("http://{free}")));
    fixture.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    fixture.sync(&away).await;
    for left in [2, 2, 0] {
        assert_eq!(fixture.drain(&away).await, drained(0, 2, left));
    }
    let reason = &fixture.dead_letters(&away).await[0].reason;
    assert!(reason.starts_with("consumer site: ") && !reason.contains("test-secret"), "{reason}");
    assert!(away.repair("site").await.unwrap_err().retryable());
    let registry = bucket.registry(&fixture);
    let repaired = registry.repair("site").await.unwrap();
    let expected = Repaired { checked: 2, written: 2, dead_letters: 2, ..Repaired::default() };
    assert_eq!(repaired, expected);
    assert!(bucket.read("b").await.unwrap().ends_with("# B\n"));
}
