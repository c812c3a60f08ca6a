//! Ctrl-C for commands that have something to say or to tidy up before they end.

use std::future::poll_fn;
use std::process;
use std::task::Poll;

use tokio::sync::watch;

use crate::exit::Exit;

/// Notices Ctrl-C from the moment it is made. A second Ctrl-C ends the process at once.
///
/// A command that does not make one is ended by its first Ctrl-C, which no engine minds.
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Begins to listen.
    pub async fn listen() -> Self {
        let (sender, receiver) = watch::channel(false);
        let mut pressed = Box::pin(tokio::signal::ctrl_c());
        // The first poll registers the handler: from here on no signal is missed.
        let first = poll_fn(|context| Poll::Ready(pressed.as_mut().poll(context))).await;
        tokio::spawn(async move {
            let pressed = match first {
                Poll::Ready(pressed) => pressed,
                Poll::Pending => pressed.await,
            };
            if pressed.is_err() {
                // Without a handler Ctrl-C does what it always does. The sender stays, so that
                // nobody takes its end for a signal.
                std::future::pending::<()>().await;
            }
            let _ = sender.send(true);
            if tokio::signal::ctrl_c().await.is_ok() {
                process::exit(Exit::Interrupted.code().into());
            }
        });
        Self(receiver)
    }

    /// Whether Ctrl-C was pressed.
    pub fn pressed(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until Ctrl-C is pressed.
    pub async fn wait(&mut self) {
        let ended = self.0.wait_for(|pressed| *pressed).await.is_err();
        if ended {
            std::future::pending::<()>().await;
        }
    }
}
