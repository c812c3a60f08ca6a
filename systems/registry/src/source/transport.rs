//! Ways to a repository on another machine: each with a bound on how long it is silent, none that
//! prompts, and none that takes a word from the machine's or a user's git configuration.

use std::io::Read;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::blocking_io::{Transport, connect, http};
use gix::protocol::transport::client::git::ConnectMode;
use gix::protocol::transport::client::git::blocking_io::Connection;
use gix::url::Scheme;

use super::interrupt::Interrupt;
use super::{Credentials, Options};

/// How long a connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(20);
/// How long the other side may be silent. Servers that work on a pack send signs of life.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How much is kept of what `ssh` complains of.
const COMPLAINT_BYTES_MAX: u64 = 4_096;

/// A way to a repository, or in words why there is none.
pub(super) fn open(
    url: &gix::Url,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<Box<dyn Transport + Send>, String> {
    match url.scheme {
        Scheme::Git => daemon(url, interrupt),
        Scheme::Ssh => ssh(url, options, interrupt),
        _ => connect::connect(
            url.clone(),
            connect::Options { version: Protocol::V2, ..Default::default() },
        )
        .map_err(|error| super::error::told(&error)),
    }
}

/// What the transport over HTTP is told before it connects.
pub(super) fn settings(url: &gix::Url, options: &Options) -> Result<Option<http::Options>, String> {
    if !matches!(url.scheme, Scheme::Http | Scheme::Https) {
        return Ok(None);
    }
    // Someone else in the process may have chosen already; theirs is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let authorities = match &options.authority {
        Some(path) => {
            let shown = path.display();
            let pem = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
            reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|error| format!("{shown}: {error}"))?
        }
        None => Vec::new(),
    };
    // Over HTTP nobody hangs up when a fetch is given up; it ends with this.
    let silence_max = SILENCE_MAX.min(options.limits.fetch_time_max);
    let backend = http::reqwest::Options {
        configure_client: Some(Box::new(move |client| {
            Ok(client
                .connect_timeout(CONNECT_TIME_MAX)
                .timeout(silence_max)
                .tls_certs_merge(authorities.iter().cloned()))
        })),
        configure_request: None,
    };
    Ok(Some(http::Options {
        user_agent: Some(concat!("keyward/", env!("CARGO_PKG_VERSION")).to_owned()),
        backend: Some(Arc::new(Mutex::new(backend))),
        ..http::Options::default()
    }))
}

fn daemon(url: &gix::Url, interrupt: &Interrupt) -> Result<Box<dyn Transport + Send>, String> {
    let host = url.host().unwrap_or_default();
    let port = url.port.unwrap_or(9418);
    let addresses = (host.trim_matches(['[', ']']), port)
        .to_socket_addrs()
        .map_err(|error| format!("{host} is not known: {error}"))?;
    let mut failed = format!("{host} has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIME_MAX) {
            Ok(stream) => {
                let transport = over(stream, url, (host.to_owned(), url.port), interrupt);
                return transport.map_err(|error| error.to_string());
            }
            Err(error) => failed = format!("{address}: {error}"),
        }
    }
    Err(failed)
}

fn over(
    stream: TcpStream,
    url: &gix::Url,
    host: (String, Option<u16>),
    interrupt: &Interrupt,
) -> std::io::Result<Box<dyn Transport + Send>> {
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let (writer, line) = (stream.try_clone()?, stream.try_clone()?);
    interrupt.on_line(move || drop(line.shutdown(Shutdown::Both)));
    let connection = Connection::new(
        stream,
        writer,
        Protocol::V2,
        url.path.clone(),
        Some(host),
        ConnectMode::Daemon,
        false,
    );
    Ok(Box::new(connection.custom_url(Some(url.to_bstring()))))
}

/// The `ssh` program, which knows agents, known hosts and the user's own settings.
fn ssh(
    url: &gix::Url,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<Box<dyn Transport + Send>, String> {
    let mut command = Command::new(&options.ssh);
    command.args(["-o", "BatchMode=yes", "-o", "SendEnv=GIT_PROTOCOL"]);
    command.args(["-o", &format!("ConnectTimeout={}", CONNECT_TIME_MAX.as_secs())]);
    command.args(["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"]);
    if let Credentials::SshKey(key) = &options.credentials {
        command.arg("-i").arg(key).args(["-o", "IdentitiesOnly=yes"]);
    }
    if let Some(port) = url.port {
        command.args(["-p", &port.to_string()]);
    }
    let host = url.host_argument_safe().ok_or("the host could be taken for an option")?;
    let host = host.trim_matches(['[', ']']);
    match url.user() {
        Some(_) => {
            let user = url.user_argument_safe().ok_or("the user could be taken for an option")?;
            command.arg("--").arg(format!("{user}@{host}"));
        }
        None => {
            command.arg("--").arg(host);
        }
    }
    // The other side gives this to a shell.
    let path = gix::url::expand_path::for_shell(url.path.clone());
    command.arg(format!("git-upload-pack {}", gix::quote::single(path.as_ref())));
    command.env("GIT_PROTOCOL", "version=2");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        format!("the program {} does not start: {error}", options.ssh.display())
    })?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("ssh has no pipes".to_owned());
    };
    let complaint = Arc::new(Mutex::new(String::new()));
    let listening = std::thread::spawn({
        let complaint = complaint.clone();
        move || {
            let mut said = Vec::new();
            let mut stderr = stderr;
            drop(stderr.by_ref().take(COMPLAINT_BYTES_MAX).read_to_end(&mut said));
            *complaint.lock().unwrap_or_else(PoisonError::into_inner) =
                String::from_utf8_lossy(&said).split_whitespace().collect::<Vec<_>>().join(" ");
            // A pipe that nobody empties would stop it.
            drop(std::io::copy(&mut stderr, &mut std::io::sink()));
        }
    });
    let child = Arc::new(Mutex::new(Process(child)));
    interrupt.on_line({
        let child = child.clone();
        move || child.lock().unwrap_or_else(PoisonError::into_inner).kill()
    });
    let reader = SshOutput { stdout, child, complaint, listening: Some(listening) };
    let connection = Connection::new(
        reader,
        stdin,
        Protocol::V2,
        url.path.clone(),
        None::<(String, Option<u16>)>,
        ConnectMode::Process,
        false,
    );
    Ok(Box::new(connection.custom_url(Some(url.to_bstring()))))
}

/// A process that ends when nobody needs it.
struct Process(Child);

impl Process {
    fn kill(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What `ssh` hands over, and where that ends at once, what it complained of.
struct SshOutput {
    stdout: ChildStdout,
    child: Arc<Mutex<Process>>,
    complaint: Arc<Mutex<String>>,
    listening: Option<std::thread::JoinHandle<()>>,
}

impl Read for SshOutput {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.stdout.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        if let Some(listening) = self.listening.take() {
            self.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
            drop(listening.join());
        }
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        if complaint.is_empty() {
            return Ok(0);
        }
        Err(std::io::Error::other(format!("ssh: {complaint}")))
    }
}
