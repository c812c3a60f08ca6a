//! Clients who go from server to server of one store, while the servers are killed: locks exclude, and
//! results are computed once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::serving::{Served, send, serve};

const CLIENTS: usize = 4;
/// Long enough for a request, and short enough that the dead are not waited for.
const LEASE_SECONDS: u64 = 2;

/// Where the servers listen now.
struct Servers(Mutex<Vec<String>>);

impl Servers {
    fn any(&self, rng: &mut Rng) -> String {
        let addresses = self.0.lock().unwrap();
        addresses[rng.usize(..addresses.len())].clone()
    }
}

/// Somebody who asks one server or another until there is an answer.
struct Client<'t> {
    number: usize,
    rng: Rng,
    servers: &'t Servers,
    /// What was answered so far, by all.
    answers: &'t AtomicUsize,
    stop: &'t AtomicBool,
    writes: Vec<Write>,
    /// What each result was, with its version.
    results: BTreeMap<usize, (Value, Value)>,
}

/// A write under a lock, and whether it was done.
struct Write {
    n: usize,
    token: u64,
    done: bool,
}

impl Client<'_> {
    /// Sends a request until it is answered by more than "try again": each time to any server.
    fn answer(&mut self, head: &str, headers: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        loop {
            let address = self.servers.any(&mut self.rng);
            let head = format!("{head} HTTP/1.1\r\n{headers}");
            let Ok((status, told)) = send(&address, &head, &body) else {
                thread::yield_now();
                continue;
            };
            let told = serde_json::from_str(&told).unwrap_or(Value::Null);
            // Whoever is not sure asks again: every request here may be sent again.
            if !matches!(status, 500..) {
                self.answers.fetch_add(1, Ordering::Relaxed);
                return (status, told);
            }
        }
    }

    fn run(mut self) -> Self {
        let mut n = 0;
        while !self.stop.load(Ordering::Relaxed) {
            if self.rng.u8(..6) == 0 {
                self.break_the_lock();
            }
            self.write_under_a_lock(n);
            self.get_or_compute(n);
            n += 1;
        }
        self
    }

    /// Reads what is there and writes it back with something added: nothing but the lock keeps others
    /// from writing in between.
    fn write_under_a_lock(&mut self, n: usize) {
        let name = format!("idempotency-key: lock-{}-{n}\r\n", self.number);
        let asked = json!({"root": "page", "paths": ["log"], "ttl": LEASE_SECONDS, "wait": 2});
        let held = loop {
            match self.answer("POST /v1/stores/main/locks/acquire", &name, &asked) {
                (200, held) => break held,
                (409, told) if told["code"] == "locked" => {}
                told => panic!("{told:?}"),
            }
        };
        let (ticket, token) = (held["ticket"].as_str().unwrap(), held["token"].as_u64().unwrap());
        let mut log = match self.answer("GET /v1/stores/main/entries/log", "", &Value::Null) {
            (200, log) => log,
            (404, _) => json!([]),
            told => panic!("{told:?}"),
        };
        log.as_array_mut().unwrap().push(json!([token, self.number, n]));
        if self.rng.u8(..4) == 0 {
            self.answer("POST /v1/stores/main/locks/renew", "", &json!({"ticket": ticket}));
        }
        let under =
            format!("keyward-lock: {ticket}\r\nidempotency-key: write-{}-{n}\r\n", self.number);
        let done = match self.answer("PUT /v1/stores/main/entries/log", &under, &log) {
            (200, _) => true,
            (409, told) if told["code"] == "lock-lost" => false,
            told => panic!("{told:?}"),
        };
        self.writes.push(Write { n, token, done });
        // Some give nothing back: the lease ends it.
        if self.rng.u8(..8) > 0 {
            let ticket = json!({"ticket": ticket});
            assert_eq!(self.answer("POST /v1/stores/main/locks/release", "", &ticket).0, 204);
        }
    }

    /// Takes the lock away from whoever holds it: what they still write must be refused.
    fn break_the_lock(&mut self) {
        let broken = json!({"root": "page", "path": "log", "reason": "for a test"});
        match self.answer("POST /v1/stores/main/locks/break", "", &broken) {
            (200, _) => {}
            (409, told) if told["code"] == "not-held" => {}
            told => panic!("{told:?}"),
        }
    }

    fn get_or_compute(&mut self, n: usize) {
        let path = format!("/v1/stores/main/cache/result:{n}");
        let asked = json!({"version": "1", "lease": LEASE_SECONDS, "wait": 2});
        let mut attempt = 0;
        let found = loop {
            attempt += 1;
            let name = format!("idempotency-key: result-{}-{n}-{attempt}\r\n", self.number);
            let ticket = match self.answer(&format!("POST {path}/lookup"), &name, &asked) {
                (200, told) if told["compute"].is_object() => told["compute"]["ticket"].clone(),
                (200, found) => break found,
                (409, told) if told["code"] == "computing" => continue,
                told => panic!("{told:?}"),
            };
            let value = json!({"by": self.number, "attempt": attempt});
            let ticket = format!("keyward-ticket: {}\r\n", ticket.as_str().unwrap());
            match self.answer(&format!("PUT {path}"), &ticket, &value) {
                // What was published is what everybody finds from now on.
                (200, published) => {
                    let (status, shown) = self.answer(&format!("GET {path}"), "", &Value::Null);
                    assert_eq!((status, &shown["version"]), (200, &published["version"]));
                    break shown;
                }
                (409, told) if told["code"] == "lock-lost" => {}
                told => panic!("{told:?}"),
            }
        };
        self.results.insert(n, (found["value"].clone(), found["version"].clone()));
    }
}

