use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection that can be told to break after so many more bytes are written.
pub(super) struct ShortStream {
    inner: TcpStream,
    end: StreamEnd,
}

/// How many more bytes a [`ShortStream`] lets through.
#[derive(Clone)]
pub(super) struct StreamEnd(Arc<AtomicUsize>);

impl StreamEnd {
    const NEVER: usize = usize::MAX;

    pub(super) fn after(&self, bytes: usize) {
        self.0.store(bytes, Ordering::SeqCst);
    }
}

impl ShortStream {
    pub(super) fn new(inner: TcpStream) -> (Self, StreamEnd) {
        let end = StreamEnd(Arc::new(AtomicUsize::new(StreamEnd::NEVER)));
        (Self { inner, end: end.clone() }, end)
    }
}

impl AsyncRead for ShortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for ShortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<Result<usize>> {
        let left = self.end.0.load(Ordering::SeqCst);
        if left == StreamEnd::NEVER {
            return Pin::new(&mut self.inner).poll_write(context, buffer);
        }
        if left == 0 {
            return Poll::Ready(Err(Error::new(ErrorKind::BrokenPipe, "cut by a fault")));
        }
        let part = &buffer[..buffer.len().min(left)];
        let written = Pin::new(&mut self.inner).poll_write(context, part);
        if let Poll::Ready(Ok(written)) = written {
            self.end.after(left - written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
