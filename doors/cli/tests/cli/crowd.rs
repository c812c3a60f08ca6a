//! serve: thousands who watch.

use std::io::{BufRead, BufReader, Write};
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
    let served = serve(&kw, &[]);
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
