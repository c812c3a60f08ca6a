//! Responses that wait for their clients to read them: bounded in memory, in all and for one address.
//!
//! How large a response is, is known only when it is there, and what was done cannot be refused any more.
//! So a large response is always counted, and an address with too much unread gets nothing done until its
//! clients have read, or were closed because they do not.

use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Extensions, Response};
use hyper::body::{Frame, SizeHint};

use super::slots::overloaded;
use crate::app::App;
use crate::listener::Peer;
use crate::problem::Result;
use crate::shares::{Full, Holder, Place};

/// Smaller responses are not counted: the connections themselves take as much.
const FREE_BYTES_MAX: u64 = 16 * 1024;
/// How much of a response is handed to its connection at a time. The rest stays here, and counts.
const PIECE_BYTES_MAX: usize = 32 * 1024;

fn holder(extensions: &Extensions) -> Holder {
    let peer = extensions.get::<Peer>();
    Holder::at(peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.0))
}

/// Refuses a request from an address whose clients have left too much unread, before anything is done.
pub(super) fn check(app: &App, extensions: &Extensions) -> Result<()> {
    app.responses().check(&holder(extensions)).map_err(|full| {
        overloaded(match full {
            Full::All => "too many large responses wait to be read by their clients",
            Full::Part => "clients at this address have too many large responses unread",
        })
    })
}

/// Counts the responses to one request.
#[derive(Debug)]
pub(super) struct Count(Holder);

impl Count {
    pub fn of(extensions: &Extensions) -> Self {
        Self(holder(extensions))
    }

    /// Counts a large response until it is sent or given up. What is streamed waits where it comes from.
    pub fn response(self, app: &App, response: Response<Body>) -> Response<Body> {
        let bytes = response.body().size_hint().exact().filter(|bytes| *bytes > FREE_BYTES_MAX);
        let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()) else {
            return response;
        };
        let place = app.responses().hold(&self.0, bytes);
        response.map(|body| Body::new(Counted { body, waiting: Bytes::new(), _place: place }))
    }
}

/// A body that counts as long as not all of it was taken by its connection.
struct Counted {
    body: Body,
    /// What came from the body and was not taken yet.
    waiting: Bytes,
    _place: Place,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.waiting.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => self.waiting = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let bytes = self.waiting.len().min(PIECE_BYTES_MAX);
        Poll::Ready(Some(Ok(Frame::data(self.waiting.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let waiting = self.waiting.len() as u64;
        match self.body.size_hint().exact() {
            Some(rest) => SizeHint::with_exact(waiting + rest),
            None => SizeHint::default(),
        }
    }
}
