//! MCP over standard input and output: a message a line, for the local user.
//!
//! The stores are opened by the process itself, so that several of them, each for a client of its own,
//! work on one embedded store at the same time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use keyward::Data;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

use super::arguments::Sent;
use super::handler::{Handler, Shared};
use crate::app::App;
use crate::auth::Identity;
use crate::config::Config;
use crate::lifecycle::Lifecycle;
use crate::problem::Problem;
use crate::server::{StartError, keep_up};

/// How long the last words may take to be read.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

/// Answers one client, who writes to `input` and reads from `output`, as the local user, until the
/// input ends or `stop` comes. Then waits for calls under way, and writes what has been gathered in
/// memory.
///
/// Nothing of the configuration counts that is about listening, credentials or rates.
pub async fn serve_mcp(
    config: &Config,
    data: &Data,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let unopened = |problem: Problem| StartError::Stores(Box::new(problem));
    let lifecycle = Lifecycle::new();
    let (app, scribe) = App::open(config, data, None, lifecycle.clone()).await.map_err(unopened)?;
    let shared = Shared::new(app.clone(), config.mcp.fixtures).map_err(unopened)?;
    let lines = Lines::new(input, output, app.limits().body_bytes_max, lifecycle.clone());
    let (finish, finished) = oneshot::channel::<()>();
    let serving = async {
        match Handler::new(&shared).serve(lines).await {
            Ok(session) => {
                let given_up = session.cancellation_token();
                let ended = session.waiting();
                tokio::pin!(ended);
                let ended = tokio::select! {
                    ended = ended.as_mut() => ended,
                    () = stop => {
                        lifecycle.stop();
                        given_up.cancel();
                        match timeout(app.limits().drain_time_max, ended).await {
                            Ok(ended) => ended,
                            Err(_) => {
                                tracing::warn!("stopped before every call was answered");
                                return drop(finish);
                            }
                        }
                    }
                };
                if let Err(error) = ended {
                    tracing::error!(%error, "the session ended badly");
                }
            }
            // Whoever hangs up before the first message wants nothing.
            Err(error) => tracing::debug!(%error, "no session was begun"),
        }
        let settled = app.stores().settled();
        if timeout(app.limits().drain_time_max, settled).await.is_err() {
            tracing::warn!("stopped before every line was left: leases end what is still there");
        }
        drop(finish);
    };
    let upkeep = keep_up(&app, scribe, async {
        let _ = finished.await;
    });
    tokio::join!(serving, upkeep);
    Ok(())
}

/// Messages as lines. Each that comes carries itself, and who sends it.
struct Lines<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    line: Vec<u8>,
    line_bytes_max: usize,
    /// Whether the rest of a line that was too long is passed over.
    passing: bool,
    /// What ends with the input: nobody is left to be told of changes.
    lifecycle: Lifecycle,
}

/// What was read.
enum Line {
    Whole,
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    fn new(input: R, output: W, line_bytes_max: usize, lifecycle: Lifecycle) -> Self {
        let (input, output) = (BufReader::new(input), Arc::new(Mutex::new(output)));
        Self { input, output, line: Vec::new(), line_bytes_max, passing: false, lifecycle }
    }

    /// Reads one line. Given up and asked again, it goes on where it was: nothing is waited for
    /// between taking bytes and keeping them.
    async fn read(&mut self) -> io::Result<Line> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                // The last line need not end.
                return Ok(match (std::mem::take(&mut self.passing), self.line.is_empty()) {
                    (true, _) => Line::TooLong,
                    (false, false) => Line::Whole,
                    (false, true) => Line::End,
                });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |at| at + 1);
            let fits = self.line.len() + taken <= self.line_bytes_max;
            if !self.passing && fits {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(taken);
            match (self.passing, fits, end) {
                (false, true, Some(_)) => return Ok(Line::Whole),
                (_, _, None) if !fits => {
                    self.passing = true;
                    self.line.clear();
                }
                (true, _, Some(_)) | (false, false, Some(_)) => {
                    self.passing = false;
                    self.line.clear();
                    return Ok(Line::TooLong);
                }
                (_, _, None) => {}
            }
        }
    }
}

/// Says why a line is not taken; whether that could be said.
async fn refuse<W: AsyncWrite + Unpin>(output: &Mutex<W>, why: &'static str) -> bool {
    let refusal = ServerJsonRpcMessage::error(ErrorData::invalid_request(why, None), None);
    write(output, &refusal).await.is_ok()
}

async fn write<W: AsyncWrite + Unpin>(
    output: &Mutex<W>,
    message: &ServerJsonRpcMessage,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move { write(&output, &message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.read().await {
                Ok(Line::Whole) => {}
                Ok(Line::TooLong) => {
                    if !refuse(&self.output, "the message is too long").await {
                        return None;
                    }
                    continue;
                }
                Ok(Line::End) => {
                    self.lifecycle.stop();
                    return None;
                }
                Err(error) => {
                    tracing::error!(%error, "standard input cannot be read");
                    self.lifecycle.stop();
                    return None;
                }
            }
            let line = Bytes::from(std::mem::take(&mut self.line));
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<ClientJsonRpcMessage>(&line) {
                Ok(mut message) => {
                    message.insert_extension(Sent(line));
                    message.insert_extension(Identity::local());
                    return Some(message);
                }
                // To answer what is no JSON could go on for ever, if it is an echo.
                Err(error) if error.is_syntax() || error.is_eof() => {
                    tracing::debug!(%error, "a line is no JSON");
                }
                Err(error) => {
                    tracing::debug!(%error, "a line is no message");
                    if !refuse(&self.output, "this is no message of the protocol").await {
                        return None;
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Who does not read what is written holds up nobody's end.
        let flushed = timeout(CLOSE_TIME_MAX, async { self.output.lock().await.flush().await });
        flushed.await.unwrap_or(Ok(()))
    }
}
