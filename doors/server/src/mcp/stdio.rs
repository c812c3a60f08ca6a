//! MCP over standard input and output: a message a line, for one user of this machine.
//!
//! The stores are opened by the process itself, so that several of them, each for a client of its own,
//! work on one embedded store at the same time.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use keyward::Data;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, oneshot, watch};
use tokio::time::timeout;

use super::LocalUser;
use super::arguments::Sent;
use super::endpoint::UNREADABLE;
use super::handler::{Handler, Shared};
use super::local;
use super::skim::{Skim, refusal, too_long};
use crate::app::App;
use crate::auth::Identity;
use crate::config::Config;
use crate::http::request::message_bytes_max;
use crate::lifecycle::Lifecycle;
use crate::problem::Problem;
use crate::server::{StartError, keep_up};

/// How long the last words may take to be read.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

/// Answers one client, who writes to `input` and reads from `output`, as `user`, until the
/// input ends or `stop` comes. Then waits for calls under way, for as long as a stop may take, and writes
/// what has been gathered in memory. Who is not answered by then is told that the outcome is unknown.
///
/// Nothing of the configuration counts that is about listening, credentials or rates. Registries are run
/// when they are asked to, and neither on time nor after pushes; nor are their consumers told. Tasks of
/// workspaces are worked on, since somebody may wait for one; pages are not watched.
pub async fn serve_mcp(
    config: &Config,
    data: &Data,
    user: &LocalUser,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> std::result::Result<(), StartError> {
    let unopened = |problem: Problem| StartError::Stores(Box::new(problem));
    let lifecycle = Lifecycle::default();
    let (app, scribe) = App::open(config, data, None, lifecycle.clone()).await.map_err(unopened)?;
    let shared = Shared::new(app.clone(), config.mcp.fixtures).map_err(unopened)?;
    let who = Identity::local_user(local::caller(&app, user).map_err(unopened)?);
    let lines = Lines::new(input, output, &app, who);
    app.agreements().start_workers(&lifecycle);
    let (finish, finished) = oneshot::channel::<()>();
    let serving = async {
        let session = async {
            match Handler::new(&shared).serve(lines).await {
                Ok(session) => {
                    if let Err(error) = session.waiting().await {
                        tracing::error!(%error, "the session ended badly");
                    }
                }
                // Whoever hangs up before the first message wants nothing.
                Err(error) => tracing::debug!(%error, "no session was begun"),
            }
        };
        tokio::pin!(session);
        let ended = tokio::select! {
            () = session.as_mut() => true,
            () = stop => {
                // Nothing more is read then, and the session ends when what was read is answered.
                lifecycle.stop();
                let time_max = app.limits().drain_time_max + 3 * CLOSE_TIME_MAX;
                timeout(time_max, session).await.is_ok()
            }
        };
        if !ended {
            tracing::warn!("stopped before the last words were read");
            return drop(finish);
        }
        app.close_background().await;
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
    who: Identity,
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    line: Vec<u8>,
    line_bytes_max: usize,
    /// What is looked for in a line that is too long, while the rest of it is passed over.
    passing: Option<Skim>,
    /// What ends with the input: nobody is left to be told of changes. It also ends the input.
    lifecycle: Lifecycle,
    /// What was taken and is not answered yet.
    under_way: UnderWay,
    drain_time_max: Duration,
    /// The end of the input, which comes when nothing is under way.
    end: End,
}

/// How far the end of the input is.
enum End {
    Open,
    Coming(BoxFuture<'static, ()>),
    Reached,
}

/// The requests that were taken and are not answered yet.
#[derive(Debug, Clone, Default)]
struct UnderWay(Arc<watch::Sender<HashSet<RequestId>>>);

impl UnderWay {
    /// A message has come.
    fn took(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                self.0.send_if_modified(|ids| ids.insert(request.id.clone()));
            }
            // What is given up is not answered.
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(given_up) =
                    &notification.notification
                    && let Some(id) = &given_up.params.request_id
                {
                    self.remove(id);
                }
            }
            _ => {}
        }
    }

    /// A message was sent.
    fn sent(&self, message: &ServerJsonRpcMessage) {
        match message {
            ServerJsonRpcMessage::Response(answer) => self.remove(&answer.id),
            ServerJsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.remove(id);
                }
            }
            _ => {}
        }
    }

    fn remove(&self, id: &RequestId) {
        self.0.send_if_modified(|ids| ids.remove(id));
    }

    /// Waits until everything is answered. What is not in time is left.
    async fn finished(self, lifecycle: Lifecycle, time_max: Duration) {
        let mut ids = self.0.subscribe();
        // The sender lives as long as this does.
        if timeout(time_max, ids.wait_for(HashSet::is_empty)).await.is_err() {
            tracing::warn!("stopped before every call was answered");
            lifecycle.leave();
            // Who does not read what is written holds up nobody's end.
            let _ = timeout(CLOSE_TIME_MAX, ids.wait_for(HashSet::is_empty)).await;
        }
    }
}

