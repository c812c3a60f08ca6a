//! Workers over HTTP, on two servers of one store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use keyward_server::without_schema;
use keyward_testkit::{Replay, Test, seeds};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{Running, answered, client, told};

const QUEUE: &str = "/v1/stores/main/queues/q";
const MESSAGES: u64 = 120;
const WORKERS: u64 = 6;

/// Two servers of one store.
struct Pair {
    servers: [Running; 2],
    /// Where the store is, if it is in a directory.
    _directory: Option<TempDir>,
}

/// Two servers, each as a process of its own would open the store where the engine allows it.
async fn two(one: &str, other: Option<&str>, directory: Option<TempDir>) -> Arc<Pair> {
    let data = without_schema(one).unwrap();
    let first = Running::on(&data).await;
    let second = match other {
        Some(url) => Running::on(&without_schema(url).unwrap()).await,
        None => Running::on(&data).await,
    };
    Arc::new(Pair { servers: [first, second], _directory: directory })
}

async fn enqueue(pair: &Pair) {
    for at in 0..MESSAGES {
        let body = json!({"messages": [{"payload": at, "id": format!("m{at:03}")}]}).to_string();
        let server = &pair.servers[usize::from(at % 2 == 0)];
        answered(200, server.post(&format!("{QUEUE}/messages"), &body)).await;
    }
}

/// What workers were told about their completions.
#[derive(Default)]
struct Ledger {
    /// How many completions of each message were accepted, of different attempts.
    accepted: Mutex<BTreeMap<String, Vec<String>>>,
    /// The latest attempt of each message that somebody was told of.
    latest: Mutex<BTreeMap<String, u64>>,
    lost: AtomicU64,
}

/// Somebody who works over HTTP, at one server or the other.
struct Worker {
    pair: Arc<Pair>,
    client: Client,
    ledger: Arc<Ledger>,
    rng: Rng,
}

impl Worker {
    async fn post(&mut self, path: &str, body: &Value) -> (StatusCode, Value) {
        let server = &self.pair.servers[usize::from(self.rng.bool())];
        let request = self.client.post(format!("{}{QUEUE}/{path}", server.url)).json(body);
        let answer = request.send().await.unwrap();
        let status = answer.status();
        (status, answer.json().await.unwrap())
    }

    async fn claim(&mut self, body: &Value) -> Vec<Value> {
        let (status, claimed) = self.post("claim", body).await;
        assert_eq!(status, 200, "{claimed}");
        let messages = claimed["messages"].as_array().unwrap();
        let mut latest = self.ledger.latest.lock().unwrap();
        for message in messages {
            let (id, attempt) = (message["id"].as_str().unwrap(), message["attempt"].as_u64());
            let known = latest.entry(id.to_owned()).or_default();
            *known = (*known).max(attempt.unwrap());
        }
        messages.clone()
    }

