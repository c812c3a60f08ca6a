//! A server that acknowledges stale writes, and the doctor that finds it out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::sandbox::Sandbox;

/// One HTTP message: its head with the empty line, and its body.
fn message(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[start..].to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// A server in front of another one. To a commit that was refused because the version was stale, it gives the
/// answer of the last commit that was not.
fn lying(upstream: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (upstream, applied) = (upstream.to_owned(), Arc::new(Mutex::new(Vec::new())));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (upstream, applied) = (upstream.clone(), applied.clone());
            thread::spawn(move || relay(client.ok()?, &upstream, &applied));
        }
    });
    address
}

fn relay(client: TcpStream, upstream: &str, applied: &Mutex<Vec<u8>>) -> Option<()> {
    let server = TcpStream::connect(upstream).ok()?;
    let mut to_server = server.try_clone().ok()?;
    let mut to_client = client.try_clone().ok()?;
    let (mut requests, mut answers) = (BufReader::new(client), BufReader::new(server));
    loop {
        let (head, body) = message(&mut requests)?;
        to_server.write_all(&[head.as_bytes(), &body].concat()).ok()?;
        let (status, answer) = message(&mut answers)?;
        let mut answer = [status.as_bytes(), &answer].concat();
        // Not of those that expect a key to be absent.
        if head.contains("/commit ") && String::from_utf8_lossy(&body).contains(r#""version":""#) {
            let mut applied = applied.lock().unwrap();
            match status.contains(" 200 ") {
                true => applied.clone_from(&answer),
                false if !applied.is_empty() => answer.clone_from(&applied),
                false => {}
            }
        }
        to_client.write_all(&answer).ok()?;
    }
}

#[test]
fn a_server_that_acknowledges_stale_writes_gets_a_negative_verdict() {
    let kw = Sandbox::new();
    let server = kw.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let started: Value = serde_json::from_str(&server.next_line()).unwrap();
    let honest =
        started["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/');
    let (lying, honest) =
        (format!("keyward+http://{}/main", lying(honest)), format!("keyward+http://{honest}/main"));

    let told = kw.ok(&["-s", &honest, "doctor", "--probe"]);
    assert!(
        told.contains("verdict: this server keeps what the keyward+http engine promises\n"),
        "{told}"
    );
    assert!(told.contains("probed: compare-and-swap: 16 writers"), "{told}");

    let told = kw.run(&["-s", &lying, "doctor", "--probe"]).ended(10);
    assert!(told.contains("verdict: this server does not keep what"), "{told}");
    assert!(told.contains("not exactly one of several writers won"), "{told}");
    assert!(
        told.contains("void on this server: locks and fences, unique indexes, queues and jobs"),
        "{told}"
    );
    let json = kw.run(&["-s", &lying, "doctor", "--probe", "--json"]).ended(10);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["probe"], "broken");
    assert_eq!(json["voids"][0], "locks and fences");
    // Its keys are gone, also from the server that lies.
    assert_eq!(kw.ok(&["-s", &honest, "ls", "system:probe", "--text"]), "");
}
