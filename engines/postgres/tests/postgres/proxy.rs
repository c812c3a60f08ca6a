//! A proxy before the server, which counts round trips and cuts connections when told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use keyward_engine::Store;
use keyward_postgres::{Options, Postgres, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_postgres::config::Host;

use crate::server;

/// Stands between an engine and the server. Lives as long as its runtime.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    round_trips: AtomicUsize,
    cut: AtomicU8,
    severed: Notify,
}

/// Where a connection is cut.
#[derive(Clone, Copy)]
pub enum Cut {
    /// The next request does not arrive.
    Request = 1,
    /// The next request arrives, and its answer does not.
    Answer = 2,
}

impl Proxy {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let state = proxy.state.clone();
        let config = server::config();
        let Some(Host::Tcp(host)) = config.get_hosts().first() else {
            panic!("KEYWARD_TEST_POSTGRES names a host that can be reached by TCP");
        };
        let server = (host.clone(), config.get_ports().first().copied().unwrap_or(5432));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(carry(client, server, state.clone()));
            }
        });
        proxy
    }

    /// Opens a store through the proxy, not encrypted.
    pub async fn open(&self, options: Options) -> Store {
        let config = server::config();
        let user = config.get_user().unwrap_or("postgres");
        let password = config.get_password().map(String::from_utf8_lossy).unwrap_or_default();
        let database = config.get_dbname().unwrap_or("postgres");
        let address = format!("postgres://{user}:{password}@{}/{database}", self.address);
        let options = Options { tls: Tls::Disable, ..options };
        Store::new(Postgres::open(&address, options).await.unwrap())
    }

    /// How often something was sent to the server after it had answered.
    pub fn round_trips(&self) -> usize {
        self.state.round_trips.load(Ordering::SeqCst)
    }

    /// Cuts the connection over which the next request comes.
    pub fn cut(&self, cut: Cut) {
        self.state.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// Cuts every connection there is.
    pub fn sever(&self) {
        self.state.severed.notify_waiters();
    }
}

impl State {
    /// Whether to cut here: once.
    fn cuts(&self, here: Cut) -> bool {
        self.cut.compare_exchange(here as u8, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

async fn carry(client: TcpStream, server: TcpStream, state: Arc<State>) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answered = AtomicBool::new(true);
    // When one direction ends, so does the other.
    tokio::select! {
        () = state.severed.notified() => {}
        () = requests(from_client, to_server, &state, &answered) => {}
        () = answers(from_server, to_client, &state, &answered) => {}
    }
}

async fn requests(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    state: &State,
    answered: &AtomicBool,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = client.read(&mut bytes).await {
        if state.cuts(Cut::Request) {
            return;
        }
        if answered.swap(false, Ordering::SeqCst) {
            state.round_trips.fetch_add(1, Ordering::SeqCst);
        }
        if server.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

async fn answers(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    state: &State,
    answered: &AtomicBool,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = server.read(&mut bytes).await {
        if state.cuts(Cut::Answer) {
            return;
        }
        answered.store(true, Ordering::SeqCst);
        if client.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
