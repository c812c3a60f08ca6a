use keyward_engine::{Change, Result};

/// A database's own feed of changes.
pub trait ChangeSource: Send + Sync + 'static {
    /// A place in the feed.
    type Position: Clone + Send + Sync + 'static;

    /// The place where the feed is now: every change that is acknowledged after this call comes after it.
    fn now(&self) -> impl Future<Output = Result<Self::Position>> + Send;

    /// Some changes after a place, oldest first, and the place after them. Several changes of one key may be told as
    /// one. May be dropped while it waits.
    fn read(
        &self,
        after: &Self::Position,
        wait: Wait,
    ) -> impl Future<Output = Result<Slice<Self::Position>>> + Send;
}

/// What to do where there is nothing to read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Answer at once.
    No,
    /// Wait for a change, for as long as the database is made for.
    ForChanges,
}

/// A piece of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slice<P> {
    /// Changes, in the order in which they are told. None if nothing has changed, or nothing that a store knows.
    Changes {
        /// The changes.
        changes: Vec<Change>,
        /// The place after them.
        position: P,
        /// Whether more is known to follow.
        more: bool,
    },
    /// The database no longer knows the place.
    Lost,
}