/// Runs clients against servers of one store, of which one after the other is killed at some time and
/// started again; then looks at what is left.
#[allow(clippy::print_stdout, reason = "a failure should tell its seed")]
fn kill_under_load(kw: &Sandbox, store: &[&str], count: usize) {
    let kills = if std::env::var_os("KEYWARD_DEEP").is_some() { 60 } else { 6 };
    let seed = std::env::var("KEYWARD_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("KEYWARD_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let mut processes: Vec<Served> = (0..count).map(|_| serve(kw, store)).collect();
    let addresses = processes.iter().map(|served| served.address.clone());
    let servers = Servers(Mutex::new(addresses.collect()));
    let (answers, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let clients: Vec<Client<'_>> = thread::scope(|scope| {
        let running: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let client = Client {
                    number,
                    rng: Rng::with_seed(rng.u64(..)),
                    servers: &servers,
                    answers: &answers,
                    stop: &stop,
                    writes: Vec::new(),
                    results: BTreeMap::new(),
                };
                scope.spawn(move || client.run())
            })
            .collect();
        for _ in 0..kills {
            let enough = answers.load(Ordering::Relaxed) + rng.usize(5..80);
            while answers.load(Ordering::Relaxed) < enough
                && running.iter().all(|client| !client.is_finished())
            {
                thread::yield_now();
            }
            let at = rng.usize(..count);
            processes[at].process.kill();
            processes[at] = serve(kw, store);
            servers.0.lock().unwrap()[at] = processes[at].address.clone();
        }
        stop.store(true, Ordering::Relaxed);
        running.into_iter().map(|client| client.join().unwrap()).collect()
    });
    check(&processes[0].address, &clients);
    for served in processes {
        served.process.terminate();
        assert_eq!(served.process.ended(), Some(0));
    }
}

#[allow(clippy::print_stdout, reason = "shows what a run went through")]
fn check(address: &str, clients: &[Client<'_>]) {
    let log = send(address, "GET /v1/stores/main/entries/log HTTP/1.1\r\n", "").unwrap().1;
    let log: Vec<(u64, usize, usize)> = serde_json::from_str(&log).unwrap();
    let tokens: Vec<u64> = log.iter().map(|(token, ..)| *token).collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "tokens rise: {log:?}");
    let mut granted = BTreeSet::new();
    let (mut done, mut refused) = (0, 0);
    for client in clients {
        for Write { n, token, done: is_done } in &client.writes {
            let times = log.iter().filter(|it| **it == (*token, client.number, *n)).count();
            assert_eq!(times, usize::from(*is_done), "{token} {} {n}: {log:?}", client.number);
            assert!(granted.insert(token), "{token} was granted twice");
            *(if *is_done { &mut done } else { &mut refused }) += 1;
        }
    }
    assert_eq!(log.len(), done, "{log:?}");
    let mut results: BTreeMap<usize, &(Value, Value)> = BTreeMap::new();
    for (n, result) in clients.iter().flat_map(|client| &client.results) {
        assert_eq!(*results.entry(*n).or_insert(result), result, "result {n}: one publication");
    }
    println!("{done} writes, {refused} refused, {} results", results.len());
    assert!(done > 0 && !results.is_empty());
}

#[test]
fn a_server_that_is_killed_leaves_locks_and_results_right() {
    kill_under_load(&Sandbox::new(), &[], 1);
}

#[test]
fn two_servers_of_one_directory_share_locks_and_results() {
    kill_under_load(&Sandbox::new(), &[], 2);
}

mod postgres {
    use super::kill_under_load;
    use crate::sandbox::Sandbox;

    #[test]
    fn two_servers_of_one_database_share_locks_and_results() {
        let server = std::env::var("KEYWARD_TEST_POSTGRES").expect(
            "start the servers with ./test or testing/services/run, or set KEYWARD_TEST_POSTGRES",
        );
        let mark = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{mark}store=sharing-{:032x}", fastrand::u128(..));
        let kw = Sandbox::new();
        kill_under_load(&kw, &["-s", &url], 2);
        kw.run(&["copy", "memory:", &url, "--prune"]);
    }
}