/// What was read.
enum Line {
    Whole,
    /// With the `id` of the request that it was, if it was one.
    TooLong(Option<RequestId>),
    End,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    fn new(input: R, output: W, app: &App, who: Identity) -> Self {
        Self {
            who,
            input: BufReader::new(input),
            output: Arc::new(Mutex::new(output)),
            line: Vec::new(),
            line_bytes_max: message_bytes_max(app),
            passing: None,
            lifecycle: app.lifecycle().clone(),
            under_way: UnderWay::default(),
            drain_time_max: app.limits().drain_time_max,
            end: End::Open,
        }
    }

    /// Waits until what was read is answered. Given up and asked again, it goes on where it was.
    async fn finish(&mut self) {
        if let End::Open = self.end {
            self.lifecycle.stop();
            let finished =
                self.under_way.clone().finished(self.lifecycle.clone(), self.drain_time_max);
            self.end = End::Coming(Box::pin(finished));
        }
        if let End::Coming(finished) = &mut self.end {
            finished.await;
            self.end = End::Reached;
        }
    }

    /// Reads one line, unless the server stops.
    async fn read_on(&mut self) -> io::Result<Line> {
        let lifecycle = self.lifecycle.clone();
        tokio::select! {
            biased;
            () = lifecycle.stopping() => Ok(Line::End),
            line = self.read() => line,
        }
    }

    /// Reads one line. Given up and asked again, it goes on where it was: nothing is waited for
    /// between taking bytes and keeping them.
    async fn read(&mut self) -> io::Result<Line> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                // The last line need not end.
                return Ok(match (self.passing.take(), self.line.is_empty()) {
                    (Some(skim), _) => Line::TooLong(skim.id()),
                    (None, false) => Line::Whole,
                    (None, true) => Line::End,
                });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |at| at + 1);
            if self.passing.is_none() && self.line.len() + taken > self.line_bytes_max {
                let mut skim = Skim::default();
                skim.push(&std::mem::take(&mut self.line));
                self.passing = Some(skim);
            }
            match &mut self.passing {
                Some(skim) => skim.push(&available[..taken]),
                None => self.line.extend_from_slice(&available[..taken]),
            }
            self.input.consume(taken);
            if end.is_some() {
                return Ok(match self.passing.take() {
                    Some(skim) => Line::TooLong(skim.id()),
                    None => Line::Whole,
                });
            }
        }
    }
}

/// Says why a line is not taken, as the answer to the request that it was; whether that could be said.
async fn refuse<W: AsyncWrite + Unpin>(
    output: &Mutex<W>,
    why: String,
    id: Option<RequestId>,
) -> bool {
    write(output, &refusal(why, id)).await.is_ok()
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
        let (output, under_way) = (self.output.clone(), self.under_way.clone());
        async move {
            let written = write(&output, &message).await;
            under_way.sent(&message);
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.read_on().await {
                Ok(Line::Whole) => {}
                Ok(Line::TooLong(id)) => {
                    if !refuse(&self.output, too_long(self.line_bytes_max), id).await {
                        return None;
                    }
                    continue;
                }
                Ok(Line::End) => {
                    self.finish().await;
                    return None;
                }
                Err(error) => {
                    tracing::error!(%error, "standard input cannot be read");
                    self.finish().await;
                    return None;
                }
            }
            let line = Bytes::from(std::mem::take(&mut self.line));
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<ClientJsonRpcMessage>(&line) {
                Ok(mut message) => {
                    self.under_way.took(&message);
                    message.insert_extension(Sent(line));
                    message.insert_extension(self.who.for_new_act());
                    return Some(message);
                }
                Err(error) => {
                    tracing::debug!(%error, "a line is no message");
                    let id = Skim::id_of(&line);
                    // To answer what is no JSON could go on for ever, if it is an echo; a request is none.
                    let is_json = !(error.is_syntax() || error.is_eof());
                    let answers = is_json || id.is_some();
                    if answers && !refuse(&self.output, UNREADABLE.to_owned(), id).await {
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
