//! Server-sent events to clients that may not read them.
//!
//! Bytes that a client has not taken yet wait in three places: in this stream's share, which is
//! counted here; in the buffers of the connection, which hold nothing but what is counted here; and
//! in the socket, which the listener bounds. A client that takes nothing for a while loses its
//! connection. It comes back with `Last-Event-ID` and misses nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::watch::Open;
use crate::app::App;
use crate::problem::Problem;
use crate::shares::{Place, Shares};

/// How often a stream in which nothing happens gives a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many bytes wait for one client before no further event is taken up, and how large a piece is.
/// An event that makes a client hold more is counted for its credential and for all.
const WAITING_BYTES_MAX: usize = 16 * 1024;
/// How many pieces wait for one client: fewer than the connection would buffer by itself, so that
/// this stream is asked, and notices that nothing is taken.
const WAITING_PIECES_MAX: usize = 8;

/// Why a connection is closed in the middle of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Unread {
    #[error("the client does not read its events")]
    Stalled,
    #[error("too many bytes wait for clients that do not read")]
    Full,
}

/// An event as text.
pub(super) fn event(name: &str, id: Option<u64>, data: &str) -> Bytes {
    let mut text = format!("event: {name}\n");
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    for line in data.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}

/// The event that tells why a stream ends.
pub(super) fn problem_event(problem: &Problem) -> Bytes {
    let data = super::text::Object::new();
    let data = data.text("code", problem.code().name()).text("detail", problem.detail());
    event("problem", None, &data.finish())
}

/// Sends events until they end or `over` comes.
pub(super) fn answer(
    app: &App,
    open: Open,
    events: impl Stream<Item = Bytes> + Send + 'static,
    over: impl Future<Output = ()> + Send + 'static,
) -> Response<Body> {
    let sending = Sending {
        events: events.boxed(),
        over: Box::pin(over),
        waiting: Arc::default(),
        rest: Bytes::new(),
        place: None,
        shares: app.watch_bytes().clone(),
        stalled_time_max: app.limits().watch_stall_time_max,
        open,
        is_over: false,
    };
    let app = app.clone();
    let sent = stream::unfold(sending, move |mut sending| {
        let app = app.clone();
        async move {
            if sending.is_over {
                return None;
            }
            let piece = sending.next().await?;
            if let Err(unread) = piece {
                sending.is_over = true;
                app.metrics().watches_unread.inc();
                tracing::debug!(%unread, "a watch was closed");
            }
            Some((piece, sending))
        }
    });
    let mut response = Response::new(Body::from_stream(sent));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

struct Sending {
    events: BoxStream<'static, Bytes>,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
    waiting: Arc<Waiting>,
    /// What is left of a large event, which goes out in pieces so that progress is seen, and its
    /// place among the bytes of all clients.
    rest: Bytes,
    place: Option<Arc<Place>>,
    /// The bytes that wait for all clients, beyond what each may have.
    shares: Shares,
    stalled_time_max: Duration,
    open: Open,
    is_over: bool,
}

impl Sending {
    /// The next piece, once there is room for it; `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, Unread>> {
        while !self.waiting.has_room() {
            // A piece that is taken is progress, and begins the time again.
            tokio::select! {
                () = &mut self.over => return None,
                taken = timeout(self.stalled_time_max, self.waiting.taken.notified()) => {
                    if taken.is_err() {
                        return Some(Err(Unread::Stalled));
                    }
                }
            }
        }
        if self.rest.is_empty() {
            self.rest = tokio::select! {
                () = &mut self.over => return None,
                event = self.events.next() => event?,
                () = sleep(HEARTBEAT) => Bytes::from_static(b":\n\n"),
            };
            self.place = match self.counted() {
                Ok(place) => place,
                Err(unread) => return Some(Err(unread)),
            };
        }
        let piece = self.rest.split_to(self.rest.len().min(WAITING_BYTES_MAX));
        // The last piece takes the place with it.
        let place = match self.rest.is_empty() {
            true => self.place.take(),
            false => self.place.clone(),
        };
        Some(Ok(self.waiting.piece(piece, place)))
    }

    /// The place of an event among the bytes of all clients, if it is large enough to need one.
    fn counted(&self) -> Result<Option<Arc<Place>>, Unread> {
        let bytes = self.rest.len();
        if self.waiting.bytes() + bytes <= WAITING_BYTES_MAX {
            return Ok(None);
        }
        let place = self.shares.take_some(self.open.holder(), bytes);
        place.map(|place| Some(Arc::new(place))).map_err(|_| Unread::Full)
    }
}

/// What one client has not taken yet.
#[derive(Debug, Default)]
struct Waiting {
    bytes: AtomicUsize,
    pieces: AtomicUsize,
    taken: Notify,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    fn has_room(&self) -> bool {
        self.bytes() < WAITING_BYTES_MAX && self.pieces.load(Ordering::Acquire) < WAITING_PIECES_MAX
    }

    fn piece(self: &Arc<Self>, text: Bytes, place: Option<Arc<Place>>) -> Bytes {
        self.bytes.fetch_add(text.len(), Ordering::AcqRel);
        self.pieces.fetch_add(1, Ordering::AcqRel);
        Bytes::from_owner(Piece { text, waiting: self.clone(), _place: place })
    }
}

/// A piece that waits until the connection has written it, which drops it then.
struct Piece {
    text: Bytes,
    waiting: Arc<Waiting>,
    _place: Option<Arc<Place>>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.waiting.bytes.fetch_sub(self.text.len(), Ordering::AcqRel);
        self.waiting.pieces.fetch_sub(1, Ordering::AcqRel);
        self.waiting.taken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_written_line_by_line() {
        assert_eq!(event("a", Some(7), "{}"), "event: a\nid: 7\ndata: {}\n\n");
        assert_eq!(event("b", None, "1\n2"), "event: b\ndata: 1\ndata: 2\n\n");
    }

    #[test]
    fn pieces_that_are_taken_make_room() {
        let waiting = Arc::new(Waiting::default());
        let mut pieces = Vec::new();
        while waiting.has_room() {
            pieces.push(waiting.piece(Bytes::from_static(b"data: 1\n\n"), None));
        }
        assert_eq!(pieces.len(), WAITING_PIECES_MAX);
        drop(pieces.pop());
        assert!(waiting.has_room());
        pieces.push(waiting.piece(vec![b'x'; WAITING_BYTES_MAX].into(), None));
        pieces.truncate(1);
        pieces.push(waiting.piece(vec![b'x'; WAITING_BYTES_MAX].into(), None));
        assert!(!waiting.has_room(), "one large piece is enough");
        pieces.clear();
        assert_eq!((waiting.bytes(), waiting.has_room()), (0, true));
    }
}
