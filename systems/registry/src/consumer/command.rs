//! A command that is run for each change.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command as Process};

use super::{Change, shown};

/// So much of what a command says at its end is told.
const TOLD_BYTES_MAX: usize = 2_048;
/// How long what a command says is read after its end. What it said is there by then; only what it left
/// running can keep this open.
const READ_ON: Duration = Duration::from_secs(1);

/// A program with its arguments; no shell is between.
#[derive(Debug, Clone)]
pub(super) struct Command {
    pub words: Vec<String>,
    pub timeout: Duration,
}

impl Command {
    /// Runs the command with the change as JSON on its standard input. Its standard output is not
    /// read; the end of what it says on standard error is told if it fails.
    ///
    /// When the time is over, or the future is dropped, the command and all that it started in its
    /// group of processes are killed.
    pub async fn tell(&self, change: &Change) -> Result<(), String> {
        let input = serde_json::to_vec(change).map_err(|error| error.to_string())?;
        let mut group = Group::start(&self.words, change)
            .map_err(|error| format!("the command cannot be started: {error}"))?;
        let worked = tokio::time::timeout(self.timeout, group.work(&input)).await;
        let Ok(worked) = worked else {
            group.kill();
            return Err(format!("took longer than {} ms, and was ended", self.timeout.as_millis()));
        };
        let (status, said) = worked.map_err(|error| format!("the command was lost: {error}"))?;
        if status.success() {
            return Ok(());
        }
        let said = shown(&said.text());
        let said = if said.is_empty() { "it said nothing".to_owned() } else { said };
        Err(format!("{}: {said}", ending(status)))
    }
}

fn ending(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

/// A command and what it starts, killed when dropped.
struct Group {
    child: Child,
    id: Option<Pid>,
}

impl Group {
    fn start(words: &[String], change: &Change) -> io::Result<Self> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it has no program"))?;
        let child = Process::new(program)
            .args(arguments)
            .env("KEYWARD_REGISTRY", &change.registry)
            .env("KEYWARD_OPERATION", change.operation.as_str())
            .env("KEYWARD_POLICY", &change.policy_name)
            .env("KEYWARD_SHA", &change.sha)
            .env("KEYWARD_PATH", &change.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A group of its own: what the command starts ends with it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, id })
    }

    /// Gives the command its input, and waits for its end.
    async fn work(&mut self, input: &[u8]) -> io::Result<(ExitStatus, Tail)> {
        let (stdin, stderr) = (self.child.stdin.take(), self.child.stderr.take());
        let mut said = Tail::default();
        let status = {
            let mut piping = std::pin::pin!(async {
                let listening = async {
                    let Some(mut stderr) = stderr else { return Ok(()) };
                    let mut buffer = vec![0; 4 << 10];
                    loop {
                        match stderr.read(&mut buffer).await? {
                            0 => return io::Result::Ok(()),
                            read => said.push(&buffer[..read]),
                        }
                    }
                };
                let (fed, listened) = tokio::join!(feed(stdin, input), listening);
                fed.and(listened)
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
            match piped {
                Some(piped) => piped?,
                None => tokio::time::timeout(READ_ON, piping).await.unwrap_or(Ok(()))?,
            }
            status
        };
        Ok((status, said))
    }

    fn kill(&mut self) {
        if let Some(id) = self.id.take() {
            // One that has just ended needs no signal.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    let fed = async {
        stdin.write_all(input).await?;
        stdin.write_all(b"\n").await?;
        stdin.shutdown().await
    };
    match fed.await {
        // A command need not read its input.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        fed => fed,
    }
}

/// The last bytes of what a command says.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let surplus = self.0.len().saturating_sub(TOLD_BYTES_MAX);
        self.0.drain(..surplus);
    }

    /// The text, without what of a character was cut off at its beginning.
    fn text(&self) -> String {
        let begin = self.0.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[begin..]).into_owned()
    }
}
