//! serve: what a collector of traces is told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::sandbox::Sandbox;

/// What a client calls its own trace.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A collector that takes everything: where it is, and what it is sent.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            if sender.send(taken(stream.unwrap())).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

/// The head and the body of one request.
fn taken(mut stream: TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    (head, body)
}

fn has(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_collector_is_told_of_requests_and_of_nothing_that_clients_wrote() {
    let kw = Sandbox::new();
    let (url, told) = collector();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--json", "--otlp", &url];
    let server = kw.start(&[&arguments[..], &["--log-level", "info", "--log", "json"]].concat());
    let started: serde_json::Value = serde_json::from_str(&server.next_line()).unwrap();
    let address = started["address"].as_str().unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    write!(
        connection,
        "PUT /v1/stores/main/entries/canary-key?ttl=977 HTTP/1.1\r\nhost: {address}\r\n\
         x-request-id: request-77\r\ntraceparent: 00-{TRACE}-b7ad6b7169203331-01\r\n\
         authorization: Bearer canary-secret\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: 14\r\n\r\n\"canary-value\""
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let line = server.next_note();
    assert!(line.contains("answered") && !line.contains("\"span\""), "{line}");
    // What is left is told before it ends.
    server.terminate();
    assert_eq!(server.ended(), Some(0));

    let (head, body) = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    for part in [
        "keyward",
        "PUT /v1/stores/{store}/entries/{key}",
        "http.request.method",
        "http.route",
        "http.response.status_code",
        "request-77",
    ] {
        assert!(has(&body, part.as_bytes()), "{part}: {}", String::from_utf8_lossy(&body));
    }
    let trace: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&TRACE[2 * at..2 * at + 2], 16).unwrap()).collect();
    assert!(has(&body, &trace), "the client's own trace goes on");
    assert!(!has(&body, b"canary") && !has(&body, b"977"), "{}", String::from_utf8_lossy(&body));
}

#[test]
fn a_collector_that_is_not_there_holds_nobody_up() {
    let kw = Sandbox::new();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{gone}");
    let server = kw.start(&["serve", "--listen", "127.0.0.1:0", "--json", "--otlp", &url]);
    let started: serde_json::Value = serde_json::from_str(&server.next_line()).unwrap();
    let address = started["address"].as_str().unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.terminate();
    assert_eq!(server.ended(), Some(0));
    let told = kw.fails(2, &["serve", "--otlp", "collector:4318"]);
    assert!(told.contains("http://localhost:4318"), "{told}");
}
