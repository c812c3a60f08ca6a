//! A watch, as behaviours follow it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{BoxStream, Change, ChangeKind, Event, Result, Revision};
use keyward_key::{Key, KeyRange};

use crate::subject::Subject;

/// What one commit changed, in the order of the keys.
pub type Changed = (Revision, Vec<(Key, ChangeKind)>);

/// A watch that fails the test rather than wait for ever.
pub struct Watcher {
    stream: BoxStream<'static, Result<Event>>,
    at: Revision,
}

impl Watcher {
    /// How long an event may take to arrive.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Begins to watch; the first event must say after which revision.
    pub async fn start(subject: &Subject, range: KeyRange, since: Option<Revision>) -> Self {
        let mut watcher = Self { stream: subject.store.watch(range, since), at: Revision(0) };
        match watcher.event().await {
            Event::Reached(at) => watcher.at = at,
            other => panic!("a watch begins with Reached, not {other:?}"),
        }
        if let Some(since) = since {
            assert_eq!(watcher.at, since, "a watch begins where it was asked to");
        }
        watcher
    }

    /// The revision up to which everything has been told.
    pub fn at(&self) -> Revision {
        self.at
    }

    /// The next event, which must come in time.
    pub async fn event(&mut self) -> Event {
        let next = tokio::time::timeout(Self::PATIENCE, self.stream.next()).await;
        let next = next.unwrap_or_else(|_| panic!("no event within {:?}", Self::PATIENCE));
        next.unwrap_or_else(|| panic!("the watch ended")).unwrap()
    }

    /// What is told up to a revision. Each commit must come once, in order.
    pub async fn changes_until(&mut self, revision: Revision) -> Vec<Changed> {
        let mut told = Vec::new();
        while self.at < revision {
            match self.event().await {
                Event::Reached(at) => {
                    assert!(at >= self.at, "told {at} after {}", self.at);
                    self.at = at;
                }
                Event::Changed { revision, changes } => {
                    assert!(revision > self.at, "told {revision} after {}", self.at);
                    assert!(!changes.is_empty(), "a change of nothing was told");
                    self.at = revision;
                    told.push((revision, sorted(changes)));
                }
                Event::TooOld { earliest } => panic!("fell behind {earliest}"),
            }
        }
        told
    }

    /// Sees that nothing more comes.
    pub async fn assert_ended(&mut self) {
        let next = tokio::time::timeout(Self::PATIENCE, self.stream.next()).await;
        match next {
            Ok(None) => {}
            other => panic!("the watch should have ended, but told {other:?}"),
        }
    }
}

fn sorted(changes: Vec<Change>) -> Vec<(Key, ChangeKind)> {
    let mut changes: Vec<_> = changes.into_iter().map(|c| (c.key, c.kind)).collect();
    changes.sort_by(|a, b| a.0.cmp(&b.0));
    changes
}
