//! Watches on databases whose own feed of changes has no revisions.
//!
//! Not an engine: the part that adapters would otherwise each write. CouchDB's `_changes` and DynamoDB's streams
//! say which documents changed, each in an order that only the reader of one connection sees. A watch needs
//! [revisions](keyward_engine::Revision): numbers that everybody who watches agrees on.
//!
//! [`Changes`] follows such a feed once per process, while anybody watches, and numbers what it reads. Every watch
//! of the process reads these numbers from one [log](keyward_engine::ChangeLog), and can resume from any of them
//! that is still kept. The numbers begin at random, so those of another process are recognized, and answered with
//! [`TooOld`](keyward_engine::Event::TooOld): list again. This is
//! [`WatchSupport::Live`](keyward_engine::WatchSupport::Live).
//!
//! When the last watch ends, the position in the feed is kept. The next watch goes on from there, so nothing is
//! missed between two watches, unless too much has changed meanwhile to catch up with.

mod log;
mod session;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use keyward_engine::{BoxStream, Event, Result, Revision, follow};
use keyward_key::KeyRange;
use tokio::sync::watch;

use crate::log::Log;
use crate::session::Watcher;
pub use crate::source::{ChangeSource, Slice, Wait};

/// The changes of one store, as every watch of this process sees them. Clones share them.
pub struct Changes<S: ChangeSource>(Arc<Shared<S>>);

struct Shared<S: ChangeSource> {
    source: S,
    log: watch::Sender<Log<S::Position>>,
}

impl<S: ChangeSource> Changes<S> {
    /// The changes that a source tells. Nothing is read until somebody watches.
    pub fn new(source: S) -> Self {
        Self(Arc::new(Shared { source, log: watch::Sender::new(Log::new()) }))
    }

    /// What changes in a range after a revision, or from now on.
    ///
    /// Must be called, and read, within a Tokio runtime: the feed is followed by a task, which ends with the last
    /// watch.
    pub fn watch(
        &self,
        range: KeyRange,
        since: Option<Revision>,
    ) -> BoxStream<'static, Result<Event>> {
        follow(Watcher::new(self.0.clone()), range, since)
    }
}

impl<S: ChangeSource> Clone for Changes<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
