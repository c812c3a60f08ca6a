use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

use crate::wire::{Answer, Request};
use crate::{Error, Extracted, Format, Limits, Result};

const TIME_MAX: Duration = Duration::from_secs(60);
const MEMORY_BYTES_MAX: u64 = 512 << 20;
const CHILDREN_MAX: usize = 2;
/// Has mimalloc reserve nothing in advance, of which the child could take more than its limit. Other
/// allocators do not look at it.
const UNRESERVED: [&str; 2] = ["MIMALLOC_ARENA_RESERVE", "0"];
/// How much of what the child complains of is read.
const COMPLAINT_BYTES_MAX: u64 = 4 << 10;

/// Reads documents in other processes, so that a document can cost only so much time and memory,
/// whatever is in it.
///
/// The program must call [`serve_sandboxed`](crate::serve_sandboxed). It is started once for each
/// document, with nothing of this process's environment. Clones share the bound on how many run at
/// once.
///
/// ```no_run
/// # async fn example(bytes: bytes::Bytes) -> Result<(), Box<dyn std::error::Error>> {
/// use keyward_extract::{Format, Sandbox};
///
/// let sandbox = Sandbox::new(std::env::current_exe()?).args(["extract-one"]);
/// let format = Format::detect(&bytes, None, Some("agreement.pdf"))?;
/// let extracted = sandbox.extract(bytes, format).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Sandbox {
    program: PathBuf,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    limits: Limits,
    time_max: Duration,
    memory_bytes_max: u64,
    children: Arc<Semaphore>,
}

impl Sandbox {
    /// A sandbox that runs this program.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            environment: vec![UNRESERVED.map(OsString::from).into()],
            limits: Limits::default(),
            time_max: TIME_MAX,
            memory_bytes_max: MEMORY_BYTES_MAX,
            children: Arc::new(Semaphore::new(CHILDREN_MAX)),
        }
    }

    /// The arguments of the program.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// A variable in the environment of the program, which has nothing of this process's.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The limits on documents.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a document may take, a minute unless set. The child's time of the processor is
    /// limited to the same, rounded up to seconds.
    pub fn time_max(mut self, time_max: Duration) -> Self {
        self.time_max = time_max;
        self
    }

    /// How much memory the child may take for the document, 512 MiB unless set.
    pub fn memory_bytes_max(mut self, memory_bytes_max: u64) -> Self {
        self.memory_bytes_max = memory_bytes_max;
        self
    }

    /// How many documents are read at once, 2 unless set; others wait. At least one.
    pub fn children_max(mut self, children_max: usize) -> Self {
        self.children = Arc::new(Semaphore::new(children_max.max(1)));
        self
    }

    /// Reads a document in a child process.
    ///
    /// Waiting for other documents is not counted as time. A dropped future kills its child.
    pub async fn extract(&self, bytes: Bytes, format: Format) -> Result<Extracted> {
        if bytes.is_empty() {
            return Err(Error::EmptyFile);
        }
        if bytes.len() > self.limits.bytes_max {
            return Err(Error::too_large("its size in bytes", self.limits.bytes_max));
        }
        let permit = self.children.acquire().await;
        let _permit = permit.map_err(|error| failed(&error.to_string()))?;
        let child = self.spawn()?;
        let outcome =
            tokio::time::timeout(self.time_max, self.converse(child, bytes, format)).await;
        // The child was moved into the conversation, and is killed when that is dropped.
        outcome.unwrap_or(Err(Error::TookTooLong { time_max: self.time_max }))
    }

    fn spawn(&self) -> Result<Child> {
        Command::new(&self.program)
            .args(&self.args)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                failed(&format!("{} cannot be started ({error})", self.program.display()))
            })
    }

    async fn converse(&self, mut child: Child, bytes: Bytes, format: Format) -> Result<Extracted> {
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed("it has no pipes"));
        };
        let request = Request {
            format,
            limits: self.limits,
            memory_bytes_max: self.memory_bytes_max,
            cpu_seconds_max: self.time_max.as_secs().saturating_add(1),
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        };
        let mut line = serde_json::to_vec(&request).map_err(|error| failed(&error.to_string()))?;
        line.push(b'\n');
        let write = async {
            // A child that died reads no more; how it ended says why.
            let _ = stdin.write_all(&line).await;
            let _ = stdin.write_all(&bytes).await;
            drop(stdin);
        };
        // JSON writes a letter in at most six bytes.
        let answer_bytes_max =
            self.limits.text_bytes_max.saturating_mul(6).saturating_add(64 << 10);
        let answer_bytes_max = u64::try_from(answer_bytes_max).unwrap_or(u64::MAX);
        let ((), answer, complaint) = tokio::join!(
            write,
            read_at_most(stdout, answer_bytes_max),
            read_at_most(stderr, COMPLAINT_BYTES_MAX),
        );
        let status = child.wait().await.map_err(|error| failed(&error.to_string()))?;
        if !status.success() {
            return Err(self.blame(status, &String::from_utf8_lossy(&complaint), format));
        }
        match serde_json::from_slice(&answer) {
            Ok(Answer::Extracted(extracted)) => Ok(extracted),
            Ok(Answer::Refused(error)) => Err(error),
            Err(error) => Err(failed(&format!("its answer is not understood ({error})"))),
        }
    }

    /// Why a child ended without an answer.
    fn blame(&self, status: ExitStatus, complaint: &str, format: Format) -> Error {
        let out_of_memory = complaint.contains("memory allocation of")
            || complaint.contains("out of memory")
            || complaint.contains("Cannot allocate memory");
        let signal = status.signal();
        let is = |wanted: Signal| signal == Some(wanted.as_raw());
        if out_of_memory || is(Signal::KILL) {
            return Error::TooMuchMemory { memory_bytes_max: self.memory_bytes_max };
        }
        if is(Signal::XCPU) {
            return Error::TookTooLong { time_max: self.time_max };
        }
        if is(Signal::SEGV) || complaint.contains("overflowed its stack") {
            return Error::broken(format, "the parser crashed on it");
        }
        let complaint = complaint.lines().next().unwrap_or_default();
        failed(&format!("it ended with {status} ({complaint})"))
    }
}

fn failed(problem: &str) -> Error {
    Error::Sandbox { problem: problem.to_owned() }
}

/// The beginning of what is written; the rest is read and forgotten, so that the writer can end.
async fn read_at_most(mut pipe: impl AsyncRead + Unpin, bytes_max: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = (&mut pipe).take(bytes_max).read_to_end(&mut bytes).await;
    let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    bytes
}
