//! How often callers may ask.

use std::sync::Arc;
use std::time::Duration;

use keyward_server::{Config, Quota, Rate, Rates, without_schema};
use keyward_testkit::TestClock;
use serde_json::json;

use crate::fixture::{Running, answered, configured, refused};

async fn limited(clock: &TestClock, rates: Rates) -> Running {
    let config = Config { clock: Arc::new(clock.clone()), rates, ..configured() };
    Running::start(&config, &without_schema("memory:").unwrap()).await
}

#[tokio::test]
async fn who_asks_too_often_is_told_when_to_come_back() {
    let clock = TestClock::new();
    let tenant = Some(Rate { per_second: 2, burst: 4 });
    let server = limited(&clock, Rates { tenant, stranger: None }).await;
    for _ in 0..10 {
        let local = answered(200, server.get("/v1/stores")).await;
        assert!(!local.headers().contains_key("ratelimit"), "a local user is not limited");
    }
    let admin = server.admin().await;
    let seven = server.key(&admin, &json!({"name": "seven", "user": "7"})).await.secret;
    let again = server.key(&admin, &json!({"name": "again", "user": "7"})).await.secret;
    for left in (0..4).rev() {
        // Two keys of one user share what that user may ask.
        let key = if left % 2 == 0 { &seven } else { &again };
        let answer = answered(200, server.get("/v1/stores").bearer_auth(key)).await;
        assert_eq!(answer.headers()["ratelimit-policy"], r#""tenant";q=4;w=2"#);
        let full = (4u32 - left).div_ceil(2);
        assert_eq!(answer.headers()["ratelimit"], format!(r#""tenant";r={left};t={full}"#));
    }
    let put = || server.put("/v1/stores/main/entries/user:7:a", "1").bearer_auth(&seven);
    let problem = refused(429, "rate-limited", put()).await;
    assert_eq!(problem["retryable"], true);
    let answer = answered(429, put()).await;
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(answer.headers()["ratelimit"], r#""tenant";r=0;t=2"#);
    answered(200, server.get("/v1/stores").bearer_auth(&admin.secret)).await;
    clock.advance(Duration::from_millis(500));
    answered(200, put()).await;
    refused(429, "rate-limited", put()).await;
}

#[tokio::test]
async fn strangers_are_limited_by_address_and_holders_of_keys_are_not() {
    let clock = TestClock::new();
    let stranger = Some(Rate { per_second: 1, burst: 2 });
    let server = limited(&clock, Rates { tenant: None, stranger }).await;
    let admin = server.admin().await;
    for _ in 0..2 {
        refused(401, "unauthenticated", server.get("/v1/stores").bearer_auth("kw_x")).await;
    }
    let answer = answered(429, server.get("/v1/stores")).await;
    assert_eq!(answer.headers()["retry-after"], "1");
    for _ in 0..5 {
        answered(200, server.get("/v1/stores").bearer_auth(&admin.secret)).await;
    }
    clock.advance(Duration::from_secs(1));
    refused(401, "unauthenticated", server.get("/v1/stores")).await;
}

#[tokio::test]
async fn made_up_keys_of_an_address_over_its_rate_are_not_looked_up() {
    let clock = TestClock::new();
    let stranger = Some(Rate { per_second: 1, burst: 2 });
    let server = limited(&clock, Rates { tenant: None, stranger }).await;
    let admin = server.admin().await;
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    for n in 0..200 {
        let made_up = format!("kw_{n:08}_{}", "a".repeat(52));
        let answer = server.get("/v1/stores").bearer_auth(made_up).send().await.unwrap();
        *statuses.entry(answer.status().as_u16()).or_default() += 1;
    }
    assert_eq!(statuses, [(401, 2), (429, 198)].into());
    let metrics = answered(200, server.get("/metrics")).await.text().await.unwrap();
    let count = |reason: &str| {
        let name = format!("keyward_credentials_refused_total{{reason=\"{reason}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |count| count.parse::<u32>().unwrap())
    };
    assert!(count("unknown") <= 24, "{} were looked up", count("unknown"));
    assert_eq!(count("unknown") + count("throttled"), 200);
    // Who shares the address and has a key is served, and refused at once when it is revoked.
    clock.advance(Duration::from_secs(1));
    let key = server.key(&admin, &json!({"name": "mine"})).await;
    refused(401, "unauthenticated", server.get("/v1/stores")).await;
    refused(429, "rate-limited", server.get("/v1/stores")).await;
    answered(200, server.get("/v1/stores").bearer_auth(&key.secret)).await;
    let revoke = server.request(reqwest::Method::DELETE, &format!("/v1/keys/{}", key.id));
    answered(200, revoke.bearer_auth(&admin.secret)).await;
    refused(429, "rate-limited", server.get("/v1/stores").bearer_auth(&key.secret)).await;
}

#[tokio::test]
async fn what_is_written_in_a_day_is_counted_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    let data = without_schema(&url).unwrap();
    let clock = TestClock::new();
    let quota = Some(Quota { writes_per_day_max: 4, bytes_per_day_max: 1_000 });
    let config = Config { clock: Arc::new(clock.clone()), quota, ..configured() };
    let server = Running::start(&config, &data).await;
    for n in 0..6 {
        let local = server.put(&format!("/v1/stores/main/entries/local:{n}"), "1");
        answered(200, local).await;
    }
    let admin = server.admin().await;
    let seven = server.key(&admin, &json!({"name": "seven", "user": "7"})).await.secret;
    let eight = server.key(&admin, &json!({"name": "eight", "user": "8"})).await.secret;
    let put = |server: &Running, user: &str, body: &str| {
        server.put(&format!("/v1/stores/main/entries/user:{user}:a"), body)
    };
    answered(200, put(&server, "7", "1").bearer_auth(&seven)).await;
    refused(403, "forbidden", put(&server, "8", "1").bearer_auth(&seven)).await;
    let commit =
        r#"{"writes":[{"put":{"key":"user:7:b","value":1}},{"delete":{"key":"user:7:c"}}]}"#;
    let commit = server.post("/v1/stores/main/commit", commit).bearer_auth(&seven);
    answered(200, commit).await;
    server.stop().await;

    let server = Running::start(&config, &data).await;
    answered(200, put(&server, "7", "1").bearer_auth(&seven)).await;
    let problem = refused(429, "over-quota", put(&server, "7", "1").bearer_auth(&seven)).await;
    assert_eq!(problem["retryable"], true);
    let answer = answered(429, put(&server, "7", "1").bearer_auth(&seven)).await;
    assert_eq!(answer.headers()["retry-after"], "86400");
    let read = server.post("/v1/stores/main/get", r#"{"keys":["user:7:a"]}"#);
    answered(200, read.bearer_auth(&seven)).await;
    let large = format!("\"{}\"", "x".repeat(2_000));
    answered(200, put(&server, "8", &large).bearer_auth(&eight)).await;
    refused(429, "over-quota", put(&server, "8", "1").bearer_auth(&eight)).await;
    clock.advance(Duration::from_secs(24 * 60 * 60));
    answered(200, put(&server, "7", "1").bearer_auth(&seven)).await;
}

/// How much memory this process has, in bytes.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_the_rate_of_one_leaves_the_others_served() {
    const RATE: u32 = 200;
    let clock = TestClock::new();
    let tenant = Some(Rate { per_second: RATE, burst: RATE });
    let server = limited(&clock, Rates { tenant, ..Rates::default() }).await;
    let admin = server.admin().await;
    let greedy = server.key(&admin, &json!({"name": "greedy", "user": "7"})).await.secret;
    let modest = server.key(&admin, &json!({"name": "modest", "user": "8"})).await.secret;
    let before = resident_bytes();
    let flood = (0..20).map(|_| {
        let requests: Vec<_> = (0..RATE / 2)
            .map(|n| server.put(&format!("/v1/stores/main/entries/user:7:{n}"), "1"))
            .map(|request| request.bearer_auth(&greedy))
            .collect();
        tokio::spawn(async move {
            let mut statuses = Vec::new();
            for request in requests {
                statuses.push(request.send().await.unwrap().status().as_u16());
            }
            statuses
        })
    });
    let flood: Vec<_> = flood.collect();
    for n in 0..50 {
        let put = server.put(&format!("/v1/stores/main/entries/user:8:{n}"), "1");
        let answer = answered(200, put.bearer_auth(&modest));
        tokio::time::timeout(Duration::from_secs(5), answer).await.expect("within five seconds");
    }
    let mut counted = std::collections::BTreeMap::<u16, u32>::new();
    for statuses in flood {
        for status in statuses.await.unwrap() {
            *counted.entry(status).or_default() += 1;
        }
    }
    // The clock stands still, so that nothing is added to what may be asked at once.
    assert_eq!(counted, [(200, RATE), (429, 9 * RATE)].into());
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "{grown} bytes for {} requests", 10 * RATE);
}
