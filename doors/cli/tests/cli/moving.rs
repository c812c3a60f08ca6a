//! Workers over HTTP that move between two servers of one database, which are killed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::serving::{Served, send, serve};

const WORKERS: u64 = 4;
const QUEUE: &str = "/v1/stores/main/queues/q";
/// Every so many messages one cannot be worked off.
const POISONED_EVERY: usize = 10;

/// What was told about messages.
#[derive(Default)]
struct Ledger {
    /// Messages whose enqueuing was acknowledged.
    enqueued: AtomicUsize,
    /// For each message, the attempts whose completion was acknowledged.
    completed: Mutex<BTreeMap<String, Vec<String>>>,
    /// The latest attempt of each message that somebody was told of.
    latest: Mutex<BTreeMap<String, u64>>,
    stopped: AtomicBool,
}

impl Ledger {
    fn claimed(&self, messages: &[Value]) {
        let mut latest = self.latest.lock().unwrap();
        for message in messages {
            let known = latest.entry(message["id"].as_str().unwrap().to_owned()).or_default();
            *known = (*known).max(message["attempt"].as_u64().unwrap());
        }
    }
}

/// Somebody who talks to one server or the other.
struct Client<'t> {
    addresses: &'t Mutex<[String; 2]>,
    ledger: &'t Ledger,
    rng: Rng,
}

