//! A smart HTTP server around `git http-backend`: the least of HTTP/1.1 and of CGI that git needs,
//! one thread and one process for each request.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use data_encoding::BASE64;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{exporting, git};

/// Who is let in.
#[derive(Clone, Debug)]
pub struct Account {
    /// The name.
    pub username: String,
    /// The password or token.
    pub password: String,
}

impl Account {
    /// An account.
    pub fn new(username: &str, password: &str) -> Self {
        Self { username: username.to_owned(), password: password.to_owned() }
    }
}

/// A server on a loopback port, stopped when it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    authority: Option<PathBuf>,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    root: PathBuf,
    account: Option<Account>,
    tls: Option<Arc<ServerConfig>>,
    stopping: AtomicBool,
    failing: AtomicBool,
    cut_at: AtomicUsize,
    requests: AtomicUsize,
    credentials: AtomicUsize,
    redirect: Mutex<Option<String>>,
}

impl HttpServer {
    pub(super) fn start(root: &Path, account: Option<Account>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("it has an address");
        let (tls, authority) = match account {
            // Credentials go over TLS only.
            Some(_) => {
                let (tls, certificate) = certified();
                let path = root.join(format!("authority-{}.pem", address.port()));
                std::fs::write(&path, certificate).expect("the authority is written");
                (Some(tls), Some(path))
            }
            None => (None, None),
        };
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            account,
            tls,
            stopping: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            cut_at: AtomicUsize::new(usize::MAX),
            requests: AtomicUsize::new(0),
            credentials: AtomicUsize::new(0),
            redirect: Mutex::new(None),
        });
        let accepting = std::thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        });
        Self { address, authority, shared, accepting: Some(accepting) }
    }

    /// The repository's URL.
    pub fn url(&self) -> String {
        match self.shared.tls {
            Some(_) => format!("https://localhost:{}/policies.git", self.address.port()),
            None => format!("http://{}/policies.git", self.address),
        }
    }

    /// The file of the authority that the server's certificate is from, if it speaks TLS.
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_deref()
    }

    /// Answers everything with 503 from now on, or no more.
    pub fn fail(&self, failing: bool) {
        self.shared.failing.store(failing, Ordering::SeqCst);
    }

    /// Cuts answers off after so many bytes of what git says, headers included.
    pub fn cut_at(&self, bytes: usize) {
        self.shared.cut_at.store(bytes, Ordering::SeqCst);
    }

    /// How many requests there have been.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// How many of them came with credentials, whichever.
    pub fn credentials_seen(&self) -> usize {
        self.shared.credentials.load(Ordering::SeqCst)
    }

    /// Sends everybody on to another repository from now on, or no more.
    pub fn redirect_to(&self, url: Option<String>) {
        *self.shared.redirect.lock().expect("nobody panicked") = url;
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the one who accepts.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

/// A certificate for `localhost` that is its own authority, and the authority as PEM.
fn certified() -> (Arc<ServerConfig>, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
        .expect("a certificate is made");
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider speaks TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the certificate fits its key");
    (Arc::new(config), made.cert.pem())
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = shared.clone();
        // A client that goes away is its own affair.
        std::thread::spawn(move || match &shared.tls {
            Some(tls) => {
                let connection = ServerConnection::new(tls.clone()).expect("the settings are good");
                let mut stream = BufReader::new(StreamOwned::new(connection, stream));
                let served = serve(&mut stream, &shared);
                let stream = stream.get_mut();
                stream.conn.send_close_notify();
                drop(stream.flush());
                served
            }
            None => serve(&mut BufReader::new(stream), &shared),
        });
    }
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn serve<S: Read + Write>(stream: &mut BufReader<S>, shared: &Shared) -> std::io::Result<()> {
    let Some(request) = read_request(stream)? else { return Ok(()) };
    shared.requests.fetch_add(1, Ordering::SeqCst);
    let answer = answer(&request, shared);
    let stream = stream.get_mut();
    stream.write_all(&answer[..answer.len().min(shared.cut_at.load(Ordering::SeqCst))])?;
    stream.flush()
}

fn read_request<S: Read>(stream: &mut BufReader<S>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut parts = line.split_whitespace();
    let method = parts.next().unwrap_or_default().to_owned();
    let target = parts.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, query, headers, body: Vec::new() };
    if request.header("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; length + 2];
            stream.read_exact(&mut chunk)?;
            if length == 0 {
                break;
            }
            request.body.extend_from_slice(&chunk[..length]);
        }
    } else if let Some(length) = request.header("content-length").and_then(|n| n.parse().ok()) {
        request.body = vec![0; length];
        stream.read_exact(&mut request.body)?;
    }
    Ok(Some(request))
}

fn answer(request: &Request, shared: &Shared) -> Vec<u8> {
    if shared.failing.load(Ordering::SeqCst) {
        return plain("503 Service Unavailable", "");
    }
    if request.header("authorization").is_some() {
        shared.credentials.fetch_add(1, Ordering::SeqCst);
    }
    if let Some(url) = shared.redirect.lock().expect("nobody panicked").as_deref() {
        let rest = request.path.strip_prefix("/policies.git").unwrap_or_default();
        let location = format!("Location: {url}{rest}?{}\r\n", request.query);
        return plain("302 Found", &location);
    }
    if let Some(account) = &shared.account {
        let wanted = BASE64.encode(format!("{}:{}", account.username, account.password).as_bytes());
        let given = request.header("authorization").and_then(|value| value.strip_prefix("Basic "));
        if given != Some(wanted.as_str()) {
            return plain("401 Unauthorized", "WWW-Authenticate: Basic realm=\"git\"\r\n");
        }
    }
    let mut backend = git();
    exporting(&mut backend, &shared.root);
    let mut child = backend
        .arg("http-backend")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", request.header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", request.header("content-encoding").unwrap_or_default())
        .env("GIT_PROTOCOL", request.header("git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("git http-backend is installed");
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(&request.body)));
        child.wait_with_output().expect("it ends")
    });
    from_cgi(&output.stdout)
}

fn from_cgi(said: &[u8]) -> Vec<u8> {
    let Some(end) = said.windows(4).position(|four| four == b"\r\n\r\n") else {
        return plain("502 Bad Gateway", "");
    };
    let (mut status, mut kept) = ("200 OK".to_owned(), String::new());
    for line in String::from_utf8_lossy(&said[..end]).lines() {
        match line.strip_prefix("Status: ") {
            Some(told) => status = told.to_owned(),
            None => drop(write!(kept, "{line}\r\n")),
        }
    }
    let body = &said[end + 4..];
    let head = format!(
        "HTTP/1.1 {status}\r\n{kept}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn plain(status: &str, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n")
        .into_bytes()
}
