//! An HTTP server that does as the test says.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio::task::JoinHandle;

/// What the server does with a request.
#[derive(Clone)]
pub enum Reply {
    Say(u16, Value),
    Text(u16, String),
    /// A status with a header, and nothing else.
    Head(u16, &'static str, String),
    /// A body without an end.
    Flood,
    /// The beginning of a body, and then nothing.
    Stall,
    /// A body that never ends and never pauses for long.
    Trickle,
    /// A body that is shorter than it says.
    Short,
    /// No answer at all.
    Never,
    /// An answer as soon as so many others wait for one.
    Together(Arc<Barrier>, Value),
}

#[derive(Clone)]
pub struct Seen {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Default)]
struct State {
    replies: Mutex<VecDeque<Reply>>,
    last: Mutex<Option<Reply>>,
    seen: Mutex<Vec<Seen>>,
    at_once: AtomicUsize,
    at_once_max: AtomicUsize,
}

pub struct Server {
    pub url: String,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// A server that gives these replies, one after the other, and then the last one for ever.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        state.replies.lock().unwrap().extend(replies);
        let serving = state.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = serving.clone();
                let service = service_fn(move |request| answer(state.clone(), request));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        Self { url, state, accepting }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// The most requests that it had at once.
    pub fn at_once_max(&self) -> usize {
        self.state.at_once_max.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(state: Arc<State>, request: Request<Incoming>) -> hyper::Result<Response<Body>> {
    let at_once = state.at_once.fetch_add(1, Ordering::SeqCst) + 1;
    state.at_once_max.fetch_max(at_once, Ordering::SeqCst);
    let (parts, body) = request.into_parts();
    let body = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap();
    let seen = Seen { path: parts.uri.path().to_owned(), headers: parts.headers, body };
    state.seen.lock().unwrap().push(seen);
    let next = state.replies.lock().unwrap().pop_front();
    let reply = {
        let mut last = state.last.lock().unwrap();
        *last = next.or(last.take());
        last.clone().expect("a reply")
    };
    let answer = give(reply).await;
    // Before the answer goes out: who has it may ask again at once.
    state.at_once.fetch_sub(1, Ordering::SeqCst);
    Ok(answer)
}

async fn give(reply: Reply) -> Response<Body> {
    let whole = |text: String| Full::new(Bytes::from(text)).boxed_unsync();
    let json = Response::builder().header("content-type", "application/json");
    match reply {
        Reply::Say(status, body) => json.status(status).body(whole(body.to_string())).unwrap(),
        Reply::Text(status, body) => json.status(status).body(whole(body)).unwrap(),
        Reply::Head(status, name, value) => {
            json.status(status).header(name, value).body(whole(String::new())).unwrap()
        }
        Reply::Flood => {
            let piece = Bytes::from(vec![b' '; 256 << 10]);
            let frames = std::iter::repeat_with(move || Ok(Frame::data(piece.clone())));
            json.body(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()).unwrap()
        }
        Reply::Stall => {
            let begun = std::iter::once(Ok(Frame::data(Bytes::from("{"))));
            let frames = futures_util::stream::iter(begun).chain(futures_util::stream::pending());
            json.body(StreamBody::new(frames).boxed_unsync()).unwrap()
        }
        Reply::Trickle => {
            let ticks = tokio::time::interval(std::time::Duration::from_millis(5));
            let frames = futures_util::stream::unfold(ticks, async |mut ticks| {
                ticks.tick().await;
                Some((Ok(Frame::data(Bytes::from(" "))), ticks))
            });
            json.body(StreamBody::new(frames).boxed_unsync()).unwrap()
        }
        Reply::Short => json.header("content-length", "1000").body(whole("{".to_owned())).unwrap(),
        Reply::Never => std::future::pending().await,
        Reply::Together(others, body) => {
            others.wait().await;
            json.body(whole(body.to_string())).unwrap()
        }
    }
}
