//! Turning a log of commits into a stream of events: the same for every engine that keeps one.

use futures_util::stream;
use keyward_key::KeyRange;

use crate::{BoxStream, Change, Event, Result, Revision};

/// A log of commits, as an engine keeps it for watchers.
pub trait ChangeLog: Send + Sync + 'static {
    /// The revision of the last commit.
    fn latest(&self) -> impl Future<Output = Result<Revision>> + Send;

    /// Some commits after a revision, oldest first, without a gap; none if there are none yet.
    fn read(&self, after: Revision) -> impl Future<Output = Result<LogSlice>> + Send;

    /// Waits until there may be a commit after a revision. May wake for nothing.
    fn wait(&mut self, after: Revision) -> impl Future<Output = Result<()>> + Send;
}

/// A piece of a [`ChangeLog`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogSlice {
    /// Commits in order, each with what it changed.
    Commits(Vec<(Revision, Vec<Change>)>),
    /// The revision asked for is older than the log, or newer than the store.
    TooOld {
        /// The earliest revision that can still be asked for.
        earliest: Revision,
    },
}

/// Follows a log from a revision, or from now, and tells what changes in a range.
pub fn follow(
    log: impl ChangeLog,
    range: KeyRange,
    since: Option<Revision>,
) -> BoxStream<'static, Result<Event>> {
    let follower = Follower { log, range, at: since, told: Vec::new(), state: State::Starting };
    Box::pin(stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await.transpose()?;
        Some((event, follower))
    }))
}

struct Follower<L> {
    log: L,
    range: KeyRange,
    at: Option<Revision>,
    /// Events read but not yet told, newest first.
    told: Vec<Event>,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Starting,
    Following,
    Ended,
}

impl<L: ChangeLog> Follower<L> {
    async fn next(&mut self) -> Result<Option<Event>> {
        if self.state == State::Ended {
            return Ok(None);
        }
        let result = self.advance().await;
        if !matches!(result, Ok(Some(Event::Reached(_) | Event::Changed { .. }))) {
            self.state = State::Ended;
        }
        result
    }

    async fn advance(&mut self) -> Result<Option<Event>> {
        let mut at = match self.at {
            Some(at) => at,
            None => self.log.latest().await?,
        };
        self.at = Some(at);
        if self.state == State::Starting {
            // Asking now, rather than at the first commit, tells at once that a point is too old.
            if let LogSlice::TooOld { earliest } = self.log.read(at).await? {
                return Ok(Some(Event::TooOld { earliest }));
            }
            self.state = State::Following;
            return Ok(Some(Event::Reached(at)));
        }
        loop {
            if let Some(event) = self.told.pop() {
                return Ok(Some(event));
            }
            match self.log.read(at).await? {
                LogSlice::TooOld { earliest } => return Ok(Some(Event::TooOld { earliest })),
                LogSlice::Commits(commits) if commits.is_empty() => self.log.wait(at).await?,
                LogSlice::Commits(commits) => {
                    at = commits.last().map_or(at, |(revision, _)| *revision);
                    self.at = Some(at);
                    self.told = events(commits, &self.range);
                }
            }
        }
    }
}

/// The events of some commits, newest first. Commits that changed nothing in the range only move
/// the point to resume from.
fn events(commits: Vec<(Revision, Vec<Change>)>, range: &KeyRange) -> Vec<Event> {
    let mut events = Vec::new();
    let mut quiet = None;
    for (revision, mut changes) in commits {
        changes.retain(|change| range.contains(&change.key));
        quiet = changes.is_empty().then_some(revision);
        if !changes.is_empty() {
            // A follower may hold its events for long: not with the room of what it does not want.
            changes.shrink_to_fit();
            events.push(Event::Changed { revision, changes });
        }
    }
    events.extend(quiet.map(Event::Reached));
    events.reverse();
    events
}
