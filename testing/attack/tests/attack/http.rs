//! One blocking request at a time, each on a connection of its own: for the bystander, whose times
//! must not depend on what else this process does.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The response to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// A request line with the headers every request has.
pub fn head(method: &str, path: &str, key: Option<&str>) -> String {
    let credential = key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"));
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{credential}")
}

/// Sends a request and reads the whole answer, within `patience`.
pub fn send(
    address: SocketAddr,
    head: &str,
    body: Option<&str>,
    patience: Duration,
) -> io::Result<Answer> {
    let rest = match body {
        Some(body) => {
            let length = body.len();
            format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        }
        None => "\r\n".to_owned(),
    };
    exchange(address, &format!("{head}connection: close\r\n{rest}"), patience)
}

/// Sends a request as it is and reads until the server closes the connection, within `patience`.
pub fn exchange(address: SocketAddr, request: &str, patience: Duration) -> io::Result<Answer> {
    let deadline = Instant::now() + patience;
    let mut connection = TcpStream::connect_timeout(&address, patience)?;
    connection.set_write_timeout(Some(patience))?;
    connection.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut buffer = [0; 64 * 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // How a read timeout is reported.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok(Answer { status: status.ok_or(ErrorKind::InvalidData)?, body: body.to_owned() })
}
