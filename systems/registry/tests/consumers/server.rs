//! An HTTP server that does as the test says.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What the server does with a request.
#[derive(Debug, Clone)]
pub enum Answer {
    Say(u16, String),
    Redirect(String),
    /// A body without an end.
    Flood(u16),
    /// No answer at all.
    Never,
    /// Yes, as soon as the test says so.
    Held(Arc<Notify>),
}

#[derive(Debug, Clone)]
pub struct Seen {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Default)]
struct State {
    answers: Mutex<VecDeque<Answer>>,
    seen: Mutex<Vec<Seen>>,
}

pub struct Server {
    pub url: String,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// A server that gives these answers, one after the other, and then says yes to everything.
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        state.answers.lock().unwrap().extend(answers);
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
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(state: Arc<State>, request: Request<Incoming>) -> hyper::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    state.seen.lock().unwrap().push(Seen { headers: parts.headers, body });
    let answer = state.answers.lock().unwrap().pop_front();
    let text = |text: String| http_body_util::Full::new(Bytes::from(text)).boxed_unsync();
    Ok(match answer.unwrap_or(Answer::Say(204, String::new())) {
        Answer::Say(status, said) => {
            let answer = Response::builder().status(status).header("etag", "\"said\"");
            answer.body(text(said)).unwrap()
        }
        Answer::Redirect(to) => {
            let answer = Response::builder().status(302).header("location", to);
            answer.body(text(String::new())).unwrap()
        }
        Answer::Flood(status) => {
            let chunk = Bytes::from(vec![b'x'; 16 << 10]);
            let frames = std::iter::repeat_with(move || Ok(Frame::data(chunk.clone())));
            let body = StreamBody::new(futures_util::stream::iter(frames));
            Response::builder().status(status).body(body.boxed_unsync()).unwrap()
        }
        Answer::Never => std::future::pending().await,
        Answer::Held(released) => {
            released.notified().await;
            Response::builder().header("etag", "\"held\"").body(text(String::new())).unwrap()
        }
    })
}
