//! One message in the hands of a command.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use keyward::Json;
use keyward::queue::{Delivery, Failure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::tail::Tail;
use crate::queues::millis;

/// How long a command has from SIGTERM to SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a command's output is read after its end. What it printed is there by then; only what it
/// left running can keep its output open.
const READ_ON: Duration = Duration::from_secs(1);

/// Runs a command for each message.
pub struct Handler {
    pub exec: String,
    pub queue: String,
    pub result_bytes_max: usize,
    pub lines: mpsc::Sender<Line>,
}

/// What came of one message.
#[derive(Debug, Serialize)]
pub struct Line {
    pub id: String,
    pub attempt: u32,
    pub error: Option<String>,
    pub ms: u64,
}

impl Handler {
    pub async fn handle(&self, delivery: Delivery) -> Result<Option<Json>, Failure> {
        let begun = Instant::now();
        let outcome = self.run(&delivery).await;
        let line = Line {
            id: delivery.id().to_owned(),
            attempt: delivery.number(),
            error: outcome.as_ref().err().map(|failure| failure.reason().to_owned()),
            ms: millis(begun.elapsed()),
        };
        // Nobody reads any more: the work is done all the same.
        let _ = self.lines.send(line).await;
        outcome
    }

    async fn run(&self, delivery: &Delivery) -> Result<Option<Json>, Failure> {
        let started = Group::start(&self.exec, &self.queue, delivery);
        let mut group =
            started.map_err(|error| Failure::new(format!("cannot start the command: {error}")))?;
        let worked = tokio::select! {
            biased;
            worked = group.work(delivery.payload(), self.result_bytes_max) => worked,
            () = delivery.lost() => {
                group.end().await;
                return Err(Failure::new("ended: the message is no longer in hand"));
            }
        };
        let Worked { status, stdout, stderr } =
            worked.map_err(|error| Failure::new(format!("the command was lost: {error}")))?;
        if !status.success() {
            let said = stderr.text();
            let said = if said.is_empty() { "it said nothing".to_owned() } else { said };
            return Err(Failure::new(format!("{}: {said}", ending(status))));
        }
        let Some(stdout) = stdout else {
            let most = self.result_bytes_max;
            return Err(Failure::new(format!("it printed more than {most} bytes")));
        };
        Ok(result(&stdout))
    }
}

/// What a command printed, as JSON: its own, or a text.
fn result(stdout: &[u8]) -> Option<Json> {
    let text = String::from_utf8_lossy(stdout);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Json::parse(text.to_owned()).or_else(|_| Json::from_value(text)).ok()
}

fn ending(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

struct Worked {
    status: ExitStatus,
    /// `None` if it was too much.
    stdout: Option<Vec<u8>>,
    stderr: Tail,
}

/// A command and what it starts, killed when dropped.
struct Group {
    child: Child,
    id: Option<Pid>,
}

impl Group {
    fn start(exec: &str, queue: &str, delivery: &Delivery) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", exec])
            .env("KEYWARD_QUEUE", queue)
            .env("KEYWARD_ID", delivery.id())
            .env("KEYWARD_ATTEMPT", delivery.number().to_string())
            .env("KEYWARD_VERSION", delivery.version().unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: Ctrl-C on the terminal is for the worker, and what the command
            // starts ends with it.
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, id })
    }

    /// Gives the command its message, and waits for its end.
    async fn work(&mut self, payload: &Json, stdout_bytes_max: usize) -> io::Result<Worked> {
        let stdin = self.child.stdin.take();
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let mut printed = Vec::new();
        let mut too_much = false;
        let mut said = Tail::default();
        let writing = feed(stdin, payload);
        let reading = async {
            let Some(mut stdout) = stdout else { return Ok(()) };
            let mut buffer = vec![0; 16 << 10];
            loop {
                match stdout.read(&mut buffer).await? {
                    0 => return io::Result::Ok(()),
                    read if printed.len() + read > stdout_bytes_max => too_much = true,
                    read => printed.extend_from_slice(&buffer[..read]),
                }
            }
        };
        let listening = async {
            let Some(mut stderr) = stderr else { return Ok(()) };
            let mut buffer = vec![0; 4 << 10];
            loop {
                match stderr.read(&mut buffer).await? {
                    0 => return io::Result::Ok(()),
                    read => {
                        said.push(&buffer[..read]);
                        // What the command says is also for whoever runs the worker.
                        let _ = io::Write::write_all(&mut io::stderr(), &buffer[..read]);
                    }
                }
            }
        };
        let status = {
            let mut piping = std::pin::pin!(async {
                let (fed, read, listened) = tokio::join!(writing, reading, listening);
                fed.and(read).and(listened)
            });
            let mut piped = None;
            let status = loop {
                tokio::select! {
                    status = self.child.wait() => break status?,
                    done = &mut piping, if piped.is_none() => piped = Some(done),
                }
            };
            // It has ended and is reaped: its number may be another's from now on.
            self.id = None;
            let piped = match piped {
                Some(piped) => piped,
                None => tokio::time::timeout(READ_ON, piping).await.unwrap_or(Ok(())),
            };
            piped?;
            status
        };
        Ok(Worked { status, stdout: (!too_much).then_some(printed), stderr: said })
    }

    /// Asks it to end, and then makes it.
    async fn end(&mut self) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_ok() {
            self.id = None;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // One that has just ended needs no signal.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

async fn feed(stdin: Option<ChildStdin>, payload: &Json) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    let fed = async {
        stdin.write_all(payload.as_bytes()).await?;
        stdin.write_all(b"\n").await?;
        stdin.shutdown().await
    };
    match fed.await {
        // A command need not read its message.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        fed => fed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_prints_is_json_or_a_text() {
        let printed = |text: &str| result(text.as_bytes()).map(|json| json.to_string());
        assert_eq!(printed(" \n"), None);
        assert_eq!(printed("42\n").as_deref(), Some("42"));
        assert_eq!(printed("{ \"a\": 1.50 }\n").as_deref(), Some("{\"a\":1.50}"));
        assert_eq!(printed("all well\n").as_deref(), Some("\"all well\""));
    }
}
