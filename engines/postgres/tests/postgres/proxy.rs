//! A proxy before the server: counts round trips, and cuts and delays connections when told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use keyward_engine::Store;
use keyward_postgres::{Options, Postgres, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::own_server::OwnServer;
use crate::server;

/// Stands between an engine and the server. Lives as long as its runtime.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    config: Config,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    round_trips: AtomicUsize,
    cut: AtomicU8,
    closed: AtomicBool,
    request_delay_ms: AtomicU64,
    answer_delay_ms: AtomicU64,
    severed: watch::Sender<()>,
}

/// Where a connection is cut.
#[derive(Debug, Clone, Copy)]
pub enum Cut {
    /// The next request does not arrive.
    Request = 1,
    /// The next request arrives, and its answer does not.
    Answer = 2,
}

impl Proxy {
    /// A proxy before the server that all tests share.
    pub async fn start() -> Self {
        let config = server::config();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        Self::to(config, Arc::new(AtomicU16::new(port))).await
    }

    /// A proxy before a server of the test's own, wherever that listens.
    pub async fn before(server: &OwnServer) -> Self {
        Self::to(server.address().parse().unwrap(), server.port()).await
    }

    async fn to(config: Config, port: Arc<AtomicU16>) -> Self {
        let Some(Host::Tcp(host)) = config.get_hosts().first().cloned() else {
            panic!("KEYWARD_TEST_POSTGRES names a host that can be reached by TCP");
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let proxy = Self { address, config, state: state.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let severed = state.severed.subscribe();
                if state.closed.load(Ordering::SeqCst) {
                    continue;
                }
                let server = (host.clone(), port.load(Ordering::SeqCst));
                tokio::spawn(carry(client, server, state.clone(), severed));
            }
        });
        proxy
    }

    /// The server's address by way of the proxy.
    pub fn address(&self) -> String {
        let user = self.config.get_user().unwrap_or("postgres");
        let password = self.config.get_password().map(String::from_utf8_lossy).unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or("postgres");
        format!("postgres://{user}:{password}@{}/{database}", self.address)
    }

    /// Opens a store through the proxy, not encrypted.
    pub async fn open(&self, options: Options) -> Store {
        let options = Options { tls: Tls::Disable, ..options };
        Store::new(Postgres::open(&self.address(), options).await.unwrap())
    }

    /// How often something was sent to the server after it had answered.
    pub fn round_trips(&self) -> usize {
        self.state.round_trips.load(Ordering::SeqCst)
    }

    /// Cuts the connection over which the next request comes.
    pub fn cut(&self, cut: Cut) {
        self.state.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// Takes back a cut that met nothing yet.
    pub fn cut_no_more(&self) {
        self.state.cut.store(0, Ordering::SeqCst);
    }

    /// Cuts every connection there is.
    pub fn sever(&self) {
        self.state.severed.send_replace(());
    }

    /// Cuts every connection there is, and lets nobody in.
    pub fn close(&self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.sever();
    }

    /// Lets everybody in again.
    pub fn reopen(&self) {
        self.state.closed.store(false, Ordering::SeqCst);
    }

    /// Holds up what is sent from now on, in each direction by so much.
    pub fn delay(&self, requests: Duration, answers: Duration) {
        for (field, delay) in
            [(&self.state.request_delay_ms, requests), (&self.state.answer_delay_ms, answers)]
        {
            field.store(delay.as_millis() as u64, Ordering::SeqCst);
        }
    }
}

impl State {
    /// Whether to cut here: once.
    fn cuts(&self, here: Cut) -> bool {
        self.cut.compare_exchange(here as u8, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

async fn carry(
    client: TcpStream,
    server: (String, u16),
    state: Arc<State>,
    mut severed: watch::Receiver<()>,
) {
    // Nobody may be listening; then the client's connection ends, too.
    let Ok(server) = TcpStream::connect(server).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answered = AtomicBool::new(true);
    // When one direction ends, so does the other.
    tokio::select! {
        _ = severed.changed() => {}
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
        hold_up(&state.request_delay_ms).await;
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
        hold_up(&state.answer_delay_ms).await;
        answered.store(true, Ordering::SeqCst);
        if client.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

async fn hold_up(delay_ms: &AtomicU64) {
    match delay_ms.load(Ordering::SeqCst) {
        0 => {}
        ms => sleep(Duration::from_millis(ms)).await,
    }
}
