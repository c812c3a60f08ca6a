//! A server that answers as a test says, for answers that workerd does not give.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyward_cloudflare_kv::{Options, Token};
use serde_json::Value;

/// A request, as far as an answer depends on it.
pub struct Asked {
    /// The method and what follows the namespace in the path.
    pub what: String,
    pub body: Value,
}

/// The status and the body of an answer.
pub type Answer = (u16, Value);

pub struct Scripted {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Scripted {
    pub fn start(answer: impl Fn(Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let (answer, counted) = (Arc::new(answer), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, counted) = (answer.clone(), counted.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &*answer, &counted));
            }
        });
        Self { address, requests }
    }

    pub fn options(&self) -> Options {
        Options {
            api: format!("http://{}", self.address),
            token: Some(Token::new("any").unwrap()),
            ..Options::new("a", "b")
        }
    }

    /// How many requests were answered.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Answers one request, and closes the connection.
fn serve(stream: TcpStream, answer: &dyn Fn(Asked) -> Answer, counted: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split([' ', '?']);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return };
    let path = path.strip_prefix("/accounts/a/storage/kv/namespaces/b").unwrap();
    let what = format!("{method} {path}");
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        if header.trim().is_empty() {
            break;
        }
        if let Some(bytes) = header.to_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (status, body) = answer(Asked { what, body });
    counted.fetch_add(1, Ordering::SeqCst);
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    reader.get_mut().write_all((head + &body).as_bytes()).unwrap();
}
