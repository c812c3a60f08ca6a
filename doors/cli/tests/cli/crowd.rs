//! serve: thousands who watch, hundreds who do not read, and more requests than there is room for.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::sandbox::Sandbox;
use crate::serving::{send, serve};

const WATCHERS: usize = 5_000;
const MEMORY_BYTES_MAX: u64 = 512 * 1_024 * 1_024;
/// For a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

struct Watcher(BufReader<TcpStream>);

impl Watcher {
    fn new(address: &str) -> Self {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let request =
            format!("GET /v1/stores/main/watch?prefix=user: HTTP/1.1\r\nhost: {address}\r\n\r\n");
        connection.write_all(request.as_bytes()).unwrap();
        Self(BufReader::with_capacity(512, connection))
    }

    /// Reads on until a line says this.
    fn told(&mut self, what: &str) -> String {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the watch ended");
        }
        line
    }
}

#[test]
fn five_thousand_watchers_are_held_in_little_memory_and_all_told() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let kw = Sandbox::new();
    // All of them come from one address.
    let served = serve(&kw, &["--connections-per-address", "10000"]);
    let mut watchers: Vec<_> = (0..WATCHERS).map(|_| Watcher::new(&served.address)).collect();
    for watcher in &mut watchers {
        watcher.told("event: reached");
    }
    let bytes = served.process.resident_bytes();
    assert!(bytes <= MEMORY_BYTES_MAX, "{WATCHERS} watchers take {bytes} bytes");

    let put = "PUT /v1/stores/main/entries/user:7:name HTTP/1.1\r\n";
    assert_eq!(send(&served.address, put, "1").unwrap().0, 200);
    for watcher in &mut watchers {
        watcher.told("event: changed");
        assert!(watcher.told("data:").contains(r#""user:7:name""#));
    }
    let bytes = served.process.resident_bytes();
    assert!(bytes <= MEMORY_BYTES_MAX, "{WATCHERS} watchers take {bytes} bytes");
    served.process.terminate();
    assert_eq!(served.process.ended(), Some(0));
}

#[test]
fn hundreds_of_refusals_are_a_few_lines_of_the_log() {
    let kw = Sandbox::new();
    kw.write("keyward.toml", "[server.limits]\nrequests_max = 1\n");
    let served = serve(&kw, &["--log", "json", "--log-level", "info"]);
    let mut waiting = TcpStream::connect(&served.address).unwrap();
    let body = r#"{"wait_ms":25000}"#;
    write!(
        waiting,
        "POST /v1/stores/main/queues/q/claim HTTP/1.1\r\nhost: {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    )
    .unwrap();
    // What tells how the server is needs no slot.
    let metrics = || send(&served.address, "GET /metrics HTTP/1.1\r\n", "").unwrap().1;
    while !metrics().contains("keyward_claims_waiting 1") {}
    let stores = || send(&served.address, "GET /v1/stores HTTP/1.1\r\n", "").unwrap().0;
    let refused = (0..300).filter(|_| stores() == 503).count();
    served.process.terminate();
    let notes: Vec<_> = std::iter::from_fn(|| served.process.note()).collect();
    let overloaded = notes.iter().filter(|note| note.contains("overloaded")).count();
    // The claim may end before the last request comes on a busy machine.
    assert!(refused > 100 && overloaded < 30, "{overloaded} lines for {refused} refusals");
    let summed_up = |note: &&String| note.contains("more requests were refused: overloaded");
    assert!(notes.iter().find(summed_up).is_some(), "{notes:?}");
    assert_eq!(served.process.ended(), Some(0));
}

const UNREADING: usize = 300;
const COMMITS: usize = 1_000;
/// What all commits are as events, for one watcher.
const EVENT_BYTES: usize = COMMITS * 20 * 500;

/// How many watches a server has open.
fn open_watches(address: &str) -> usize {
    let (status, metrics) = send(address, "GET /metrics HTTP/1.1\r\n", "").unwrap();
    assert_eq!(status, 200);
    let line = metrics.lines().find_map(|line| line.strip_prefix("keyward_watches "));
    line.unwrap().parse().unwrap()
}

#[test]
fn watchers_that_do_not_read_are_held_in_little_memory_and_closed() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let kw = Sandbox::new();
    let served = serve(&kw, &[]);
    let mut watchers: Vec<_> = (0..UNREADING).map(|_| Watcher::new(&served.address)).collect();
    for watcher in &mut watchers {
        watcher.told("event: reached");
    }
    let before = served.process.resident_bytes();
    for n in 0..COMMITS {
        let key = |m| format!("user:{m}:{}", "x".repeat(500));
        let writes = (0..20).map(|m| format!(r#"{{"put":{{"key":"{}","value":{n}}}}}"#, key(m)));
        let body = format!(r#"{{"writes":[{}]}}"#, writes.collect::<Vec<_>>().join(","));
        let commit = "POST /v1/stores/main/commit HTTP/1.1\r\n";
        assert_eq!(send(&served.address, commit, &body).unwrap().0, 200);
    }
    let grown = served.process.resident_bytes().saturating_sub(before);
    assert!(
        grown <= 128 * 1_024 * 1_024,
        "{UNREADING} watchers that do not read took {grown} bytes"
    );
    let began = std::time::Instant::now();
    while open_watches(&served.address) > 0 {
        assert!(began.elapsed() < PATIENCE, "watches that are not read stay open");
        std::thread::park_timeout(Duration::from_millis(200));
    }
    for Watcher(mut connection) in watchers {
        let (mut held, mut piece) = (0, [0; 64 * 1_024]);
        loop {
            match connection.read(&mut piece) {
                Ok(0) => break,
                Ok(more) => held += more,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(held < EVENT_BYTES / 4, "{held} bytes were held for one watcher");
    }
    served.process.terminate();
    assert_eq!(served.process.ended(), Some(0));
}
