//! serve: started, used, stopped and killed as a process.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fastrand::Rng;

use crate::sandbox::{Running, Sandbox};

/// A server that was started, and where it listens.
pub struct Served {
    pub process: Running,
    pub address: String,
}

pub fn serve(kw: &Sandbox, arguments: &[&str]) -> Served {
    let arguments = [&["serve", "--listen", "127.0.0.1:0", "--json"], arguments].concat();
    started(kw.start(&arguments))
}

/// Waits until a server that was started listens.
pub fn started(process: Running) -> Served {
    let started: serde_json::Value = serde_json::from_str(&process.next_line()).unwrap();
    Served { process, address: started["address"].as_str().unwrap().to_owned() }
}

/// Sends one request on a connection of its own, and gives status and body of the answer.
pub fn send(address: &str, head: &str, body: &str) -> io::Result<(u16, String)> {
    let mut connection = TcpStream::connect(address)?;
    write!(
        connection,
        "{head}host: {address}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((status.ok_or(io::ErrorKind::InvalidData)?, body.to_owned()))
}

fn get(address: &str, key: &str) -> (u16, String) {
    let head = format!("GET /v1/stores/main/entries/{key} HTTP/1.1\r\n");
    send(address, &head, "").unwrap()
}

#[test]
fn it_serves_the_store_that_others_use() {
    let kw = Sandbox::new();
    let served = serve(&kw, &[]);
    kw.ok(&["put", "user:7:name", "\"Ada\""]);
    assert_eq!(get(&served.address, "user:7:name"), (200, "\"Ada\"".to_owned()));
    let put = "PUT /v1/stores/main/entries/user:8:name HTTP/1.1\r\n";
    assert_eq!(send(&served.address, put, "\"Lin\"").unwrap().0, 200);
    assert_eq!(kw.ok(&["get", "user:8:name"]).trim(), "\"Lin\"");
    served.process.terminate();
    assert_eq!(served.process.ended(), Some(0));
}

#[test]
fn the_demo_is_filled_once() {
    let kw = Sandbox::new();
    for _ in 0..2 {
        let served = serve(&kw, &["--demo", "-s", "embedded:./demo"]);
        let list = "GET /v1/stores/demo/entries?prefix=user: HTTP/1.1\r\n";
        let (status, listed) = send(&served.address, list, "").unwrap();
        assert_eq!(status, 200);
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["items"].as_array().unwrap().len(), 9, "{listed}");
        served.process.interrupt();
        assert_eq!(served.process.ended(), Some(0));
    }
}

#[test]
fn what_cannot_be_served_is_told() {
    let kw = Sandbox::new();
    let served = serve(&kw, &[]);
    let taken = kw.fails(7, &["serve", "--listen", &served.address]);
    assert!(taken.contains("cannot listen") && taken.contains("--listen 127.0.0.1:0"), "{taken}");
    let open = kw.fails(7, &["serve", "--listen", "0.0.0.0:0"]);
    assert!(open.contains("other machines"), "{open}");
    let level = kw.fails(2, &["serve", "--log-level", "=="]);
    assert!(level.contains("info"), "{level}");
}

/// How many writers there are at a time.
const WRITERS: usize = 4;

/// How many entries of earlier rounds are read again after each kill.
const OLD_READ: usize = 20;

/// What one writer has done: its keys and its counter.
#[derive(Default)]
struct Written {
    /// Everything that was acknowledged.
    acknowledged: usize,
    /// How much of it was read again after a kill.
    read_again: usize,
}

impl Written {
    /// Adds one to the writer's counter and writes an entry beside it, again and again, until the
    /// server does not answer. What was not answered is sent again first: with the same key.
    fn go_on(&mut self, writer: usize, address: &str, done: &AtomicUsize) {
        loop {
            let n = self.acknowledged;
            let body = format!(
                r#"{{"writes":[{{"add":{{"key":"count:{writer}","amount":1}}}},{{"put":{{"key":"entry:{writer}:{n}","value":{n}}}}}]}}"#
            );
            let head = format!(
                "POST /v1/stores/main/commit HTTP/1.1\r\nidempotency-key: {writer}-{n}\r\n"
            );
            match send(address, &head, &body) {
                Ok((200, _)) => self.acknowledged += 1,
                Ok((status, told)) => panic!("{status}: {told}"),
                Err(_) => return,
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A server is killed under load, again and again: what was acknowledged is there, and what is sent
/// again with the same key is done once.
#[test]
#[allow(clippy::print_stdout, reason = "a failure should tell its seed")]
fn a_server_that_is_killed_loses_nothing_and_does_nothing_twice() {
    let cycles = if std::env::var_os("KEYWARD_DEEP").is_some() { 300 } else { 5 };
    let seed = std::env::var("KEYWARD_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("KEYWARD_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let kw = Sandbox::new();
    let mut writers: BTreeMap<usize, Written> =
        (0..WRITERS).map(|writer| (writer, Written::default())).collect();
    for cycle in 0..cycles {
        let served = serve(&kw, &[]);
        let (done, enough) = (AtomicUsize::new(0), rng.usize(1..60));
        thread::scope(|scope| {
            let mut running = Vec::new();
            for (writer, written) in &mut writers {
                let (address, done) = (&served.address, &done);
                running.push(scope.spawn(move || written.go_on(*writer, address, done)));
            }
            while done.load(Ordering::Relaxed) < enough
                && running.iter().any(|writer| !writer.is_finished())
            {
                thread::yield_now();
            }
            served.process.kill();
        });
        let served = serve(&kw, &[]);
        for (writer, written) in &mut writers {
            let count: usize = match get(&served.address, &format!("count:{writer}")) {
                (200, count) => count.parse().unwrap(),
                (404, _) => 0,
                told => panic!("{told:?}"),
            };
            // The last one may have been done without having been answered.
            let known = written.acknowledged..=written.acknowledged + 1;
            assert!(known.contains(&count), "cycle {cycle}: {count} of {known:?}");
            let last = get(&served.address, &format!("entry:{writer}:{}", written.acknowledged));
            assert_eq!(last.0 == 200, count > written.acknowledged, "cycle {cycle}");
            // What is new, and a few of the others; after the last kill, everything.
            let acknowledged = written.acknowledged;
            let old = (0..OLD_READ.min(acknowledged)).map(|_| rng.usize(..acknowledged));
            let new = if cycle + 1 == cycles { 0 } else { written.read_again };
            for n in (new..acknowledged).chain(old) {
                let entry = get(&served.address, &format!("entry:{writer}:{n}"));
                assert_eq!(entry, (200, n.to_string()), "cycle {cycle}");
            }
            written.read_again = acknowledged;
        }
        served.process.terminate();
        assert_eq!(served.process.ended(), Some(0));
    }
}
