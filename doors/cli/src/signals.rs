//! The signals that end a command or are passed on to one.

use std::future::pending;
use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::failure::{Failure, Result};

/// Notices signals from the moment it is made.
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hang_up: unix::Signal,
    quit: unix::Signal,
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came(pub Signal);

impl Came {
    /// The code of a process that the signal ended, as shells have it.
    pub fn exit_code(self) -> u8 {
        u8::try_from(128 + self.0.as_raw()).unwrap_or(u8::MAX)
    }

    /// Whether a terminal sends it to every process of the foreground.
    pub fn is_of_terminal(self) -> bool {
        [Signal::INT, Signal::QUIT].contains(&self.0)
    }
}

impl Signals {
    /// Begins to listen.
    pub fn listen() -> Result<Self> {
        let listen = || -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
                quit: signal(SignalKind::quit())?,
            })
        };
        listen().map_err(|error| Failure::file("cannot listen to signals", &error))
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Came {
        let (came, signal) = tokio::select! {
            came = self.interrupt.recv() => (came, Signal::INT),
            came = self.terminate.recv() => (came, Signal::TERM),
            came = self.hang_up.recv() => (came, Signal::HUP),
            came = self.quit.recv() => (came, Signal::QUIT),
        };
        if came.is_none() {
            return pending().await;
        }
        Came(signal)
    }
}
