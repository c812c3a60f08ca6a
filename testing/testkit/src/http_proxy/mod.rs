//! An HTTP proxy in front of a database: it counts requests and injects faults of the network.

mod exchange;
mod fault;
mod short_stream;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::Method;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use exchange::Exchange;
pub use fault::NetworkFault;
use fault::Plan;
use short_stream::ShortStream;

/// An HTTP/1.1 proxy on a loopback port, in front of a server that speaks plain HTTP.
///
/// It lives on the runtime it was started on, until it is dropped. Requests are forwarded unchanged
/// unless a fault is due; see [`NetworkFault`]. A request that was received is forwarded even if its
/// client no longer waits, as in a real network.
#[derive(Debug)]
pub struct HttpProxy {
    address: SocketAddr,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    inner: Mutex<Inner>,
    /// How many requests are being carried out.
    under_way: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Inner {
    plan: Plan,
    requests: u64,
    log: VecDeque<String>,
}

impl HttpProxy {
    /// How many of the last requests [`HttpProxy::log`] tells.
    pub const LOG_MAX: usize = 1_000;

    /// Starts a proxy in front of a server.
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(State::default());
        let serving = tokio::spawn(serve(listener, upstream, state.clone()));
        Self { address, state, serving }
    }

    /// The address to send requests to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests were received since the start, those that met a fault included.
    pub fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    /// Runs an operation, and counts the requests that are received meanwhile.
    pub async fn count<T>(&self, operation: impl Future<Output = T>) -> (T, u64) {
        let before = self.requests();
        let result = operation.await;
        (result, self.requests() - before)
    }

    /// Waits until no request is under way, also none whose client has given up.
    pub async fn quiet(&self) {
        let mut under_way = self.state.under_way.subscribe();
        // The sender lives as long as the proxy.
        let _ = under_way.wait_for(|requests| *requests == 0).await;
    }

    /// The last requests with the fault that each met, such as `PUT /a?b=1` or
    /// `GET /a (CutAfter)`.
    pub fn log(&self) -> Vec<String> {
        self.state.lock().log.iter().cloned().collect()
    }

    /// Lets the next request meet a fault. Called twice, the next two.
    pub fn fail_next(&self, fault: NetworkFault) {
        self.fail_next_matching(|_, _| true, fault);
    }

    /// Lets the next request meet a fault whose method and path (with its query) match.
    pub fn fail_next_matching(
        &self,
        matches: impl Fn(&Method, &str) -> bool + Send + 'static,
        fault: NetworkFault,
    ) {
        self.state.lock().plan.once.push_back((Box::new(matches), fault));
    }

    /// Lets every request meet a fault, until [`HttpProxy::heal`].
    pub fn fail_always(&self, fault: NetworkFault) {
        self.state.lock().plan.always = Some(fault);
    }

    /// Lets about this part of the requests (from 0, none, to 1, all) meet some fault, until
    /// [`HttpProxy::heal`]. A seed gives the same sequence of faults each time; which request meets
    /// which depends on the order in which they are received.
    pub fn fail_randomly(&self, seed: u64, rate: f64) {
        self.state.lock().plan.seeded(seed, rate);
    }

    /// Ends all faults, also those that met no request yet.
    pub fn heal(&self) {
        self.state.lock().plan = Plan::default();
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, and draws its fault.
    fn receive(&self, method: &Method, path: &str) -> Option<NetworkFault> {
        let mut inner = self.lock();
        let fault = inner.plan.next(method, path);
        inner.requests += 1;
        if inner.log.len() == HttpProxy::LOG_MAX {
            inner.log.pop_front();
        }
        inner.log.push_back(match fault {
            Some(fault) => format!("{method} {path} ({fault:?})"),
            None => format!("{method} {path}"),
        });
        fault
    }
}

/// A request that is being carried out, until it is dropped.
struct UnderWay(Arc<State>);

impl UnderWay {
    fn new(state: Arc<State>) -> Self {
        state.under_way.send_modify(|requests| *requests += 1);
        Self(state)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|requests| *requests -= 1);
    }
}

/// Serves connections. They end with this future.
async fn serve(listener: TcpListener, upstream: SocketAddr, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if let Ok((client, _)) = listener.accept().await {
            connections.spawn(serve_connection(client, upstream, state.clone()));
        }
    }
}

async fn serve_connection(client: TcpStream, upstream: SocketAddr, state: Arc<State>) {
    // Without it, small answers wait for acknowledgements, and timeouts are met by chance.
    let _ = client.set_nodelay(true);
    let (stream, end) = ShortStream::new(client);
    let service = service_fn(|request| {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let fault = state.receive(request.method(), path);
        let under_way = UnderWay::new(state.clone());
        Exchange { upstream, end: end.clone(), fault, under_way }.answer(request)
    });
    // An error is a connection that was cut, by a fault or by the client: either is wanted.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
