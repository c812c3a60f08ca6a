//! The server against the least that could answer, and against its own store without a wire.

use std::error::Error;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, put};
use keyward::{Data, Key};
use keyward_engine::{Json, Put, Store};
use keyward_server::{Config, Server, without_schema};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use super::commit::{Commits, Durable, MANY};
use crate::Result;
use crate::bench::{Bench, fill, inline};
use crate::measure::{Side, alternate, rate};
use crate::records::{self, Record, TEN_THOUSAND};
use crate::report::{Goal, Row};

const READERS: u64 = 16;
const ENTRIES: &str = "/v1/stores/main/entries";

/// Clients that read entries, each on a connection of its own; against a handler of axum that gives
/// the same bytes.
pub fn http_get(bench: &mut Bench) -> Result<Vec<Row>> {
    let (runtime, data, address) = served(bench)?;
    let store = runtime.block_on(data.records("main"))?.store().clone();
    fill(&inline()?, &store, TEN_THOUSAND)?;
    let same = records::value(0)?.to_bytes();
    let keys = records::random_keys(1_000, TEN_THOUSAND, 1)?.into_iter();
    let requests: Arc<Vec<String>> = Arc::new(
        keys.map(|key| format!("GET {ENTRIES}/{key} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
            .collect(),
    );
    let answer = move || {
        let same = same.clone();
        async move { ([(CONTENT_TYPE, "application/json")], same) }
    };
    let router = Router::new().route(&format!("{ENTRIES}/{{key}}"), get(answer));
    let bare = runtime.block_on(serve_bare(router))?;
    let ours = runtime.block_on(connected(address, READERS))?;
    let theirs = runtime.block_on(connected(bare, READERS))?;
    let time = bench.settings.commit_time;
    let comparison = alternate(bench.settings.commit_rounds, |side, _| {
        let connections = if side == Side::Measured { &ours } else { &theirs };
        let (connections, requests) = (connections.clone(), requests.clone());
        runtime.block_on(rate(READERS, time, 0, move |n| {
            let (connections, requests) = (connections.clone(), requests.clone());
            async move { ask(&connections, n, &requests[apart(n, requests.len())]).await }
        }))
    })?;
    Ok(vec![Row {
        case: "http_get".to_owned(),
        compares: format!("GET of an entry / a bare handler, connections: {READERS}"),
        comparison,
        unit: "requests/s",
        goal: Some(Goal::AtLeast(0.6)),
    }])
}

/// Clients that put entries, each on a connection of its own; against the very commits of `commit64`,
/// put into the same store without a server between. And the same for a handler of axum that does
/// nothing but the commit: what the wire and the load themselves cost on this machine, which no server
/// can give back.
pub fn http_put64(bench: &mut Bench) -> Result<Vec<Row>> {
    let (runtime, data, address) = served(bench)?;
    let store = runtime.block_on(data.records("main"))?.store().clone();
    fill(&inline()?, &store, TEN_THOUSAND)?;
    let bare = runtime.block_on(bare_puts(store.clone()))?;
    let commits = Commits::new(bench, &runtime)?;
    let mut rows = Vec::new();
    for (case, compares, address, goal) in [
        ("http_put64", "durable PUT of an entry", address, Some(Goal::AtLeast(0.7))),
        ("http_put64_bare", "the same by a bare handler", bare, None),
    ] {
        let connections = runtime.block_on(connected(address, MANY as u64))?;
        let clients = || (0..MANY).map(|client| Putting::new(&connections, client)).collect();
        let comparison = alternate(bench.settings.commit_rounds, |side, _| match side {
            Side::Measured => commits.rate::<Putting>(clients()),
            Side::Reference => commits.rate(vec![store.clone(); MANY]),
        })?;
        rows.push(Row {
            case: case.to_owned(),
            compares: format!("{compares} / the same commits in process, clients: {MANY}"),
            comparison,
            unit: "requests/s",
            goal,
        });
    }
    Ok(rows)
}

/// A client that puts entries on a connection of its own.
struct Putting {
    connections: Connections,
    client: usize,
    request: String,
}

impl Putting {
    fn new(connections: &Connections, client: usize) -> Self {
        Self { connections: connections.clone(), client, request: String::new() }
    }
}

impl Durable for Putting {
    async fn write(&mut self, Record { key, value }: Record) -> Result<()> {
        self.request.clear();
        write!(
            self.request,
            "PUT {ENTRIES}/{key} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{value}",
            value.len()
        )?;
        self.connections[self.client].lock().await.ask(self.request.as_bytes()).await
    }
}

/// A handler that puts what it is sent, and nothing else.
async fn bare_puts(store: Store) -> Result<SocketAddr> {
    let put_entry = move |Path(key): Path<String>, body: Bytes| async move {
        let done = async {
            store.put(Key::parse(&key)?, Put::new(Json::parse(body)?)).await?;
            Ok::<(), Box<dyn Error>>(())
        };
        done.await.map_err(|_| StatusCode::BAD_REQUEST)
    };
    serve_bare(Router::new().route(&format!("{ENTRIES}/{{key}}"), put(put_entry))).await
}

pub(super) async fn serve_bare(router: Router) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, router).await });
    Ok(address)
}

/// A server on an embedded store of its own.
pub(super) fn served(bench: &mut Bench) -> Result<(Runtime, Data, SocketAddr)> {
    let runtime = Runtime::new()?;
    let data = without_schema(&format!("embedded:{}", bench.scratch().display()))?;
    let config = Config { listen: "127.0.0.1:0".parse()?, ..Config::default() };
    let server = runtime.block_on(Server::bind(&config, &data))?;
    let address = server.address();
    runtime.spawn(server.run(std::future::pending()));
    Ok((runtime, data, address))
}

pub(super) type Connections = Arc<Vec<Mutex<Connection>>>;

pub(super) async fn connected(address: SocketAddr, clients: u64) -> Result<Connections> {
    let mut connections = Vec::new();
    for _ in 0..clients {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        connections.push(Mutex::new(Connection { stream, answer: Vec::new() }));
    }
    Ok(Arc::new(connections))
}

/// Which client has a number: `rate` gives each ten thousand.
fn client(number: u64) -> usize {
    number as usize / 10_000
}

/// One of so many things for each number; clients go through them from places of their own.
pub(super) fn apart(number: u64, things: usize) -> usize {
    (number as usize + client(number) * 61) % things
}

/// Sends a request on the connection of the client that has this number, and reads the answer.
pub(super) async fn ask(connections: &Connections, number: u64, request: &str) -> Result<()> {
    connections[client(number) % connections.len()].lock().await.ask(request.as_bytes()).await
}

/// A connection that stays open.
pub(super) struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    async fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err("the server ended the connection".into());
            }
            if let Some(bytes) = whole(&self.answer)? {
                return if self.answer.len() == bytes {
                    Ok(())
                } else {
                    Err("an answer was longer than it said".into())
                };
            }
        }
    }
}

/// How long an answer is, once all of it is there. Anything but success is an error.
fn whole(answer: &[u8]) -> Result<Option<usize>> {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&answer[..head])?;
    if !text.starts_with("HTTP/1.1 200") {
        return Err(text.lines().next().unwrap_or_default().into());
    }
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    let bytes = head + 4 + length.ok_or("an answer without a length")??;
    Ok((answer.len() >= bytes).then_some(bytes))
}
