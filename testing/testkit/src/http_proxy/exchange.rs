use std::error::Error;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue, RETRY_AFTER, TRANSFER_ENCODING,
};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::short_stream::StreamEnd;
use super::{NetworkFault, UnderWay};

/// A request, and what becomes of it.
pub(super) struct Exchange {
    pub(super) upstream: SocketAddr,
    /// The end of the client's connection.
    pub(super) end: StreamEnd,
    pub(super) fault: Option<NetworkFault>,
    /// Dropped with the exchange, once the request is carried out.
    pub(super) under_way: UnderWay,
}

/// Why a connection is closed without an answer.
pub(super) type Cut = Box<dyn Error + Send + Sync>;

type Body = BoxBody<Bytes, hyper::Error>;

impl Exchange {
    /// The client's answer; an error closes the client's connection.
    pub(super) async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, body.collect().await?.to_bytes());
        // A task of its own: what was received goes on also when the client no longer waits.
        tokio::spawn(async move {
            let answer = self.carry_out(request).await;
            drop(self.under_way);
            answer
        })
        .await?
    }

    async fn carry_out(&self, request: Request<Bytes>) -> Result<Response<Body>, Cut> {
        match self.fault {
            None => {}
            Some(NetworkFault::Delay(pause)) => tokio::time::sleep(pause).await,
            Some(NetworkFault::CutBefore) => return Err("cut before the request".into()),
            Some(NetworkFault::Answer(status)) => return answer(status),
            Some(NetworkFault::Refuse(status, json)) => {
                let mut response = Response::new(whole(Bytes::from_static(json.as_bytes())));
                *response.status_mut() = StatusCode::from_u16(status)?;
                let media_type = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, media_type);
                return Ok(response);
            }
            Some(NetworkFault::CutAfter) => {
                self.forward_whole(request).await?;
                return Err("cut after the request".into());
            }
            Some(NetworkFault::AnswerAfter(status)) => {
                self.forward_whole(request).await?;
                return answer(status);
            }
            Some(NetworkFault::CutHalfway) => {
                let response = self.forward_whole(request).await?;
                self.end.after(half(&response));
                return Ok(response.map(whole));
            }
        }
        Ok(self.forward(request).await?.map(BodyExt::boxed))
    }

    async fn forward_whole(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let (head, body) = self.forward(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }

    /// Sends a request to the server over a connection of its own: one that is kept could be closed
    /// by the server just then, which is a fault that nobody asked for.
    async fn forward(&self, mut request: Request<Bytes>) -> Result<Response<Incoming>, Cut> {
        drop_hop_headers(request.headers_mut());
        request.headers_mut().remove(EXPECT);
        let stream = TcpStream::connect(self.upstream).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut response = sender.send_request(request.map(Full::new)).await?;
        drop_hop_headers(response.headers_mut());
        Ok(response)
    }
}

/// Removes what is said of one connection only.
fn drop_hop_headers(headers: &mut HeaderMap) {
    for name in [CONNECTION, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}

fn answer(status: u16) -> Result<Response<Body>, Cut> {
    let status = StatusCode::from_u16(status)?;
    let text = status.canonical_reason().unwrap_or("injected by a fault");
    let mut response = Response::new(whole(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    if [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("0"));
    }
    Ok(response)
}

fn whole(body: Bytes) -> Body {
    Full::new(body).map_err(|never| match never {}).boxed()
}

/// A number of bytes that holds at least the status line and never the whole answer: the head at its
/// shortest, without its last line, and half of the body.
fn half(response: &Response<Bytes>) -> usize {
    const STATUS_LINE: usize = "HTTP/1.1 200 \r\n".len();
    let fields = response.headers().iter();
    let fields: usize = fields.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    STATUS_LINE + fields + response.body().len() / 2
}
