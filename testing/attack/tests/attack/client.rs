//! Connections of attackers: raw ones, and ones that keep to HTTP.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Where attackers come from.
pub const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// How long an attacker waits for a connection or an answer.
const PATIENCE: Duration = Duration::from_secs(40);

/// The most that is read of one answer.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A connection from `source`. A small receive buffer lets the server notice early that nobody reads.
pub async fn connect(
    address: SocketAddr,
    source: Ipv4Addr,
    receive_buffer: Option<u32>,
) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    if let Some(bytes) = receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind((source, 0).into())?;
    timeout(PATIENCE, socket.connect(address)).await?
}

/// What came back for a request.
pub struct Answer {
    pub status: u16,
    /// Names and values, one header a line.
    pub headers: String,
    pub body: Bytes,
}

/// A client with one connection, which is opened again when the server has closed it.
pub struct Client {
    address: SocketAddr,
    source: Ipv4Addr,
    open: Option<(SendRequest<Full<Bytes>>, JoinHandle<()>)>,
}

impl Client {
    pub fn new(address: SocketAddr, source: Ipv4Addr) -> Self {
        Self { address, source, open: None }
    }

    /// Sends a request, and reads its answer: all of it, or what comes within `listen`.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        listen: Option<Duration>,
    ) -> Result<Answer, String> {
        let answer = timeout(PATIENCE, self.begin(request)).await.map_err(|_| "no answer")??;
        let status = answer.status().as_u16();
        let headers = answer
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())))
            .collect();
        let mut body = Vec::new();
        let reading = read(answer.into_body(), &mut body);
        match timeout(listen.unwrap_or(PATIENCE), reading).await {
            Ok(Ok(())) => {}
            // A stream never ends, and some answers are cut off on purpose.
            _ => self.close(),
        }
        Ok(Answer { status, headers, body: body.into() })
    }

    async fn begin(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        if self.open.as_ref().is_none_or(|(sender, _)| sender.is_closed()) {
            let connection = connect(self.address, self.source, None).await;
            let connection = TokioIo::new(connection.map_err(|error| error.to_string())?);
            let (sender, driver) =
                handshake(connection).await.map_err(|error| error.to_string())?;
            self.close();
            let driver = tokio::spawn(async move {
                let _ = driver.await;
            });
            self.open = Some((sender, driver));
        }
        let Some((sender, _)) = &mut self.open else {
            return Err("no connection".to_owned());
        };
        let ready = sender.ready().await;
        let answer = match ready {
            Ok(()) => sender.send_request(request).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| {
            self.close();
            error.to_string()
        })
    }

    /// Hangs up.
    fn close(&mut self) {
        if let Some((_, driver)) = self.open.take() {
            driver.abort();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

async fn read(mut body: Incoming, into: &mut Vec<u8>) -> Result<(), hyper::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            into.extend_from_slice(&data);
        }
        if into.len() > ANSWER_BYTES_MAX {
            break;
        }
    }
    Ok(())
}
