//! Random requests by users with different roles, some of them sent by browsers of other sites: nobody
//! sees what they may not, and the server has an answer to everything.

mod api;
mod canaries;
mod requests;

use std::collections::BTreeMap;
use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use keyward_attack::Scale;

use self::api::Api;
use self::canaries::Planted;
use self::requests::{Generator, Random};
use crate::client::{ATTACKER, Answer, Client};
use crate::http;
use crate::scene::Scene;

/// Clients that send at the same time.
const CLIENTS: u64 = 4;
/// After how many requests of a client canaries that were deleted or overwritten are put back.
const REPLANT_EVERY: u64 = 250;
/// How long a stream is listened to.
const LISTEN: Duration = Duration::from_millis(150);
/// Violations that begin alike are of one kind.
const KIND_CHARS: usize = 200;

/// What is wrong with an answer, if anything.
fn violation(planted: &Planted, sent: &Random, answer: &Answer) -> Option<String> {
    let body = String::from_utf8_lossy(&answer.body);
    let said = [&*body, &answer.headers];
    if let Some(leaked) = planted.leaked(sent.credential.name, &said) {
        return Some(format!("{leaked} leaked"));
    }
    let foreign_write =
        sent.from_foreign_site && matches!(sent.method.as_str(), "PUT" | "PATCH" | "DELETE");
    if foreign_write && answer.status < 400 {
        return Some(format!("{}: a page of another site has written", answer.status));
    }
    if answer.status < 500 {
        return None;
    }
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    let stated = matches!(answer.status, 503 | 504) && problem["code"].is_string();
    let stated = stated && problem["status"] == answer.status;
    (!stated).then(|| format!("{}: {body}", answer.status))
}

/// The first violation of each kind, and how many there are of it.
fn shown(violations: &[(String, String)]) -> String {
    let mut kinds: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for (wrong, sent) in violations {
        let kind = wrong.chars().take(KIND_CHARS).collect();
        kinds.entry(kind).or_insert((sent, 0)).1 += 1;
    }
    let lines =
        kinds.iter().map(|(kind, (sent, count))| format!("{count} times {kind}\n    {sent}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
#[allow(clippy::print_stdout, reason = "a failure should tell its seed")]
fn random_requests_leak_nothing_and_break_nothing() {
    let seed = env::var("KEYWARD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    println!("KEYWARD_SEED={seed}");
    let requests: u64 = Scale::from_env().choose(2_000, 100_000);
    let arguments = ["--tenant-rate", "none", "--stranger-rate", "none"];
    let scene = Scene::set(0, &arguments);
    let planted = Planted::plant(&scene);
    let api = Api::load();
    let violations = Mutex::new(Vec::new());
    let (answered, unanswered) = (AtomicU64::new(0), Mutex::new(BTreeMap::<String, u64>::new()));
    let client = |n: u64| {
        let (scene, planted, violations) = (&scene, &planted, &violations);
        let (api, answered, unanswered) = (&api, &answered, &unanswered);
        move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let rng = Rng::with_seed(seed.wrapping_mul(CLIENTS).wrapping_add(n));
            let mut generator =
                Generator::new(api, planted.credentials(), scene.server.address, rng);
            let mut client = Client::new(scene.server.address, ATTACKER);
            for number in 0..requests / CLIENTS {
                if number % REPLANT_EVERY == 0 {
                    planted.replant(scene);
                }
                let (request, sent) = generator.request();
                let listen = sent.is_stream.then_some(LISTEN);
                let wrong = match runtime.block_on(client.send(request, listen)) {
                    Ok(answer) => {
                        answered.fetch_add(1, Ordering::Relaxed);
                        violation(planted, &sent, &answer)
                    }
                    // Some requests deserve nothing but a closed connection.
                    Err(reason) => {
                        *unanswered.lock().unwrap().entry(reason).or_default() += 1;
                        None
                    }
                };
                if let Some(wrong) = wrong {
                    let mut violations = violations.lock().unwrap();
                    violations.push((wrong, format!("client {n}, request {number}, {sent}")));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for n in 0..CLIENTS {
            scope.spawn(client(n));
        }
    });
    let (answered, unanswered) = (answered.into_inner(), unanswered.into_inner().unwrap());
    let mut violations = violations.into_inner().unwrap();
    let log = scene.server.log();
    let panics = log.lines().filter(|line| line.contains("panicked at"));
    let place = |line: &str| line.split("panicked at").last().unwrap_or_default().to_owned();
    violations.extend(panics.map(|line| (format!("panicked at{}", place(line)), String::new())));
    let wrong = violations.len();
    println!("attack fuzz: {answered} answered, {wrong} wrong, unanswered {unanswered:?}");
    assert!(violations.is_empty(), "KEYWARD_SEED={seed}\n{}", shown(&violations));
    assert!(answered > requests / 2, "most requests were not answered");
    let head = http::head("GET", "/readyz", None);
    let ready = http::send(scene.server.address, &head, None, Duration::from_secs(30)).unwrap();
    assert_eq!(ready.status, 200, "{ready:?}");
    planted.assert_readable_by_their_readers(&scene);
}
