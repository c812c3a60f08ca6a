//! An HTTP server that answers as the test says.

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub query: String,
    pub credentials: Option<String>,
}

/// What is answered.
#[derive(Debug, Clone)]
pub enum Reply {
    Json(u16, Value),
    /// A status, a media type, and a body.
    Text(u16, &'static str, String),
    Redirect(String),
    /// Busy: come back after so many seconds.
    Later(u16, u32),
    /// The beginning of an answer, and then the connection ends.
    Cut(&'static str, String),
    /// A body without an end.
    Flood(&'static str),
    /// No answer at all.
    Never,
}

type Answer = dyn Fn(&Asked) -> Reply + Send + Sync;
type Body = UnsyncBoxBody<Bytes, io::Error>;

pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Asked>>>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, noted): (Arc<Answer>, _) = (Arc::new(answer), seen.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, noted) = (answer.clone(), noted.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let header = request.headers().get("authorization");
                    let asked = Asked {
                        path: request.uri().path().to_owned(),
                        query: request.uri().query().unwrap_or_default().to_owned(),
                        credentials: header.map(|value| value.to_str().unwrap().to_owned()),
                    };
                    noted.lock().unwrap().push(asked.clone());
                    respond(answer(&asked))
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        Self { url, seen, accepting }
    }

    /// What was asked so far.
    pub fn seen(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn respond(reply: Reply) -> Result<Response<Body>, io::Error> {
    let whole = |text: String| Full::new(Bytes::from(text)).map_err(|e| match e {}).boxed_unsync();
    let answer = Response::builder();
    Ok(match reply {
        Reply::Json(status, value) => {
            let answer = answer.status(status).header("content-type", "application/json");
            answer.body(whole(value.to_string()))
        }
        Reply::Text(status, kind, text) => {
            answer.status(status).header("content-type", kind).body(whole(text))
        }
        Reply::Redirect(to) => answer.status(302).header("location", to).body(whole(String::new())),
        Reply::Later(status, seconds) => {
            let answer = answer.status(status).header("retry-after", seconds);
            answer.body(whole("busy".to_owned()))
        }
        Reply::Cut(kind, text) => {
            let frames = [Ok(Frame::data(Bytes::from(text))), Err(io::ErrorKind::Other.into())];
            let body = StreamBody::new(futures_util::stream::iter(frames));
            answer.header("content-type", kind).body(body.boxed_unsync())
        }
        Reply::Flood(kind) => {
            let chunk = Bytes::from(vec![b' '; 16 << 10]);
            let frames = std::iter::repeat_with(move || Ok(Frame::data(chunk.clone())));
            let body = StreamBody::new(futures_util::stream::iter(frames));
            answer.header("content-type", kind).body(body.boxed_unsync())
        }
        Reply::Never => std::future::pending().await,
    }
    .unwrap())
}