    /// Completes a message, sometimes more often than once.
    async fn complete(&mut self, message: &Value) {
        let (id, nonce) = (message["id"].as_str().unwrap(), message["nonce"].as_str().unwrap());
        let path = format!("messages/{id}/complete");
        let latest = self.ledger.latest.lock().unwrap()[id];
        let is_taken_over = message["attempt"].as_u64().unwrap() < latest;
        let mut told = Vec::new();
        for _ in 0..self.rng.u8(1..=2) {
            let (status, answer) = self.post(&path, &json!({"nonce": nonce})).await;
            assert!(status == 200 || answer["code"] == "attempt-lost", "{answer}");
            assert!(status != 200 || !is_taken_over, "{message} is at its attempt {latest}");
            told.push(status == 200);
        }
        assert!(told.iter().all(|it| *it == told[0]), "{told:?}");
        if told[0] {
            let mut accepted = self.ledger.accepted.lock().unwrap();
            accepted.entry(id.to_owned()).or_default().push(nonce.to_owned());
        } else {
            self.ledger.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Works until nothing is left for a while.
    async fn work(mut self) {
        loop {
            let max = self.rng.u8(1..=5);
            let claimed = self.claim(&json!({"max": max, "wait_ms": 200})).await;
            if claimed.is_empty() {
                return;
            }
            for message in claimed {
                self.complete(&message).await;
            }
        }
    }

    /// The same, who now and then does not go on with what it has until its lease has ended.
    async fn work_with_stalls(mut self) {
        let mut stalled = Vec::new();
        loop {
            let body = json!({"max": 3, "lease_ms": 150, "wait_ms": 1_000});
            let claimed = self.claim(&body).await;
            if claimed.is_empty() {
                break;
            }
            for message in claimed {
                match self.rng.u8(..10) {
                    0..2 => stalled.push(message),
                    2 => {
                        let path =
                            format!("messages/{}/heartbeat", message["id"].as_str().unwrap());
                        self.post(&path, &json!({"nonce": message["nonce"]})).await;
                        self.complete(&message).await;
                    }
                    _ => self.complete(&message).await,
                }
            }
            if self.rng.u8(..4) == 0
                && let Some(message) = stalled.pop()
            {
                self.complete(&message).await;
            }
        }
        for message in stalled {
            self.complete(&message).await;
        }
    }
}

async fn workers<F>(pair: &Arc<Pair>, seed: u64, work: impl Fn(Worker) -> F) -> Arc<Ledger>
where
    F: Future<Output = ()> + Send + 'static,
{
    let ledger = Arc::new(Ledger::default());
    let tasks = (0..WORKERS).map(|at| {
        tokio::spawn(work(Worker {
            pair: pair.clone(),
            client: client(),
            ledger: ledger.clone(),
            rng: Rng::with_seed(seed * WORKERS + at),
        }))
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    ledger
}

async fn every_message_is_done_once(pair: Arc<Pair>, path: &'static str) {
    for seed in seeds(1, 5) {
        let _replay = Replay::new(Test { package: "keyward-server", path }, seed);
        enqueue(&pair).await;
        let ledger = workers(&pair, seed, Worker::work).await;
        let accepted = ledger.accepted.lock().unwrap().clone();
        assert_eq!(accepted.len() as u64, MESSAGES);
        assert!(accepted.values().all(|nonces| nonces.len() == 1), "{accepted:?}");
        assert_eq!(ledger.lost.load(Ordering::Relaxed), 0);
        let queue = told(200, pair.servers[0].get(QUEUE)).await;
        for place in ["ready", "delayed", "claimed", "dead"] {
            assert_eq!(queue[place]["count"], 0, "{queue}");
        }
    }
}

/// What stalls is done by others, and completed at most once; what stalls too often is a dead letter.
async fn stalled_workers_complete_nothing_twice(pair: Arc<Pair>, path: &'static str) {
    let mut lost = 0;
    for seed in seeds(1, 5) {
        let _replay = Replay::new(Test { package: "keyward-server", path }, seed);
        enqueue(&pair).await;
        let ledger = workers(&pair, seed, Worker::work_with_stalls).await;
        let accepted = ledger.accepted.lock().unwrap().clone();
        assert!(accepted.values().all(|nonces| nonces.len() == 1), "{accepted:?}");
        let queue = told(200, pair.servers[1].get(QUEUE)).await;
        for place in ["ready", "delayed", "claimed"] {
            assert_eq!(queue[place]["count"], 0, "{queue}");
        }
        let dead = queue["dead"]["count"].as_u64().unwrap();
        assert_eq!(accepted.len() as u64 + dead, MESSAGES, "{queue}");
        lost += ledger.lost.load(Ordering::Relaxed);
    }
    assert!(lost > 0, "nobody stalled");
}

macro_rules! on_two_servers {
    ($module:ident, $pair:expr) => {
        mod $module {
            #[tokio::test]
            async fn every_message_is_done_once() {
                let path = concat!(
                    "server::workers::",
                    stringify!($module),
                    "::every_message_is_done_once"
                );
                super::every_message_is_done_once($pair.await, path).await;
            }

            #[tokio::test]
            async fn stalled_workers_complete_nothing_twice() {
                let path = concat!(
                    "server::workers::",
                    stringify!($module),
                    "::stalled_workers_complete_nothing_twice"
                );
                super::stalled_workers_complete_nothing_twice($pair.await, path).await;
            }
        }
    };
}

on_two_servers!(memory, super::two("memory:", None, None));
on_two_servers!(embedded, super::in_a_directory());
on_two_servers!(postgres, super::on_postgres());

async fn in_a_directory() -> Arc<Pair> {
    let directory = tempfile::tempdir().unwrap();
    two(&format!("embedded:{}", directory.path().display()), None, Some(directory)).await
}

async fn on_postgres() -> Arc<Pair> {
    let url = std::env::var("KEYWARD_TEST_POSTGRES")
        .expect("start the servers with ./test, or set KEYWARD_TEST_POSTGRES");
    let between = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{between}store=workers-{:032x}", fastrand::u128(..));
    two(&url, Some(&url), None).await
}