impl Client<'_> {
    /// Asks until there is an answer, each time at whichever server; `None` when all is over.
    fn ask(&mut self, path: &str, header: &str, body: &Value) -> Option<(u16, Value)> {
        while !self.ledger.stopped.load(Ordering::Relaxed) {
            if let Some(told) = self.ask_once(path, header, body) {
                return Some(told);
            }
        }
        None
    }

    fn ask_once(&mut self, path: &str, header: &str, body: &Value) -> Option<(u16, Value)> {
        let address = self.addresses.lock().unwrap()[usize::from(self.rng.bool())].clone();
        let head = format!("POST {QUEUE}/{path} HTTP/1.1\r\n{header}");
        let (status, text) = send(&address, &head, &body.to_string()).ok()?;
        // The database gave a connection up, or took too long.
        if status == 503 || status == 504 {
            return None;
        }
        // An answer that was cut off is none.
        Some((status, serde_json::from_str(&text).ok()?))
    }

    fn enqueue_all(&mut self) {
        loop {
            let n = self.ledger.enqueued.load(Ordering::Relaxed);
            let poisoned = n.is_multiple_of(POISONED_EVERY);
            let body = json!({"messages": [{"payload": poisoned, "id": format!("m{n}")}]});
            let key = format!("idempotency-key: m{n}\r\n");
            let Some((status, told)) = self.ask("messages", &key, &body) else { return };
            assert_eq!(status, 200, "{told}");
            self.ledger.enqueued.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Claims and ends messages until all is over.
    fn work(&mut self) {
        let mut stalled: Vec<Value> = Vec::new();
        let claim = json!({"max": 3, "lease_ms": 1_000, "wait_ms": 100});
        while let Some((status, claimed)) = self.ask("claim", "", &claim) {
            assert_eq!(status, 200, "{claimed}");
            let messages = claimed["messages"].as_array().unwrap();
            self.ledger.claimed(messages);
            for message in messages {
                // Now and then somebody goes on only when the lease may have ended.
                match self.rng.u8(..20) {
                    0 => stalled.push(message.clone()),
                    _ => self.end(message),
                }
            }
            if stalled.len() > 2 {
                self.end(&stalled.remove(0));
            }
        }
        stalled.iter().for_each(|message| self.end(message));
    }

    fn end(&mut self, message: &Value) {
        let id = message["id"].as_str().unwrap();
        let nonce = message["nonce"].as_str().unwrap();
        let poisoned = message["payload"] == true;
        let (how, body) = match poisoned {
            true => ("retry", json!({"nonce": nonce, "reason": "poison", "after_ms": 1})),
            false => ("complete", json!({"nonce": nonce})),
        };
        let path = format!("messages/{id}/{how}");
        let latest = self.ledger.latest.lock().unwrap()[id];
        let is_taken_over = message["attempt"].as_u64().unwrap() < latest;
        // What was begun is ended, also when all is over.
        let (status, told) = loop {
            if let Some(told) = self.ask_once(&path, "", &body) {
                break told;
            }
        };
        if status == 200 && !poisoned {
            assert!(!is_taken_over, "{message} is at its attempt {latest}");
            let mut completed = self.ledger.completed.lock().unwrap();
            completed.entry(id.to_owned()).or_default().push(nonce.to_owned());
        } else {
            assert!(status == 200 || told["code"] == "attempt-lost", "{status} {told}");
        }
    }
}

fn stats(address: &str) -> Value {
    let head = format!("GET {QUEUE} HTTP/1.1\r\n");
    let (status, text) = send(address, &head, "").unwrap();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn count(stats: &Value, place: &str) -> usize {
    stats[place]["count"].as_u64().unwrap().try_into().unwrap()
}

/// Two servers on one store, of which one or the other is killed again and again.
#[allow(clippy::print_stdout, reason = "a failure should tell its seed")]
fn workers_lose_nothing(store: &str) {
    let kills = if std::env::var_os("KEYWARD_DEEP").is_some() { 40 } else { 6 };
    let seed = std::env::var("KEYWARD_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("KEYWARD_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let kw = Sandbox::new();
    let start = || serve(&kw, &["-s", store]);
    let mut servers: [Served; 2] = [start(), start()];
    let addresses = Mutex::new([servers[0].address.clone(), servers[1].address.clone()]);
    let ledger = Ledger::default();
    let client =
        |seed| Client { addresses: &addresses, ledger: &ledger, rng: Rng::with_seed(seed) };
    let (producing, working) = (rng.u64(..), rng.u64(..WORKERS * 1_000));
    thread::scope(|scope| {
        let producer = scope.spawn(move || client(producing).enqueue_all());
        let workers: Vec<_> =
            (0..WORKERS).map(|at| scope.spawn(move || client(working + at).work())).collect();
        let is_well =
            || !producer.is_finished() && workers.iter().all(|worker| !worker.is_finished());
        for _ in 0..kills {
            let enough = ledger.enqueued.load(Ordering::Relaxed) + rng.usize(5..40);
            while ledger.enqueued.load(Ordering::Relaxed) < enough && is_well() {
                thread::yield_now();
            }
            let at = usize::from(rng.bool());
            servers[at].process.kill();
            servers[at] = start();
            addresses.lock().unwrap()[at].clone_from(&servers[at].address);
        }
        ledger.stopped.store(true, Ordering::Relaxed);
    });
    // What is left is worked off when nothing is killed any more.
    ledger.stopped.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        for at in 0..WORKERS {
            scope.spawn(move || client(working + at).work());
        }
        loop {
            let stats = stats(&servers[0].address);
            let left = ["ready", "delayed", "claimed"].map(|place| count(&stats, place));
            if left == [0, 0, 0] {
                break;
            }
        }
        ledger.stopped.store(true, Ordering::Relaxed);
    });
    check(&ledger, &servers[1].address);
}

fn check(ledger: &Ledger, address: &str) {
    let enqueued = ledger.enqueued.load(Ordering::Relaxed);
    assert!(enqueued > 20, "{enqueued}");
    let completed = ledger.completed.lock().unwrap();
    for (id, nonces) in completed.iter() {
        assert_eq!(nonces.len(), 1, "{id} was completed by several attempts");
    }
    let dead = |id: &str| {
        let head = format!("GET {QUEUE}/dead-letters/{id} HTTP/1.1\r\n");
        let (status, text) = send(address, &head, "").unwrap();
        (status == 200).then(|| serde_json::from_str::<Value>(&text).unwrap())
    };
    for n in 0..enqueued {
        let id = format!("m{n}");
        match (dead(&id), n.is_multiple_of(POISONED_EVERY)) {
            (Some(dead), true) => assert_eq!(dead["retry_count"], 3, "{dead}"),
            // Its workers lost it too often: their servers were killed with its claims.
            (Some(dead), false) => {
                let reason = dead["reason"].as_str().unwrap();
                assert!(reason.contains("no sign of life"), "{dead}");
                assert!(!completed.contains_key(&id), "{id} was completed, and is a dead letter");
            }
            (None, true) => panic!("{id} is lost"),
            (None, false) => assert!(completed.contains_key(&id), "{id} is lost"),
        }
    }
}

mod postgres {
    #[test]
    fn workers_that_move_between_servers_that_are_killed_lose_nothing() {
        let server = std::env::var("KEYWARD_TEST_POSTGRES").expect(
            "start the servers with ./test or testing/services/run, or set KEYWARD_TEST_POSTGRES",
        );
        let mark = if server.contains('?') { '&' } else { '?' };
        super::workers_lose_nothing(&format!(
            "{server}{mark}store=moving-{:032x}",
            fastrand::u128(..)
        ));
    }
}

#[test]
fn workers_that_move_between_servers_of_one_directory_lose_nothing() {
    workers_lose_nothing("embedded:./data");
}
